import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import { numberToHex } from 'viem';
import { evmUpstream } from '../../../upstreams/adapters/evm.ts';
import { connectUpstream } from '../../../upstreams/http.ts';
import { headOf } from './wallet-chains.ts';
import { recentTransfers } from './wallet-transfers.ts';

const TOKEN = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const HEAD = 10_000n;

interface Asked {
  id: number;
  method: string;
  params: { fromBlock: string; toBlock: string }[];
}

/** A node of Base with one transfer of one unit in each block, which gives the events of so many blocks at once. */
async function startNode(blocksAtOnce: bigint, ranges: [from: bigint, to: bigint][]) {
  const server = createServer(async (request, response) => {
    const { id, method, params } = (await json(request)) as Asked;
    const answer = (body: object) => response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    response.setHeader('content-type', 'application/json');
    if (method === 'eth_chainId') return answer({ result: '0x2105' });
    if (method === 'eth_getBlockByNumber') {
      return answer({ result: { number: numberToHex(HEAD), timestamp: '0x1', transactions: [] } });
    }
    const [range] = params;
    if (method !== 'eth_getLogs' || range === undefined) return answer({ result: '' });
    const [from, to] = [BigInt(range.fromBlock), BigInt(range.toBlock)];
    if (to - from + 1n > blocksAtOnce) {
      return answer({ error: { code: -32005, message: 'query returned more than 10000 results' } });
    }
    ranges.push([from, to]);
    const word = (value: string) => `0x${value.padStart(64, '0')}`;
    const result = Array.from({ length: Number(to - from + 1n) }, (_, index) => ({
      address: TOKEN,
      topics: [TRANSFER, word('aa'), word('bb')],
      data: word('1'),
      blockNumber: numberToHex(from + BigInt(index)),
      transactionHash: word('cc'),
      transactionIndex: '0x0',
      blockHash: word('dd'),
      logIndex: '0x0',
      removed: false,
    }));
    answer({ result });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert(address !== null && typeof address !== 'string');
  const upstream = evmUpstream('base');
  const config = { baseUrl: `http://127.0.0.1:${address.port}` };
  const connection = connectUpstream(upstream, config, {
    userAgent: 'test',
    acceptSandbox: true,
    nowMs: Date.now,
  });
  return {
    chain: upstream.open(connection.http),
    async stop() {
      await connection.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test('a node that gives few events at once is asked for fewer, and what was read has no gap', async () => {
  for (const [blocksAtOnce, window] of [
    [1_000n, { blocks: 150, isWhole: true }],
    [20n, { blocks: 150, isWhole: true }],
    // Refused until one block is asked for: the requests that are left reach so far back and no further.
    [1n, { blocks: 10, isWhole: false }],
  ] as const) {
    const ranges: [bigint, bigint][] = [];
    const node = await startNode(blocksAtOnce, ranges);
    const scanned = await recentTransfers(
      await headOf(node.chain),
      [TOKEN],
      ({ blockNumber }) => blockNumber,
    );
    await node.stop();
    assert(scanned !== null);
    const { fromBlock, toBlock, transfers, kept } = scanned;
    assert.deepEqual([toBlock, Number(toBlock - fromBlock + 1n)], [HEAD, window.blocks]);
    assert.equal(transfers, window.blocks);
    const expected = Array.from({ length: window.blocks }, (_, index) => fromBlock + BigInt(index));
    assert.deepEqual([...kept].sort(), expected.sort());
    assert.equal(ranges.length <= 14, true);
  }
});

test('a node that gives no events at all has no window', async () => {
  const node = await startNode(0n, []);
  assert.equal(await recentTransfers(await headOf(node.chain), [TOKEN], () => null), null);
  await node.stop();
});
