import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlockPace } from './block-pace.ts';

/** Lets time run in steps of 500 ms, and returns the times (ms) at which a block was due. Each block is made at once. */
function madeWithin(pace: BlockPace, firstMs: number, lastMs: number): number[] {
  const made: number[] = [];
  for (let nowMs = firstMs; nowMs <= lastMs; nowMs += 500) {
    if (!pace.isDue(nowMs)) continue;
    made.push(nowMs);
    pace.saw((pace.newest ?? 0) + 1, true, nowMs);
  }
  return made;
}

test('blocks follow a transaction every two seconds for ten, and then as seldom as before', () => {
  const pace = new BlockPace({ busyMs: 2_000, quietMs: 30_000 });
  pace.saw(7, true, 0);
  assert.deepEqual(madeWithin(pace, 0, 61_000), [30_000, 60_000], 'no transaction yet');
  pace.saw(10, false, 100_000);
  assert.deepEqual(
    madeWithin(pace, 100_500, 170_000),
    [102_000, 104_000, 106_000, 108_000, 138_000, 168_000],
  );
});

test('a transaction in a block that was never the newest when looked at counts as well', () => {
  const pace = new BlockPace({ busyMs: 2_000, quietMs: 30_000 });
  pace.saw(7, true, 0);
  pace.saw(9, true, 1_000);
  assert.deepEqual(madeWithin(pace, 1_000, 5_000), [3_000, 5_000]);
});
