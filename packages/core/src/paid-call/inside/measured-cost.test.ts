import assert from 'node:assert/strict';
import { test } from 'node:test';
import { saleOf } from '../sale.fixture.ts';
import { checkedCost } from './measured-cost.ts';

const { quote } = saleOf({ identity: null });
const metered = Object.assign({}, quote, {
  service: Object.assign({}, quote.service, {
    metered: { measured: 'bytes', priceUsd: '0.01', per: 1, atMostUsd: '0.05', whenUnmeasuredUsd: null },
  }),
});

test('an answer costs what it says, up to what was reserved and down to nothing', () => {
  for (const micros of [0n, 1n, quote.priceMicros]) assert.equal(checkedCost(metered, micros), micros);
});

test('a metered answer that says nothing of its cost, or costs what was not reserved, is none', () => {
  for (const micros of [undefined, -1n, quote.priceMicros + 1n])
    assert.throws(() => checkedCost(metered, micros), /that are reserved/);
});

test('a metered call for which nothing was reserved is free, whatever its answer measures', () => {
  for (const micros of [undefined, 0n, 7n])
    assert.equal(checkedCost(Object.assign({}, metered, { priceMicros: 0n }), micros), undefined);
});

test('a service whose price is known before has no say in it afterwards', () => {
  for (const micros of [undefined, 1n, quote.priceMicros + 1n])
    assert.equal(checkedCost(quote, micros), undefined);
});
