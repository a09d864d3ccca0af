import { createServer } from 'node:http';
import type { UpstreamDefinition } from './define.ts';
import { connectUpstream } from './http.ts';

/** The time at which the replies arrive. */
export const RECEIVED_MS = Date.parse('2026-11-21T05:30:00Z');

/** For tests: one reply of an upstream, and what must have been asked to get it. */
export interface WireReply {
  /** The path, without the query. */
  path: string;
  status?: number;
  body: unknown;
}

/** For tests: an adapter over HTTP to a server on this machine that speaks the given replies, in any order. */
export async function overTheWire<Api, Result>(
  definition: UpstreamDefinition<Api>,
  replies: readonly WireReply[],
  run: (api: Api, asked: { url: URL; headers: NodeJS.Dict<string | string[]> }[]) => Promise<Result>,
  apiKey?: string,
): Promise<Result> {
  const asked: { url: URL; headers: NodeJS.Dict<string | string[]> }[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://local');
    asked.push({ url, headers: request.headers });
    const reply = replies.find(({ path }) => path === decodeURIComponent(url.pathname));
    response.writeHead(reply === undefined ? 500 : (reply.status ?? 200), {
      'content-type': 'application/json',
    });
    response.end(JSON.stringify(reply?.body ?? { error: `no reply for ${url.pathname}` }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  const connection = connectUpstream(
    definition,
    { baseUrl: `http://127.0.0.1:${address.port}`, apiKey },
    { userAgent: 'test', acceptSandbox: true, nowMs: () => RECEIVED_MS },
  );
  try {
    return await run(definition.open(connection.http), asked);
  } finally {
    await connection.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}
