import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type CardOrder, nextLookAfterMs, type OrderStore } from './orders.ts';
import type { OrderReconciler } from './reconcile.ts';
import { createSweeper, eachOf } from './sweep.ts';

test('one that fails keeps no other from its turn, and is told when nothing is under way any more', async () => {
  const slow = Promise.withResolvers<void>();
  const begun: string[] = [];
  let isOver = false;
  const all = eachOf(['bad', 'slow', 'third'], 2, async (item) => {
    begun.push(item);
    if (item === 'bad') throw new Error('it is bad');
    if (item === 'slow') await slow.promise;
  }).finally(() => {
    isOver = true;
  });
  all.catch(() => {});
  for (let turns = 0; turns < 10; turns += 1) await turn();
  assert.equal(isOver, false, 'the slow one is still under way');
  slow.resolve();
  await assert.rejects(all, /it is bad/);
  assert.deepEqual(begun, ['bad', 'slow', 'third']);
});

test('a sweep of which one lane fails is not over while the other one charges', async () => {
  const charging = Promise.withResolvers<null>();
  const rested: string[] = [];
  const orders: Pick<OrderStore, 'takeDue' | 'rest'> = {
    async takeDue({ pages }) {
      if (pages) throw new Error('the pages cannot be read');
      return ['charge'];
    },
    rest: async (id) => void rested.push(id),
  };
  const reconciler: Pick<OrderReconciler, 'reconcile'> = { reconcile: () => charging.promise };
  const sweeper = createSweeper({
    orders: orders as OrderStore,
    reconciler: reconciler as OrderReconciler,
    nowMs: Date.now,
    onError: () => assert.fail(),
  });
  let isOver = false;
  const swept = sweeper.sweep().finally(() => {
    isOver = true;
  });
  swept.catch(() => {});
  for (let turns = 0; turns < 10; turns += 1) await turn();
  assert.equal(isOver, false, 'the charge is still under way');
  charging.resolve(null);
  await assert.rejects(swept, /the pages cannot be read/);
  assert.deepEqual(rested, ['charge']);
});

test('once it is to stop nothing more is begun', async () => {
  const stopping = new AbortController();
  const begun: number[] = [];
  const act = async (item: number) => {
    begun.push(item);
    stopping.abort();
  };
  await eachOf([1, 2, 3], 1, act, stopping.signal);
  assert.deepEqual(begun, [1]);
});

test('no more are under way at once than may be', async () => {
  let underWay = 0;
  let most = 0;
  await eachOf([1, 2, 3, 4, 5, 6], 2, async () => {
    underWay += 1;
    most = Math.max(most, underWay);
    await turn();
    underWay -= 1;
  });
  assert.equal(most, 2);
});

test('a page that is open waits for its end, and one that has closed is looked at like a charge', async () => {
  const expiresAtMs = 1_000_000;
  for (const [nowMs, nextMs] of [
    [1_000, expiresAtMs + 60_000],
    [9_000_000, 9_000_000 + nextLookAfterMs(0)],
  ] as const) {
    const due = ['page'];
    const looked: number[] = [];
    const orders: Pick<OrderStore, 'takeDue' | 'looked'> = {
      takeDue: async () => due.splice(0),
      looked: async (_, atMs) => void looked.push(atMs),
    };
    const order = { kind: 'checkout', state: 'open', failure: null, looks: 0, expiresAtMs } as CardOrder;
    const sweeper = createSweeper({
      orders: orders as OrderStore,
      reconciler: { reconcile: () => Promise.resolve(order) } as Partial<OrderReconciler> as OrderReconciler,
      nowMs: () => nowMs,
      onError: () => assert.fail(),
    });
    assert.equal(await sweeper.sweep(), 1);
    assert.deepEqual(looked, [nextMs]);
  }
});
