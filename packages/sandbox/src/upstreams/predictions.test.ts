import assert from 'node:assert/strict';
import test from 'node:test';
import { openMarket } from './market.ts';
import type { Venue } from './prediction-questions.ts';
import { normalCumulative, openPredictions, type PredictionMarket } from './predictions.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 11, 35, 7);
const predictions = openPredictions(openMarket(7));

function openMarkets(venue: Venue): PredictionMarket[] {
  return predictions
    .events(venue, NOW_MS)
    .filter(({ endMs }) => endMs > NOW_MS)
    .flatMap(({ markets }) => markets);
}

test('the normal distribution function has its published values', () => {
  for (const [z, p] of [
    [0, 0.5],
    [1, 0.841345],
    [1.959964, 0.975],
    [-2.326348, 0.01],
  ] as const) {
    assert.ok(Math.abs(normalCumulative(z) - p) < 1e-6, `${z}`);
  }
});

test('quotes, books and mid prices of a market agree', () => {
  for (const venue of ['polymarket', 'kalshi'] as const) {
    for (const market of openMarkets(venue)) {
      const { bidCents, askCents, lastCents } = predictions.quote(market, NOW_MS);
      const { bids, asks } = predictions.book(market, NOW_MS);
      assert.ok(bidCents >= 1 && askCents <= 99 && bidCents < askCents);
      assert.ok(lastCents === bidCents || lastCents === askCents);
      assert.equal(bids[0]?.cents, bidCents);
      assert.equal(asks[0]?.cents, askCents);
      assert.equal(predictions.midpoint(market, NOW_MS), (bidCents + askCents) / 200);
    }
  }
});

test('a higher bound is never likelier, and exclusive outcomes add up to about one', () => {
  for (const event of predictions.events('kalshi', NOW_MS)) {
    if (event.endMs <= NOW_MS) continue;
    const mids = event.markets.map((market) => predictions.midpoint(market, NOW_MS));
    if (event.question.exclusive) {
      const sum = mids.reduce((total, mid) => total + mid, 0);
      assert.ok(sum > 0.93 && sum < 1.07, `${event.title}: ${sum}`);
    } else {
      // Markets have different spreads, so that the mid prices of two neighbours may be a cent out of order.
      for (const [at, mid] of mids.entries()) assert.ok(mid <= (mids[at - 1] ?? 1) + 0.01, event.title);
    }
  }
});

test('at least a dozen events a venue, some asked on both at other prices, some on one only', () => {
  const ids = (venue: Venue) =>
    predictions
      .events(venue, NOW_MS)
      .filter(({ endMs }) => endMs > NOW_MS)
      .map(({ question }) => question.id);
  const [polymarket, kalshi] = [ids('polymarket'), ids('kalshi')];
  assert.ok(polymarket.length >= 12 && kalshi.length >= 12);
  assert.ok(polymarket.some((id) => !kalshi.includes(id)) && kalshi.some((id) => !polymarket.includes(id)));
  const spreads = openMarkets('polymarket').flatMap((market) => {
    const twin = openMarkets('kalshi').find(
      ({ event, index }) => event.question.id === market.event.question.id && index === market.index,
    );
    if (twin === undefined) return [];
    assert.notEqual(twin.event.title, market.event.title);
    assert.equal(twin.event.endMs, market.event.endMs);
    return [Math.abs(predictions.midpoint(market, NOW_MS) - predictions.midpoint(twin, NOW_MS))];
  });
  assert.ok(spreads.length >= 12);
  assert.ok(spreads.some((spread) => spread >= 0.01) && spreads.every((spread) => spread < 0.2));
});

test('a question about a price is settled by the market itself, and only when it is over', () => {
  const market = openMarket(7);
  const bitcoin = market.coin('bitcoin');
  assert.ok(bitcoin);
  for (const event of predictions.events('kalshi', NOW_MS)) {
    for (const of of event.markets) {
      const result = predictions.result(of, NOW_MS);
      assert.equal(result === null, event.endMs > NOW_MS);
      if (event.question.id !== 'bitcoin-quarter' || result === null || of.low === null) continue;
      assert.equal(result, market.priceUsd(bitcoin, event.endMs) >= of.low ? 'yes' : 'no');
    }
  }
});
