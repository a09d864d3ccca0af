/** Says which assets are made to keep the price of another, so that their price is nothing to trade on. */
import type { Pair } from '../../../upstreams/adapters/candle.ts';

/** Assets that stand for another one to one, by their tickers; those of currencies are known by the currency's letters too. */
const PEGS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries({
    USD: 'DAI SDAI FRAX GHO MIM LUSD FEI DOLA XDAI',
    EUR: 'AEUR VEUR',
    GBP: 'GBPT TGBP VGBP',
    BTC: 'XBT WBTC CBBTC TBTC BTCB LBTC FBTC RENBTC HBTC',
    ETH: 'WETH STETH BETH',
    SOL: 'WSOL',
    BNB: 'WBNB',
    POL: 'WPOL MATIC',
    XAU: 'PAXG XAUT',
  }).flatMap(([peg, tickers]) => tickers.split(' ').map((ticker) => [ticker, peg])),
);
const CURRENCIES = new Set('USD EUR GBP CHF JPY AUD CAD TRY BRL SGD'.split(' '));
/** "USDC", "FDUSD" and "EURC"; a ticker that ends with EUR is more often a pair that was written as one word. */
const NAMED_FOR = /^(USD|EUR)[A-Z0-9]{1,4}$|^[A-Z0-9]{1,4}(USD)$/;

/** What an asset is made to be worth one of; null for one that has a price of its own. */
function pegOf(ticker: string): string | null {
  const [, before, after] = NAMED_FOR.exec(ticker) ?? [];
  return PEGS[ticker] ?? before ?? after ?? null;
}

/**
 * Whether the price of a pair is held by design: one stands for the other, both stand for the same, or the first is a
 * coin of a currency that is priced in another currency. Two currencies themselves are not pegged.
 */
export function isPegged({ base, quote }: Pair): boolean {
  const [ofBase, ofQuote] = [pegOf(base) ?? base, pegOf(quote) ?? quote];
  if (ofBase === ofQuote) return true;
  return pegOf(base) !== null && CURRENCIES.has(ofBase) && CURRENCIES.has(ofQuote);
}
