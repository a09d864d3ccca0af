import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { evmUpstream } from '../../../upstreams/adapters/evm.ts';
import { connectUpstream } from '../../../upstreams/http.ts';
import type { Upstreams } from '../../../upstreams/index.ts';

/** Methods that read the state of a block. */
const OF_STATE = new Set(['eth_call', 'eth_getTransactionCount', 'eth_getBalance', 'eth_getCode']);

export interface PrunedNode {
  base: Upstreams['base'];
  stop(): Promise<void>;
}

/** For tests: the same chain by a node that has forgotten the state of all blocks before `head`, as public nodes do. */
export async function startPrunedNode(url: string, head: bigint): Promise<PrunedNode> {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const { id, method, params } = JSON.parse(body);
    const block = OF_STATE.has(method) ? params[1] : undefined;
    response.setHeader('content-type', 'application/json');
    if (typeof block === 'string' && block.startsWith('0x') && BigInt(block) < head) {
      const error = { code: -32000, message: 'missing trie node 5c1f (path ) state is not available' };
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    } else {
      const headers = { 'content-type': 'application/json' };
      response.end(await (await fetch(url, { method: 'POST', headers, body })).text());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert(address !== null && typeof address !== 'string');
  const base = evmUpstream('base');
  const connection = connectUpstream(
    base,
    { baseUrl: `http://127.0.0.1:${address.port}` },
    { userAgent: 'test', acceptSandbox: true, nowMs: Date.now },
  );
  return {
    base: base.open(connection.http),
    stop: async () => {
      await connection.close();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
