import { limit, outsiderText, text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { defineService } from '../define.ts';
import { kalshiRecord, kalshiRecordOf } from '../shared/questions/kalshi-record.ts';
import { LEAST_RELEVANCE, readSearch, relevanceOf } from '../shared/questions/search-questions.ts';

const EVENT_PAGES = 5;

export default defineService({
  path: 'kalshi-search',
  name: 'Kalshi Search',
  tag: 'Prediction Markets',
  priceUsd: '0.25',
  summary:
    'Open Kalshi markets that match a text or ticker, with quotes, implied probability, closing time and resolution rule.',
  keywords: 'kalshi search find look lookup about topic keyword market markets question bets exist',
  input: z.object({
    query: text(200, 'What to look for: words, numbers or the beginning of a ticker'),
    limit: limit(10, 50),
  }),
  output: z.object({
    query: z.string().describe('What was searched for, as asked'),
    count: z.number().int().describe('How many are in the list'),
    results: z
      .array(
        z.object({
          ...kalshiRecord,
          category: outsiderText(100).nullable().describe('Category at the venue; null without one'),
          relevanceScore: z.number().describe('Share of what was searched for that it holds, 0 to 1'),
        }),
      )
      .describe('The markets that fit'),
    searched: z
      .object({
        events: z.number().int().describe('Events'),
        markets: z.number().int().describe('Markets'),
        complete: z.boolean().describe('False: there were more than were read'),
      })
      .describe('What was looked through'),
  }),
  example: { query: 'bitcoin', limit: 5 },
  aliases: { q: 'query', search: 'query', topic: 'query', keyword: 'query' },
  needs: ['kalshi'],
  timeoutMs: 25_000,
  async run(input, { upstreams }) {
    const list = await upstreams.kalshi.events({ status: 'open', maximumPages: EVENT_PAGES });
    const search = readSearch(input.query);
    const markets = list.items.flatMap((event) =>
      event.markets.filter(({ status }) => status === 'active').map((market) => ({ event, market })),
    );
    const found = markets
      .map(({ event, market }) => ({
        event,
        market,
        score: relevanceOf(
          search,
          [event.title, event.category, market.title, market.yesSubTitle].filter(Boolean).join(' '),
          market.ticker,
        ),
      }))
      .filter(({ score }) => score >= LEAST_RELEVANCE)
      .sort(
        (a, b) =>
          b.score - a.score ||
          (b.market.volume24h ?? 0) - (a.market.volume24h ?? 0) ||
          (b.market.volume ?? 0) - (a.market.volume ?? 0),
      );
    const notes: string[] = [];
    if (!list.complete) {
      notes.push(`Only the first ${list.items.length} events of the venue’s list were looked through.`);
    }
    if (found.length === 0) notes.push(`No open market holds half of what "${input.query}" asks for.`);
    if (found.length > input.limit) notes.push(`${found.length} markets were found: the best are shown.`);
    return answer(
      {
        query: input.query,
        count: Math.min(found.length, input.limit),
        results: found.slice(0, input.limit).map(({ event, market, score }) => ({
          ...kalshiRecordOf(market, event.title),
          category: event.category,
          relevanceScore: score,
        })),
        searched: { events: list.items.length, markets: markets.length, complete: list.complete },
      },
      {
        method:
          'The venue has no search: every open event is read and kept when its title, question, meaning of yes or category holds at least half of the words and numbers searched for. Best first, then busiest first.',
        sources: list.sources,
        notes,
      },
    );
  },
});
