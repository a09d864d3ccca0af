/** A Kalshi market as answers show it. */

import { outsiderLines, outsiderText } from '@farebox/core/service/fields';
import { z } from 'zod';
import type { KalshiMarket } from '../../../upstreams/adapters/kalshi.ts';
import { gap, middle } from './best-prices.ts';
import { ruleText } from './rule-text.ts';

export const kalshiRecord = {
  ticker: z.string().describe('Ticker of the market'),
  eventTicker: z.string().describe('Ticker of the event'),
  title: outsiderText(1000).nullable().describe('The question; null where the venue has none'),
  yesMeans: outsiderText(500).nullable().describe('What "yes" stands for within its event'),
  probability: z
    .number()
    .nullable()
    .describe('Of yes, 0 to 1: middle of the best quotes, else the last price; null when neither is there'),
  yesBid: z.number().nullable().describe('USD a contract, 0 to 1; null where nobody quotes'),
  yesAsk: z.number().nullable().describe('Lowest ask for yes, 0 to 1'),
  noBid: z.number().nullable().describe('Highest bid for no, 0 to 1'),
  noAsk: z.number().nullable().describe('Lowest ask for no, 0 to 1'),
  spread: z.number().nullable().describe('yesAsk - yesBid in USD a contract'),
  yesBidSize: z.number().nullable().describe('Contracts at yesBid; null where the venue does not say'),
  yesAskSize: z.number().nullable().describe('Contracts at yesAsk; null where the venue does not say'),
  lastPrice: z.number().nullable().describe('USD of the last yes traded; null before the first trade'),
  volume: z.number().nullable().describe('Contracts since the start'),
  volume24h: z.number().nullable().describe('Contracts in the last 24 hours'),
  openInterest: z.number().nullable().describe('Contracts'),
  status: outsiderText(60).describe('Where it stands'),
  result: z.enum(['yes', 'no']).nullable().describe('Null until it is settled'),
  closeTime: z.string().nullable().describe('When trading ends'),
  resolutionRule: outsiderLines(10000).nullable().describe('By what it is settled, in the venue’s words'),
  url: z.string().describe('Where to read it'),
};

/** @param title of the event, for records that have no question of their own */
export function kalshiRecordOf(market: KalshiMarket, title: string | null) {
  const best = { bid: market.yesBid, ask: market.yesAsk };
  return {
    ticker: market.ticker,
    eventTicker: market.eventTicker,
    title: market.title ?? title ?? market.yesSubTitle,
    yesMeans: market.yesSubTitle,
    probability: middle(best) ?? market.lastPrice,
    yesBid: market.yesBid,
    yesAsk: market.yesAsk,
    noBid: market.noBid,
    noAsk: market.noAsk,
    spread: gap(best),
    yesBidSize: market.yesBid === null ? null : market.yesBidSize,
    yesAskSize: market.yesAsk === null ? null : market.yesAskSize,
    lastPrice: market.lastPrice,
    volume: market.volume,
    volume24h: market.volume24h,
    openInterest: market.openInterest,
    status: market.status,
    result: market.result,
    closeTime: market.closeTime,
    resolutionRule: ruleText(market.rules),
    url: market.url,
  };
}
