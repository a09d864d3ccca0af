import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StateIndex } from '../../../upstreams/adapters/fhfa.ts';
import type { Sale } from '../../../upstreams/adapters/sales.ts';
import { compareSales, homeTypeOf, quantile } from './comparables.ts';

const NOW_MS = Date.parse('2026-11-21T05:30:00Z');
const QUARTERS: StateIndex[] = [
  { year: 2025, quarter: 1, index: 100 },
  { year: 2025, quarter: 3, index: 120 },
  { year: 2026, quarter: 1, index: 150 },
];
/** A thousandth of a degree of a meridian is 111.2 m. */
const HOME = { lat: 40, lon: -80, type: 'house', squareFeet: 1_500 } as const;
const SALE: Sale = {
  id: 'a',
  soldOn: '2026-06-01',
  priceUsd: 400_000,
  lat: 40.001,
  lon: -80,
  type: 'house',
  squareFeet: 1_500,
};
const GOOD: Sale[] = ['g1', 'g2', 'g3'].map((id) => ({ ...SALE, id }));
const compare = (sales: Sale[], home: Parameters<typeof compareSales>[1] = HOME) =>
  compareSales({ sales, malformed: 0, firstProblem: null }, home, { quarters: QUARTERS, nowMs: NOW_MS });

test('each rule leaves out the sale that breaks it, by its name, and takes the one beside it', () => {
  const cases: [string | null, Partial<Sale>][] = [
    [null, { lat: 40.0143 }],
    ['farther than 1600 m', { lat: 40.0145 }],
    ['farther than 1600 m', { lat: 0, lon: 0 }],
    ['farther than 1600 m', { lat: -80, lon: 40 }],
    [null, { soldOn: '2026-11-21' }],
    ['dated in the future', { soldOn: '2026-11-22' }],
    ['dated in the future', { soldOn: '9999-12-31' }],
    ['in a quarter without an index', { soldOn: '2024-11-21' }],
    ['older than 730 days', { soldOn: '2024-11-20' }],
    ['in a quarter without an index', { soldOn: '2025-04-01' }],
    [null, { soldOn: '2025-03-31', priceUsd: 300_000 }],
    ['below 10000 USD', { priceUsd: 9_999 }],
    ['below 10000 USD', { priceUsd: 0 }],
    ['far from the others in price', { priceUsd: 10_000 }],
    ['far from the others in price', { priceUsd: 40_000_000 }],
    [null, { priceUsd: 1_199_000 }],
    ['of another kind', { type: 'condo' }],
    ['of another kind', { type: 'other' }],
    ['of an unknown size', { squareFeet: null }],
    [null, { squareFeet: 1_000 }],
    ['of another size', { squareFeet: 999 }],
    ['of another size', { squareFeet: 2_251 }],
    ['sold again since, or listed twice', { id: 'g1', soldOn: '2026-05-01' }],
    ['sold again since, or listed twice', { id: 'g1' }],
  ];
  for (const [reason, change] of cases) {
    const { fitting, leftOut, comparables, looked } = compare([...GOOD, { ...SALE, ...change }]);
    const told = JSON.stringify([reason, change]);
    assert.deepEqual([...leftOut], reason === null ? [] : [[reason, 1]], told);
    assert.deepEqual([fitting, comparables.length, looked], reason === null ? [4, 4, 4] : [3, 3, 4], told);
  }
});

test('of a home that was sold twice on a day for two prices nobody knows the price', () => {
  const { fitting, leftOut, comparables } = compare([...GOOD, { ...SALE, id: 'g1', priceUsd: 410_000 }]);
  assert.deepEqual([fitting, comparables], [2, []]);
  assert.deepEqual([...leftOut], [['sold again since, or listed twice', 2]]);
});

test('without a kind and a size all homes are compared, by their price alone', () => {
  const { comparables } = compare(
    [
      { ...SALE, id: 'a', type: 'condo', squareFeet: 9_000 },
      { ...SALE, id: 'b', type: 'townhouse', squareFeet: null },
      { ...SALE, id: 'c', type: 'house' },
      { ...SALE, id: 'd', type: 'other' },
    ],
    { ...HOME, type: null, squareFeet: null },
  );
  assert.deepEqual(
    comparables.map(({ valueUsd }) => valueUsd),
    [400_000, 400_000, 400_000],
  );
});

test('the ten that are most alike stay, whatever order they come in', () => {
  const sales = Array.from({ length: 14 }, (_, nth) => ({
    ...SALE,
    id: `n-${nth}`,
    lat: 40 + nth / 1_000,
  }));
  const { comparables, fitting } = compare(sales.toReversed());
  assert.equal(fitting, 14);
  assert.deepEqual(
    comparables.map(({ distanceMeters }) => distanceMeters),
    [0, 111, 222, 334, 445, 556, 667, 778, 890, 1_001],
  );
});

test('a caller’s words for a home', () => {
  for (const [words, type] of [
    ['single_family', 'house'],
    ['House', 'house'],
    ['town-house', 'townhouse'],
    ['Row house', 'townhouse'],
    ['condominium', 'condo'],
    ['Co-op apartment', 'condo'],
    ['residential', 'any'],
    ['mobile home', null],
    ['houseboat', null],
    ['castle', null],
  ] as const)
    assert.equal(homeTypeOf(words), type, words);
});

test('quantiles stand straight between two neighbours', () => {
  assert.deepEqual(
    [0, 0.25, 0.5, 0.75, 1].map((share) => quantile([4, 1, 3, 2], share)),
    [1, 1.75, 2.5, 3.25, 4],
  );
});
