/** https://api.kraken.com, public market data. Every answer has HTTP status 200; `error` tells of a failure. */
import type { FastifyInstance } from 'fastify';
import type { Coin } from './assets.ts';
import { barAt, barBoundsMs } from './bars.ts';
import { bookOf } from './order-book.ts';
import { countOf, numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const INTERVALS_MINUTES = [1, 5, 15, 30, 60, 240, 1_440, 10_080, 21_600];
const MAX_BARS = 720;
const TURNOVER_SHARE = 0.02;
const MEAN_TRADE_USD = 2_500;
/** Kraken's own names for coins. */
const ALIASES: Readonly<Record<string, string>> = { XBT: 'BTC', XDG: 'DOGE' };
/** Pairs against the dollar that Kraken's answers still call by an older name. */
const OLD_NAMES: Readonly<Record<string, string>> = {
  BTC: 'XXBTZUSD',
  ETH: 'XETHZUSD',
  LTC: 'XLTCZUSD',
  XRP: 'XXRPZUSD',
  DOGE: 'XDGUSD',
};

export function kraken(app: FastifyInstance, { market, nowMs }: World): void {
  /** The coin of a pair against the dollar: `XBTUSD`, `XXBTZUSD`, `BTC/USD`, `SOLUSD`. */
  function coinOf(pair: string): Coin | undefined {
    const name = pair.toUpperCase();
    const old = Object.entries(OLD_NAMES).find(([, key]) => key === name)?.[0];
    const base = old ?? /^(.+?)\/?USD$/.exec(name)?.[1];
    const coin = base === undefined ? undefined : market.coinBySymbol(ALIASES[base] ?? base);
    return coin?.listed === true ? coin : undefined;
  }

  app.get('/0/public/Time', () => ({ error: [], result: { unixtime: Math.floor(nowMs() / 1000) } }));

  app.get<{ Querystring: Query }>('/0/public/Depth', ({ query }) => {
    const pair = textOf(query, 'pair');
    if (pair === undefined) return { error: ['EGeneral:Invalid arguments'] };
    const coin = coinOf(pair);
    if (coin === undefined) return { error: ['EQuery:Unknown asset pair'] };
    const count = countOf(query, 'count', 100, 1, 500);
    const { bids, asks } = bookOf(market, coin, 'kraken', TURNOVER_SHARE, nowMs());
    const row = ({ price, size }: { price: number; size: number }) => [
      price.toFixed(market.priceDecimals(coin)),
      size.toFixed(3),
      Math.floor(nowMs() / 1000),
    ];
    const key = OLD_NAMES[coin.symbol] ?? `${coin.symbol}USD`;
    return {
      error: [],
      result: { [key]: { asks: asks.slice(0, count).map(row), bids: bids.slice(0, count).map(row) } },
    };
  });

  app.get<{ Querystring: Query }>('/0/public/OHLC', ({ query }) => {
    const pair = textOf(query, 'pair');
    if (pair === undefined) return { error: ['EGeneral:Invalid arguments'] };
    const coin = coinOf(pair);
    if (coin === undefined) return { error: ['EQuery:Unknown asset pair'] };
    const minutes = numberOf(query, 'interval') ?? 1;
    const since = numberOf(query, 'since') ?? 0;
    if (!INTERVALS_MINUTES.includes(minutes)) return { error: ['EGeneral:Invalid arguments:interval'] };
    const length = { ms: minutes * 60_000, offsetMs: 0 };
    const last = barAt(length, nowMs());
    const bars = market.candles(coin, barBoundsMs(length, last - MAX_BARS + 1, MAX_BARS), nowMs());
    const price = (value: number) => value.toFixed(market.priceDecimals(coin));
    const rows = bars
      .filter((bar) => bar.openMs / 1000 >= since)
      .map((bar) => {
        const mean = (bar.high + bar.low + bar.close) / 3;
        const turnover = bar.volumeUsd * TURNOVER_SHARE;
        return [
          bar.openMs / 1000,
          price(bar.open),
          price(bar.high),
          price(bar.low),
          price(bar.close),
          price(mean),
          (turnover / mean).toFixed(8),
          Math.ceil(turnover / MEAN_TRADE_USD),
        ];
      });
    const key = OLD_NAMES[coin.symbol] ?? `${coin.symbol}USD`;
    // `last` is the start of the last finished bar. A client that asks for bars since then gets the running bar again.
    return { error: [], result: { [key]: rows, last: ((last - 1) * length.ms) / 1000 } };
  });
}
