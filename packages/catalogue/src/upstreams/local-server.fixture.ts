import { createServer } from 'node:http';
import type { UpstreamDefinition } from './define.ts';
import { connectUpstream, type UpstreamConfig } from './http.ts';

/** For tests: what was asked of the server. */
export interface Asked {
  method: string;
  url: URL;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

/** For tests: a reply as it goes over the wire, whatever its type. */
export interface RawReply {
  status?: number;
  headers?: Record<string, string>;
  body: string | Uint8Array;
}

/** For tests: an adapter that speaks with a server on this machine, for replies that are not always JSON. */
export async function againstLocalServer<Api, Result>(
  definition: UpstreamDefinition<Api>,
  config: Omit<UpstreamConfig, 'baseUrl'>,
  replyTo: (asked: Asked) => RawReply,
  run: (api: Api, asked: Asked[]) => Promise<Result>,
  onCost?: (upstream: string, costMicros: bigint) => void,
): Promise<Result> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const url = new URL(request.url ?? '/', 'http://local');
    const seen = {
      method: request.method ?? '',
      url,
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
    asked.push(seen);
    const reply = replyTo(seen);
    response.writeHead(reply.status ?? 200, reply.headers);
    response.end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  const connection = connectUpstream(
    definition,
    { ...config, baseUrl: `http://127.0.0.1:${address.port}/base` },
    { userAgent: 'test', acceptSandbox: true, nowMs: Date.now, ...(onCost === undefined ? {} : { onCost }) },
  );
  try {
    return await run(definition.open(connection.http), asked);
  } finally {
    await connection.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}
