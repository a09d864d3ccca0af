import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { isAddressLike } from '../wire-address.ts';
import { optionalWireNumber } from '../wire-number.ts';

const token = z.looseObject({
  address: z.string().min(1),
  name: z
    .string()
    .nullish()
    .transform((name) => name ?? null),
  symbol: z
    .string()
    .nullish()
    .transform((symbol) => symbol ?? null),
});
const numbers24h = z
  .looseObject({ h24: optionalWireNumber })
  .nullish()
  .transform((numbers) => numbers?.h24 ?? null);

const pair = z
  .looseObject({
    chainId: z.string(),
    dexId: z.string(),
    labels: z.array(z.string()).nullish(),
    url: z.string().nullish(),
    pairAddress: z.string(),
    baseToken: token,
    quoteToken: token,
    priceNative: optionalWireNumber,
    priceUsd: optionalWireNumber,
    volume: numbers24h,
    priceChange: numbers24h,
    liquidity: z.looseObject({ usd: optionalWireNumber }).nullish(),
    fdv: optionalWireNumber,
    marketCap: optionalWireNumber,
    pairCreatedAt: z.number().nullish(),
  })
  .transform((wire) => ({
    chain: wire.chainId,
    dex: wire.dexId,
    labels: wire.labels ?? [],
    pairAddress: wire.pairAddress,
    base: wire.baseToken,
    quote: wire.quoteToken,
    /** Price of the base token in the quote token. */
    priceNative: wire.priceNative,
    /** Price of the base token. */
    priceUsd: wire.priceUsd,
    /** Change of the base token's price in percent. */
    change24hPercent: wire.priceChange,
    volume24hUsd: wire.volume,
    liquidityUsd: wire.liquidity?.usd ?? null,
    /** Of the base token. */
    fdvUsd: wire.fdv,
    /** Of the base token. Equals the fully diluted value where DexScreener does not know the circulating supply. */
    marketCapUsd: wire.marketCap,
    createdAtMs: wire.pairCreatedAt ?? null,
  }));

/** A trading pair on a decentralized exchange, with strings converted and missing values as null. */
export type DexPair = z.output<typeof pair>;

const OURS: ReadonlySet<string> = new Set(CHAINS);
const hasAddresses = ({ chain, pairAddress, base, quote }: DexPair) =>
  [pairAddress, base.address, quote.address].every((address) => isAddressLike(address, OURS.has(chain)));
/** Whoever makes a token with something else in place of an address is left out, and keeps nobody else out. */
const pairs = z.array(pair).transform((all) => all.filter(hasAddresses));

/** An empty result comes as null. */
const search = z.looseObject({ pairs: pairs.nullish() }).transform((found) => found.pairs ?? []);

const boosts = z.array(
  z
    .looseObject({ chainId: z.string(), tokenAddress: z.string(), totalAmount: optionalWireNumber })
    .transform((wire) => ({
      chain: wire.chainId,
      address: wire.tokenAddress,
      totalAmount: wire.totalAmount,
    })),
);

/**
 * DexScreener: pairs of decentralized exchanges. Its chains have the same names as ours.
 * https://docs.dexscreener.com/api/reference
 */
export const dexscreener = defineUpstream({
  name: 'dexscreener',
  title: 'DexScreener',
  baseUrl: 'https://api.dexscreener.com',
  licence: 'DexScreener',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://docs.dexscreener.com',
  },
  key: 'none',
  // It allows 300 in any minute.
  requestsPerMinute: 200,
  burst: 100,
  open: (http) => ({
    /** Pairs with the token on one side, base or quote; empty when it has none. */
    pairsOf: (chain: ChainName, address: string) =>
      http.get({
        path: `/token-pairs/v1/${chain}/${encodeURIComponent(address)}`,
        schema: pairs,
        freshMs: 30_000,
        staleMs: 60_000,
      }),
    /** Pairs with any of the tokens on one side, at most 30 tokens; those without pairs have none. */
    pairsOfTokens: (chain: ChainName, addresses: readonly string[]) =>
      http.get({
        path: `/tokens/v1/${chain}/${addresses.map(encodeURIComponent).join(',')}`,
        schema: pairs,
        freshMs: 30_000,
        staleMs: 60_000,
      }),
    /** Pairs on any chain whose tokens' names, symbols or addresses match. */
    search: (query: string) =>
      http.get({
        path: '/latest/dex/search',
        query: { q: query },
        schema: search,
        freshMs: 60_000,
        staleMs: 120_000,
      }),
    /**
     * Tokens whose promotion was paid for, those with the most paid boosts first. It says nothing about interest in
     * them.
     */
    paidBoosts: () =>
      http.get({
        path: '/token-boosts/top/v1',
        schema: boosts,
        freshMs: 60_000,
        staleMs: 300_000,
      }),
  }),
  probe: (api) => api.search('WETH'),
});
