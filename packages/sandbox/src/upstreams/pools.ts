/** The pools in which the market's tokens trade, and the state of each pool at a time. */
import { createHash } from 'node:crypto';
import { type ChainName, COINS, type Coin, NATIVE_COIN, TOKENS, type Token, tokenKey } from './assets.ts';
import type { Market } from './market.ts';
import { keyOf, smooth, uniform } from './noise.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** The size of a mean trade, by which turnover gives a number of trades. */
const MEAN_TRADE_USD = 1_400;

export interface Pool {
  chain: ChainName;
  dexId: string;
  dexName: string;
  labels: readonly string[];
  feePercent: number;
  address: string;
  base: Token;
  quote: Token;
  liquidityUsd: number;
  /** The pool's share of the base coin's turnover on all venues. */
  turnoverShare: number;
  createdMs: number;
  /** Whether this is its base token's deepest pool, which trades at the market price. Others are off by less than their fee. */
  deepest: boolean;
}

export interface PoolState {
  priceUsd: number;
  quotePriceUsd: number;
  /** The price of the base token in units of the quote token. */
  priceNative: number;
  liquidityUsd: number;
  baseReserve: number;
  quoteReserve: number;
  volumeUsd: { m5: number; h1: number; h6: number; h24: number };
  changePercent: { m5: number; h1: number; h6: number; h24: number };
  trades: { m5: Trades; h1: Trades; h6: Trades; h24: Trades };
}

export interface Trades {
  buys: number;
  sells: number;
}

export interface Pools {
  all: readonly Pool[];
  /** The pools with this token on either side, deepest first. */
  ofToken(token: Token): readonly Pool[];
  find(chain: ChainName, address: string): Pool | undefined;
  state(pool: Pool, atMs: number): PoolState;
}

interface Dex {
  id: string;
  name: string;
  labels: readonly string[];
}

const UNISWAP_V3: Dex = { id: 'uniswap', name: 'Uniswap V3', labels: ['v3'] };
const UNISWAP_V2: Dex = { id: 'uniswap', name: 'Uniswap V2', labels: ['v2'] };
const FIRST_DEX: Readonly<Record<ChainName, Dex>> = {
  ethereum: UNISWAP_V3,
  base: UNISWAP_V3,
  polygon: UNISWAP_V3,
  arbitrum: UNISWAP_V3,
  optimism: UNISWAP_V3,
  bsc: { id: 'pancakeswap', name: 'PancakeSwap V3', labels: ['v3'] },
  solana: { id: 'orca', name: 'Orca', labels: ['wp'] },
};
const SECOND_DEX: Readonly<Record<ChainName, Dex>> = {
  ethereum: UNISWAP_V2,
  base: { id: 'aerodrome', name: 'Aerodrome', labels: [] },
  polygon: { id: 'quickswap', name: 'QuickSwap V3', labels: ['v3'] },
  arbitrum: { id: 'camelot', name: 'Camelot', labels: ['v3'] },
  optimism: { id: 'velodrome', name: 'Velodrome', labels: [] },
  bsc: { id: 'pancakeswap', name: 'PancakeSwap V2', labels: ['v2'] },
  solana: { id: 'raydium', name: 'Raydium', labels: [] },
};

