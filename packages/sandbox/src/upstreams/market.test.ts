import assert from 'node:assert/strict';
import test from 'node:test';
import { COINS, type Coin } from './assets.ts';
import { BAR_LENGTHS, barAt, barBoundsMs } from './bars.ts';
import { type Market, openMarket } from './market.ts';
import { keyOf, Path } from './noise.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 11, 35, 7);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function coinOf(market: Market, id: string): Coin {
  const coin = market.coin(id);
  assert.ok(coin, id);
  return coin;
}

function bars(market: Market, id: string, interval: string, count: number) {
  const length = BAR_LENGTHS.get(interval);
  assert.ok(length);
  return market.candles(
    coinOf(market, id),
    barBoundsMs(length, barAt(length, NOW_MS) - count + 1, count),
    NOW_MS,
  );
}

function correlation(x: readonly number[], y: readonly number[]): number {
  const mean = (of: readonly number[]) => of.reduce((sum, value) => sum + value, 0) / of.length;
  const [meanX, meanY] = [mean(x), mean(y)];
  const product = mean(x.map((value, at) => (value - meanX) * ((y[at] ?? 0) - meanY)));
  return product / Math.sqrt(mean(x.map((v) => (v - meanX) ** 2)) * mean(y.map((v) => (v - meanY) ** 2)));
}

function returns(market: Market, id: string, days: number): number[] {
  return bars(market, id, '1d', days).map(({ open, close }) => Math.log(close / open));
}

test('a path read point by point is the path read as a whole', () => {
  const path = new Path(keyOf(3, 'some'), 0.001);
  const from = 2 ** 18 * 23 - 40;
  const run = path.fill(from, new Float64Array(80));
  assert.deepEqual(
    Array.from({ length: 80 }, (_, at) => path.at(from + at)),
    [...run],
  );
});

test('the order of questions does not change the answers, and another seed does', () => {
  const [one, other, strange] = [openMarket(7), openMarket(7), openMarket(8)];
  bars(other, 'bitcoin', '1w', 200);
  for (const coin of COINS.toReversed()) other.priceUsd(coin, NOW_MS - 400 * DAY_MS);
  for (const coin of COINS) assert.equal(one.priceUsd(coin, NOW_MS), other.priceUsd(coin, NOW_MS), coin.id);
  assert.deepEqual(bars(one, 'ethereum', '1h', 50), bars(other, 'ethereum', '1h', 50));
  assert.notEqual(
    one.priceUsd(coinOf(one, 'bitcoin'), NOW_MS),
    strange.priceUsd(coinOf(strange, 'bitcoin'), NOW_MS),
  );
});

test('a finished bar does not change afterwards', () => {
  const market = openMarket(7);
  const bound = [NOW_MS - (NOW_MS % HOUR_MS) - HOUR_MS, NOW_MS - (NOW_MS % HOUR_MS)];
  const coin = coinOf(market, 'solana');
  assert.deepEqual(market.candles(coin, bound, NOW_MS), market.candles(coin, bound, NOW_MS + 30 * DAY_MS));
});

test('bars of every length chain, nest, and end at the current price', () => {
  const market = openMarket(7);
  for (const id of ['bitcoin', 'pepe', 'usd-coin', 'wrapped-steth']) {
    const price = market.priceUsd(coinOf(market, id), NOW_MS);
    for (const interval of BAR_LENGTHS.keys()) {
      const list = bars(market, id, interval, 30);
      assert.equal(list.at(-1)?.close, price, `${id} ${interval}`);
      for (const [at, bar] of list.entries()) {
        assert.ok(bar.high >= Math.max(bar.open, bar.close) && bar.low <= Math.min(bar.open, bar.close));
        if (at > 0) assert.equal(bar.open, list[at - 1]?.close);
      }
    }
  }
  for (const [small, large, count] of [
    ['1s', '1m', 60],
    ['1m', '5m', 5],
    ['5m', '1h', 12],
    ['1h', '1d', 24],
  ] as const) {
    const whole = bars(market, 'ethereum', large, 2)[0];
    assert.ok(whole);
    const length = BAR_LENGTHS.get(small);
    assert.ok(length);
    const parts = market.candles(
      coinOf(market, 'ethereum'),
      barBoundsMs(length, barAt(length, whole.openMs), count),
      NOW_MS,
    );
    assert.equal(parts.length, count);
    assert.equal(whole.high, Math.max(...parts.map(({ high }) => high)), `${small} in ${large}`);
    assert.equal(whole.low, Math.min(...parts.map(({ low }) => low)), `${small} in ${large}`);
    assert.equal(whole.open, parts[0]?.open);
    assert.equal(whole.close, parts.at(-1)?.close);
    const volume = parts.reduce((sum, part) => sum + part.volumeUsd, 0);
    assert.ok(Math.abs(volume / whole.volumeUsd - 1) < 1e-9);
  }
});

test('coins move together as a market does, and pegged ones stay at their peg', () => {
  for (const seed of [1, 2, 8402]) {
    const market = openMarket(seed);
    const bitcoin = returns(market, 'bitcoin', 365);
    for (const id of ['ethereum', 'solana', 'uniswap']) {
      const found = correlation(bitcoin, returns(market, id, 365));
      assert.ok(found > 0.3 && found < 0.98, `${id}: ${found}`);
    }
    assert.ok(Math.abs(correlation(bitcoin, returns(market, 'pax-gold', 365))) < 0.3);
    const yearly = Math.sqrt(365 * (bitcoin.reduce((sum, value) => sum + value ** 2, 0) / bitcoin.length));
    assert.ok(yearly > 0.35 && yearly < 0.65, `volatility ${yearly}`);
    for (const { high, low } of bars(market, 'usd-coin', '1d', 365)) assert.ok(high < 1.002 && low > 0.998);
    for (const at of [0, 100, 200]) {
      const then = NOW_MS - at * DAY_MS;
      const ratio =
        market.priceUsd(coinOf(market, 'wrapped-bitcoin'), then) /
        market.priceUsd(coinOf(market, 'bitcoin'), then);
      assert.ok(Math.abs(ratio - 1) < 0.002, `WBTC at ${ratio}`);
    }
  }
});

test('every coin starts from its anchor at the reference time', () => {
  const market = openMarket(99);
  assert.equal(market.priceUsd(coinOf(market, 'bitcoin'), Date.UTC(2026, 10, 1)), 92_000);
  assert.equal(market.priceUsd(coinOf(market, 'ethereum'), Date.UTC(2026, 10, 1)), 3_000);
});
