/** A home beside sales around it, as an answer shows them, and what they change of its estimate. */

import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { StateIndex } from '../../../upstreams/adapters/fhfa.ts';
import { type FoundSales, HOME_TYPES, type SalesPublisher } from '../../../upstreams/adapters/sales.ts';
import type { RunContext } from '../../define.ts';
import { type Comparable, compareSales, homeTypeOf, quantile, SALE_RULES, saleSpan } from './comparables.ts';

/** A sale as it is shown: what the source says of people stays with it. */
const comparable = z.object({
  soldOn: z.string().describe('Day of the sale, YYYY-MM-DD'),
  priceUsd: z.number().describe('Price of the sale, in USD'),
  distanceMeters: z.number().int().describe('From the address'),
  propertyType: z.enum(HOME_TYPES).describe('Kind of home'),
  squareFeet: z.number().nullable().describe('Its area in square feet; null where it is not known'),
  indexFactor: z.number().describe('What moves its price to indexQuarter'),
  valueUsd: z
    .number()
    .describe('Its price by indexFactor, and by your squareFeet over its own where both are known, in USD'),
});

/** What an answer says of the sales. */
export const COMPARISON_FIELDS = {
  comparablesUsed: z.number().int().describe('How many sales were compared: 0, or 3 to 10'),
  comparablesWeight: z.number().describe('n / (n + 3) for n comparables; 0 without them'),
  comparables: z.array(comparable).describe('Sales that were compared, the most alike first'),
  comparableInsights: z.string().describe('By which rules they were chosen, or why there are none'),
  comparablesSource: z
    .object({
      name: z.string().describe('What it is called'),
      url: z.string().nullable().describe('Where to read about it'),
      terms: z.string().describe('On which terms its sales are shown'),
    })
    .nullable()
    .describe('Where the sales are from; null without comparables'),
};

/** How the estimate comes about with comparables. */
export const COMPARABLES_METHOD =
  'With n comparables the estimate is w × the median of their valueUsd + (1 − w) × the tract’s estimate, w = n / (n + 3). Low and high are the same with the lower and upper quartile of valueUsd and with the tract’s low and high.';

/** What the operator's source of sales has around a place, or why there is nothing of it. */
type Sold = { value: FoundSales; source: Source; publisher: SalesPublisher } | { why: string };

/** Sales add to the estimate: that their source is not there or fails is told, and does not end the call. */
export async function salesAround(
  { lat, lon }: { lat: number; lon: number },
  { upstreams, nowMs }: RunContext<'sales'>,
): Promise<Sold> {
  const { radiusMeters } = SALE_RULES;
  try {
    const place = { lat: rounded(lat, 5), lon: rounded(lon, 5), radiusMeters, ...saleSpan(nowMs()) };
    return { ...(await upstreams.sales.near(place)), publisher: upstreams.sales.publisher };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return {
      why:
        error.reason === 'not_configured'
          ? 'No sale was compared: this server has no source of sales.'
          : `No sale was compared: the source of sales did not answer as it should (${error.reason}).`,
    };
  }
}

interface Comparison {
  comparables: Comparable[];
  insights: string;
  /** Null where no sale is compared. */
  publisher: SalesPublisher | null;
  /** Null where nothing came. */
  source: Source | null;
}

/** Compares a home with what was sold around it. @param at the state's index, oldest quarter first, and the time */
export function comparisonOf(
  sold: Sold,
  home: { lat: number; lon: number; propertyType?: string | undefined; squareFeet?: number | undefined },
  at: { quarters: readonly StateIndex[]; nowMs: number },
): Comparison {
  const none = { comparables: [], publisher: null };
  if ('why' in sold) return { ...none, insights: sold.why, source: null };
  const { source, publisher } = sold;
  const named = home.propertyType === undefined ? 'any' : homeTypeOf(home.propertyType);
  if (named === null)
    return {
      ...none,
      insights: `No sale was compared: propertyType is none of ${HOME_TYPES.join(', ')}.`,
      source: null,
    };
  const type = named === 'any' ? null : named;
  const { lat, lon, squareFeet = null } = home;
  const { comparables, fitting, looked, leftOut } = compareSales(
    sold.value,
    { lat, lon, type, squareFeet },
    at,
  );
  const left = [...leftOut].map(([reason, count]) => `${count} ${reason}`).join(', ');
  const counted = `${fitting} of ${looked} sales fit${left === '' ? '' : ` (left out: ${left})`}`;
  const insights =
    comparables.length === 0
      ? `No sale was compared: ${counted}, and fewer than ${SALE_RULES.least} say too little.`
      : `${counted}. They are at most ${SALE_RULES.radiusMeters} m away, sold within ${SALE_RULES.withinDays} days${type === null ? '' : ', of the same kind'}${squareFeet === null ? '' : ` and at most ${SALE_RULES.sizeRatio} times as large or as small`}; the ${comparables.length} most alike by distance, age and size are used.`;
  return { comparables, insights, publisher: comparables.length === 0 ? null : publisher, source };
}

/** The tract's estimate and the comparables together, each with its weight. USD, rounded to hundreds. */
export function estimateOf(
  tract: { value: number; range: { low: number; high: number } | null },
  comparables: readonly Comparable[],
) {
  const weight = comparables.length / (comparables.length + SALE_RULES.least);
  const values = comparables.map(({ valueUsd }) => valueUsd);
  const mixed = (ofTract: number, share: number) =>
    hundreds(weight === 0 ? ofTract : weight * quantile(values, share) + (1 - weight) * ofTract);
  const { value, range } = tract;
  return {
    weight,
    estimate: mixed(value, 0.5),
    range: range === null ? null : { low: mixed(range.low, 0.25), high: mixed(range.high, 0.75) },
  };
}

/** The comparables as they are shown. */
export function shownOf({ comparables, insights, publisher }: Comparison, weight: number) {
  return {
    comparablesUsed: comparables.length,
    comparablesWeight: rounded(weight, 4),
    comparables: comparables.map((each) => ({
      ...each,
      indexFactor: rounded(each.indexFactor, 4),
      valueUsd: Math.round(each.valueUsd),
    })),
    comparableInsights: insights,
    comparablesSource: publisher,
  };
}

/** To hundreds of USD. */
export function hundreds(value: number): number {
  return Math.round(value / 100) * 100;
}

function rounded(value: number, places: number): number {
  return Math.round(value * 10 ** places) / 10 ** places;
}
