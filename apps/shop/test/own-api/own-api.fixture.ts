import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { readConfigText } from '../../../../packages/proxy/src/config/load.ts';
import { type OpenRoutes, openRoutes } from '../../../../packages/proxy/src/sell/open-routes.ts';

/** A request as a seller's API got it. */
export interface Got {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

export type OwnApi = Awaited<ReturnType<typeof startOwnApi>>;

/** A seller's API on a free port, which remembers what it got. */
export async function startOwnApi(
  answer: (got: Got, reply: ServerResponse, request: IncomingMessage) => unknown,
) {
  const got: Got[] = [];
  const server = createServer(async (request, reply) => {
    const body = (await buffer(request)).toString();
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const one = { method: request.method ?? '', url: request.url ?? '', headers, body };
    got.push(one);
    await answer(one, reply, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    got,
    async stop(): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Opens the routes of a configuration in YAML. */
export function routesOf(
  yaml: string,
  { env = {}, nowMs = Date.now }: { env?: Record<string, string>; nowMs?: () => number } = {},
): OpenRoutes {
  const config = readConfigText(yaml, 'farebox.config.yaml', { env, serviceNames: null });
  return openRoutes(config, { version: '0.0.0-test', nowMs, taken: [] });
}
