/** The world that all upstreams of the sandbox answer from, so that their answers agree. */
import { type Market, openMarket } from './market.ts';
import { type News, openNews } from './news.ts';
import { openPools, type Pools } from './pools.ts';
import { openPredictions, type Predictions } from './predictions.ts';

export interface World {
  seed: number;
  /** Milliseconds since 1970. */
  nowMs: () => number;
  market: Market;
  news: News;
  pools: Pools;
  predictions: Predictions;
}

/** Builds the world of a seed. The clock says what time it is now; nothing else changes with time. */
export function openWorld(seed: number, nowMs: () => number): World {
  const market = openMarket(seed);
  return {
    seed,
    nowMs,
    market,
    news: openNews(market),
    pools: openPools(market),
    predictions: openPredictions(market),
  };
}
