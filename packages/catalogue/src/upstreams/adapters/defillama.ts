import type { ChainName } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { defineUpstream } from '../define.ts';

const current = z.looseObject({
  coins: z.record(
    z.string(),
    z.looseObject({
      symbol: z.string(),
      price: z.number().positive(),
      /** Seconds since 1970. */
      timestamp: z.number(),
      confidence: z.number().optional(),
      decimals: z.number().int().optional(),
    }),
  ),
});
const percentage = z.looseObject({ coins: z.record(z.string(), z.number()) });
const chart = z.looseObject({
  coins: z.record(
    z.string(),
    z.looseObject({
      symbol: z.string().optional(),
      confidence: z.number().optional(),
      /** Timestamps in seconds since 1970, oldest first. */
      prices: z.array(z.looseObject({ timestamp: z.number(), price: z.number().positive() })),
    }),
  ),
});

/** DefiLlama's name of a token. Its chains have the same names as ours. EVM addresses are keyed in lower case. */
export function llamaToken(chain: ChainName, address: string): string {
  return `${chain}:${chain === 'solana' ? address : address.toLowerCase()}`;
}

/**
 * DefiLlama's price service. Coins are named `<chain>:<address>` or `coingecko:<id>`. Unknown coins are absent from the
 * reply. https://api-docs.defillama.com/
 */
export const defillama = defineUpstream({
  name: 'defillama',
  title: 'DefiLlama',
  baseUrl: 'https://coins.llama.fi',
  licence: 'DefiLlama, credit asked',
  terms: {
    commercialUse: 'allowed',
    note: null,
    attribution: 'DefiLlama',
    url: 'https://defillama.com/docs/api',
  },
  documentation: {
    at: 'https://github.com/DefiLlama/api-docs/blob/3a45e4e54/defillama-openapi-free.json',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 240,
  open: (http) => ({
    /** Current USD prices, keyed by the names asked for; unknown coins are missing. */
    currentPrices: (coins: readonly string[]) =>
      http.get({
        path: `/prices/current/${coins.map(encodeURIComponent).join(',')}`,
        query: { searchWidth: '4h' },
        schema: current,
        freshMs: 30_000,
        staleMs: 60_000,
      }),
    /** Change over the last 24 hours in percent, keyed by the names asked for; unknown coins are missing. */
    changes24h: (coins: readonly string[]) =>
      http.get({
        path: `/percentage/${coins.map(encodeURIComponent).join(',')}`,
        query: { period: '24h', lookForward: false },
        schema: percentage,
        freshMs: 60_000,
        staleMs: 120_000,
      }),
    /**
     * USD prices at even steps, oldest first; null when the coin is unknown. A step without a recorded price nearby is
     * missing, and a point may be up to a tenth of a step away from its time.
     *
     * @param startMs the first step; keep it the same between calls, or nothing is ever answered from the cache
     */
    async priceChart(coin: string, startMs: number, count: number, period: '1h' | '1d') {
      const reply = await http.get({
        path: `/chart/${encodeURIComponent(coin)}`,
        query: { start: Math.floor(startMs / 1_000), span: count, period },
        schema: chart,
        freshMs: period === '1d' ? 3_600_000 : 600_000,
        staleMs: 600_000,
      });
      const points = reply.value.coins[coin]?.prices ?? null;
      const value =
        points?.map(({ timestamp, price }) => ({ atMs: timestamp * 1_000, priceUsd: price })) ?? null;
      return { ...reply, value };
    },
  }),
  probe: (api) => api.currentPrices(['coingecko:bitcoin']),
});
