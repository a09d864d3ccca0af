import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { optionalWireNumber, wireNumber } from '../wire-number.ts';
import { optionalWireTime } from '../wire-time.ts';

const NO_TEXT = /^[\w.~%-]{1,300}$/;

/** One side of a market. `price` is what the venue shows for it, 0 to 1 USD. */
export interface PolymarketOutcome {
  name: string;
  price: number | null;
  /** The id under which the order book (CLOB) knows it. */
  tokenId: string | null;
}

export interface PolymarketMarket {
  id: string;
  slug: string | null;
  question: string;
  outcomes: PolymarketOutcome[];
  /** Best quotes of the first outcome, 0 to 1 USD; null where nobody quotes. */
  bestBid: number | null;
  bestAsk: number | null;
  tickSize: number | null;
  volumeUsd: number | null;
  volume24hUsd: number | null;
  liquidityUsd: number | null;
  endDate: string | null;
  closed: boolean;
  hasOrderBook: boolean;
  /** The taker pays rate x (p(1-p))^exponent a contract. Null when it takes a fee but does not say which. */
  takerFee: { rate: number; exponent: number } | null;
  /** The event it belongs to, if the reply says so. */
  eventId: string | null;
  /** The venue's rule of settlement, in its own words. */
  rules: string | null;
  /** Where the result will be looked up; null when only the rules say it. */
  resolutionSource: string | null;
}

export interface PolymarketEvent {
  id: string;
  slug: string;
  title: string;
  description: string | null;
  status: 'active' | 'inactive' | 'closed';
  endDate: string | null;
  volumeUsd: number | null;
  liquidityUsd: number | null;
  /** True: the markets exclude each other, and their prices need not add up to 1. */
  mutuallyExclusive: boolean;
  url: string;
  /** Slugs of its categories; empty when the reply does not say. */
  tags: string[];
  markets: PolymarketMarket[];
}

/** A list that Gamma wraps in a string: `"[\"Yes\",\"No\"]"`. Missing and empty are an empty list. */
function listInString<T>(item: z.ZodType<T>) {
  return z
    .union([z.string(), z.array(z.unknown())])
    .nullish()
    .transform((raw, context) => {
      if (typeof raw !== 'string') return raw ?? [];
      if (raw.trim() === '') return [];
      try {
        return JSON.parse(raw) as unknown;
      } catch {
        context.addIssue({ code: 'custom', message: 'not a list inside a string' });
        return z.NEVER;
      }
    })
    .pipe(z.array(item).max(64));
}

/** A number, or the slug that stands in for it: no text that could say something. */
const id = z.union([z.string().regex(NO_TEXT), z.number()]).transform(String);
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value === true);
const words = z
  .string()
  .nullish()
  .transform((value) => (value === undefined || value === null || value.trim() === '' ? null : value.trim()));

const market = z
  .looseObject({
    id,
    slug: words,
    question: z.string(),
    description: words,
    resolutionSource: words,
    outcomes: listInString(z.string()),
    outcomePrices: listInString(wireNumber),
    clobTokenIds: listInString(z.string()),
    bestBid: optionalWireNumber,
    bestAsk: optionalWireNumber,
    orderPriceMinTickSize: optionalWireNumber,
    volumeNum: optionalWireNumber,
    volume: optionalWireNumber,
    volume24hr: optionalWireNumber,
    liquidityNum: optionalWireNumber,
    liquidity: optionalWireNumber,
    endDate: optionalWireTime,
    closed: flag,
    enableOrderBook: flag,
    feesEnabled: flag,
    feeSchedule: z.looseObject({ rate: optionalWireNumber, exponent: optionalWireNumber }).nullish(),
    events: z.array(z.looseObject({ id })).nullish(),
  })
  .transform(
    (raw): PolymarketMarket => ({
      id: raw.id,
      slug: raw.slug,
      question: raw.question.trim(),
      outcomes: raw.outcomes.map((name, index) => ({
        name,
        price: raw.outcomePrices[index] ?? null,
        tokenId: raw.clobTokenIds[index] ?? null,
      })),
      bestBid: quote(raw.bestBid),
      bestAsk: quote(raw.bestAsk),
      tickSize: raw.orderPriceMinTickSize,
      volumeUsd: raw.volumeNum ?? raw.volume,
      volume24hUsd: raw.volume24hr,
      liquidityUsd: raw.liquidityNum ?? raw.liquidity,
      endDate: raw.endDate,
      closed: raw.closed,
      hasOrderBook: raw.enableOrderBook,
      takerFee: takerFee(raw.feesEnabled, raw.feeSchedule?.rate ?? null, raw.feeSchedule?.exponent ?? 1),
      eventId: raw.events?.[0]?.id ?? null,
      rules: raw.description,
      resolutionSource: raw.resolutionSource,
    }),
  );

