import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cardLimit, networkLimit, networkOf, type PastPurchase } from './purchase-limits.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = Date.parse('2026-11-21T12:00:00Z');

/** A purchase so many hours ago. */
const ago = (
  hours: number,
  outcome: PastPurchase['outcome'] = 'paid',
  usd = 5,
  isNewAccount = false,
): PastPurchase => ({
  atMs: NOW_MS - hours * HOUR_MS,
  outcome,
  amountMicros: BigInt(usd) * 1_000_000n,
  isNewAccount,
});

test('a network is the /24 or /64 that an address is of', () => {
  assert.equal(networkOf('203.0.113.9'), networkOf('203.0.113.250'));
  assert.equal(networkOf('::ffff:203.0.113.9'), networkOf('203.0.113.1'));
  assert.notEqual(networkOf('203.0.113.9'), networkOf('203.0.114.9'));
  assert.equal(networkOf('2606:4700:1:2:aaaa::1'), networkOf('2606:4700:1:2::ffff'));
  assert.notEqual(networkOf('2606:4700:1:2::1'), networkOf('2606:4700:1:3::1'));
});

test('five attempts of a network in an hour, whatever came of them', () => {
  const four = [ago(0.1, 'open'), ago(0.2), ago(0.3, 'void'), ago(0.4, 'declined')];
  assert.equal(networkLimit([...four, ago(1.1)], NOW_MS), null);
  assert.deepEqual(networkLimit([...four, ago(0.75)], NOW_MS), {
    limit: 'attempts_per_network',
    retryAfterMs: 0.25 * HOUR_MS,
  });
});

test('three declines of a network within a day, and it waits a day from the last', () => {
  const declined = [ago(2, 'declined'), ago(10, 'declined'), ago(25, 'declined')];
  // The first of the three is more than a day before now, and less than one before the last.
  assert.deepEqual(networkLimit(declined, NOW_MS), {
    limit: 'declines_per_network',
    retryAfterMs: 22 * HOUR_MS,
  });
  assert.equal(networkLimit(declined, NOW_MS + 22 * HOUR_MS), null);
  assert.equal(networkLimit([ago(2, 'declined'), ago(10, 'declined'), ago(26.1, 'declined')], NOW_MS), null);
});

test('a card pays 200 USD in a day, and waits until enough of it is a day old', () => {
  const past = [ago(1, 'open', 25), ago(2, 'declined', 100), ago(5, 'paid', 100), ago(20, 'paid', 25)];
  const next = (usd: number) => ({ amountMicros: BigInt(usd) * 1_000_000n, isNewAccount: false });
  assert.equal(cardLimit(past, next(25), NOW_MS), null);
  // 25 + 100 + 100 are too much as long as the hundred counts: for 19 hours.
  assert.deepEqual(cardLimit(past, next(100), NOW_MS), {
    limit: 'amount_per_card',
    retryAfterMs: 19 * HOUR_MS,
  });
  const four = [ago(5, 'paid', 100), ago(20, 'paid', 25), ago(21, 'paid', 25), ago(22, 'paid', 25)];
  // 25 + 100 + 25 + 25 + 25 are just enough; with a tier more the oldest has to go.
  assert.equal(cardLimit(four, next(25), NOW_MS), null);
  assert.deepEqual(cardLimit([ago(1, 'paid', 25), ...four], next(25), NOW_MS), {
    limit: 'amount_per_card',
    retryAfterMs: 2 * HOUR_MS,
  });
});

test('a card pays for three new accounts in a week, and for old ones as before', () => {
  const past = [ago(30, 'paid', 5, true), ago(40, 'paid', 5, true), ago(50, 'paid', 5, true)];
  const next = { amountMicros: 5_000_000n, isNewAccount: true };
  assert.deepEqual(cardLimit(past, next, NOW_MS), {
    limit: 'new_accounts_per_card',
    retryAfterMs: 7 * DAY_MS - 50 * HOUR_MS,
  });
  assert.equal(cardLimit(past, { ...next, isNewAccount: false }, NOW_MS), null);
});

test('what is under way may yet be declined, or paid: it counts as both, and passes soon', () => {
  const open = [1, 2, 3, 4, 5].map((minutes) => ago(minutes / 60, 'open'));
  const next = { amountMicros: 5_000_000n, isNewAccount: false };
  assert.deepEqual(cardLimit(open, next, NOW_MS), { limit: 'declines_per_card', retryAfterMs: 60_000 });
  assert.equal(cardLimit(open.slice(1), next, NOW_MS), null);
});

test('a site of many networks may do four times what one may', () => {
  const attempts = Array.from({ length: 20 }, (_, nth) => ago(0.01 * (nth + 1)));
  assert.equal(networkLimit(attempts.slice(1), NOW_MS, true), null);
  assert.equal(networkLimit(attempts, NOW_MS, true)?.limit, 'attempts_per_network');
  const declines = Array.from({ length: 12 }, (_, nth) => ago(2 + nth, 'declined'));
  assert.equal(networkLimit(declines.slice(1), NOW_MS, true), null);
  assert.equal(networkLimit(declines, NOW_MS, true)?.limit, 'declines_per_network');
});

test('purchases for accounts that a card had before do not count as new accounts', () => {
  const past = [ago(30), ago(40, 'paid', 5, true), ago(50), ago(60)];
  assert.equal(cardLimit(past, { amountMicros: 5_000_000n, isNewAccount: true }, NOW_MS), null);
});
