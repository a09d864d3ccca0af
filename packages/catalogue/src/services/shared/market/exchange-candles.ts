import type { Source } from '@farebox/core/words/answer';
import { notFound, UpstreamUnavailable } from '@farebox/core/words/failure';
import type { BarInterval, Candle, CandleSource, Pair } from '../../../upstreams/adapters/candle.ts';

export type Exchanges = Record<'binance' | 'kraken' | 'coinbase', CandleSource>;

export interface ExchangeCandles {
  exchange: keyof Exchanges;
  /** The pair that was read. Its quote currency may differ from the requested one. */
  pair: Pair;
  /** Finished candles, oldest first. */
  candles: Candle[];
  source: Source;
  notes: string[];
}

/** In the order in which they are asked, with the dollar currency that each trades most in. */
const EXCHANGES: readonly {
  name: keyof Exchanges;
  title: string;
  quotes: Readonly<Record<string, string>>;
}[] = [
  { name: 'binance', title: 'Binance', quotes: { USD: 'USDT' } },
  { name: 'kraken', title: 'Kraken', quotes: { USDT: 'USD', USDC: 'USD' } },
  { name: 'coinbase', title: 'Coinbase', quotes: { USDT: 'USD', USDC: 'USD' } },
];

/**
 * Candles of a pair from the first exchange that has them. Dollars and dollar stablecoins stand for one another,
 * which the notes say.
 *
 * @param field the input that named the pair, for the refusal
 * @throws notFound when no exchange lists the pair; the source's failure when one that might list it did not answer
 */
export async function exchangeCandles(
  asked: Pair,
  interval: BarInterval,
  exchanges: Exchanges,
  field: string,
): Promise<ExchangeCandles> {
  const notes: string[] = [];
  let answered = false;
  let failure: UpstreamUnavailable | undefined;
  for (const { name, title, quotes } of EXCHANGES) {
    const pair = { base: asked.base, quote: quotes[asked.quote] ?? asked.quote };
    if (pair.base === pair.quote) continue;
    try {
      const { value, source } = await exchanges[name].candles(pair, interval);
      answered = true;
      if (value === null) {
        notes.push(`${title} does not list ${pair.base}/${pair.quote}.`);
        continue;
      }
      if (pair.quote !== asked.quote)
        notes.push(`${pair.base} is priced in ${pair.quote}, which stands for ${asked.quote}.`);
      return { exchange: name, pair, candles: value, source, notes };
    } catch (error) {
      if (!(error instanceof UpstreamUnavailable)) throw error;
      if (failure === undefined || failure.reason === 'not_configured') failure = error;
      notes.push(`${title} did not answer (${error.reason}).`);
    }
  }
  // An exchange that the operator left out will not list the pair later, so it does not prevent "not found".
  if (failure !== undefined && (!answered || failure.reason !== 'not_configured')) throw failure;
  throw notFound(field, `No exchange lists ${asked.base}/${asked.quote}.`);
}
