import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { eachOf } from './sweep.ts';

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
