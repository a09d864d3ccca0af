/**
 * The coins that a ticker alone stands for, by CoinGecko's ids, which DefiLlama uses too. Thousands of tokens share the
 * same tickers, so only unmistakable coins are listed.
 */
const COIN_IDS: Readonly<Record<string, string>> = {
  BTC: 'bitcoin',
  ETH: 'ethereum',
  SOL: 'solana',
  BNB: 'binancecoin',
  XRP: 'ripple',
  ADA: 'cardano',
  DOGE: 'dogecoin',
  TRX: 'tron',
  DOT: 'polkadot',
  LTC: 'litecoin',
  BCH: 'bitcoin-cash',
  AVAX: 'avalanche-2',
  LINK: 'chainlink',
  UNI: 'uniswap',
  AAVE: 'aave',
  ARB: 'arbitrum',
  OP: 'optimism',
  POL: 'polygon-ecosystem-token',
  ATOM: 'cosmos',
  NEAR: 'near',
  XLM: 'stellar',
  XMR: 'monero',
  USDC: 'usd-coin',
  USDT: 'tether',
  DAI: 'dai',
  WETH: 'weth',
  WBTC: 'wrapped-bitcoin',
};

/** CoinGecko's id of a well-known coin, or null. Upper and lower case are the same. */
export function coinIdOf(ticker: string): string | null {
  return COIN_IDS[ticker.toUpperCase()] ?? null;
}
