/** A way to a server on which a test decides how each answer travels, after the server has given it. */
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import { buffer } from 'node:stream/consumers';

/** A request that was passed on, and its answer, which has not been sent yet. */
export interface Exchange {
  body: Buffer;
  status: number;
  headers: IncomingHttpHeaders;
  answer: Buffer;
  outgoing: ServerResponse;
}

/**
 * @param targetUrl where it leads; a function where that is known later
 * @param deliver what becomes of an answer
 * @param headers further headers of every request
 */
export async function openForwardingProxy(
  targetUrl: string | (() => string),
  deliver: (exchange: Exchange) => void,
  headers: Readonly<Record<string, string>> = {},
) {
  const front = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch((error: Error) => outgoing.destroy(error));
  });

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const { hostname, port } = new URL(typeof targetUrl === 'string' ? targetUrl : targetUrl());
    const asked = request({
      hostname,
      port,
      path: incoming.url,
      method: incoming.method,
      agent: false,
      headers: { ...incoming.headers, host: `${hostname}:${port}`, ...headers },
    });
    asked.end(body);
    const [reply] = (await once(asked, 'response')) as [IncomingMessage];
    const answer = await buffer(reply);
    deliver({ body, status: reply.statusCode ?? 502, headers: reply.headers, answer, outgoing });
  }

  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close(): Promise<void> {
      front.closeAllConnections();
      front.close();
    },
  };
}
