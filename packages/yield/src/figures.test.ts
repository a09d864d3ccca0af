import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usdcText } from './figures.ts';

test('USDC has six places, and a minus only in front', () => {
  const told: [bigint, string][] = [
    [0n, '0.000000'],
    [1n, '0.000001'],
    [99_500_000n, '99.500000'],
    [-1n, '-0.000001'],
    [-500_000n, '-0.500000'],
    [-1_500_000n, '-1.500000'],
    [2n ** 64n, '18446744073709.551616'],
  ];
  assert.deepEqual(
    told.map(([units]) => usdcText(units)),
    told.map(([, text]) => text),
  );
});
