import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openSpending, type Purchase } from './spending.ts';

const folder = mkdtempSync(join(tmpdir(), 'farebox-spending-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
/** Two processes with one file, on a day in 2026, and a clock. */
function twoOf() {
  files += 1;
  const file = join(folder, String(files), 'spending.sqlite');
  const clock = { ms: Date.parse('2026-03-01T12:00:00Z') };
  const [one, two] = [openSpending(file, () => clock.ms), openSpending(file, () => clock.ms)];
  return { one, two, clock };
}
const purchase = (id: string, micros: bigint, request = id): Purchase => ({
  ...{ id, request, micros, payment: '{}' },
});

test('a limit holds for what is spent, open and held, whoever spent it', () => {
  const { one, two } = twoOf();
  const limit = 1_000_000n;
  const first = purchase('first', 400_000n);
  assert.equal(one.open(first, limit), first);
  one.settle(first, false);
  assert.deepEqual(two.open(purchase('second', 600_000n), limit), purchase('second', 600_000n));
  assert.equal(one.open(purchase('third', 1n), limit), 'above');
  two.release('second');
  assert.equal(one.todayMicros(), 400_000n);
  one.open(purchase('third', 600_001n), null);
  assert.equal(two.todayMicros(), 1_000_001n, 'a person may agree to more');
});

test('a request has one open purchase, which the next process finds', () => {
  const { one, two, clock } = twoOf();
  const first = purchase('first', 1n, 'same');
  one.open(first, null);
  assert.deepEqual({ ...two.openFor('same') }, first);
  assert.deepEqual({ ...(two.open(purchase('second', 1n, 'same'), null) as Purchase) }, first);
  one.settle(first, false);
  assert.equal(two.openFor('same'), null);
  // Its copy was answered with what had been sold before.
  two.settle(first, true);
  assert.equal(one.todayMicros(), 1n);
  // Another failed before it was paid, and its copy was paid.
  one.open(purchase('third', 5n), null);
  one.release('third');
  two.settle(purchase('third', 5n), false);
  assert.equal(one.todayMicros(), 6n);
  clock.ms += 86_400_000;
  assert.equal(one.todayMicros(), 0n);
});

test('a signed payment that a server says it did not take counts, before and after its end, and is sent again only if it may be', () => {
  const { one, clock } = twoOf();
  one.open(purchase('failed', 3n), null);
  one.hold('failed', clock.ms + 1_000, true);
  assert.equal(one.openFor('failed')?.id, 'failed');
  one.open(purchase('refused', 4n), null);
  one.hold('refused', clock.ms + 2_000, false);
  assert.equal(one.openFor('refused'), null);
  one.open(purchase('again', 5n, 'refused'), null);
  assert.equal(one.todayMicros(), 12n);
  clock.ms += 1_001;
  assert.equal(one.openFor('failed'), null);
  assert.equal(one.todayMicros(), 12n);
  // Sent again, nobody knows its end until an answer comes.
  one.hold('again', clock.ms + 500, true);
  one.sending('again');
  clock.ms += 10_000;
  assert.equal(one.todayMicros(), 12n);
  assert.equal(one.openFor('refused')?.id, 'again');
});

test('what nobody knows the end of counts as spent after a day, and the file stays small', () => {
  const { one, clock } = twoOf();
  for (let n = 0; n < 100; n += 1) one.open(purchase(`p${n}`, 1n), null);
  assert.equal(one.open(purchase('one too many', 1n), null), 'full');
  clock.ms += 86_400_001;
  assert.equal(one.todayMicros(), 0n, 'they were of yesterday');
  assert.equal(one.openFor('p0'), null);
  clock.ms -= 86_400_001;
  assert.equal(one.todayMicros(), 100n);
});

test('what was left behind makes room for a new purchase, and counts as spent', () => {
  const { one, clock } = twoOf();
  for (let n = 0; n < 100; n += 1) one.open(purchase(`p${n}`, 1n), null);
  assert.equal(one.open(purchase('now', 1n), null), 'full');
  clock.ms += 600_001;
  assert.equal(one.open(purchase('later', 1n), 100n), 'above', 'making room makes no money');
  assert.deepEqual(one.open(purchase('later', 1n), 101n), purchase('later', 1n));
  assert.equal(one.todayMicros(), 101n);
  assert.equal(one.openFor('later')?.id, 'later');
});

test('a clock that was wrong for a while loses nothing of what was spent today', () => {
  const day = 86_400_000;
  for (const step of [40 * day, -40 * day]) {
    const { one, clock } = twoOf();
    one.settle(purchase('today', 7n), false);
    clock.ms += step;
    for (let n = 0; n < 30; n += 1) {
      one.settle(purchase(`wrong ${n}`, 1n), false);
      clock.ms += day * Math.sign(step);
    }
    one.todayMicros();
    clock.ms -= step + 30 * day * Math.sign(step);
    assert.equal(one.todayMicros(), 7n);
  }
  // Longer than days are kept for: today's is kept nevertheless.
  const { one, clock } = twoOf();
  for (let n = 0; n < 40; n += 1) {
    clock.ms += day;
    one.settle(purchase(`ahead ${n}`, 1n), false);
  }
  clock.ms -= 60 * day;
  one.settle(purchase('put right', 5n), false);
  assert.equal(one.todayMicros(), 5n);
  assert.equal(one.todayMicros(), 5n);
});
