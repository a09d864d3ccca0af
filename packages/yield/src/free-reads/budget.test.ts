import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../core/src/http/problem.ts';
import { createFreeReads, type FreeReadOutcome } from './budget.ts';

const START_MS = Date.UTC(2026, 2, 4, 5, 6, 7);

/** A budget of four reads a second, by a clock that stands still unless it is moved. */
function budget() {
  const at = { nowMs: START_MS };
  const waits: number[] = [];
  const outcomes: FreeReadOutcome[] = [];
  const reads = createFreeReads({
    perMinute: 240,
    nowMs: () => at.nowMs,
    count: (outcome) => void outcomes.push(outcome),
    wait: async (ms) => void waits.push(ms),
  });
  const ask = (address: string) =>
    reads
      .read(address, async () => 'read')
      .catch((error: unknown) => {
        assert(error instanceof Problem);
        return `${error.status} ${error.code} after ${error.headers['retry-after']} s`;
      });
  const many = (times: number, addressOf: (nth: number) => string) =>
    Promise.all(Array.from({ length: times }, (_, nth) => ask(addressOf(nth))));
  return { at, waits, outcomes, reads, ask, many };
}

const tally = (answers: readonly string[]) =>
  Object.fromEntries(
    [...new Set(answers)].map((each) => [each, answers.filter((other) => other === each).length]),
  );

test('one address gets a quarter, waits a little for its turn, and keeps nobody else from reading', async () => {
  const { at, waits, outcomes, ask, many } = budget();
  assert.deepEqual(tally(await many(300, () => '192.0.2.1')), {
    read: 7,
    '429 RATE_LIMIT_EXCEEDED after 3 s': 293,
  });
  assert.deepEqual(waits, [1_000, 2_000]);
  assert.deepEqual(tally(outcomes), { made: 5, waited: 2, caller_refused: 293 });
  assert.equal(await ask('192.0.2.2'), 'read');
  // As Retry-After says.
  at.nowMs += 3_000;
  assert.equal(await ask('192.0.2.1'), 'read');
  at.nowMs += 60_000;
  assert.deepEqual(tally(await many(300, () => '192.0.2.1')).read, 7, 'what was saved up is bounded');
});

test('all callers together get the budget, however many addresses ask', async () => {
  const { at, outcomes, ask, many } = budget();
  assert.deepEqual(tally(await many(300, (nth) => `10.0.${nth >> 8}.${nth & 255}`)), {
    read: 28,
    '503 FREE_READS_BUSY after 3 s': 272,
  });
  assert.deepEqual(tally(outcomes), { made: 20, waited: 8, refused: 272 });
  at.nowMs += 3_000;
  assert.equal(await ask('192.0.2.1'), 'read');
});

test('a network of IPv6 is one caller, and a /48 gets half', async () => {
  const { ask, many } = budget();
  assert.equal(tally(await many(100, (nth) => `2001:db8:1:1::${nth.toString(16)}`)).read, 7);
  const site = await many(100, (nth) => `2001:db8:2:${nth.toString(16)}::1`);
  assert.equal(tally(site).read, 14);
  assert.equal(await ask('2001:db8:3::1'), 'read');
});

test('who wants what is being read gets the same answer; after it, or after a failure, it is read anew', async () => {
  const { outcomes, reads } = budget();
  let times = 0;
  const going = Promise.withResolvers<string>();
  const read = () => {
    times += 1;
    return going.promise;
  };
  const both = ['192.0.2.1', '192.0.2.2'].map((address) => reads.read(address, read, 'position'));
  going.resolve('of a wallet');
  assert.deepEqual(await Promise.all(both), ['of a wallet', 'of a wallet']);
  assert.equal(times, 1);
  const fails = () => Promise.reject(new Error('silent'));
  await assert.rejects(reads.read('192.0.2.1', fails, 'position'), /silent/);
  assert.equal(await reads.read('192.0.2.1', async () => 'anew', 'position'), 'anew');
  assert.deepEqual(outcomes, ['made', 'shared', 'made', 'made']);
});

test('a clock that is put back locks nobody out', async () => {
  const { at, ask, many } = budget();
  await many(300, () => '192.0.2.1');
  at.nowMs -= 3_600_000;
  assert.equal(await ask('192.0.2.1'), 'read');
});
