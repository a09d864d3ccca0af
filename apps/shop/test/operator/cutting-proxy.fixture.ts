/** A way to a server on which answers can be cut off or held back, after the server has done what was asked. */
import type { ServerResponse } from 'node:http';
import { openForwardingProxy } from './forwarding-proxy.fixture.ts';

/** The fate of an answer: it arrives, it is cut off, it waits until it is let go, or the request waits. */
export type Fate = 'arrives' | 'cut' | 'held';

export type CuttingProxy = Awaited<ReturnType<typeof openCuttingProxy>>;

/** @param decide what becomes of the answer to a request with this body */
export async function openCuttingProxy(targetUrl: string) {
  let decide: (body: string) => Fate = () => 'arrives';
  const seen: { body: string; status: number }[] = [];
  const held: ServerResponse[] = [];
  const { url, close } = await openForwardingProxy(
    targetUrl,
    ({ body, status, headers, answer, outgoing }) => {
      seen.push({ body: body.toString(), status });
      const fate = decide(body.toString());
      if (fate === 'cut') outgoing.destroy();
      else if (fate === 'held') held.push(outgoing);
      else outgoing.writeHead(status, headers).end(answer);
    },
  );
  return {
    url,
    /** Requests whose answers the server has given, oldest first. */
    seen,
    /** How many answers wait here. */
    held: () => held.length,
    set(next: (body: string) => Fate): void {
      decide = next;
    },
    close,
  };
}
