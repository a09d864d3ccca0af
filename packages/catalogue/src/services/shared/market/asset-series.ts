import { chainName, numberBetween, text } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { alignByPeriod, type Dated, simpleReturns } from '../../../quant/returns.ts';
import { BAR_MS } from '../../../upstreams/adapters/candle.ts';
import { ASSET_FORMS, type Asset, assetKey, parseAsset } from './asset.ts';
import { type PriceHistorySources, priceHistory } from './price-history.ts';

/** Longer series than this are refused. */
const MAX_POINTS = 2_000;
/** Fewer common returns than this say nothing about risk or correlation. */
export const MIN_OBSERVATIONS = 20;

const price = z.number().positive();
const prices = z
  .union([z.array(price), z.array(z.tuple([z.number().int().nonnegative(), price]))])
  .refine((list) => list.length >= 2 && list.length <= MAX_POINTS, `must hold 2 to ${MAX_POINTS} prices`)
  .describe(
    'Your own prices, oldest first: numbers, or [milliseconds since 1970, price]. No source is asked then',
  );
const returns = z
  .array(z.number().gt(-1).max(1_000))
  .min(1)
  .max(MAX_POINTS)
  .describe('Your own simple returns as fractions (0.01 is 1 %), oldest first. No source is asked then');

/** Currencies of a price in which an amount of the asset can be valued together with others. */
const DOLLARS: readonly string[] = ['USD', 'USDT', 'USDC'];

/** Names by which clients call the fields of an item; the first that is present counts. */
const SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  asset: [
    'asset',
    'symbol',
    'token',
    'ticker',
    'tokenSymbol',
    'token_symbol',
    'tokenAddress',
    'token_address',
    'address',
    'contractAddress',
  ],
  valueUsd: ['valueUsd', 'value', 'value_usd', 'currentValue', 'current_value'],
  amount: ['amount', 'quantity', 'balance'],
  weight: ['weight', 'allocation'],
};

function itemOf(written: unknown): unknown {
  if (typeof written === 'string') return { asset: written };
  if (typeof written !== 'object' || written === null || Array.isArray(written)) return written;
  const item: Record<string, unknown> = { ...written };
  for (const [field, spellings] of Object.entries(SPELLINGS)) {
    const found = spellings
      .map((spelling) => item[spelling])
      .find((value) => value !== undefined && value !== null);
    if (found !== undefined) item[field] = found;
  }
  return item;
}

const LARGEST_AMOUNT = 1e15;

/** An asset, by name alone or as an object that may bring its own data and its share of a portfolio. */
export const assetItem = z
  .preprocess(
    itemOf,
    z
      .object({
        asset: text(100, `What it is: ${ASSET_FORMS}; any name where you give returns or prices`),
        chain: chainName.optional(),
        weight: numberBetween(
          0,
          LARGEST_AMOUNT,
          'Share of the portfolio, in any unit; shares are normalised',
        ).optional(),
        amount: numberBetween(0, LARGEST_AMOUNT, 'Units of the asset held').optional(),
        valueUsd: numberBetween(0, LARGEST_AMOUNT, 'Value held in USD').optional(),
        returns: returns.optional(),
        prices: prices.optional(),
      })
      .refine(
        (item) =>
          item.returns !== undefined ||
          item.prices !== undefined ||
          parseAsset(item.asset, item.chain) !== null,
        {
          path: ['asset'],
          message: `must be ${ASSET_FORMS}; an EVM address needs a chain`,
        },
      ),
  )
  .describe(
    'A ticker, a pair, chain:address, or an object with asset and optionally your own returns or prices',
  )
  // Published with both types, so that the plain string, which most callers send, fits the schema too.
  .meta({ type: ['string', 'object'] });
export type AssetItem = z.output<typeof assetItem>;

/** What two items share when they are the same asset. */
export function itemKey(item: AssetItem): string {
  const asset =
    item.returns === undefined && item.prices === undefined ? parseAsset(item.asset, item.chain) : null;
  return asset === null ? item.asset.toLowerCase() : assetKey(asset);
}

/** The data of one item: closes by bar number, or returns whose dates nobody knows. */
export interface AssetSeries {
  item: AssetItem;
  data: { kind: 'dated'; closes: Dated } | { kind: 'undated'; returns: readonly number[] };
  /** The last price of its data, in USD where it was fetched; null for returns alone and for other currencies. */
  lastPrice: number | null;
  source: Source | null;
  notes: string[];
}

/**
 * Reads the data of every item: its own where it brings any, a price history otherwise.
 *
 * @param interval the length of a bar
 * @param count how many bars back from now, for items without data of their own
 * @param field the input that holds the items
 * @throws notFound when a source does not know an item, naming it; the failure of a source
 */
export function assetSeries(
  items: readonly AssetItem[],
  interval: '1h' | '1d',
  count: number,
  sources: PriceHistorySources,
  field: string,
): Promise<AssetSeries[]> {
  return Promise.all(
    items.map(async (item, index): Promise<AssetSeries> => {
      const own = ownSeries(item, BAR_MS[interval]);
      if (own !== null) return own;
      const asset = parseAsset(item.asset, item.chain);
      if (asset === null) throw new Error(`${item.asset} passed validation and is no asset`);
      return fetchedSeries(item, asset, interval, count, sources, `${field}.${index}`);
    }),
  );
}

