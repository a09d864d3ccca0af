import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keptReading } from './kept-reading.ts';

/** A source that answers when it is told to, and a clock that stands still. */
function source() {
  let now = 1_000_000;
  const waiting: { resolve(value: string): void; reject(error: Error): void }[] = [];
  const kept = keptReading(
    () => new Promise<string>((resolve, reject) => void waiting.push({ resolve, reject })),
    { retryMs: 5, nowMs: () => now },
  );
  return {
    ask: () => kept({ freshMs: 60, staleMs: 600 }),
    /** Takes none that is older. */
    askWithin: (freshMs: number) => kept({ freshMs }),
    /** How often it was read. */
    reads: () => waiting.length,
    latest: () => waiting.at(-1) ?? assert.fail('nothing was read'),
    pass(ms: number) {
      now += ms;
    },
  };
}

test('what is kept is fresh, then told as it was while one is read, then too old', async () => {
  const { ask, reads, latest, pass } = source();
  const first = [ask(), ask()];
  assert.equal(reads(), 1, 'it is read once for all who wait');
  latest().resolve('one');
  assert.deepEqual(await Promise.all(first), [
    { value: 'one', cache: 'MISS', ageMs: 0 },
    { value: 'one', cache: 'MISS', ageMs: 0 },
  ]);
  pass(59);
  assert.deepEqual(await ask(), { value: 'one', cache: 'HIT', ageMs: 59 });
  assert.equal(reads(), 1);
  pass(1);
  for (const _ of [1, 2]) assert.deepEqual(await ask(), { value: 'one', cache: 'STALE', ageMs: 60 });
  assert.equal(reads(), 2, 'nobody waits for it, and it is read once');
  latest().resolve('two');
  await new Promise(setImmediate);
  assert.deepEqual(await ask(), { value: 'two', cache: 'HIT', ageMs: 0 });
  pass(600);
  const late = ask();
  assert.equal(reads(), 3);
  latest().resolve('three');
  assert.deepEqual(await late, { value: 'three', cache: 'MISS', ageMs: 0 });
});

test('a source that fails leaves what is kept until it is too old, and is not asked in a storm', async () => {
  const { ask, reads, latest, pass } = source();
  const begun = ask();
  latest().resolve('one');
  await begun;
  pass(100);
  assert.equal((await ask()).cache, 'STALE');
  latest().reject(new Error('away'));
  await new Promise(setImmediate);
  assert.deepEqual(await ask(), { value: 'one', cache: 'STALE', ageMs: 100 });
  assert.equal(reads(), 2, 'not again at once');
  pass(600);
  const late = ask();
  latest().reject(new Error('still away'));
  await assert.rejects(late, /still away/);
  await assert.rejects(ask(), /still away/);
  assert.equal(reads(), 3);
  pass(5);
  const back = ask();
  latest().resolve('two');
  assert.equal((await back).value, 'two');
});

test('who takes nothing stale waits for a new one, each by its own bound, and all for the same', async () => {
  const { askWithin, reads, latest, pass } = source();
  const begun = askWithin(5);
  latest().resolve('one');
  await begun;
  pass(10);
  assert.deepEqual(await askWithin(60), { value: 'one', cache: 'HIT', ageMs: 10 });
  const strict = [askWithin(5), askWithin(10)];
  assert.equal(reads(), 2);
  latest().resolve('two');
  assert.deepEqual(
    (await Promise.all(strict)).map(({ value, cache }) => [value, cache]),
    [
      ['two', 'MISS'],
      ['two', 'MISS'],
    ],
  );
});
