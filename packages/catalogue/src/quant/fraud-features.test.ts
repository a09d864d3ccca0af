import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FraudFacts, fraudScore, modifiedZ, type Payment } from './fraud-features.ts';
import { medianOf } from './median.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');
const HOUR = 3_600_000;
const paid = (
  amount: number | null,
  atMs: number | null = null,
  counterparty: string | null = null,
): Payment => ({
  amount,
  atMs,
  counterparty,
});
const UNKNOWN: FraudFacts = {
  ...paid(null),
  countries: [],
  inUsd: false,
  history: [],
  listedCounterparty: null,
  mixerCounterparty: null,
  walletAgeDays: null,
  walletTransactions: null,
};
const of = (facts: Partial<FraudFacts>, code: string) =>
  fraudScore({ ...UNKNOWN, ...facts }).features.find((each) => each.code === code);

describe('the modified z-score', () => {
  it('has the values of Iglewicz and Hoaglin’s definition, worked by hand', () => {
    assert.equal(medianOf([3, 1, 2]), 2);
    assert.equal(medianOf([4, 1, 3, 2]), 2.5);
    // Median 3, deviations 2 1 0 1 97, MAD 1: 0.6745 x 97.
    assert.equal(modifiedZ(100, [1, 2, 3, 4, 100]), 0.6745 * 97);
    assert.equal(modifiedZ(3, [1, 2, 3, 4, 100]), 0);
    // MAD 0: by the mean deviation, 10 / 5 = 2; (15 - 5) / (1.253314 x 2).
    assert.equal(modifiedZ(15, [5, 5, 5, 5, 15]), 10 / (1.253314 * 2));
    assert.equal(modifiedZ(6, [5, 5, 5, 5, 5]), Number.POSITIVE_INFINITY);
    assert.equal(modifiedZ(5, [5, 5, 5, 5, 5]), 0);
    assert.equal(modifiedZ(5, [1, 2, 3, 4]), null);
  });
});

describe('the score of fraud', () => {
  it('is the contributions added up, and 0 with no confidence when nothing is known', () => {
    const nothing = fraudScore(UNKNOWN);
    assert.deepEqual([nothing.score, nothing.level, nothing.confidence], [0, 'Low', 0]);
    assert(
      nothing.features.every(
        ({ contribution, because }) => contribution === null && /^not evaluated/.test(because),
      ),
    );
    const card = fraudScore({
      ...UNKNOWN,
      ...paid(9_800, NOW, 'new'),
      inUsd: true,
      countries: ['SG', 'de'],
      history: [40, 55, 38, 61, 47].map((amount, at) => paid(amount, NOW - at * 24 * HOUR, 'shop')),
    });
    // Outlier 25, new counterparty 10, countries 15, just below 10,000: 10.
    assert.equal(card.score, 60);
    assert.equal(card.level, 'High');
    assert.equal(
      card.score,
      card.features.reduce((sum, { contribution }) => sum + (contribution ?? 0), 0),
    );
  });

  it('is 100 for a listed counterparty alone', () => {
    assert.equal(fraudScore({ ...UNKNOWN, listedCounterparty: true }).score, 100);
  });

  it('meets each feature at its bound and not before', () => {
    const history = [1, 2, 3, 4, 5].map((amount) => paid(amount));
    assert.equal(of({ amount: 3, history }, 'AMOUNT_OUTLIER')?.value, 0);
    assert.equal(of({ amount: 50, history }, 'AMOUNT_OUTLIER')?.value, 1);
    assert.equal(of({ amount: 50, history: history.slice(1) }, 'AMOUNT_OUTLIER')?.value, null);
    const within = (count: number) => Array.from({ length: count }, (_, at) => paid(1, NOW - at * 60_000));
    assert.equal(of({ atMs: NOW, history: within(3) }, 'VELOCITY')?.value, 0);
    assert.equal(of({ atMs: NOW, history: within(10) }, 'VELOCITY')?.value, 1);
    assert.equal(of({ amount: 9_499, inUsd: true }, 'JUST_BELOW_THRESHOLD')?.value, 0);
    assert.equal(of({ amount: 9_500, inUsd: true }, 'JUST_BELOW_THRESHOLD')?.value, 1);
    assert.equal(of({ amount: 10_000, inUsd: true }, 'JUST_BELOW_THRESHOLD')?.value, 0);
    assert.equal(of({ amount: 9_500 }, 'JUST_BELOW_THRESHOLD')?.value, null);
    assert.deepEqual(
      [99, 100, 150, 151, 5_000, 5_123].map((amount) => of({ amount }, 'ROUND_AMOUNT')?.value),
      [0, 1, 1, 0, 1, 0],
    );
    assert.equal(of({ countries: ['US', 'us'] }, 'COUNTRY_MISMATCH')?.value, 0);
    assert.equal(of({ countries: ['US'] }, 'COUNTRY_MISMATCH')?.value, null);
    const noons = Array.from({ length: 10 }, (_, at) => paid(1, NOW - at * 24 * HOUR));
    assert.equal(of({ atMs: NOW + HOUR, history: noons }, 'UNUSUAL_HOUR')?.value, 0);
    assert.equal(of({ atMs: NOW + 2 * HOUR, history: noons }, 'UNUSUAL_HOUR')?.value, 1);
    assert.equal(of({ walletTransactions: 0 }, 'NEW_WALLET')?.value, 1);
    assert.equal(of({ walletTransactions: 5, walletAgeDays: 20 }, 'NEW_WALLET')?.value, 0.5);
  });
});
