import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

export interface Arrived {
  path: string;
  id: string;
  headers: IncomingHttpHeaders;
  body: string;
  // biome-ignore lint/suspicious/noExplicitAny: what came is for the test to look at
  message: any;
}

/** A receiver of webhooks on a real socket, which answers as it is told. */
export async function startReceiver() {
  const arrived: Arrived[] = [];
  /** By path; 204 unless given. `silent` never answers, `endless` never ends its answer. */
  const answers = new Map<string, number | 'silent' | 'endless' | { redirectTo: string }>();
  /** Those that wait at a silent path. */
  const waiting: { path: string; outgoing: ServerResponse }[] = [];
  let open = 0;
  const server = createServer(async (incoming, outgoing) => {
    open += 1;
    outgoing.on('close', () => {
      open -= 1;
    });
    const body = await text(incoming).catch(() => '');
    const path = incoming.url ?? '';
    const { headers } = incoming;
    arrived.push({
      path,
      id: String(headers['webhook-id']),
      headers,
      body,
      message: JSON.parse(body || '{}'),
    });
    const answer = answers.get(path) ?? 204;
    if (answer === 'silent') {
      waiting.push({ path, outgoing });
      return;
    }
    if (answer === 'endless') {
      outgoing.writeHead(200);
      while (!outgoing.destroyed) {
        outgoing.write('x'.repeat(65_536));
        await pause(1);
      }
      return;
    }
    if (typeof answer === 'object') return outgoing.writeHead(302, { location: answer.redirectTo }).end();
    outgoing.writeHead(answer).end('{"its own words":"never shown"}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    arrived,
    answers,
    open: () => open,
    /** Answers those that wait at a silent path. */
    letGo(path: string, status: number): void {
      for (const each of waiting) if (each.path === path) each.outgoing.writeHead(status).end();
    },
    at: (path: string) => arrived.filter((each) => each.path === path),
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;
