import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RpcRefusal } from '../../../core/src/chain-rpc/json-rpc.ts';
import { COMPUTE_BUDGET_PROGRAM } from './addresses.ts';
import { setUnitPrice } from './instructions.ts';
import type { Landed } from './node.ts';
import { priceFor, pricesNow } from './unit-price.ts';

/** A transaction that paid so much for a unit; null: it asked for no priority. */
function paying(price: bigint | null): Landed {
  const { data = new Uint8Array() } = setUnitPrice(price ?? 0n);
  return {
    signature: 's',
    slot: 1,
    atMs: null,
    err: null,
    signers: [],
    inner: new Map(),
    tokens: new Map(),
    logs: [],
    instructions:
      price === null ? [] : [{ program: COMPUTE_BUDGET_PROGRAM, accounts: [], data: new Uint8Array(data) }],
  };
}

/** A node on which these prices were paid lately. @param told what it says for each percentile; null: the least alone */
function nodeWith(told: Record<number, bigint> | null | 'refuses', paid: (bigint | null)[] = []) {
  return {
    async priorityFees(_accounts: readonly string[], percentile: number | null) {
      if (percentile === null || told === null) return [0n, 0n, 3n];
      if (told === 'refuses')
        throw new RpcRefusal('getRecentPrioritizationFees', -32_602, 'no such word', null);
      return [0n, told[percentile] ?? 0n, told[percentile] ?? 0n];
    },
    recentWrites: async () => paid.map((_price, index) => ({ signature: String(index), slot: 1_000 })),
    transaction: async (signature: string) => paying(paid[Number(signature)] ?? null),
  };
}

test('where a node tells percentiles they are the levels', async () => {
  const prices = await pricesNow(nodeWith({ 5000: 20_000n, 7500: 89_430n, 9000: 615_532n }));
  assert.deepEqual(prices, {
    levels: { low: 20_000n, medium: 89_430n, high: 615_532n },
    source: 'percentiles',
  });
});

test('where it refuses the word, or does not heed it, those who wrote in recent blocks are read', async () => {
  // Those who pay for no priority do not compete, however many they are.
  const free = Array.from({ length: 20 }, () => null);
  const paid = [2_000n, 4_000n, 8_000n, 50_000n, 90_000n, 100_000n, 150_000n, 160_000n, 300_000n, ...free];
  for (const told of ['refuses', null] as const) {
    const prices = await pricesNow(nodeWith(told, paid));
    assert.deepEqual(prices, {
      levels: { low: 90_000n, medium: 150_000n, high: 300_000n },
      source: 'recent_blocks',
    });
  }
});

test('levels stay within their bounds and in their order, and a node that fails costs the least', async () => {
  const high = await pricesNow(nodeWith({ 5000: 10n ** 12n, 7500: 10n ** 12n, 9000: 10n ** 12n }));
  assert.deepEqual(high.levels, { low: 200_000n, medium: 500_000n, high: 2_000_000n });
  const crossed = await pricesNow(nodeWith({ 5000: 150_000n, 7500: 20_000n, 9000: 30_000n }));
  assert.deepEqual(crossed.levels, { low: 150_000n, medium: 150_000n, high: 150_000n });
  const quiet = await pricesNow(nodeWith(null, [null, null]));
  assert.deepEqual(quiet.levels, { low: 1_000n, medium: 1_000n, high: 5_000n });
  const silent = await pricesNow({
    ...nodeWith(null),
    priorityFees: async () => {
      throw new Error('no answer');
    },
  });
  assert.deepEqual([silent.source, silent.levels.medium], ['least', 1_000n]);
});

test('a caller gets the level or the price that was asked for', async () => {
  const prices = await pricesNow(nodeWith({ 5000: 20_000n, 7500: 89_430n, 9000: 615_532n }));
  assert.equal(priceFor(prices, 'high').price, 615_532n);
  assert.deepEqual([priceFor(prices, 7_000n).price, priceFor(prices, 7_000n).priority], [7_000n, 'asked']);
});
