import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CreditFacts, creditCard } from './credit-card.ts';

const FACTS: CreditFacts = {
  sanctioned: false,
  ageDays: 730,
  transactions: 99,
  holdingsUsd: 999,
  lending: { collateralUsd: 1_000, debtUsd: 300, healthFactor: 2.5 },
  liquidations: 0,
};
const score = (facts: Partial<CreditFacts>) => creditCard({ ...FACTS, ...facts }).score;

describe('the card of a wallet’s credit', () => {
  it('adds up, by hand', () => {
    // 200 x 730/1460 = 100; 50 x log10(100) = 100; 40 x log10(1000) = 120; 250; 200.
    const card = creditCard(FACTS);
    assert.deepEqual(
      card.parts.map(({ points }) => points),
      [100, 100, 120, 250, 200],
    );
    assert.deepEqual([card.score, card.tier, card.coverage], [770, 'Strong', 1]);
  });

  it('gives a sanctioned wallet 0, and one without history a thin file', () => {
    const sanctioned = creditCard({ ...FACTS, sanctioned: true });
    assert.deepEqual([sanctioned.score, sanctioned.tier], [0, 'Sanctioned']);
    const empty = creditCard({
      sanctioned: false,
      ageDays: null,
      transactions: 0,
      holdingsUsd: 0,
      lending: null,
      liquidations: null,
    });
    assert.deepEqual([empty.score, empty.tier, empty.coverage], [0, 'Thin file', 0.35]);
    assert.equal(creditCard({ ...FACTS, ageDays: 5 }).tier, 'Thin file');
  });

  it('never falls as any fact becomes better, and stays within 0 and 1,000', () => {
    const lending = (healthFactor: number | null, debtUsd = 300) => ({
      lending: { collateralUsd: 1_000, debtUsd, healthFactor },
    });
    const better: Partial<CreditFacts>[][] = [
      [0, 1, 100, 1_460, 9_999].map((ageDays) => ({ ageDays })),
      [0, 1, 10, 999, 1e6].map((transactions) => ({ transactions })),
      [0, 1, 1e3, 1e5, 1e9].map((holdingsUsd) => ({ holdingsUsd })),
      [0.5, 1, 1.2, 1.5, 2, 50].map((health) => lending(health)),
      [3, 2, 1, 0].map((liquidations) => ({ liquidations })),
    ];
    for (const steps of better) {
      const scores = steps.map(score);
      assert.deepEqual(
        scores,
        scores.toSorted((a, b) => a - b),
      );
      assert(scores.every((each) => each >= 0 && each <= 1_000));
    }
  });
});