/** Opens the pools of a market. Their addresses follow from what they trade, and belong to nobody on the real chains. */
export function openPools(market: Market): Pools {
  const all = TOKENS.flatMap((token) => poolsWithBase(token));
  const byAddress = new Map(all.map((pool) => [tokenKey(pool.chain, pool.address), pool]));
  const byToken = new Map<Token, Pool[]>();
  for (const pool of all) {
    for (const token of [pool.base, pool.quote]) {
      byToken.set(token, [...(byToken.get(token) ?? []), pool]);
    }
  }
  for (const pools of byToken.values()) pools.sort((a, b) => b.liquidityUsd - a.liquidityUsd);

  function coinOf(token: Token): Coin {
    const coin = market.coin(token.coin);
    if (coin === undefined) throw new Error(`no coin ${token.coin}`);
    return coin;
  }

  function poolPriceUsd(pool: Pool, atMs: number): number {
    const coin = coinOf(pool.base);
    const price = market.priceUsd(coin, atMs);
    if (pool.deepest) return price;
    const key = keyOf(market.seed, `pool:${pool.address}`);
    const swing = Math.tanh(smooth(key, atMs / (4 * MINUTE_MS)));
    return Number((price * (1 + 0.008 * pool.feePercent * swing)).toFixed(market.priceDecimals(coin)));
  }

  return {
    all,
    ofToken: (token) => byToken.get(token) ?? [],
    find: (chain, address) => byAddress.get(tokenKey(chain, address)),
    state(pool, atMs) {
      const base = coinOf(pool.base);
      const key = keyOf(market.seed, `depth:${pool.address}`);
      const priceUsd = poolPriceUsd(pool, atMs);
      const quotePriceUsd = market.priceUsd(coinOf(pool.quote), atMs);
      const liquidityUsd = pool.liquidityUsd * (1 + 0.08 * Math.tanh(smooth(key, atMs / (6 * HOUR_MS))));
      const windows = { m5: 5 * MINUTE_MS, h1: HOUR_MS, h6: 6 * HOUR_MS, h24: DAY_MS };
      const volume = (ms: number) => market.volumeUsd(base, atMs - ms, atMs) * pool.turnoverShare;
      const change = (ms: number) => (priceUsd / poolPriceUsd(pool, atMs - ms) - 1) * 100;
      const trades = (ms: number): Trades => {
        const count = Math.round(volume(ms) / MEAN_TRADE_USD);
        const bought = Math.max(0.3, Math.min(0.7, 0.5 + change(ms) / 60));
        return { buys: Math.round(count * bought), sells: count - Math.round(count * bought) };
      };
      const over = <Value>(of: (ms: number) => Value) => ({
        m5: of(windows.m5),
        h1: of(windows.h1),
        h6: of(windows.h6),
        h24: of(windows.h24),
      });
      return {
        priceUsd,
        quotePriceUsd,
        priceNative: priceUsd / quotePriceUsd,
        liquidityUsd,
        baseReserve: liquidityUsd / 2 / priceUsd,
        quoteReserve: liquidityUsd / 2 / quotePriceUsd,
        volumeUsd: over(volume),
        changePercent: over(change),
        trades: over(trades),
      };
    },
  };
}

function poolsWithBase(token: Token): Pool[] {
  const dollar = TOKENS.find(({ chain, coin }) => chain === token.chain && coin === 'usd-coin');
  const native = TOKENS.find(({ chain, coin }) => chain === token.chain && coin === NATIVE_COIN[token.chain]);
  const stable = token.coin === 'tether' || token.coin === 'dai';
  const { turnoverUsd, motion } = COINS.find(({ id }) => id === token.coin) ?? {
    turnoverUsd: 1,
    motion: null,
  };
  // The mean turnover of a pool in a day, as a multiple of its liquidity.
  const turns = stable ? 0.4 : motion?.kind === 'floating' && motion.sector === 'meme' ? 1.3 : 0.8;
  const pools: Pool[] = [];
  const add = (dex: Dex, quote: Token | undefined, feePercent: number, share: number) => {
    if (quote === undefined || quote === token) return;
    const name = `${token.chain}:${token.address}:${quote.address}:${dex.name}:${feePercent}`;
    const key = keyOf(0, name);
    pools.push({
      chain: token.chain,
      dexId: dex.id,
      dexName: dex.name,
      labels: dex.labels,
      feePercent,
      address:
        token.chain === 'solana' ? base58(digest(name)) : `0x${digest(name).toString('hex').slice(0, 40)}`,
      base: token,
      quote,
      liquidityUsd: token.liquidityUsd * share,
      turnoverShare: (turns * (0.6 + 0.8 * uniform(key, 1)) * token.liquidityUsd * share) / turnoverUsd,
      createdMs: Date.UTC(2021, 5, 1) + Math.floor(uniform(key, 2) * 1_200) * DAY_MS,
      deepest: pools.length === 0,
    });
  };
  if (token.coin === 'usd-coin') return [];
  const first = FIRST_DEX[token.chain];
  const second = SECOND_DEX[token.chain];
  add(first, dollar, stable ? 0.01 : 0.05, 0.55);
  add(second, dollar, stable ? 0.05 : 0.3, 0.15);
  if (!stable) add(first, native, 0.3, 0.3);
  return pools;
}

function digest(name: string): Buffer {
  return createHash('sha256').update(`farebox sandbox pool ${name}`).digest();
}

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

function base58(bytes: Buffer): string {
  let value = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (value > 0n) {
    text = BASE58.charAt(Number(value % 58n)) + text;
    value /= 58n;
  }
  return text;
}
