import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import {
  BAR_MS,
  type BarInterval,
  type Candle,
  type CandleSource,
  candleFreshness,
  finishedCandles,
  wirePrice,
  wireVolume,
} from './candle.ts';
import { BOOK_FRESHNESS, type OrderBookSource, wireBook } from './order-book.ts';

/** `[sec, low, high, open, close, volume]`, newest first. No other exchange has this order of columns. */
const candles = z.array(
  z.tuple([z.number().int(), wirePrice, wirePrice, wirePrice, wirePrice, wireVolume]).rest(z.unknown()),
);

/** Coinbase has no four-hour candles, so they are made of these. */
const PARTS_OF_4H: BarInterval = '1h';

/**
 * Coinbase Exchange's public market data.
 * https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/products/get-product-candles
 */
export const coinbase = defineUpstream({
  name: 'coinbase',
  title: 'Coinbase Exchange',
  baseUrl: 'https://api.exchange.coinbase.com',
  licence: 'Coinbase Exchange public market data',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://www.coinbase.com/legal',
  },
  documentation: {
    at: 'https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 300,
  // It takes 15 at once from an address, and ten a second from then on.
  burst: 15,
  patienceMs: 1_000,
  open: (http): CandleSource & OrderBookSource => ({
    /** Level 2 is the whole book; only its best offers are read. */
    orderBook: ({ base, quote }) =>
      http.find({
        path: `/products/${encodeURIComponent(`${base}-${quote}`)}/book`,
        query: { level: 2 },
        schema: wireBook,
        ...BOOK_FRESHNESS,
      }),
    /**
     * Finished candles, oldest first; null when Coinbase does not list the pair. At most 300, and at most 75 of
     * four hours. Intervals without a trade are left out.
     */
    async candles({ base, quote }, interval) {
      const asked = interval === '4h' ? PARTS_OF_4H : interval;
      const reply = await http.find({
        path: `/products/${encodeURIComponent(`${base}-${quote}`)}/candles`,
        query: { granularity: BAR_MS[asked] / 1_000 },
        schema: candles,
        ...candleFreshness(interval),
      });
      if (reply.value === null) return { ...reply, value: null };
      const value = reply.value.map(([openSec, low, high, open, close, volume]) => ({
        openMs: openSec * 1_000,
        closeMs: openSec * 1_000 + BAR_MS[asked],
        open,
        high,
        low,
        close,
        volume,
      }));
      const finished = finishedCandles({ ...reply, value });
      return interval === '4h'
        ? finishedCandles({ ...finished, value: merged(finished.value, interval) })
        : finished;
    },
  }),
  probe: (api) => api.candles({ base: 'BTC', quote: 'USD' }, '1d'),
});

/** Joins short candles into long ones. The oldest is left out if the reply may have cut into it. */
function merged(parts: readonly Candle[], interval: BarInterval): Candle[] {
  const barMs = BAR_MS[interval];
  const bars = new Map<number, Candle>();
  for (const part of parts) {
    const openMs = Math.floor(part.openMs / barMs) * barMs;
    const known = bars.get(openMs);
    bars.set(openMs, {
      openMs,
      closeMs: openMs + barMs,
      open: known?.open ?? part.open,
      high: Math.max(known?.high ?? part.high, part.high),
      low: Math.min(known?.low ?? part.low, part.low),
      close: part.close,
      volume: (known?.volume ?? 0) + part.volume,
    });
  }
  const oldest = parts[0];
  return [...bars.values()].filter(({ openMs }) => oldest === undefined || openMs >= oldest.openMs);
}
