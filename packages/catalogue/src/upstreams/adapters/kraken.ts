import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import {
  BAR_MS,
  type CandleSource,
  candleFreshness,
  finishedCandles,
  wirePrice,
  wireVolume,
} from './candle.ts';
import { BOOK_DEPTH, BOOK_FRESHNESS, type OrderBookSource, wireBook } from './order-book.ts';

/** `[sec, open, high, low, close, vwap, volume, trades]`, prices as strings; `vwap` is "0" for a bar without trades. */
const bar = z
  .tuple([z.number().int(), wirePrice, wirePrice, wirePrice, wirePrice, wireVolume, wireVolume])
  .rest(z.unknown());

/**
 * Errors come with HTTP 200. An unknown pair is an answer. Anything else in `error` fits neither shape, and so counts
 * as a failure, which is not cached.
 */
const ohlc = z.union([
  z
    .looseObject({ error: z.array(z.string()).length(0), result: z.record(z.string(), z.unknown()) })
    .transform(({ result }) => Object.entries(result).find(([name]) => name !== 'last')?.[1])
    .pipe(z.array(bar)),
  z.looseObject({ error: z.tuple([z.literal('EQuery:Unknown asset pair')]) }).transform(() => null),
]);

const depth = z.union([
  z
    .looseObject({ error: z.array(z.string()).length(0), result: z.record(z.string(), z.unknown()) })
    .transform(({ result }) => Object.values(result)[0])
    .pipe(wireBook),
  z.looseObject({ error: z.tuple([z.literal('EQuery:Unknown asset pair')]) }).transform(() => null),
]);

/** Kraken's own tickers, where they differ. */
const TICKERS: Readonly<Record<string, string>> = { BTC: 'XBT', DOGE: 'XDG' };

/** Kraken's public market data. https://docs.kraken.com/api/docs/rest-api/get-ohlc-data */
export const kraken = defineUpstream({
  name: 'kraken',
  title: 'Kraken',
  baseUrl: 'https://api.kraken.com',
  licence: 'Kraken public market data',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://www.kraken.com/legal',
  },
  documentation: {
    at: 'https://docs.kraken.com/exchange/guides/general/historical-data',
    readOn: '2026-11-29',
  },
  key: 'none',
  // Once a second is always within its limits; a few at once are not known to exceed them.
  requestsPerMinute: 60,
  burst: 10,
  patienceMs: 2_000,
  open: (http): CandleSource & OrderBookSource => ({
    orderBook: ({ base, quote }) =>
      http.get({
        path: '/0/public/Depth',
        query: { pair: (TICKERS[base] ?? base) + (TICKERS[quote] ?? quote), count: BOOK_DEPTH },
        schema: depth,
        ...BOOK_FRESHNESS,
      }),
    /** Finished candles, oldest first, at most 719; null when Kraken does not list the pair. */
    async candles({ base, quote }, interval) {
      const reply = await http.get({
        path: '/0/public/OHLC',
        query: {
          pair: (TICKERS[base] ?? base) + (TICKERS[quote] ?? quote),
          interval: BAR_MS[interval] / BAR_MS['1m'],
        },
        schema: ohlc,
        ...candleFreshness(interval),
      });
      if (reply.value === null) return { ...reply, value: null };
      const value = reply.value.map(([openSec, open, high, low, close, , volume]) => ({
        openMs: openSec * 1_000,
        closeMs: openSec * 1_000 + BAR_MS[interval],
        open,
        high,
        low,
        close,
        volume,
      }));
      return finishedCandles({ ...reply, value });
    },
  }),
  probe: (api) => api.candles({ base: 'BTC', quote: 'USD' }, '1d'),
});
