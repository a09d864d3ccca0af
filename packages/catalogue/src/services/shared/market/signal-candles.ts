import { noAnswer } from '@farebox/core/words/failure';
import { MIN_BARS, type Position } from '../../../quant/trade-signal.ts';
import { BAR_MS, type BarInterval, type Candle } from '../../../upstreams/adapters/candle.ts';
import { parseAsset } from './asset.ts';
import { type ExchangeCandles, type Exchanges, exchangeCandles } from './exchange-candles.ts';
import { isPegged } from './pegs.ts';

/** Accepted in any case; `moderate` is what some clients call the middle. */
export function riskWord(value: unknown): unknown {
  const word = lower(value);
  return word === 'moderate' ? 'medium' : word;
}

export function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.trim().toLowerCase() : value;
}

/** Eight significant digits are more than any exchange quotes; a price must lie above zero. */
function priceOrNull(price: number | null): number | null {
  return price === null || price <= 0 ? null : Number(price.toPrecision(8));
}

/**
 * The levels of a position as an answer shows them.
 *
 * @param notes get the reason of a HOLD, and of a level that is null although there is a position
 * @param entryField the field of the answer that has the last close
 */
export function shownLevels(
  { signal, holdReason, ...levels }: Position,
  notes: string[],
  entryField: string,
) {
  if (holdReason !== null) {
    notes.push(
      `HOLD: ${entryField} is the last close; there is no position to give a target or a stop for. ${holdReason}`,
    );
  }
  const target = priceOrNull(levels.target);
  const stopLoss = priceOrNull(levels.stopLoss);
  if (signal !== 'HOLD' && (target === null || stopLoss === null))
    notes.push('A level is null: the price varies so much that it would lie below zero.');
  return { target, stopLoss };
}

export interface SignalCandles extends ExchangeCandles {
  last: Candle;
  high: number[];
  low: number[];
  close: number[];
}

/**
 * The candles that a signal is read from. A last candle that is old is told in the notes.
 *
 * @param field the input that named the pair
 * @throws noAnswer for a pegged pair, for what exchanges do not list, and for too few candles; what the exchanges'
 *   adapters throw
 */
export async function signalCandles(
  written: string,
  timeframe: BarInterval,
  exchanges: Exchanges,
  nowMs: number,
  field: string,
): Promise<SignalCandles> {
  const asset = parseAsset(written, 'ethereum');
  if (asset === null || asset.kind === 'token') {
    throw noAnswer(
      'NO_CANDLES',
      `${written}: signals need exchange candles. Give a ticker or a pair, such as ETH/USDT.`,
      field,
    );
  }
  const { base, quote } = asset.pair;
  if (isPegged(asset.pair)) {
    throw noAnswer(
      'PEGGED_ASSET',
      `${base} against ${quote} is held at its price by design: its small moves are nothing to trade on.`,
      field,
    );
  }
  const read = await exchangeCandles(asset.pair, timeframe, exchanges, field);
  const { candles, exchange, pair, notes } = read;
  const last = candles.at(-1);
  if (last === undefined || candles.length < MIN_BARS) {
    throw noAnswer(
      'TOO_FEW_BARS',
      `${exchange} has ${candles.length} finished ${timeframe} candles of ${pair.base}/${pair.quote}; ${MIN_BARS} are needed.`,
      field,
    );
  }
  if (nowMs - last.closeMs > 2 * BAR_MS[timeframe]) {
    notes.push(
      `The last candle closed at ${new Date(last.closeMs).toISOString()}: there was no trade since, or the source is late.`,
    );
  }
  return {
    ...read,
    last,
    high: candles.map(({ high }) => high),
    low: candles.map(({ low }) => low),
    close: candles.map(({ close }) => close),
  };
}
