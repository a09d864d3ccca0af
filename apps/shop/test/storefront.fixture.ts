import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { startTestServer, type TestServer, type TestServerOptions } from './server.fixture.ts';

/** A request that carried a credential, as a client sent it. */
export interface SeenRequest {
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

export type Storefront = Awaited<ReturnType<typeof openStorefront>>;

/**
 * One address for clients, behind which the app can be replaced by a new one on the same database and the same chain. It
 * remembers what was presented, so that a test can present the very same again.
 */
export async function openStorefront(options: TestServerOptions) {
  const front = createServer();
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  if (address === null || typeof address === 'string') throw new Error('the storefront has no port');
  const url = `http://127.0.0.1:${address.port}`;

  const open = () =>
    startTestServer({ ...options, environment: { ...options.environment, PUBLIC_URL: url } });
  let app: TestServer = await open();
  let restarting = false;
  const payments: SeenRequest[] = [];
  const signIns: SeenRequest[] = [];

  async function restart(): Promise<void> {
    await app.close();
    app = await open();
  }

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const headers = Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    );
    const seen = { path: incoming.url ?? '/', headers, body };
    if ('sign-in-with-x' in headers) signIns.push(seen);
    if ('payment-signature' in headers || 'x-payment' in headers) {
      payments.push(seen);
      if (restarting) {
        restarting = false;
        await restart();
      }
    }
    const { hostname, port } = new URL(app.url);
    const { method } = incoming;
    request({ hostname, port, path: seen.path, method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    })
      .on('error', (error) => outgoing.destroy(error))
      .end(body);
  }
  front.on('request', (incoming, outgoing) => {
    forward(incoming, outgoing).catch((error: Error) => outgoing.destroy(error));
  });

  return {
    url,
    /** What was paid with, oldest first. */
    payments,
    signIns,
    key: (usd: string) => app.key(usd),
    log: () => app.log.slice(-5).join('\n'),
    restart,
    /** One round of what ends settlements and pays refunds. */
    finish: () => app.app.settlementFinisher.run(),
    /** The next payment meets another process than the one that made its 402. */
    restartBeforePayment(): void {
      restarting = true;
    },
    /** Sends a request once more, as it was. */
    present({ path, headers, body }: SeenRequest): Promise<Response> {
      const { host, connection, 'content-length': length, 'transfer-encoding': encoding, ...kept } = headers;
      return fetch(app.url + path, { method: 'POST', headers: kept, body: new Uint8Array(body) });
    },
    async stop(): Promise<void> {
      front.closeAllConnections();
      front.close();
      await app.close();
    },
  };
}
