/** A way to a chain's node that notes for how long somebody waits there for its answers. */
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Resources } from './resources.ts';

export interface NodeTime {
  /** To be asked in place of the node. */
  url: string;
  /** For how long at least one of the noted requests was open until now, and how many there were. */
  noted(): { waitedMs: number; requests: number };
}

/**
 * @param methods of JSON-RPC whose time is noted: whatever is asked in the background has other ones
 * @returns a way that stands in this process. What passing through it takes is not noted as the node's.
 */
export async function startNodeTime(
  resources: Resources,
  rpcUrl: string,
  methods: ReadonlySet<string>,
): Promise<NodeTime> {
  const agent = new Agent({ keepAlive: true });
  const told = { waitedMs: 0, requests: 0 };
  let open = 0;
  let openSinceMs = 0;

  const begin = () => {
    told.requests += 1;
    if (open === 0) openSinceMs = performance.now();
    open += 1;
  };
  const end = () => {
    open -= 1;
    if (open === 0) told.waitedMs += performance.now() - openSinceMs;
  };

  const way = createServer(async (asked, answer) => {
    const chunks: Buffer[] = [];
    for await (const chunk of asked) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const isNoted = methodsOf(body).some((method) => methods.has(method));
    const ask = request(rpcUrl, { agent, method: 'POST', headers: { 'content-type': 'application/json' } });
    if (isNoted) begin();
    ask.end(body);
    const [said] = await once(ask, 'response');
    const parts: Buffer[] = [];
    for await (const part of said) parts.push(part);
    if (isNoted) end();
    answer.writeHead(said.statusCode, { 'content-type': 'application/json' }).end(Buffer.concat(parts));
  });
  way.listen(0, '127.0.0.1');
  await once(way, 'listening');
  resources.defer(() => {
    way.closeAllConnections();
    way.close();
    agent.destroy();
  });
  const { port } = way.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, noted: () => ({ ...told }) };
}

function methodsOf(body: Buffer): string[] {
  const asked: unknown = JSON.parse(body.toString());
  return (Array.isArray(asked) ? asked : [asked]).map(({ method }: { method: string }) => method);
}
