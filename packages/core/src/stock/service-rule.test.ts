import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SERVICE } from '../paid-call/sale.fixture.ts';
import { priceText, readRules, ruledBy, rulesText, type ServiceRule, soldUnder } from './service-rule.ts';

const rule = (
  priceMicros: bigint | null,
  isAvailable: boolean | null,
  isSoldByMpp: boolean | null,
): ServiceRule => ({
  priceMicros,
  isAvailable,
  isSoldByMpp,
});

test('the first rule that says something about a matter decides it, each matter by itself', () => {
  assert.deepEqual(
    ruledBy(rule(null, false, null), undefined, rule(7n, true, null), rule(8n, true, false)),
    rule(7n, false, false),
  );
  assert.deepEqual(ruledBy(undefined, undefined), rule(null, null, null));
});

test('a rule changes the price and MPP of a service, and one that changes nothing leaves the service itself', () => {
  const sold = soldUnder(rule(123_456n, null, true), SERVICE);
  assert.deepEqual([sold.priceUsd, sold.mpp, sold.path], ['0.123456', true, SERVICE.path]);
  assert.equal(soldUnder(rule(2_000_000n, null, null), SERVICE).priceUsd, '2.00');
  assert.equal(soldUnder(rule(null, false, null), SERVICE), SERVICE);
  assert.equal(soldUnder(rule(50_000n, true, SERVICE.mpp), SERVICE), SERVICE);
});

test('rules are kept as text, sorted and without those that say nothing, and read as they were', () => {
  const rules = new Map([
    ['nickel', rule(70_000n, false, null)],
    ['cent', rule(null, null, true)],
    ['dime', rule(null, null, null)],
  ]);
  const text = rulesText(rules);
  assert.equal(text, '{"cent":{"mpp":true},"nickel":{"price":"0.07","available":false}}');
  rules.delete('dime');
  assert.deepEqual([...readRules(text)].sort(), [...rules].sort());
  assert.equal(readRules(null).size, 0);
  assert.throws(() => readRules('{"nickel":{"price":"0"}}'));
});

test('a price is text in USD above zero, with at most six places', () => {
  for (const usd of ['0.000001', '1', '999999.999999', '0.10'])
    assert.ok(priceText.safeParse(usd).success, usd);
  for (const usd of ['0', '0.000000', '-1', '1e3', '01', '.5', '0.0000001', '1000000', ' 1', 1, null])
    assert.ok(!priceText.safeParse(usd).success, String(usd));
});
