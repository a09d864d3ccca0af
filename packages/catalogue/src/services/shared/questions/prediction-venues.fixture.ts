/** For tests of services that ask the prediction venues: what their adapters hand over. */
import type { KalshiBook, KalshiEvent, KalshiMarket } from '../../../upstreams/adapters/kalshi.ts';
import type { PolymarketEvent, PolymarketMarket } from '../../../upstreams/adapters/polymarket.ts';
import type { ClobBook } from '../../../upstreams/adapters/polymarketclob.ts';
import { reply } from '../../run-context.fixture.ts';

const CLOSES = '2026-12-31T23:59:00Z';

/** A question of Polymarket. */
export function polyMarket(
  id: string,
  question: string,
  bid: number | null,
  ask: number | null,
): PolymarketMarket {
  return {
    id,
    slug: null,
    question,
    outcomes: [
      { name: 'Yes', price: 0.41, tokenId: `${id}-yes` },
      { name: 'No', price: 0.59, tokenId: `${id}-no` },
    ],
    bestBid: bid,
    bestAsk: ask,
    tickSize: 0.01,
    volumeUsd: 90_000,
    volume24hUsd: 100,
    liquidityUsd: 5_000,
    endDate: CLOSES,
    closed: false,
    hasOrderBook: true,
    takerFee: { rate: 0, exponent: 1 },
    eventId: '900001',
    rules: 'It settles on a figure.',
    resolutionSource: null,
  };
}

/** An event of Polymarket. */
export function polyEvent(markets: PolymarketMarket[]): PolymarketEvent {
  return {
    id: '900001',
    slug: 'synthetic-event',
    title: 'Synthetic event',
    description: null,
    status: 'active',
    endDate: CLOSES,
    volumeUsd: 1,
    liquidityUsd: null,
    mutuallyExclusive: false,
    tags: ['crypto'],
    url: 'https://polymarket.com/event/synthetic-event',
    markets,
  };
}

/** A question of Kalshi. */
export function kalshiMarket(
  ticker: string,
  title: string | null,
  volume24h: number,
  yesSubTitle = 'Yes',
): KalshiMarket {
  return {
    ticker,
    eventTicker: 'KXSYN-26',
    title,
    yesSubTitle,
    yesBid: 0.5,
    yesAsk: 0.53,
    noBid: 0.47,
    noAsk: 0.5,
    yesBidSize: 30,
    yesAskSize: 40,
    lastPrice: null,
    volume: 10,
    volume24h,
    openInterest: 5,
    status: 'active',
    result: null,
    closeTime: CLOSES,
    rules: 'It settles on another figure.',
    url: 'https://kalshi.com/markets/kxsyn/kxsyn-26',
  };
}

/** An event of Kalshi. */
export function kalshiEvent(markets: KalshiMarket[], category = 'Economics'): KalshiEvent {
  return {
    eventTicker: 'KXSYN-26',
    seriesTicker: 'KXSYN',
    title: 'Bitcoin price on Dec 31, 2026',
    category,
    markets,
  };
}

/** A list that was read in one page. */
export function list<T>(items: T[], complete = true) {
  return { items, complete, sources: [reply('kalshi', null).source] };
}

/** A book of Polymarket with one level a side. */
export const book = (bid: number, ask: number): ClobBook => ({
  bids: [{ price: bid, size: 120 }],
  asks: [{ price: ask, size: 80 }],
  tickSize: 0.01,
  asOf: '2026-11-21T05:29:58.000Z',
});

/** A book of Kalshi with one level a side. */
export const kalshiBook: KalshiBook = {
  yesBids: [{ price: 0.5, size: 30 }],
  noBids: [{ price: 0.47, size: 40 }],
  yesAsks: [{ price: 0.53, size: 40 }],
  noAsks: [{ price: 0.5, size: 30 }],
};
