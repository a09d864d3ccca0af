import { z } from 'zod';
import { correlationMatrix, isFlat, strengthOf } from '../../quant/correlation.ts';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import {
  alignReturns,
  assetItem,
  assetSeries,
  barEnd,
  itemKey,
  provenanceOfSeries,
} from '../shared/market/asset-series.ts';
import { PRICE_HISTORY_SOURCES } from '../shared/market/price-history.ts';

/** Seven daily returns say nothing, so the shortest window is sampled hourly. */
const SAMPLING = { 7: '1h', 30: '1d', 90: '1d' } as const;
const BARS_PER_DAY = { '1h': 24, '1d': 1 } as const;

/** Accepts 30, "30", "30d" and "30 days". */
function days(value: unknown): unknown {
  const written = typeof value === 'string' ? /^\s*(\d+)\s*(d|day|days)?\s*$/i.exec(value)?.[1] : undefined;
  return written === undefined ? value : Number(written);
}

const coefficient = z.number().min(-1).max(1).nullable();

export default defineService({
  path: 'correlation-matrix',
  name: 'Correlation Matrix',
  tag: 'Market Intelligence',
  priceUsd: '0.75',
  summary: 'Pearson correlations of the returns of 2 to 10 assets over 7, 30 or 90 days.',
  keywords:
    'correlation correlated correlate move together relationship related linked same direction opposite diversify pairs compare assets gold bitcoin stocks pearson dependence follow each other hedge',
  input: z.object({
    assets: z
      .array(assetItem)
      .min(2)
      .max(10)
      .refine((items) => new Set(items.map(itemKey)).size === items.length, 'must not name an asset twice')
      .refine(
        (items) => new Set(items.map(({ asset }) => asset)).size === items.length,
        'must give different assets different names',
      )
      .describe('2 to 10 assets'),
    timeframe: z
      .preprocess(days, z.union([z.literal(7), z.literal(30), z.literal(90)]))
      .default(30)
      .describe('Window in days: 7 (hourly closes), 30 or 90 (daily closes)')
      .meta({ anyOf: [{ enum: [7, 30, 90] }, { enum: ['7d', '30d', '90d'] }] }),
  }),
  output: z.object({
    assets: z.array(z.string()).describe('As given, in the order given'),
    matrix: z
      .record(z.string(), z.record(z.string(), coefficient))
      .describe('matrix[a][b]; symmetric, 1 on the diagonal, null where an asset did not move'),
    correlationPairs: z
      .array(
        z.object({
          asset1: z.string().describe('One asset'),
          asset2: z.string().describe('The other'),
          correlation: coefficient.describe('Of their returns, -1 to 1'),
          strength: z
            .enum(['very strong', 'strong', 'moderate', 'weak', 'very weak'])
            .nullable()
            .describe('The same in words'),
        }),
      )
      .describe('Each pair of assets'),
    observations: z.number().int().describe('Returns per asset that the coefficients rest on'),
    window: z
      .object({
        days: z.number().int().nullable().describe('Null when all data is your own'),
        sampling: z.enum(['hourly', 'daily', 'as given']).describe('How far apart the prices are'),
        from: z.string().nullable().describe('Time of the first close (ISO 8601)'),
        to: z.string().nullable().describe('Time of the last close (ISO 8601)'),
      })
      .describe('The time that the returns are from'),
  }),
  example: { assets: ['BTC', 'ETH', 'SOL'], timeframe: '30d' },
  aliases: {
    tokens: 'assets',
    symbols: 'assets',
    days: 'timeframe',
    window: 'timeframe',
    period: 'timeframe',
  },
  needs: [PRICE_HISTORY_SOURCES],
  async run(input, context) {
    const interval = SAMPLING[input.timeframe];
    const count = input.timeframe * BARS_PER_DAY[interval] + 1;
    const series = await assetSeries(input.assets, interval, count, context, 'assets');
    const { columns, periods, notes: holes } = alignReturns(series, 'assets');
    const logColumns = columns.map((column) => column.map(Math.log1p));
    const rows = correlationMatrix(logColumns);

    const names = input.assets.map(({ asset }) => asset);
    const at = (row: number, column: number) => rows[row]?.[column] ?? null;
    const { sources, notes } = provenanceOfSeries(series);
    notes.push(...holes);
    for (const [row, name] of names.entries()) {
      if (isFlat(logColumns[row] ?? []))
        notes.push(`${name} did not move: its correlations are undefined, so null.`);
    }
    const observations = columns[0]?.length ?? 0;
    if (periods !== null && sources.length === series.length && observations < count - 1) {
      notes.push(
        `${count - 1 - observations} of ${count - 1} returns are missing: a source had no close for both ends.`,
      );
    }
    const allOwn = sources.length === 0;
    return statisticAnswer(
      {
        assets: names,
        matrix: Object.fromEntries(
          names.map((name, row) => [
            name,
            Object.fromEntries(names.map((other, column) => [other, at(row, column)])),
          ]),
        ),
        correlationPairs: names.flatMap((asset1, row) =>
          names.slice(row + 1).map((asset2, offset) => {
            const correlation = at(row, row + 1 + offset);
            return {
              asset1,
              asset2,
              correlation,
              strength: correlation === null ? null : strengthOf(correlation),
            };
          }),
        ),
        observations,
        window: {
          days: allOwn ? null : input.timeframe,
          sampling: allOwn
            ? ('as given' as const)
            : interval === '1h'
              ? ('hourly' as const)
              : ('daily' as const),
          from: barEnd(periods?.[0], interval),
          to: barEnd(periods?.at(-1), interval),
        },
      },
      {
        method:
          'Pearson correlation of log returns between closes at the same UTC times (inner join), without changes across missing closes. ' +
          'Strength by absolute size in steps of 0.2 (Evans 1996).',
        sources,
        notes,
      },
    );
  },
});
