/** When the bars of the exchanges' candles begin and end, in UTC. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** The first Monday since 1970-01-01 was 1970-01-05. */
const FIRST_MONDAY_MS = 4 * DAY_MS;

/** A bar's length: a fixed time, with bars counted from `offsetMs` after 1970-01-01, or a calendar month. */
export type BarLength = { ms: number; offsetMs: number } | 'month';

function fixed(ms: number): BarLength {
  return { ms, offsetMs: 0 };
}

/** The lengths of bars by Binance's names for them. Binance's weeks begin on Mondays. */
export const BAR_LENGTHS: ReadonlyMap<string, BarLength> = new Map<string, BarLength>([
  ['1s', fixed(SECOND_MS)],
  ['1m', fixed(MINUTE_MS)],
  ['3m', fixed(3 * MINUTE_MS)],
  ['5m', fixed(5 * MINUTE_MS)],
  ['15m', fixed(15 * MINUTE_MS)],
  ['30m', fixed(30 * MINUTE_MS)],
  ['1h', fixed(HOUR_MS)],
  ['2h', fixed(2 * HOUR_MS)],
  ['4h', fixed(4 * HOUR_MS)],
  ['6h', fixed(6 * HOUR_MS)],
  ['8h', fixed(8 * HOUR_MS)],
  ['12h', fixed(12 * HOUR_MS)],
  ['1d', fixed(DAY_MS)],
  ['3d', fixed(3 * DAY_MS)],
  ['1w', { ms: 7 * DAY_MS, offsetMs: FIRST_MONDAY_MS }],
  ['1M', 'month'],
]);

/** The number of the bar in which a time lies. */
export function barAt(length: BarLength, atMs: number): number {
  if (length === 'month') {
    const date = new Date(atMs);
    return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
  }
  return Math.floor((atMs - length.offsetMs) / length.ms);
}

/** When a bar begins. */
export function barStartMs(length: BarLength, bar: number): number {
  return length === 'month' ? Date.UTC(1970, bar, 1) : bar * length.ms + length.offsetMs;
}

/** The starts of `count` bars from `first` on, and the end of the last one. */
export function barBoundsMs(length: BarLength, first: number, count: number): number[] {
  return Array.from({ length: count + 1 }, (_, at) => barStartMs(length, first + at));
}
