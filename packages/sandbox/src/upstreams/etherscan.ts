/**
 * https://api.etherscan.io/v2: an index of transactions, for chains whose nodes keep no old state. The sandbox's own nodes keep
 * theirs and are asked first, so that these invented histories are seen only where a node without old state is configured.
 */
import type { FastifyInstance } from 'fastify';
import { keyOf, uniform } from './noise.ts';
import { type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const KEY = 'sandbox-etherscan';
const CHAIN_IDS: readonly string[] = ['1', '10', '56', '137', '8453', '42161'];
const DAY_MS = 86_400_000;
const OLDEST_DAYS = 2_000;
const TRANSACTIONS = 5;
const FUNDER = `0x5a4db0c5f00d${'0'.repeat(27)}1`;

export function etherscan(app: FastifyInstance, { nowMs, seed }: World): void {
  app.get<{ Querystring: Query }>('/api', ({ query }) => {
    if (textOf(query, 'apikey') !== KEY) return refusal('Invalid API Key');
    const chainId = textOf(query, 'chainid') ?? '';
    if (!CHAIN_IDS.includes(chainId)) return refusal('Missing or unsupported chainid parameter');
    const address = (textOf(query, 'address') ?? '').toLowerCase();
    if (textOf(query, 'module') !== 'account' || textOf(query, 'action') !== 'txlist')
      return refusal('Error! Missing Or invalid Action name');
    if (!/^0x[0-9a-f]{40}$/.test(address)) return refusal('Error! Invalid address format');
    const key = keyOf(seed, `etherscan:${chainId}:${address}`);
    const days = 1 + Math.floor(uniform(key, 0) * OLDEST_DAYS);
    const firstMs = Math.floor(nowMs() / DAY_MS) * DAY_MS - days * DAY_MS;
    const result = Array.from({ length: TRANSACTIONS }, (_, index) => ({
      blockNumber: String(1_000_000 + index),
      timeStamp: String(Math.floor((firstMs + index * 3_600_000) / 1_000)),
      hash: `0x${(index + 1).toString(16).padStart(64, '0')}`,
      nonce: String(Math.max(0, index - 1)),
      // A wallet is funded before it can send anything.
      from: index === 0 ? FUNDER : address,
      to: index === 0 ? address : FUNDER,
      value: '1000000000000000',
      isError: '0',
    }));
    return { status: '1', message: 'OK', result };
  });
}

function refusal(result: string) {
  return { status: '0', message: 'NOTOK', result };
}
