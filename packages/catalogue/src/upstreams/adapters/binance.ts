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

/** `[openMs, open, high, low, close, volume, closeMs, …]`, prices as strings, oldest first, the unfinished bar last. */
const klines = z.array(
  z.tuple([z.number().int(), wirePrice, wirePrice, wirePrice, wirePrice, wireVolume]).rest(z.unknown()),
);
const MAX_BARS = 500;
/** What Binance answers with for a symbol it does not list (`{"code":-1121,"msg":"Invalid symbol."}`). */
const UNKNOWN_SYMBOL_STATUS = 400;

/**
 * Binance's public market data, from the mirror that serves every region.
 * https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints
 */
export const binance = defineUpstream({
  name: 'binance',
  title: 'Binance',
  baseUrl: 'https://data-api.binance.vision',
  licence: 'Binance public market data',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://www.binance.com/en/terms',
  },
  documentation: {
    at: 'https://github.com/binance/binance-spot-api-docs/blob/a5e0bc3/rest-api.md',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 600,
  open: (http): CandleSource & OrderBookSource => ({
    orderBook: ({ base, quote }) =>
      http.find({
        path: '/api/v3/depth',
        query: { symbol: base + quote, limit: BOOK_DEPTH },
        schema: wireBook,
        absentOn: [UNKNOWN_SYMBOL_STATUS],
        ...BOOK_FRESHNESS,
      }),
    /** Finished candles, oldest first, at most 499; null when Binance does not list the pair. */
    async candles({ base, quote }, interval) {
      const reply = await http.find({
        path: '/api/v3/klines',
        query: { symbol: base + quote, interval, limit: MAX_BARS },
        schema: klines,
        absentOn: [UNKNOWN_SYMBOL_STATUS],
        ...candleFreshness(interval),
      });
      if (reply.value === null) return { ...reply, value: null };
      const value = reply.value.map(([openMs, open, high, low, close, volume]) => ({
        openMs,
        closeMs: openMs + BAR_MS[interval],
        open,
        high,
        low,
        close,
        volume,
      }));
      return finishedCandles({ ...reply, value });
    },
  }),
  probe: (api) => api.candles({ base: 'BTC', quote: 'USDT' }, '1d'),
});
