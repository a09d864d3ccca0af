/** A service of somebody else for tests: it serves whoever brings one of its secrets, refuses others, and counts by which they came. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface KeyedService {
  url: string;
  /** The secrets that it takes. */
  readonly accepted: Set<string>;
  /** How many requests came by each that it took. */
  readonly cameBy: Map<string, number>;
  /** How many it refused. */
  readonly refused: number;
  stop(): Promise<void>;
}

/**
 * @param parts.secretOf the secret that a request brings
 * @param parts.behind the address of what really answers a request; null: whatever comes is answered by `{}`
 */
export async function startKeyedService(parts: {
  secretOf(request: IncomingMessage): string;
  behind: ((request: IncomingMessage) => string) | null;
  /** Further headers that go to what is behind. */
  headers?(request: IncomingMessage): Record<string, string>;
}): Promise<KeyedService> {
  const accepted = new Set<string>();
  const cameBy = new Map<string, number>();
  let refused = 0;
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const secret = parts.secretOf(request);
    if (!accepted.has(secret)) {
      refused += 1;
      return void response.writeHead(401, { 'content-type': 'application/json' }).end('{}');
    }
    cameBy.set(secret, (cameBy.get(secret) ?? 0) + 1);
    if (parts.behind === null)
      return void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    const reply = await fetch(parts.behind(request), {
      method: request.method ?? 'GET',
      headers: {
        'content-type': request.headers['content-type'] ?? 'application/json',
        ...parts.headers?.(request),
      },
      ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
    }).catch(() => null);
    if (reply === null) return void response.destroy();
    const headers = { 'content-type': reply.headers.get('content-type') ?? 'application/json' };
    response.writeHead(reply.status, headers).end(Buffer.from(await reply.arrayBuffer()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepted,
    cameBy,
    get refused() {
      return refused;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** The token of a request's `Authorization: Bearer`. */
export const bearerOf = ({ headers }: IncomingMessage) =>
  (headers.authorization ?? '').replace(/^Bearer /, '');
