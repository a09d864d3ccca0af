import { z } from 'zod';
import { leastRate, recordOf, type SignalRecord } from '../../../quant/signal-record.ts';
import { MIN_BARS, type Position } from '../../../quant/trade-signal.ts';
import type { SignalCandles } from './signal-candles.ts';

const percent = z.number().nullable();

/** The record of a rule, as an answer shows it. */
export const signalRecord = z.object({
  trades: z.number().int().describe('Finished trades of the rule'),
  hits: z.number().int().describe('Trades that earned something after fees'),
  hitRatePercent: percent.describe('hits of trades; null without a trade'),
  expectancyPercent: percent.describe(
    'Mean of what a trade earned after fees, in percent of its entry; null without a trade',
  ),
  expectancyErrorPercent: percent.describe('Standard error of that mean; null below two trades'),
  unresolved: z
    .boolean()
    .describe('Whether a trade was still open at the last candle; it counts for nothing'),
  holdingPercent: percent.describe('What holding earned meanwhile, without fees'),
  feePercentPerTrade: z.number().describe('Taken off at the entry and again at the exit'),
  from: z.string().nullable().describe('The first time that could be traded at (ISO 8601)'),
  to: z.string().nullable().describe('The last (ISO 8601)'),
  outOfSample: z
    .boolean()
    .describe(
      'true: each trade was decided from earlier prices alone, and no number of the rule was fitted to any',
    ),
});

/** Percent to three decimals: a trade's fee is a tenth of one. */
function shownPercent(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1_000) / 1_000;
}

/** A record with its time and fee, rounded to what it means. */
export function shownRecord(
  record: SignalRecord,
  feePercentPerTrade: number,
  window: { fromMs: number | undefined; toMs: number | undefined },
): z.output<typeof signalRecord> {
  const iso = (atMs: number | undefined) => (atMs === undefined ? null : new Date(atMs).toISOString());
  return {
    trades: record.trades,
    hits: record.hits,
    hitRatePercent: record.hitRatePercent === null ? null : Math.round(record.hitRatePercent * 10) / 10,
    expectancyPercent: shownPercent(record.expectancyPercent),
    expectancyErrorPercent: shownPercent(record.expectancyErrorPercent),
    unresolved: record.unresolved,
    holdingPercent: shownPercent(record.holdingPercent),
    feePercentPerTrade,
    from: iso(window.fromMs),
    to: iso(window.toMs),
    outOfSample: true,
  };
}

export const CONFIDENCE_WORDS =
  'The least share of trades, in percent, that the rule is likely to win after fees by its record: the lower end of the 95 % interval (Wilson); 0 without a trade';

/** The confidence that a record allows, 0 to 100, to one decimal. */
function confidenceOf({ hits, trades }: Pick<SignalRecord, 'hits' | 'trades'>): number {
  return Math.round(leastRate(hits, trades) * 1_000) / 10;
}

/** Trades a rule on the candles that a signal is read from, and puts a poor record into the notes. */
export function recordOnCandles(
  { candles, high, low, close, notes }: SignalCandles,
  positions: readonly (Position | null)[],
  takerFeePercent: number,
): { record: z.output<typeof signalRecord>; confidence: number } {
  const first = MIN_BARS - 1;
  const open = candles.map((candle) => candle.open);
  const record = recordOf({ open, high, low, close }, positions, first, takerFeePercent);
  const { trades, expectancyPercent } = record;
  if (trades === 0) {
    notes.push(
      'The rule made no finished trade on these candles: it has no record here, and confidence is 0.',
    );
  } else if (expectancyPercent !== null && expectancyPercent <= 0) {
    notes.push(
      `On these candles the rule lost: ${shownPercent(expectancyPercent)} % a trade after fees, over ${trades} trades.`,
    );
  }
  return {
    record: shownRecord(record, takerFeePercent, {
      fromMs: candles[first]?.closeMs,
      toMs: candles.at(-1)?.closeMs,
    }),
    confidence: confidenceOf(record),
  };
}

export const RECORD_METHOD =
  'Record: the same rule at each earlier candle that has enough before it, one position at a time, in at the close, out at stop or target (both in one candle: stopped; opened beyond: at the open), fees of both trades taken off.';
