import assert from 'node:assert/strict';
import { test } from 'node:test';
import type Stripe from 'stripe';
import { readDispute, readDisputes } from './dispute.ts';

/** The meaning of each status by the provider's documents, and one status that nobody has heard of. */
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

test('of several disputes the last that has taken money is shown, with the day until which evidence is taken', () => {
  const one = (status: string, amount: number, dueBy: number | null) =>
    ({
      status,
      amount,
      balance_transactions: [],
      evidence_details: { due_by: dueBy },
    }) as unknown as Stripe.Dispute;
  assert.deepEqual(readDisputes([]), { goneCents: 0, disputedCents: 0, worst: null });
  assert.deepEqual(
    readDisputes([one('warning_closed', 500, null), one('needs_response', 300, 1_800_000_000)]),
    {
      goneCents: 300,
      disputedCents: 300,
      worst: { status: 'needs_response', dueAtMs: 1_800_000_000_000 },
    },
  );
  const { goneCents, disputedCents } = readDisputes([one('lost', 300, null), one('needs_response', 200, 1)]);
  assert.deepEqual([goneCents, disputedCents], [500, 200], 'what several have taken is added up');
  assert.deepEqual(readDisputes([one('lost', 300, null), one('warning_needs_response', 200, 1)]).worst, {
    status: 'lost',
    dueAtMs: null,
  });
});
