/** A way to a server on which answers can be cut off or held back, after the server has done what was asked. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** What becomes of an answer: it arrives, it is cut off, it waits until it is let go, or the request waits. */
export type Fate = 'arrives' | 'cut' | 'held';

export type CuttingProxy = Awaited<ReturnType<typeof openCuttingProxy>>;

/** @param decide what becomes of the answer to a request with this body */
export async function openCuttingProxy(targetUrl: string) {
  let decide: (body: string) => Fate = () => 'arrives';
  const seen: { body: string; status: number }[] = [];
  const held: ServerResponse[] = [];
  const front = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch((error: Error) => outgoing.destroy(error));
  });

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const { hostname, port } = new URL(targetUrl);
    const asked = request({
      ...{ hostname, port, path: incoming.url, method: incoming.method, agent: false },
      headers: { ...incoming.headers, host: `${hostname}:${port}` },
    });
    asked.end(body);
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const whole = await buffer(answer);
    seen.push({ body: body.toString(), status: answer.statusCode ?? 0 });
    const fate = decide(body.toString());
    if (fate === 'cut') outgoing.destroy();
    else if (fate === 'held') held.push(outgoing);
    else outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(whole);
  }

  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    /** Requests whose answers the server has given, oldest first. */
    seen,
    /** How many answers wait here. */
    held: () => held.length,
    set(next: (body: string) => Fate): void {
      decide = next;
    },
    async close(): Promise<void> {
      front.closeAllConnections();
      front.close();
    },
  };
}
