import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { microsToUsd, priceInUsd, usdToMicros } from './money.ts';

test('amounts are read exactly or not at all', () => {
  assert.equal(usdToMicros('0.25'), 250_000n);
  assert.equal(usdToMicros('10'), 10_000_000n);
  assert.equal(usdToMicros('-0.000001'), -1n);
  for (const wrong of ['0.0000001', '1e3', '', '.5', '1.', ' 1', '1,5', '0x10', 'NaN', '1234567890123']) {
    assert.throws(() => usdToMicros(wrong), RangeError, wrong);
  }
});

test('what is written is what was read, and fewer places never round up', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n }), (micros) => {
      assert.equal(usdToMicros(microsToUsd(micros)), micros);
      const cut = usdToMicros(microsToUsd(micros, 2));
      const [less, more] = micros < 0n ? [-cut, -micros] : [cut, micros];
      assert(less <= more && more - less < 10_000n);
    }),
  );
});

test('a price is written whole: two places, and as many more as it has', () => {
  const written = {
    250000: '0.25',
    10000000: '10.00',
    1000: '0.001',
    100500: '0.1005',
    1: '0.000001',
    0: '0.00',
  };
  for (const [micros, usd] of Object.entries(written)) assert.equal(priceInUsd(BigInt(micros)), usd);
});
