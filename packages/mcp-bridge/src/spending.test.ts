import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Denial, Purchase } from 'farebox/buying';
import { openSpending, type Spending } from './spending.ts';

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
const LONG_MS = 100_000;
/** Sends it once, and hears that this time it cost nothing. */
function denied(book: Spending, id: string, said: Denial): boolean {
  return book.giveUp(book.sending(id, LONG_MS) ?? assert.fail(id), said);
}
const UNCHARGED: Denial = { outcome: 'uncharged', endsAtMs: null };
const purchase = (id: string, micros: bigint, request = id): Purchase => ({
  id,
  request,
  micros,
  payment: '{}',
});

test('a limit holds for what is spent, open and held, whoever spent it', () => {
  const { one, two } = twoOf();
  const limit = 1_000_000n;
  const first = purchase('first', 400_000n);
  assert.equal(one.open(first, limit), first);
  one.settle(first, false);
  assert.deepEqual(two.open(purchase('second', 600_000n), limit), purchase('second', 600_000n));
  assert.equal(one.open(purchase('third', 1n), limit), 'above');
  assert.ok(denied(two, 'second', UNCHARGED));
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
  assert.ok(denied(one, 'third', UNCHARGED));
  two.settle(purchase('third', 5n), false);
  assert.equal(one.todayMicros(), 6n);
  clock.ms += 86_400_000;
  assert.equal(one.todayMicros(), 0n);
});

test('a signed payment that a server says it did not take counts, before and after its end, and is sent again only if it may be', () => {
  const { one, clock } = twoOf();
  one.open(purchase('failed', 3n), null);
  denied(one, 'failed', { outcome: 'uncharged', endsAtMs: clock.ms + 1_000 });
  assert.equal(one.openFor('failed')?.id, 'failed');
  one.open(purchase('refused', 4n), null);
  denied(one, 'refused', { outcome: 'refused', endsAtMs: clock.ms + 2_000 });
  assert.equal(one.openFor('refused'), null);
  one.open(purchase('again', 5n, 'refused'), null);
  assert.equal(one.todayMicros(), 12n);
  clock.ms += 1_001;
  assert.equal(one.openFor('failed'), null);
  assert.equal(one.todayMicros(), 12n);
  // Sent again, nobody knows its end until an answer comes.
  denied(one, 'again', { outcome: 'uncharged', endsAtMs: clock.ms + 500 });
  one.sending('again', LONG_MS);
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

test('what was left behind leaves room for a new purchase, and is found nevertheless, up to a bound', () => {
  const { one, two, clock } = twoOf();
  for (let n = 0; n < 100; n += 1) one.open(purchase(`p${n}`, 1n), null);
  assert.equal(one.open(purchase('now', 1n), null), 'full');
  clock.ms += 600_001;
  assert.equal(one.open(purchase('later', 1n), 100n), 'above', 'making room makes no money');
  assert.deepEqual(one.open(purchase('later', 1n), 101n), purchase('later', 1n));
  assert.equal(one.todayMicros(), 101n);
  for (let n = 0; n < 100; n += 1) assert.equal(two.openFor(`p${n}`)?.id, `p${n}`);
});

test('a purchase is given up only when no other time that it was sent can have been paid', () => {
  const { one, two, clock } = twoOf();
  const ends = [null, clock.ms + 1_000];
  for (const endsAtMs of ends)
    for (const outcome of ['uncharged', 'refused'] as const) {
      const id = `${outcome} ${endsAtMs}`;
      one.open(purchase(id, 1n), null);
      const [opener, other] = [one.sending(id, LONG_MS), two.sending(id, LONG_MS)];
      assert.ok(opener !== null && other !== null);
      assert.equal(one.giveUp(opener, { outcome, endsAtMs }), false, id);
      assert.equal(two.openFor(id)?.id, id);
      two.lost(other);
      // A look for the payment covers what was sent before it; what a later time did says nothing of it.
      assert.equal(denied(one, id, { outcome, endsAtMs }), outcome === 'refused', id);
      assert.equal(two.sending(id, LONG_MS) === null, outcome === 'refused', 'it leaves no more');
    }
  // A process that was killed tells no end: what it sent may be on its way for so long, and its answer is lost then.
  one.open(purchase('killed', 1n), null);
  one.sending('killed', LONG_MS);
  const refused: Denial = { outcome: 'refused', endsAtMs: null };
  assert.equal(denied(two, 'killed', refused), false);
  clock.ms += LONG_MS + 1;
  assert.equal(denied(two, 'killed', UNCHARGED), false);
  assert.equal(denied(two, 'killed', refused), true);
});

test('who shares a purchase that another was answered for gets the answer, and nothing counts twice', () => {
  const { one, two } = twoOf();
  one.open(purchase('shared', 5n), null);
  two.lost(two.sending('shared', LONG_MS) ?? assert.fail());
  one.sending('shared', LONG_MS);
  one.settle(purchase('shared', 5n), false);
  assert.notEqual(two.sending('shared', LONG_MS), null);
  two.settle(purchase('shared', 5n), true);
  assert.equal(one.todayMicros(), 5n);
});

test('what nobody knows the end of stays for a day after it was sent last, and counts on that day', () => {
  const hour = 3_600_000;
  const { one, two, clock } = twoOf();
  one.open(purchase('old', 7n), null);
  one.lost(one.sending('old', LONG_MS) ?? assert.fail());
  clock.ms += 23 * hour;
  one.lost(one.sending('old', LONG_MS) ?? assert.fail());
  clock.ms += 23 * hour;
  assert.equal(two.openFor('old')?.id, 'old');
  // What is on its way is struck off by nobody.
  const sent = one.sending('old', 3 * hour) ?? assert.fail();
  clock.ms += 2 * hour;
  assert.equal(two.openFor('old')?.id, 'old');
  one.lost(sent);
  clock.ms += 23 * hour;
  assert.deepEqual([two.openFor('old'), two.todayMicros()], [null, 0n]);
  clock.ms -= 25 * hour;
  assert.equal(two.todayMicros(), 7n, 'on the day of the last time');
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
