import type { ChainName } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { isAddressLike } from '../wire-address.ts';
import { optionalWireNumber } from '../wire-number.ts';

const NETWORKS: Readonly<Record<ChainName, string>> = {
  ethereum: 'eth',
  base: 'base',
  polygon: 'polygon_pos',
  arbitrum: 'arbitrum',
  optimism: 'optimism',
  bsc: 'bsc',
  solana: 'solana',
};
const CHAIN_OF_NETWORK = new Map(Object.entries(NETWORKS).map(([chain, network]) => [network, chain]));

/** The windows over which it ranks pools. */
export const TRENDING_WINDOWS = ['5m', '1h', '6h', '24h'] as const;
export type TrendingWindow = (typeof TRENDING_WINDOWS)[number];

const numbers24h = z
  .looseObject({ h24: optionalWireNumber })
  .nullish()
  .transform((numbers) => numbers?.h24 ?? null);

const trending = z
  .looseObject({
    data: z.array(
      z.looseObject({
        id: z.string(),
        attributes: z.looseObject({
          address: z.string(),
          name: z.string(),
          base_token_price_usd: optionalWireNumber,
          reserve_in_usd: optionalWireNumber,
          volume_usd: numbers24h,
          price_change_percentage: numbers24h,
        }),
        relationships: z.looseObject({
          base_token: z.looseObject({ data: z.looseObject({ id: z.string() }) }),
        }),
      }),
    ),
    included: z
      .array(
        z.looseObject({
          id: z.string(),
          type: z.string(),
          attributes: z.looseObject({ name: z.string().nullish(), symbol: z.string().nullish() }),
        }),
      )
      .optional(),
  })
  .transform(({ data, included }) => {
    const tokens = new Map(
      included?.filter(({ type }) => type === 'token').map((one) => [one.id, one.attributes]),
    );
    const pools = data.map(({ id, attributes, relationships }) => {
      const baseId = relationships.base_token.data.id;
      // Both ids are "<network>_<address>", and a network's name may contain an underscore. The pool's own address
      // shows where the network's name ends.
      const network = id.slice(0, id.length - attributes.address.length - 1);
      const known = tokens.get(baseId);
      return {
        /** Our name of the chain, or GeckoTerminal's if it is not one of ours. */
        chain: CHAIN_OF_NETWORK.get(network) ?? network,
        poolName: attributes.name,
        poolAddress: attributes.address,
        base: {
          address: baseId.slice(network.length + 1),
          symbol: known?.symbol ?? attributes.name.split(' / ')[0] ?? null,
          name: known?.name ?? null,
        },
        basePriceUsd: attributes.base_token_price_usd,
        baseChange24hPercent: attributes.price_change_percentage,
        volume24hUsd: attributes.volume_usd,
        liquidityUsd: attributes.reserve_in_usd,
      };
    });
    return pools.filter(({ chain, poolAddress, base }) =>
      [poolAddress, base.address].every((address) => isAddressLike(address, Object.hasOwn(NETWORKS, chain))),
    );
  });

/** A pool that people look at and trade in, with its base token. */
export type TrendingPool = z.output<typeof trending>[number];

const byAddress = z.record(z.string(), optionalWireNumber).optional();
const tokenPrices = z.looseObject({
  data: z.looseObject({
    attributes: z.looseObject({
      token_prices: z.record(z.string(), optionalWireNumber),
      market_cap_usd: byAddress,
      h24_volume_usd: byAddress,
      h24_price_change_percentage: byAddress,
    }),
  }),
});

/** GeckoTerminal: pools and tokens of decentralized exchanges. https://www.geckoterminal.com/dex-api */
export const geckoterminal = defineUpstream({
  name: 'geckoterminal',
  title: 'GeckoTerminal',
  baseUrl: 'https://api.geckoterminal.com/api/v2',
  licence: 'GeckoTerminal, link asked',
  terms: {
    commercialUse: 'agreement',
    note: 'Commercial use wants a plan or a link.',
    attribution: 'A link to GeckoTerminal',
    url: 'https://www.geckoterminal.com',
  },
  documentation: {
    at: 'https://apiguide.geckoterminal.com/faq',
    readOn: '2026-11-29',
  },
  key: 'none',
  // It allows 30 in any minute.
  requestsPerMinute: 20,
  burst: 10,
  open: (http) => ({
    /**
     * Pools that are trending now, strongest first, 20 a page; null when it does not know the chain.
     *
     * @param chain null for all chains
     * @param page from 1; pages past the end are empty
     */
    trendingPools: (chain: ChainName | null, page: number, window: TrendingWindow) =>
      http.find({
        path: chain === null ? '/networks/trending_pools' : `/networks/${NETWORKS[chain]}/trending_pools`,
        query: { include: 'base_token', page, duration: window },
        headers: ACCEPT,
        schema: trending,
        freshMs: 60_000,
        staleMs: 120_000,
      }),
    /** Price and figures of one token in USD; null when it is unknown. An unverified market cap is null. */
    async tokenPrice(chain: ChainName, address: string) {
      const reply = await http.find({
        path: `/simple/networks/${NETWORKS[chain]}/token_price/${encodeURIComponent(address)}`,
        query: { include_market_cap: true, include_24hr_vol: true, include_24hr_price_change: true },
        headers: ACCEPT,
        schema: tokenPrices,
        freshMs: 30_000,
        staleMs: 60_000,
      });
      const attributes = reply.value?.data.attributes;
      const of = (numbers: Readonly<Record<string, number | null>> | undefined) =>
        numbers?.[address] ?? numbers?.[address.toLowerCase()] ?? null;
      const priceUsd = of(attributes?.token_prices);
      const value =
        priceUsd === null
          ? null
          : {
              priceUsd,
              marketCapUsd: of(attributes?.market_cap_usd),
              volume24hUsd: of(attributes?.h24_volume_usd),
              change24hPercent: of(attributes?.h24_price_change_percentage),
            };
      return { ...reply, value };
    },
  }),
  probe: (api) => api.trendingPools('base', 1, '24h'),
});

/** Pins the version of the reply. */
const ACCEPT = { accept: 'application/json;version=20230302' };
