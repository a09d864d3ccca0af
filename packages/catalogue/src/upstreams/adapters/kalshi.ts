import type { Source } from '@farebox/core/words/answer';
import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import { optionalWireNumber, wireNumber } from '../wire-number.ts';
import { optionalWireTime } from '../wire-time.ts';

export interface KalshiMarket {
  ticker: string;
  eventTicker: string;
  /** The question; older records have only `yesSubTitle`. */
  title: string | null;
  /** What "yes" means within its event, such as "Above 3%". */
  yesSubTitle: string | null;
  /** All prices in USD a contract, 0 to 1; null where nobody quotes or nothing traded. */
  yesBid: number | null;
  yesAsk: number | null;
  noBid: number | null;
  noAsk: number | null;
  /** Contracts at the best prices for yes; null when the record does not say. */
  yesBidSize: number | null;
  yesAskSize: number | null;
  lastPrice: number | null;
  /** Contracts. */
  volume: number | null;
  volume24h: number | null;
  openInterest: number | null;
  status: string;
  /** Null until it is settled, or when it was settled as neither. */
  result: 'yes' | 'no' | null;
  closeTime: string | null;
  /** The venue's rule of settlement, in its own words. */
  rules: string | null;
  url: string;
}

export interface KalshiEvent {
  eventTicker: string;
  seriesTicker: string | null;
  title: string;
  category: string | null;
  markets: KalshiMarket[];
}

export interface KalshiBookLevel {
  /** USD a contract, 0 to 1. */
  price: number;
  /** Contracts. */
  size: number;
}

/** Best level first on every side. */
export interface KalshiBook {
  yesBids: KalshiBookLevel[];
  noBids: KalshiBookLevel[];
  /** The offers of yes: the bids for no, converted. */
  yesAsks: KalshiBookLevel[];
  noAsks: KalshiBookLevel[];
}

/** The contents of several pages of a list. */
export interface KalshiList<T> {
  items: T[];
  /** False when there were more pages than were read. */
  complete: boolean;
  sources: Source[];
}

export type KalshiStatusFilter = 'open' | 'unopened' | 'paused' | 'closed' | 'settled';

/** An id: it is no text that could say something. */
const ticker = z.string().regex(/^[!-~]{1,120}$/);

const words = z
  .string()
  .nullish()
  .transform((value) => (value === undefined || value === null || value.trim() === '' ? null : value.trim()));

const market = z
  .looseObject({
    ticker,
    event_ticker: ticker,
    title: words,
    yes_sub_title: words,
    status: z.string(),
    result: words,
    // Required, so that a renamed price field becomes a failure and not a page of nulls.
    yes_bid_dollars: wireNumber,
    yes_ask_dollars: wireNumber,
    no_bid_dollars: optionalWireNumber,
    no_ask_dollars: optionalWireNumber,
    yes_bid_size_fp: optionalWireNumber,
    yes_ask_size_fp: optionalWireNumber,
    last_price_dollars: optionalWireNumber,
    volume_fp: optionalWireNumber,
    volume_24h_fp: optionalWireNumber,
    open_interest_fp: optionalWireNumber,
    close_time: optionalWireTime,
    rules_primary: words,
    rules_secondary: words,
  })
  .transform(
    (raw): KalshiMarket => ({
      ticker: raw.ticker,
      eventTicker: raw.event_ticker,
      title: raw.title,
      yesSubTitle: raw.yes_sub_title,
      yesBid: quote(raw.yes_bid_dollars),
      yesAsk: quote(raw.yes_ask_dollars),
      noBid: quote(raw.no_bid_dollars),
      noAsk: quote(raw.no_ask_dollars),
      yesBidSize: raw.yes_bid_size_fp,
      yesAskSize: raw.yes_ask_size_fp,
      lastPrice: raw.last_price_dollars === 0 && raw.result === null ? null : raw.last_price_dollars,
      volume: raw.volume_fp,
      volume24h: raw.volume_24h_fp,
      openInterest: raw.open_interest_fp,
      status: raw.status,
      result: raw.result === 'yes' || raw.result === 'no' ? raw.result : null,
      closeTime: raw.close_time,
      rules: [raw.rules_primary, raw.rules_secondary].filter((rule) => rule !== null).join(' ') || null,
      url: `https://kalshi.com/markets/${seriesOf(raw.event_ticker)}/${encodeURIComponent(raw.event_ticker.toLowerCase())}`,
    }),
  );

const event = z
  .looseObject({
    event_ticker: ticker,
    series_ticker: words,
    title: z.string(),
    category: words,
    markets: z.array(market).max(2_000).nullish(),
  })
  .transform(
    (raw): KalshiEvent => ({
      eventTicker: raw.event_ticker,
      seriesTicker: raw.series_ticker,
      title: raw.title.trim(),
      category: raw.category,
      markets: raw.markets ?? [],
    }),
  );

const cursor = z.string().nullish();
const marketPage = z
  .looseObject({ markets: z.array(market).max(1_000), cursor })
  .transform((page) => ({ items: page.markets, cursor: page.cursor ?? '' }));
const eventPage = z
  .looseObject({ events: z.array(event).max(200), cursor })
  .transform((page) => ({ items: page.events, cursor: page.cursor ?? '' }));

