import assert from 'node:assert/strict';
import { test } from 'node:test';

const amount: {
  microsOf(usd: string): bigint;
  formatUsd(usd: string): string;
  formatCents(usd: string): string;
} = await import(new URL('./amount.js', import.meta.url).href);

test('amounts are read and shown without losing a micro-dollar', () => {
  for (const [usd, shown] of [
    ['4.750000', '$4.75'],
    ['0.000001', '$0.000001'],
    ['0.100000', '$0.10'],
    ['0.125000', '$0.125'],
    ['5', '$5.00'],
    ['-0.250000', '−$0.25'],
    ['1234567.000000', '$1,234,567.00'],
    ['9007199254740993.000001', '$9,007,199,254,740,993.000001'],
  ] as const) {
    assert.equal(amount.formatUsd(usd), shown);
  }
  assert.equal(amount.microsOf('0.29'), 290_000n);
  for (const wrong of ['', 'abc', '1e3', '1,5', '.5']) assert.throws(() => amount.microsOf(wrong), wrong);
});

test('what stands large is told in cents, never rounded up and never to nothing', () => {
  for (const [usd, shown] of [
    ['60.522724', '$60.52'],
    ['39.999999', '$39.99'],
    ['-0.259999', '−$0.25'],
    ['0.004200', '$0.0042'],
    ['0.000000', '$0.00'],
  ] as const)
    assert.equal(amount.formatCents(usd), shown);
});
