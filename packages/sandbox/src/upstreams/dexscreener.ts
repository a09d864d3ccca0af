/** https://api.dexscreener.com. Paths with v1 answer a bare array, `/latest/dex/*` an object whose `pairs` may be null. */
import type { FastifyInstance } from 'fastify';
import { type ChainName, findToken, type Token } from './assets.ts';
import { decimal } from './decimal.ts';
import { keyOf, uniform } from './noise.ts';
import type { Pool, Trades } from './pools.ts';
import { listOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const CHAINS: Readonly<Record<string, ChainName>> = {
  ethereum: 'ethereum',
  base: 'base',
  polygon: 'polygon',
  arbitrum: 'arbitrum',
  optimism: 'optimism',
  bsc: 'bsc',
  solana: 'solana',
};
const MAX_ADDRESSES = 30;
const MAX_PAIRS = 30;
const BOOSTS = ['DEGEN', 'BRETT', 'BONK', 'PEPE'];

export function dexscreener(app: FastifyInstance, { market, pools, nowMs }: World): void {
  function pair(pool: Pool, atMs: number) {
    const state = pools.state(pool, atMs);
    const coin = market.coin(pool.base.coin);
    const significant = (value: number) => Number(value.toPrecision(9));
    const windows = <Value>(
      of: { m5: Value; h1: Value; h6: Value; h24: Value },
      to: (value: Value) => unknown,
    ) => ({
      m5: to(of.m5),
      h1: to(of.h1),
      h6: to(of.h6),
      h24: to(of.h24),
    });
    return {
      chainId: pool.chain,
      dexId: pool.dexId,
      url: `https://dexscreener.com/${pool.chain}/${pool.address}`,
      pairAddress: pool.address,
      ...(pool.labels.length === 0 ? {} : { labels: pool.labels }),
      baseToken: named(pool.base),
      quoteToken: named(pool.quote),
      priceNative: decimal(significant(state.priceNative)),
      priceUsd: decimal(state.priceUsd),
      txns: windows<Trades>(state.trades, (trades) => trades),
      volume: windows(state.volumeUsd, (usd) => Math.round(usd * 100) / 100),
      priceChange: windows(state.changePercent, (percent) => Math.round(percent * 100) / 100),
      liquidity: {
        usd: Math.round(state.liquidityUsd * 100) / 100,
        base: significant(state.baseReserve),
        quote: significant(state.quoteReserve),
      },
      fdv: Math.round((coin?.maxSupply ?? 0) * state.priceUsd),
      marketCap: Math.round((coin?.circulating ?? 0) * state.priceUsd),
      pairCreatedAt: pool.createdMs,
    };
  }

  function pairsOf(chain: string, addresses: readonly string[]) {
    const known = CHAINS[chain];
    if (known === undefined) return [];
    const found = new Set(
      addresses.flatMap((address) => {
        const token = findToken(known, address);
        return token === undefined ? [] : pools.ofToken(token);
      }),
    );
    return [...found].slice(0, MAX_PAIRS).map((pool) => pair(pool, nowMs()));
  }

  app.get<{ Params: { chain: string; token: string } }>('/token-pairs/v1/:chain/:token', ({ params }) =>
    pairsOf(params.chain, [params.token]),
  );

  app.get<{ Params: { chain: string; addresses: string } }>(
    '/tokens/v1/:chain/:addresses',
    ({ params }, reply) => {
      const addresses = listOf(params.addresses, MAX_ADDRESSES + 1);
      if (addresses.length > MAX_ADDRESSES) {
        return reply.code(400).send({ error: `At most ${MAX_ADDRESSES} token addresses` });
      }
      return pairsOf(params.chain, addresses);
    },
  );

  app.get<{ Querystring: Query }>('/latest/dex/search', ({ query }, reply) => {
    const words = (textOf(query, 'q') ?? '')
      .toLowerCase()
      .split(/[\s/]+/)
      .filter((word) => word !== '');
    if (words.length === 0) return reply.code(400).send({ error: 'The parameter q is required' });
    const matches = pools.all.filter((pool) =>
      words.every((word) =>
        [pool.base, pool.quote].some(
          (token) =>
            token.symbol.toLowerCase() === word ||
            token.address.toLowerCase() === word ||
            token.name.toLowerCase().includes(word),
        ),
      ),
    );
    const pairs = matches
      .toSorted((a, b) => b.liquidityUsd - a.liquidityUsd)
      .slice(0, MAX_PAIRS)
      .map((pool) => pair(pool, nowMs()));
    return { schemaVersion: '1.0.0', pairs };
  });

  app.get<{ Params: { chain: string; pairs: string } }>('/latest/dex/pairs/:chain/:pairs', ({ params }) => {
    const chain = CHAINS[params.chain];
    const found = listOf(params.pairs, MAX_ADDRESSES)
      .map((address) => (chain === undefined ? undefined : pools.find(chain, address)))
      .filter((pool) => pool !== undefined)
      .map((pool) => pair(pool, nowMs()));
    return { schemaVersion: '1.0.0', pairs: found.length === 0 ? null : found, pair: found[0] ?? null };
  });

  /** Boosts stand for paid promotion, not for popularity. On DexScreener they are bought as well. */
  app.get('/token-boosts/top/v1', () => {
    const day = Math.floor(nowMs() / 86_400_000);
    return pools.all
      .filter((pool) => pool.deepest && BOOSTS.includes(pool.base.symbol))
      .map(({ base, chain }) => {
        const totalAmount =
          10 * (1 + Math.floor(uniform(keyOf(market.seed, `boost:${base.address}`), day) * 50));
        return {
          url: `https://dexscreener.com/${chain}/${base.address}`,
          chainId: chain,
          tokenAddress: base.address,
          description: `${base.name} in the sandbox`,
          amount: 10,
          totalAmount,
          links: [],
        };
      })
      .sort((a, b) => b.totalAmount - a.totalAmount);
  });
}

function named({ address, name, symbol }: Token) {
  return { address, name, symbol };
}
