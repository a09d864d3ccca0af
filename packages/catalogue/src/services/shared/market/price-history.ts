import type { Source } from '@farebox/core/words/answer';
import { notFound } from '@farebox/core/words/failure';
import type { Dated } from '../../../quant/returns.ts';
import { BAR_MS } from '../../../upstreams/adapters/candle.ts';
import { llamaToken } from '../../../upstreams/adapters/defillama.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import type { Asset } from './asset.ts';
import { type Exchanges, exchangeCandles } from './exchange-candles.ts';

/** Where price histories come from. Any one of them is enough for some assets. */
export const PRICE_HISTORY_SOURCES = ['binance', 'kraken', 'coinbase', 'defillama'] as const;

export interface PriceHistorySources {
  upstreams: Exchanges & Pick<Upstreams, 'defillama'>;
  nowMs(): number;
}

export interface PriceHistory {
  /** The price at the end of each bar, by the bar's number: whole days (or hours) since 1970, UTC. */
  closes: Dated;
  source: Source;
  notes: string[];
}

/** A recorded price farther than this from the end of a bar, as a part of the bar, does not count as its close. */
const LARGEST_OFFSET = 0.25;

/**
 * The last closes of an asset, finished bars only: from exchanges for a ticker or pair, from DefiLlama for a token
 * at an address. Bars for which the source has nothing are missing.
 *
 * @param count how many bars back from now
 * @param field the input that named the asset, for the refusal
 * @throws notFound when no source knows the asset; the source's failure when it could not be asked
 */
export async function priceHistory(
  asset: Asset,
  interval: '1h' | '1d',
  count: number,
  { upstreams, nowMs }: PriceHistorySources,
  field: string,
): Promise<PriceHistory> {
  const barMs = BAR_MS[interval];
  const running = Math.floor(nowMs() / barMs);
  const closes = new Map<number, number>();
  if (asset.kind === 'pair') {
    const { candles, source, notes } = await exchangeCandles(asset.pair, interval, upstreams, field);
    for (const { openMs, close } of candles) {
      const bar = openMs / barMs;
      if (bar >= running - count) closes.set(bar, close);
    }
    return { closes, source, notes };
  }
  const coin = llamaToken(asset.chain, asset.address);
  const { value, source } = await upstreams.defillama.priceChart(
    coin,
    (running - count + 1) * barMs,
    count,
    interval,
  );
  if (value === null)
    throw notFound(field, `DefiLlama knows no price of ${asset.address} on ${asset.chain}.`);
  for (const { atMs, priceUsd } of value) {
    const end = Math.round(atMs / barMs);
    if (Math.abs(atMs / barMs - end) <= LARGEST_OFFSET && end <= running) closes.set(end - 1, priceUsd);
  }
  const last = value.at(-1);
  return {
    closes,
    source: { ...source, asOf: last === undefined ? null : new Date(last.atMs).toISOString() },
    notes: [],
  };
}
