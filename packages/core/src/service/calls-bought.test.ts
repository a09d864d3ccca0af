import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsBought } from './calls-bought.ts';

const pricedAt = (...prices: string[]) => prices.map((priceUsd) => ({ priceUsd }));

test('credit is counted in calls at the median and at the lowest price of what is sold', () => {
  const shop = pricedAt('10.00', '0.05', '0.25', '0.75', '0.25');
  assert.equal(callsBought(10, shop), '40 calls at $0.25, the median price, or 200 at $0.05');
  assert.equal(
    callsBought(10, pricedAt('0.10', '0.20')),
    '50 calls at $0.20, the median price, or 100 at $0.10',
  );
});

test('credit is counted once where all costs the same, and a part of a call is none', () => {
  assert.equal(callsBought(5, pricedAt('3.00')), '1 call at $3.00, the median price');
  assert.equal(callsBought(5, pricedAt('0.0025')), '2,000 calls at $0.0025, the median price');
  assert.equal(callsBought(5, pricedAt('7.00')), '0 calls at $7.00, the median price');
});

test('credit where nothing is sold buys no calls', () => {
  for (const none of [[], pricedAt('0')]) assert.equal(callsBought(5, none), 'nothing is for sale now');
});
