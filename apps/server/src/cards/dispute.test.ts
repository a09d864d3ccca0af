import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDispute } from './dispute.ts';

/** What the provider's documents say of each status, and one that nobody has heard of. */
const STANDINGS: readonly [
  status: string,
  movesCents: readonly number[],
  isGone: boolean,
  comesBack: boolean,
][] = [
  ['warning_needs_response', [], false, false],
  ['warning_under_review', [], false, false],
  ['warning_closed', [], false, false],
  // Created: the money is on its way.
  ['needs_response', [], true, true],
  ['needs_response', [-1_000], true, true],
  ['under_review', [-1_000], true, true],
  ['won', [-1_000, 1_000], false, false],
  ['lost', [-1_000], true, false],
  // Lost, and the house does not put up with it: until it has won the money is where it was.
  ['appeal_needs_response', [-1_000], true, true],
  ['appeal_under_review', [-1_000], true, true],
  // The network sent the money back before there was a dispute, or the bank was talked out of one.
  ['prevented', [-1_000], true, false],
  ['prevented', [], false, false],
  ['something_new', [-1_000], true, true],
];

for (const [status, movesCents, isGone, mayComeBack] of STANDINGS) {
  test(`${status}, after ${movesCents.join(' and ') || 'nothing'}`, () => {
    const balance_transactions = movesCents.map((amount) => ({ amount }));
    assert.deepEqual(readDispute({ status, balance_transactions }), { isGone, mayComeBack });
  });
}
