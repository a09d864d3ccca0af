import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tierOf, type WalletFacts, walletRisk } from './wallet-risk.ts';

const CLEAN: WalletFacts = {
  listed: false,
  oracle: false,
  mixer: false,
  sanctionedCounterparties: 0,
  mixerCounterparties: 0,
  ageDays: 400,
  transactions: 50,
  account: 'externally_owned',
};
const score = (facts: Partial<WalletFacts>) => walletRisk({ ...CLEAN, ...facts }).score;

describe('the card of a wallet’s risk', () => {
  it('is the sum of its parts, at most 100', () => {
    assert.deepEqual([score({}), walletRisk(CLEAN).coverage, walletRisk(CLEAN).tier], [0, 1, 'LOW']);
    // A day old, two transactions, delegated: 15 + 5 + 5.
    assert.equal(score({ ageDays: 1, transactions: 2, account: 'delegated' }), 25);
    for (const facts of [{}, { ageDays: 1 }, { listed: true, mixer: true }, { mixerCounterparties: 9 }]) {
      const card = walletRisk({ ...CLEAN, ...facts });
      assert.equal(
        card.score,
        Math.min(
          100,
          card.parts.reduce((sum, { points }) => sum + (points ?? 0), 0),
        ),
      );
      for (const { points, maxPoints, because } of card.parts) {
        assert((points ?? 0) <= maxPoints && because.length > 5);
      }
    }
  });

  it('gives a listed wallet 100 outright, and one that dealt with one at least 75', () => {
    assert.equal(score({ listed: true }), 100);
    assert.equal(score({ oracle: true }), 100);
    assert.equal(score({ sanctionedCounterparties: 1 }), 75);
    assert.equal(score({ sanctionedCounterparties: 50 }), 85);
    assert.equal(walletRisk({ ...CLEAN, sanctionedCounterparties: 1 }).tier, 'CRITICAL');
  });

  it('lowers its coverage for what is unknown, and never its score', () => {
    const blind = walletRisk({
      ...CLEAN,
      oracle: null,
      mixer: null,
      sanctionedCounterparties: null,
      mixerCounterparties: null,
      ageDays: null,
    });
    assert.equal(blind.score, 0);
    // 115 of the card's 420 points are left: lists 100, activity 10, account 5.
    assert.equal(blind.coverage, Math.round((115 / 420) * 1_000) / 1_000);
    assert.equal(walletRisk({ ...CLEAN, listed: true, ageDays: null }).score, 100);
  });

  it('never falls as any fact becomes worse', () => {
    const worse: Partial<WalletFacts>[][] = [
      [{ ageDays: 500 }, { ageDays: 100 }, { ageDays: 20 }, { ageDays: 3 }],
      [{ transactions: 9 }, { transactions: 4 }, { transactions: 0 }],
      [0, 1, 2, 3, 100].map((mixerCounterparties) => ({ mixerCounterparties })),
      [0, 1, 2, 3, 100].map((sanctionedCounterparties) => ({ sanctionedCounterparties })),
    ];
    for (const steps of worse) {
      const scores = steps.map(score);
      assert.deepEqual(
        scores,
        scores.toSorted((a, b) => a - b),
      );
    }
  });

  it('has its tiers at 25, 50 and 75', () => {
    assert.deepEqual([0, 24, 25, 49, 50, 74, 75, 100].map(tierOf), [
      'LOW',
      'LOW',
      'MEDIUM',
      'MEDIUM',
      'HIGH',
      'HIGH',
      'CRITICAL',
      'CRITICAL',
    ]);
  });
});
