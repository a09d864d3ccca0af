/** https://api.exchange.coinbase.com, public market data. Candles come newest first, and each states its low before its high. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Coin } from './assets.ts';
import { barAt, barBoundsMs } from './bars.ts';
import { bookOf } from './order-book.ts';
import { numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const GRANULARITIES_SECONDS = [60, 300, 900, 3_600, 21_600, 86_400];
const MAX_BARS = 300;
const TURNOVER_SHARE = 0.06;

export function coinbase(app: FastifyInstance, { market, nowMs }: World): void {
  function coinOf(product: string): Coin | undefined {
    const base = /^([A-Z0-9]+)-(USD|USDC|USDT)$/.exec(product)?.[1];
    const coin = base === undefined ? undefined : market.coinBySymbol(base);
    return coin?.listed === true ? coin : undefined;
  }

  app.get<{ Params: { product: string }; Querystring: Query }>(
    '/products/:product/candles',
    ({ params, query }, reply) => {
      const coin = coinOf(params.product);
      if (coin === undefined) return refuse(reply, 404, 'NotFound');
      const seconds = numberOf(query, 'granularity') ?? 60;
      if (!GRANULARITIES_SECONDS.includes(seconds)) return refuse(reply, 400, 'Unsupported granularity');
      const length = { ms: seconds * 1000, offsetMs: 0 };
      const end = timeMs(textOf(query, 'end')) ?? nowMs();
      const start = timeMs(textOf(query, 'start')) ?? end - (MAX_BARS - 1) * length.ms;
      if (Number.isNaN(end) || Number.isNaN(start)) return refuse(reply, 400, 'Invalid start or end');
      const first = Math.ceil(start / length.ms);
      const last = barAt(length, Math.min(end, nowMs()));
      if (Math.floor((end - start) / length.ms) > MAX_BARS) {
        return refuse(
          reply,
          400,
          `granularity too small for the requested time range. Count of aggregations requested exceeds ${MAX_BARS}`,
        );
      }
      const count = Math.min(MAX_BARS, last - first + 1);
      if (count < 1) return [];
      return market
        .candles(coin, barBoundsMs(length, last - count + 1, count), nowMs())
        .toReversed()
        .map((bar) => [
          bar.openMs / 1000,
          bar.low,
          bar.high,
          bar.open,
          bar.close,
          Number(((bar.volumeUsd * TURNOVER_SHARE) / bar.close).toFixed(8)),
        ]);
    },
  );

  app.get<{ Params: { product: string }; Querystring: Query }>(
    '/products/:product/book',
    ({ params, query }, reply) => {
      const coin = coinOf(params.product);
      if (coin === undefined) return refuse(reply, 404, 'NotFound');
      const { bids, asks } = bookOf(market, coin, 'coinbase', TURNOVER_SHARE, nowMs());
      const count = numberOf(query, 'level') === 2 ? bids.length : 1;
      const row = ({ price, size }: { price: number; size: number }) => [
        price.toFixed(market.priceDecimals(coin)),
        size.toFixed(8),
        3,
      ];
      return {
        bids: bids.slice(0, count).map(row),
        asks: asks.slice(0, count).map(row),
        sequence: Math.floor(nowMs()),
        auction_mode: false,
        auction: null,
        time: new Date(nowMs()).toISOString(),
      };
    },
  );

  app.get<{ Params: { product: string } }>('/products/:product/ticker', ({ params }, reply) => {
    const coin = coinOf(params.product);
    if (coin === undefined) return refuse(reply, 404, 'NotFound');
    const price = market.priceUsd(coin, nowMs());
    const tick = 10 ** -market.priceDecimals(coin);
    const volumeUsd = market.volumeUsd(coin, nowMs() - 86_400_000, nowMs()) * TURNOVER_SHARE;
    const text = (value: number) => value.toFixed(market.priceDecimals(coin));
    return {
      ask: text(price + tick),
      bid: text(price - tick),
      volume: (volumeUsd / price).toFixed(8),
      trade_id: Math.floor(nowMs() / 1000),
      price: text(price),
      size: '0.01',
      time: new Date(nowMs()).toISOString(),
    };
  });
}

/** The milliseconds of a time given in ISO 8601 or in seconds since 1970. Undefined if none is given, NaN if it is malformed. */
function timeMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text);
}

function refuse(reply: FastifyReply, status: number, message: string) {
  return reply.code(status).send({ message });
}
