import { limit, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { z } from 'zod';
import type { KalshiMarket } from '../../upstreams/adapters/kalshi.ts';
import { defineService } from '../define.ts';

const MARKET_PAGES = 2;
const EVENT_PAGES = 5;

export default defineService({
  path: 'kalshi-markets',
  name: 'Kalshi Markets',
  tag: 'Prediction Markets',
  priceUsd: '0.25',
  summary: 'Open Kalshi markets, busiest first, with quotes in dollars, volume and open interest.',
  keywords:
    'kalshi open markets bets bet list browse all available busiest today popular volume wager contracts event regulated',
  input: z.object({
    limit: limit(20, 50),
    category: text(
      60,
      'Category such as "Economics" or "Crypto", or a series ticker such as "KXFED"; all unless given',
    ).optional(),
    status: z
      .enum(['open', 'closed', 'settled'])
      .default('open')
      .describe('Which markets: open (default), closed or settled'),
  }),
  output: z.object({
    count: z.number().int().describe('How many are in the list'),
    markets: z
      .array(
        z.object({
          ticker: z.string().describe('Ticker of the market'),
          eventTicker: z.string().describe('Ticker of the event'),
          title: outsiderText(1000).nullable().describe('The question; null where the venue has none'),
          yesMeans: outsiderText(500).nullable().describe('What "yes" stands for within its event'),
          yesBid: z.number().nullable().describe('USD a contract, 0 to 1; null where nobody quotes'),
          yesAsk: z.number().nullable().describe('Lowest ask for yes, 0 to 1'),
          noBid: z.number().nullable().describe('Highest bid for no, 0 to 1'),
          noAsk: z.number().nullable().describe('Lowest ask for no, 0 to 1'),
          lastPrice: z
            .number()
            .nullable()
            .describe('USD of the last yes traded; null before the first trade'),
          volume: z.number().nullable().describe('Contracts since the start'),
          volume24h: z.number().nullable().describe('Contracts in the last 24 hours'),
          openInterest: z.number().nullable().describe('Contracts'),
          status: outsiderText(60).describe('Where it stands'),
          result: z.enum(['yes', 'no']).nullable().describe('Null until it is settled'),
          closeTime: z
            .string()
            .nullable()
            .describe('When trading ends (ISO 8601); null where the venue does not say'),
          url: z.string().describe('Where to read it'),
        }),
      )
      .describe('The markets that fit'),
  }),
  example: { limit: 10 },
  aliases: { series: 'category', seriesTicker: 'category' },
  needs: ['kalshi'],
  timeoutMs: 25_000,
  async run(input, { upstreams }) {
    const notes: string[] = [];
    const sources: Source[] = [];
    const titles = new Map<string, string>();
    let markets: KalshiMarket[];

    const category = input.category?.toLowerCase();
    if (category === undefined) {
      const list = await upstreams.kalshi.markets({ status: input.status, maximumPages: MARKET_PAGES });
      markets = list.items;
      sources.push(...list.sources);
      if (!list.complete)
        notes.push(`Only the first ${markets.length} markets of the venue’s list were looked at.`);
    } else {
      // Only events know their category.
      const list = await upstreams.kalshi.events({ status: input.status, maximumPages: EVENT_PAGES });
      const events = list.items.filter((event) => event.category?.toLowerCase() === category);
      for (const event of events) titles.set(event.eventTicker, event.title);
      markets = events.flatMap((event) => event.markets);
      sources.push(...list.sources);
      if (!list.complete)
        notes.push(`Only the first ${list.items.length} events of the venue’s list were looked at.`);
      if (events.length === 0 && /^[A-Z0-9]{2,40}$/i.test(input.category ?? '')) {
        const series = await upstreams.kalshi.markets({
          status: input.status,
          seriesTicker: category.toUpperCase(),
          maximumPages: 1,
        });
        markets = series.items;
        sources.push(...series.sources);
      }
      if (markets.length === 0) {
        const known = [...new Set(list.items.map((event) => event.category))]
          .filter((name) => name !== null)
          .sort();
        notes.push(`No market in "${input.category}". Categories seen: ${known.slice(0, 40).join(', ')}.`);
      }
    }

    const busiest = [...markets]
      .sort((a, b) => (b.volume24h ?? 0) - (a.volume24h ?? 0) || (b.volume ?? 0) - (a.volume ?? 0))
      .slice(0, input.limit);
    return answer(
      {
        count: busiest.length,
        markets: busiest.map((market) => ({
          ticker: market.ticker,
          eventTicker: market.eventTicker,
          title: market.title ?? titles.get(market.eventTicker) ?? market.yesSubTitle,
          yesMeans: market.yesSubTitle,
          yesBid: market.yesBid,
          yesAsk: market.yesAsk,
          noBid: market.noBid,
          noAsk: market.noAsk,
          lastPrice: market.lastPrice,
          volume: market.volume,
          volume24h: market.volume24h,
          openInterest: market.openInterest,
          status: market.status,
          result: market.result,
          closeTime: market.closeTime,
          url: market.url,
        })),
      },
      { method: 'Markets in the order of contracts traded in the last 24 hours.', sources, notes },
    );
  },
});
