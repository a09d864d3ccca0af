/** The market-data part of https://data-api.binance.vision. Prices against USDT and USDC are the market's USD prices. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Coin } from './assets.ts';
import { BAR_LENGTHS, barAt, barBoundsMs, barStartMs } from './bars.ts';
import { FIRST_MS } from './market.ts';
import { bookOf } from './order-book.ts';
import { countOf, numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const QUOTES = ['USDT', 'USDC'];
const DEFAULT_BARS = 500;
const MAX_BARS = 1_000;
/** The share of a coin's turnover on all venues that this venue has. */
const TURNOVER_SHARE = 0.3;
const MEAN_TRADE_USD = 900;

export function binance(app: FastifyInstance, { market, nowMs }: World): void {
  function coinOf(symbol: string): Coin | undefined {
    const quote = QUOTES.find((name) => symbol.endsWith(name) && symbol !== name);
    const coin = quote === undefined ? undefined : market.coinBySymbol(symbol.slice(0, -quote.length));
    return coin?.listed === true && coin.symbol !== 'USDT' ? coin : undefined;
  }

  app.get('/api/v3/ping', () => ({}));
  app.get('/api/v3/time', () => ({ serverTime: nowMs() }));

  app.get<{ Querystring: Query }>('/api/v3/ticker/price', ({ query }, reply) => {
    const symbol = textOf(query, 'symbol');
    if (symbol === undefined) return missing(reply, 'symbol');
    const coin = coinOf(symbol);
    if (coin === undefined) return refuse(reply, -1121, 'Invalid symbol.');
    return { symbol, price: market.priceUsd(coin, nowMs()).toFixed(places(coin)) };
  });

  app.get<{ Querystring: Query }>('/api/v3/depth', ({ query }, reply) => {
    const symbol = textOf(query, 'symbol');
    if (symbol === undefined) return missing(reply, 'symbol');
    const coin = coinOf(symbol);
    if (coin === undefined) return refuse(reply, -1121, 'Invalid symbol.');
    const limit = countOf(query, 'limit', 100, 1, 5_000);
    const { bids, asks } = bookOf(market, coin, 'binance', TURNOVER_SHARE, nowMs());
    const row = ({ price, size }: { price: number; size: number }) => [
      price.toFixed(places(coin)),
      size.toFixed(8),
    ];
    return {
      lastUpdateId: Math.floor(nowMs()),
      bids: bids.slice(0, limit).map(row),
      asks: asks.slice(0, limit).map(row),
    };
  });

  app.get<{ Querystring: Query }>('/api/v3/klines', ({ query }, reply) => {
    const symbol = textOf(query, 'symbol');
    const interval = textOf(query, 'interval');
    if (symbol === undefined) return missing(reply, 'symbol');
    if (interval === undefined) return missing(reply, 'interval');
    if (!/^[A-Z0-9-_.]{1,20}$/.test(symbol)) {
      return refuse(
        reply,
        -1100,
        "Illegal characters found in parameter 'symbol'; legal range is '^[A-Z0-9-_.]{1,20}$'.",
      );
    }
    const coin = coinOf(symbol);
    if (coin === undefined) return refuse(reply, -1121, 'Invalid symbol.');
    const length = BAR_LENGTHS.get(interval);
    if (length === undefined) return refuse(reply, -1120, 'Invalid interval.');
    const numbers = {
      limit: numberOf(query, 'limit'),
      start: numberOf(query, 'startTime'),
      end: numberOf(query, 'endTime'),
    };
    for (const [name, value] of Object.entries(numbers)) {
      if (value === null || (value !== undefined && value < 0)) {
        return refuse(
          reply,
          -1100,
          `Illegal characters found in parameter '${name}'; legal range is '^[0-9]{1,20}$'.`,
        );
      }
    }
    const limit = Math.max(1, Math.min(MAX_BARS, Math.trunc(numbers.limit ?? DEFAULT_BARS)));
    const last = barAt(length, Math.min(nowMs(), numbers.end ?? nowMs()));
    // With a start time, `limit` keeps the oldest bars of the range; without one, the newest. A bar belongs to the range in
    // which it opens.
    const startMs = numbers.start ?? undefined;
    const atStart = startMs === undefined ? undefined : Math.max(startMs, FIRST_MS);
    const first =
      atStart === undefined
        ? last - limit + 1
        : barStartMs(length, barAt(length, atStart)) < atStart
          ? barAt(length, atStart) + 1
          : barAt(length, atStart);
    const count = Math.min(limit, last - first + 1);
    if (count < 1) return [];
    return market.candles(coin, barBoundsMs(length, first, count), nowMs()).map((bar) => {
      const price = (value: number) => value.toFixed(places(coin));
      const quoteVolume = bar.volumeUsd * TURNOVER_SHARE;
      const baseVolume = quoteVolume / ((bar.open + bar.close) / 2);
      return [
        bar.openMs,
        price(bar.open),
        price(bar.high),
        price(bar.low),
        price(bar.close),
        baseVolume.toFixed(8),
        bar.endMs - 1,
        quoteVolume.toFixed(8),
        Math.ceil(quoteVolume / MEAN_TRADE_USD),
        (baseVolume / 2).toFixed(8),
        (quoteVolume / 2).toFixed(8),
        '0',
      ];
    });
  });

  function places(coin: Coin): number {
    return Math.max(8, market.priceDecimals(coin));
  }
}

function missing(reply: FastifyReply, name: string) {
  return refuse(reply, -1102, `Mandatory parameter '${name}' was not sent, was empty/null, or malformed.`);
}

function refuse(reply: FastifyReply, code: number, msg: string) {
  return reply.code(400).send({ code, msg });
}
