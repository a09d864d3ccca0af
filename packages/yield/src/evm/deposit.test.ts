import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wouldFail } from './deposit.ts';

const BLOCK = { number: 7n, hash: '0x07', timestampMs: 1_760_000_000_000 } as const;

/** The refusal of a trial that the vault ended so. */
const refused = (error: string | null, whole = { complete: true, seeded: true }) =>
  wouldFail(
    { ok: false, failedStep: 0, failure: { error, values: [], message: 'it reverted' } } as Parameters<
      typeof wouldFail
    >[0],
    [{ action: 'deposit', to: '0x1', data: '0x', note: '' }],
    { block: BLOCK, ...whole } as Parameters<typeof wouldFail>[2],
  );

test('a price that moved between two looks says that asking again helps, and hands nothing out', () => {
  for (const error of ['TooFewShares', 'TooFewAssets', 'TooManyShares']) {
    const { status, code, details } = refused(error);
    assert.deepEqual([status, code], [409, 'PRICE_MOVED'], error);
    assert.partialDeepStrictEqual(details, { success: false, failedAction: 'deposit' });
    assert.equal(details?.steps, undefined);
  }
});

test('a failure that no remedy is known for says what the contract said', () => {
  for (const error of [null, 'SomethingElse', 'TooManyAssets']) {
    const { status, code, message } = refused(error);
    assert.deepEqual([status, code], [409, 'WOULD_FAIL']);
    assert.match(message, /it reverted/);
  }
});