const side = z
  .array(z.tuple([wireNumber, wireNumber]))
  .max(2_000)
  .nullish();
const book = z
  .looseObject({ orderbook_fp: z.looseObject({ yes_dollars: side, no_dollars: side }) })
  .transform(({ orderbook_fp }): KalshiBook => {
    const yesBids = levels(orderbook_fp.yes_dollars);
    const noBids = levels(orderbook_fp.no_dollars);
    return { yesBids, noBids, yesAsks: noBids.map(mirrored), noAsks: yesBids.map(mirrored) };
  });

function levels(raw: z.output<typeof side>): KalshiBookLevel[] {
  return (raw ?? [])
    .map(([price, size]) => ({ price, size }))
    .filter(({ size }) => size > 0)
    .sort((a, b) => b.price - a.price);
}

/** Converts a bid of p for one side into an offer of the other side at 1 - p. Prices have at most four places. */
function mirrored({ price, size }: KalshiBookLevel): KalshiBookLevel {
  return { price: Math.round((1 - price) * 10_000) / 10_000, size };
}

/** An empty side is written as "0.0000" for a bid, and "1.0000" or "0.0000" for an ask. */
function quote(value: number | null): number | null {
  return value !== null && value > 0 && value < 1 ? value : null;
}

function seriesOf(eventTicker: string): string {
  return encodeURIComponent((eventTicker.split('-')[0] ?? eventTicker).toLowerCase());
}

/** Reads a list page by page, at most `maximumPages`. */
async function pages<T>(
  maximumPages: number,
  page: (cursor: string | undefined) => Promise<Reply<{ items: T[]; cursor: string }>>,
): Promise<KalshiList<T>> {
  const list: KalshiList<T> = { items: [], complete: false, sources: [] };
  let next: string | undefined;
  for (let read = 0; read < maximumPages; read++) {
    const { value, source } = await page(next);
    list.items.push(...value.items);
    list.sources.push(source);
    if (value.cursor === '') return { ...list, complete: true };
    next = value.cursor;
  }
  return list;
}

/**
 * Kalshi's trade API, version 2. Prices come as dollar strings, books contain only bids, and the filter says `open`
 * where the record says `active`. This adapter converts all of that. https://docs.kalshi.com/
 */
export const kalshi = defineUpstream({
  name: 'kalshi',
  title: 'Kalshi',
  baseUrl: 'https://external-api.kalshi.com/trade-api/v2',
  licence: 'Kalshi market data; its terms on resale apply',
  terms: {
    commercialUse: 'unknown',
    note: 'Whether its data may be sold on is not clear.',
    attribution: null,
    url: 'https://kalshi.com',
  },
  documentation: {
    at: 'https://docs.kalshi.com/getting_started/orderbook_responses',
    readOn: '2026-11-29',
  },
  key: 'none',
  // Whoever has signed up may read 20 times a second; nothing is said of others.
  requestsPerMinute: 300,
  burst: 15,
  patienceMs: 2_000,
  open: (http) => ({
    /** Markets in the venue's own order, without combined bets, 1,000 a page. */
    markets: (asked: {
      status: KalshiStatusFilter;
      seriesTicker?: string | undefined;
      maximumPages: number;
    }) =>
      pages(asked.maximumPages, (next) =>
        http.get({
          path: '/markets',
          query: {
            limit: 1_000,
            status: asked.status,
            series_ticker: asked.seriesTicker,
            mve_filter: 'exclude',
            cursor: next,
          },
          schema: marketPage,
          freshMs: 30_000,
          staleMs: 60_000,
          timeoutMs: 12_000,
        }),
      ),
    /** Events with their markets, 200 a page. Only events have the category. */
    events: (asked: { status: 'open' | 'closed' | 'settled'; maximumPages: number }) =>
      pages(asked.maximumPages, (next) =>
        http.get({
          path: '/events',
          query: { limit: 200, status: asked.status, with_nested_markets: true, cursor: next },
          schema: eventPage,
          freshMs: 60_000,
          staleMs: 120_000,
          timeoutMs: 12_000,
        }),
      ),
    /** One market by its ticker, open or not; null when there is none. */
    market: (ticker: string) =>
      http.find({
        path: `/markets/${encodeURIComponent(ticker)}`,
        schema: z.looseObject({ market }).transform((raw) => raw.market),
        freshMs: 10_000,
        staleMs: 0,
      }),
    /** One event with its markets, open or not; null when there is none. */
    event: (ticker: string) =>
      http.find({
        path: `/events/${encodeURIComponent(ticker)}`,
        query: { with_nested_markets: true },
        schema: z.looseObject({ event }).transform((raw) => raw.event),
        freshMs: 10_000,
        staleMs: 0,
      }),
    /** The live book of one market; null when there is no such market. */
    book: (ticker: string) =>
      http.find({
        path: `/markets/${encodeURIComponent(ticker)}/orderbook`,
        query: { depth: 20 },
        schema: book,
        freshMs: 5_000,
        staleMs: 0,
      }),
  }),
  probe: (api) => api.events({ status: 'open', maximumPages: 1 }),
});
