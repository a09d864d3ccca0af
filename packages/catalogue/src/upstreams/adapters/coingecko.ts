import type { ChainName } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { optionalWireNumber } from '../wire-number.ts';

/** CoinGecko’s name of a chain. */
export const PLATFORMS: Readonly<Record<ChainName, string>> = {
  ethereum: 'ethereum',
  base: 'base',
  polygon: 'polygon-pos',
  arbitrum: 'arbitrum-one',
  optimism: 'optimistic-ethereum',
  bsc: 'binance-smart-chain',
  solana: 'solana',
};

/** CoinGecko writes 0 for an unknown market cap or volume. */
const knownAmount = optionalWireNumber.transform((value) => (value === 0 ? null : value));

const market = z
  .looseObject({
    usd: optionalWireNumber,
    usd_market_cap: knownAmount,
    usd_24h_vol: knownAmount,
    usd_24h_change: optionalWireNumber,
    last_updated_at: z.number().nullish(),
  })
  .transform((wire) => ({
    priceUsd: wire.usd,
    marketCapUsd: wire.usd_market_cap,
    volume24hUsd: wire.usd_24h_vol,
    change24hPercent: wire.usd_24h_change,
    updatedAtMs: wire.last_updated_at == null ? null : wire.last_updated_at * 1_000,
  }));
const markets = z.record(z.string(), market);

/** What CoinGecko knows of a coin's market; null where it knows nothing. */
export type CoinMarket = z.output<typeof market>;

/** "$1,234,567.89" as a number; null for anything else. */
const dollarText = z.unknown().transform((value) => {
  if (typeof value !== 'string' || !/^\$[\d,]*\.?\d+$/.test(value)) return null;
  return Number(value.replace(/[$,]/g, ''));
});

const trending = z
  .looseObject({
    coins: z.array(
      z.looseObject({
        item: z.looseObject({
          id: z.string(),
          name: z.string(),
          symbol: z.string(),
          data: z
            .looseObject({
              price: z.unknown(),
              total_volume: dollarText,
              price_change_percentage_24h: z.looseObject({ usd: optionalWireNumber }).nullish(),
            })
            .nullish(),
        }),
      }),
    ),
  })
  .transform(({ coins }) =>
    coins.map(({ item }) => ({
      id: item.id,
      name: item.name,
      symbol: item.symbol,
      priceUsd: typeof item.data?.price === 'number' ? item.data.price : null,
      volume24hUsd: item.data?.total_volume ?? null,
      change24hPercent: item.data?.price_change_percentage_24h?.usd ?? null,
    })),
  );

const profile = z
  .looseObject({
    name: z.string(),
    sentiment_votes_up_percentage: z.number().min(0).max(100).nullish(),
  })
  .transform((wire) => ({ name: wire.name, votesUpPercent: wire.sentiment_votes_up_percentage ?? null }));

const MARKET_FIELDS = {
  vs_currencies: 'usd',
  include_market_cap: true,
  include_24hr_vol: true,
  include_24hr_change: true,
  include_last_updated_at: true,
};

/** Where the keys of paid plans are taken. */
const PLAN_HOST = 'pro-api.coingecko.com';

/** CoinGecko's public API, with or without a demo key. https://docs.coingecko.com/ */
export const coingecko = defineUpstream({
  name: 'coingecko',
  title: 'CoinGecko',
  baseUrl: 'https://api.coingecko.com/api/v3',
  licence: 'Data by CoinGecko; commercial use wants a paid plan',
  terms: {
    commercialUse: 'agreement',
    note: `A licence for commercial use comes with a paid plan. Its key is for UPSTREAM_COINGECKO_BASE_URL=https://${PLAN_HOST}/api/v3.`,
    attribution: 'Data by CoinGecko',
    url: 'https://www.coingecko.com/en/api_terms',
  },
  documentation: {
    at: 'https://github.com/coingecko/coingecko-api-oas/blob/83d7556/demo-api.json',
    readOn: '2026-11-29',
  },
  key: 'optional',
  keyFrom: 'https://www.coingecko.com/en/api/pricing',
  // A demo key and the key of a plan are for different addresses, and each is refused at the other's.
  authorize: (apiKey, baseUrl) => ({
    headers: { [new URL(baseUrl).hostname === PLAN_HOST ? 'x-cg-pro-api-key' : 'x-cg-demo-api-key']: apiKey },
  }),
  settings: {
    UPSTREAM_COINGECKO_REQUESTS_PER_MINUTE: {
      describe: 'How often it may be asked in a minute, where the plan of the key allows more than 30',
      required: false,
    },
  },
  requestsPerMinute: 30,
  open: (http) => ({
    /** The market of a coin by CoinGecko's id, such as `bitcoin`; null when it is unknown. */
    async coinMarket(id: string) {
      const reply = await http.get({
        path: '/simple/price',
        query: { ids: id, ...MARKET_FIELDS },
        schema: markets,
        freshMs: 60_000,
        staleMs: 120_000,
      });
      return { ...reply, value: reply.value[id] ?? null };
    },
    /** The market of a token by its contract; null when it is unknown. */
    async tokenMarket(chain: ChainName, address: string) {
      const reply = await http.find({
        path: `/simple/token_price/${PLATFORMS[chain]}`,
        query: { contract_addresses: address, ...MARKET_FIELDS },
        schema: markets,
        freshMs: 60_000,
        staleMs: 120_000,
      });
      return { ...reply, value: reply.value?.[address] ?? reply.value?.[address.toLowerCase()] ?? null };
    },
    /** A coin's name, and what its visitors vote today; null when it is unknown. */
    coinProfile: (id: string) =>
      http.find({
        path: `/coins/${encodeURIComponent(id)}`,
        query: {
          localization: false,
          tickers: false,
          market_data: false,
          community_data: false,
          developer_data: false,
        },
        schema: profile,
        freshMs: 600_000,
        staleMs: 600_000,
      }),
    /** What people searched for most in the last 24 hours, most first. */
    trendingCoins: () =>
      http.get({ path: '/search/trending', schema: trending, freshMs: 300_000, staleMs: 600_000 }),
  }),
  probe: (api) => api.coinMarket('bitcoin'),
});