async function fetchedSeries(
  item: AssetItem,
  asset: Asset,
  interval: '1h' | '1d',
  count: number,
  sources: PriceHistorySources,
  field: string,
): Promise<AssetSeries> {
  const { closes, source, notes } = await priceHistory(asset, interval, count, sources, field);
  const inDollars = asset.kind === 'token' || DOLLARS.includes(asset.pair.quote);
  if (!inDollars) notes.push(`${item.asset} is measured in ${asset.pair.quote}, not in dollars.`);
  return {
    item,
    data: { kind: 'dated', closes },
    lastPrice: inDollars ? lastOf(closes) : null,
    source,
    notes,
  };
}

function ownSeries(item: AssetItem, barMs: number): AssetSeries | null {
  const own = { item, source: null, notes: [`${item.asset}: your own data, taken as given.`] };
  if (item.returns !== undefined) {
    const last = item.prices?.at(-1);
    const lastPrice = last === undefined ? null : typeof last === 'number' ? last : last[1];
    return { ...own, data: { kind: 'undated', returns: item.returns }, lastPrice };
  }
  if (item.prices === undefined) return null;
  const closes = new Map<number, number>();
  const plain: number[] = [];
  for (const point of item.prices) {
    if (typeof point === 'number') plain.push(point);
    // A price at midnight belongs to the day before; one later in a day belongs to that day.
    else closes.set(Math.ceil(point[0] / barMs) - 1, point[1]);
  }
  if (plain.length > 0) {
    return {
      ...own,
      data: { kind: 'undated', returns: simpleReturns(plain) },
      lastPrice: plain.at(-1) ?? null,
    };
  }
  return { ...own, data: { kind: 'dated', closes }, lastPrice: lastOf(closes) };
}

function lastOf(closes: Dated): number | null {
  const latest = Math.max(...closes.keys());
  return closes.get(latest) ?? null;
}

/** The bars at whose ends the two closes of a return lie. */
export interface Span {
  from: number;
  to: number;
}

export interface AlignedReturns {
  /** Simple returns, one list per series, all over the same spans. */
  columns: number[][];
  /** The bars whose closes were joined; null where dates are not known. */
  periods: number[] | null;
  /** Where each return lies; null where dates are not known. */
  spans: Span[] | null;
  /** Tells of the returns that were left out because a close between their ends is missing. */
  notes: string[];
}

/** In a caller's own prices, a gap of this many usual gaps is more than a weekend or holiday. */
const OWN_GAPS = 4;

/**
 * Brings series to common periods: those with dates by an inner join on them, those without by their equal length. A
 * change across missing closes is the sum of several changes, so it is not a return of one period and is left out.
 *
 * @throws noAnswer when they cannot be brought together, or share too few returns
 */
export function alignReturns(series: readonly AssetSeries[], field: string): AlignedReturns {
  const dated = series.flatMap(({ data }) => (data.kind === 'dated' ? [data.closes] : []));
  const undated = series.flatMap(({ data }) => (data.kind === 'undated' ? [[...data.returns]] : []));
  if (dated.length > 0 && undated.length > 0) {
    throw noAnswer(
      'UNALIGNED_SERIES',
      'Returns and prices without dates cannot be matched with dated ones. Give prices as [milliseconds, price], or your own data for every asset.',
      field,
    );
  }
  if (new Set(undated.map(({ length }) => length)).size > 1) {
    throw noAnswer('UNALIGNED_SERIES', 'Series without dates must all have the same length.', field);
  }
  const joined = alignByPeriod(dated);
  const fetched = series.some(({ source }) => source !== null);
  const longestGap = fetched ? 1 : OWN_GAPS * usualGap(joined.periods);
  const spans = joined.periods.slice(1).map((to, index) => ({ from: joined.periods[index] ?? to, to }));
  const whole = spans.map(({ from, to }) => to - from <= longestGap);
  const columns =
    undated.length > 0
      ? undated
      : joined.columns.map((closes) => simpleReturns(closes).filter((_, index) => whole[index]));
  const leftOut = whole.filter((one) => !one).length;
  const observations = columns[0]?.length ?? 0;
  if (observations < MIN_OBSERVATIONS) {
    const shortest = series
      .map(
        ({ item, data }) =>
          `${item.asset}: ${data.kind === 'dated' ? data.closes.size : data.returns.length + 1}`,
      )
      .join(', ');
    throw noAnswer(
      'TOO_FEW_OBSERVATIONS',
      `Only ${observations} common returns; at least ${MIN_OBSERVATIONS} are needed (prices found: ${shortest}).`,
      field,
    );
  }
  return {
    columns,
    periods: undated.length > 0 ? null : joined.periods,
    spans: undated.length > 0 ? null : spans.filter((_, index) => whole[index]),
    notes:
      leftOut === 0
        ? []
        : [
            `${leftOut} ${leftOut === 1 ? 'change was' : 'changes were'} left out: closes between the two ends are missing.`,
          ],
  };
}

/** The median distance between neighbouring bars. */
function usualGap(periods: readonly number[]): number {
  const gaps = periods.slice(1).map((to, index) => to - (periods[index] ?? to));
  return gaps.sort((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 1;
}

/** Notes and sources of several series, each once. */
export function provenanceOfSeries(series: readonly AssetSeries[]): { sources: Source[]; notes: string[] } {
  const sources = new Map(series.flatMap(({ source }) => (source === null ? [] : [[source.url, source]])));
  return { sources: [...sources.values()], notes: [...new Set(series.flatMap(({ notes }) => notes))] };
}

/** A joined bar's end as a time, for showing the window of an answer. */
export function barEnd(bar: number | undefined, interval: '1h' | '1d'): string | null {
  return bar === undefined ? null : new Date((bar + 1) * BAR_MS[interval]).toISOString();
}