const event = z
  .looseObject({
    id,
    slug: z.string().min(1),
    title: z.string(),
    description: words,
    endDate: optionalWireTime,
    active: flag,
    closed: flag,
    negRisk: flag,
    volume: optionalWireNumber,
    liquidity: optionalWireNumber,
    tags: z.array(z.looseObject({ slug: words })).nullish(),
    markets: z.array(market).max(1_000).nullish(),
  })
  .transform(
    (raw): PolymarketEvent => ({
      id: raw.id,
      slug: raw.slug,
      title: raw.title.trim(),
      description: raw.description,
      status: raw.closed ? 'closed' : raw.active ? 'active' : 'inactive',
      endDate: raw.endDate,
      volumeUsd: raw.volume,
      liquidityUsd: raw.liquidity,
      mutuallyExclusive: raw.negRisk,
      url: NO_TEXT.test(raw.slug)
        ? `https://polymarket.com/event/${encodeURIComponent(raw.slug)}`
        : 'https://polymarket.com',
      tags: (raw.tags ?? []).flatMap(({ slug }) => (slug === null ? [] : [slug])),
      markets: raw.markets ?? [],
    }),
  );

/** If a search omits a market's id, its slug identifies it as well. */
const foundEvent = z.preprocess((raw) => {
  if (typeof raw !== 'object' || raw === null || !('markets' in raw) || !Array.isArray(raw.markets))
    return raw;
  return {
    ...raw,
    markets: raw.markets.map((each: unknown) =>
      typeof each === 'object' && each !== null && 'slug' in each ? { id: each.slug, ...each } : each,
    ),
  };
}, event);

/** What a search finds. For "none" Gamma writes no list at all. */
const found = z
  .looseObject({
    events: z.array(foundEvent).max(500).nullish(),
    pagination: z.looseObject({ totalResults: optionalWireNumber }).nullish(),
  })
  .transform((raw) => ({ events: raw.events ?? [], total: raw.pagination?.totalResults ?? null }));

/** Gamma writes 0 and 1 when nobody bids or asks; a real quote lies in between. */
function quote(value: number | null): number | null {
  return value !== null && value > 0 && value < 1 ? value : null;
}

function takerFee(enabled: boolean, rate: number | null, exponent: number): PolymarketMarket['takerFee'] {
  if (!enabled) return { rate: 0, exponent: 1 };
  return rate === null ? null : { rate, exponent };
}

/** Gamma answers 422 to an id that is not a number, which also means that there is no such thing. */
const ABSENT_ON = [404, 422];
const FRESH = { freshMs: 30_000, staleMs: 60_000 };

/**
 * Polymarket's catalogue of events and markets (Gamma). Lists and numbers that come inside strings are converted here.
 * https://docs.polymarket.com/
 */
export const polymarket = defineUpstream({
  name: 'polymarket',
  title: 'Polymarket',
  baseUrl: 'https://gamma-api.polymarket.com',
  licence: 'Polymarket public data; trading is limited by region',
  terms: {
    commercialUse: 'unknown',
    note: 'Anybody may read. Trading is limited by region.',
    attribution: null,
    url: 'https://docs.polymarket.com',
  },
  documentation: {
    at: 'https://docs.polymarket.com/api-reference/rate-limits',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 600,
  // It allows 300 requests for markets in ten seconds.
  burst: 200,
  open: (http) => ({
    /** Open events, busiest in the last 24 hours first. `tagSlug` narrows to a category; unknown tags give none. */
    openEvents: (asked: { limit: number; offset?: number; tagSlug?: string | undefined }) =>
      http.get({
        path: '/events',
        // Without `closed=false` it lists markets that ended years ago. Names of orders are in camel case.
        query: {
          active: true,
          closed: false,
          order: 'volume24hr',
          ascending: false,
          limit: asked.limit,
          offset: asked.offset ?? 0,
          tag_slug: asked.tagSlug,
        },
        schema: z.array(event).max(500),
        ...FRESH,
      }),
    /** Open events that match a text, in the venue's order; `total` is their number, if the venue says it. */
    search: (asked: { query: string; limit: number }) =>
      http.get({
        path: '/public-search',
        // Without `optimized=false` markets come without ids, so that nothing more can be asked about them.
        query: {
          q: asked.query,
          limit_per_type: asked.limit,
          page: 1,
          events_status: 'active',
          optimized: false,
        },
        schema: found,
        ...FRESH,
      }),
    /** One event by its number, open or closed; null when there is none. */
    eventById: (eventId: string) =>
      http.find({
        path: `/events/${encodeURIComponent(eventId)}`,
        schema: event,
        absentOn: ABSENT_ON,
        ...FRESH,
      }),
    /** One event by the last part of its address; null when there is none. */
    eventBySlug: (slug: string) =>
      http.find({
        path: `/events/slug/${encodeURIComponent(slug)}`,
        schema: event,
        absentOn: ABSENT_ON,
        ...FRESH,
      }),
    /** One market by its number or slug; null when there is none. Its `eventId` names its event. */
    market: (idOrSlug: string) =>
      http.find({
        path: /^\d+$/.test(idOrSlug)
          ? `/markets/${idOrSlug}`
          : `/markets/slug/${encodeURIComponent(idOrSlug)}`,
        schema: market,
        absentOn: ABSENT_ON,
        ...FRESH,
      }),
  }),
  probe: (api) => api.openEvents({ limit: 1 }),
});
