import assert from 'node:assert/strict';
import { it } from 'node:test';
import { z } from 'zod';
import { optionalWireNumber, wireNumber } from './wire-number.ts';

it('reads numbers and decimal strings, and nothing else', () => {
  assert.deepEqual(
    [1.5, '1.50', '-0.0005', '2e-7', '.5'].map((value) => wireNumber.parse(value)),
    [1.5, 1.5, -0.0005, 2e-7, 0.5],
  );
  for (const wrong of ['', ' ', '1,000', '$1', '0x10', 'NaN', 'Infinity', '1e999', null, true, []]) {
    assert.equal(wireNumber.safeParse(wrong).success, false, JSON.stringify(wrong));
  }
});

it('turns what is missing into null, never into 0', () => {
  assert.deepEqual(
    [null, undefined, '', 0, '0'].map((value) => optionalWireNumber.parse(value)),
    [null, null, null, 0, 0],
  );
  assert.deepEqual(z.object({ volume: optionalWireNumber }).parse({}), { volume: null });
  assert.equal(optionalWireNumber.safeParse('n/a').success, false);
});
