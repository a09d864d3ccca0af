import { limit, outsiderLines, outsiderText, text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { defineService } from '../define.ts';

/** Some events have a market for each of hundreds of candidates. */
const MARKETS_SHOWN = 50;

export default defineService({
  path: 'polymarket-events',
  name: 'Polymarket Events',
  tag: 'Prediction Markets',
  priceUsd: '0.25',
  summary: 'Open Polymarket events, busiest first, with each market’s question, outcomes and prices.',
  keywords:
    'polymarket events list browse open biggest popular busiest today all bets markets outcomes top volume trending',
  input: z.object({
    category: text(60, 'Category or tag, such as "crypto" or "politics"; all unless given').optional(),
    limit: limit(10, 50),
  }),
  output: z.object({
    count: z.number().int().describe('How many are in the list'),
    events: z
      .array(
        z.object({
          id: z.string().describe('Id of the event'),
          slug: outsiderText(300).describe('Name in the address of its page'),
          title: outsiderText(1000).describe('The event, as the venue puts it'),
          description: outsiderLines(20000).nullable().describe('Its rules; null where the venue has none'),
          volume: z.number().nullable().describe('USD traded since the start'),
          liquidity: z.number().nullable().describe('USD resting in the books'),
          endDate: z
            .string()
            .nullable()
            .describe('When it ends (ISO 8601); null where the venue does not say'),
          status: z.enum(['active', 'inactive', 'closed']).describe('Where it stands'),
          url: z.string().describe('Where to read it'),
          mutuallyExclusive: z.boolean().describe('Whether at most one of its markets can end in yes'),
          markets: z
            .array(
              z.object({
                id: z.string().describe('Id of the market'),
                question: outsiderText(1000).describe('The question, as the venue puts it'),
                outcomes: z.array(outsiderText(300)).describe('What can be bet on'),
                prices: z
                  .array(z.number().nullable())
                  .describe('USD a contract, 0 to 1, in the order of outcomes'),
                bestBid: z.number().nullable().describe('Of the first outcome'),
                bestAsk: z.number().nullable().describe('Of the first outcome'),
                closed: z.boolean().describe('Whether trading has ended'),
              }),
            )
            .describe('Its markets'),
        }),
      )
      .describe('The events that fit'),
  }),
  example: { category: 'crypto', limit: 5 },
  aliases: { tag: 'category' },
  needs: ['polymarket'],
  async run(input, { upstreams }) {
    const tagSlug = input.category
      ?.toLowerCase()
      .replace(/[^\p{L}\p{N}]+/gu, '-')
      .replace(/^-|-$/g, '');
    const { value, source } = await upstreams.polymarket.openEvents({ limit: input.limit, tagSlug });
    const events = value.slice(0, input.limit);
    const notes: string[] = [];
    if (events.length === 0 && tagSlug !== undefined) notes.push(`No open event has the tag "${tagSlug}".`);
    const shortened = events.filter(({ markets }) => markets.length > MARKETS_SHOWN).length;
    if (shortened > 0) {
      notes.push(
        `${shortened} events have more than ${MARKETS_SHOWN} markets: the busiest ${MARKETS_SHOWN} are shown.`,
      );
    }
    return answer(
      {
        count: events.length,
        events: events.map((event) => ({
          id: event.id,
          slug: event.slug,
          title: event.title,
          description: event.description,
          volume: event.volumeUsd,
          liquidity: event.liquidityUsd,
          endDate: event.endDate,
          status: event.status,
          url: event.url,
          mutuallyExclusive: event.mutuallyExclusive,
          markets: (event.markets.length > MARKETS_SHOWN
            ? [...event.markets]
                .sort((a, b) => (b.volumeUsd ?? 0) - (a.volumeUsd ?? 0))
                .slice(0, MARKETS_SHOWN)
            : event.markets
          ).map((market) => ({
            id: market.id,
            question: market.question,
            outcomes: market.outcomes.map(({ name }) => name),
            prices: market.outcomes.map(({ price }) => price),
            bestBid: market.bestBid,
            bestAsk: market.bestAsk,
            closed: market.closed,
          })),
        })),
      },
      {
        method: 'Open events in the order of their volume over the last 24 hours.',
        sources: [source],
        notes,
      },
    );
  },
});
