/** What ETH costs in the sandbox's one market, for the parts that trade it on the chain. */
import { openMarket } from '../upstreams/market.ts';

/** Seed of the one synthetic market: the same everywhere, so that two sandboxes agree. */
export const MARKET_SEED = 8402;

/** The price of 1 ETH in USD. */
export function ethPriceUsd(atMs: number): number {
  const market = openMarket(MARKET_SEED);
  const ether = market.coinBySymbol('ETH');
  if (ether === undefined) throw new Error('the market has no ETH');
  return market.priceUsd(ether, atMs);
}
