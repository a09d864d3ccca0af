import assert from 'node:assert/strict';
import { it } from 'node:test';
import { momentumOf } from './price-momentum.ts';

/** Closes that alternate by +1 % and -1 % (in logarithms), then move by `last`. */
function closes(count: number, last: number): Map<number, number> {
  let log = 0;
  const map = new Map<number, number>();
  for (let day = 0; day < count; day++) {
    log += day === count - 1 ? last : day % 2 === 0 ? 0.01 : -0.01;
    map.set(day, Math.exp(log));
  }
  return map;
}

it('measures a move by what is usual, worked by hand', () => {
  const made = momentumOf(closes(42, 0.03), 1, 1);
  const changes = [...Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? -0.01 : 0.01)), 0.03];
  const mean = changes.reduce((a, b) => a + b, 0) / 41;
  const deviation = Math.sqrt(changes.reduce((sum, one) => sum + (one - mean) ** 2, 0) / 40);
  assert(Math.abs((made?.value ?? 0) - Math.tanh(0.03 / deviation)) < 1e-12);
  assert(Math.abs((made?.changePercent ?? 0) - (Math.exp(0.03) - 1) * 100) < 1e-9);
  assert.equal(made?.sample, 41);
  assert((momentumOf(closes(42, -0.03), 1, 1)?.value ?? 0) < 0);
});

it('leaves out changes across missing days, and has none for few closes or a price that stands', () => {
  const holey = closes(42, 0.01);
  holey.delete(20);
  assert.deepEqual([momentumOf(holey, 7, 1)?.leftOut, momentumOf(holey, 7, 1)?.sample], [1, 39]);
  assert.equal(momentumOf(holey, 7, 2)?.leftOut, 0);
  assert.equal(momentumOf(closes(8, 0.01), 2, 1), null);
  assert.equal(momentumOf(new Map(Array.from({ length: 30 }, (_, day) => [day, 1])), 7, 1), null);
  assert.equal(momentumOf(new Map(), 7, 1), null);
});
