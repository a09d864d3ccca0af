/** The legacy family, endpoint by endpoint: names, prices and fields as its clients know them. */
import { z } from 'zod';
import type { Service } from '../service/define.ts';
import { limit } from '../service/fields.ts';
import type { Shelf } from '../service/shelf.ts';
import { defineEndpoint, type LegacyEndpoint } from './endpoint.ts';

const number = z.number().nullable();
const words = z.string().nullable();

const NO_ADVICE = 'Information only, no investment advice.';

const gasPrices = defineEndpoint({
  path: 'gas-prices',
  service: 'gas-price-oracle',
  priceUsd: null,
  reads: z.object({
    gasPrices: z.array(
      z.object({ chain: z.string(), gasPriceGwei: number, standard: z.object({ usdTransfer: number }) }),
    ),
    unavailable: z.array(z.unknown()),
  }),
  async shape({ answered }) {
    const { gasPrices, unavailable } = await answered;
    return {
      gasPrices: gasPrices.map(({ chain, gasPriceGwei, standard: { usdTransfer } }) => ({
        chain,
        gasPrice: gasPriceGwei === null ? null : `${plain(gasPriceGwei)} Gwei`,
        gasPriceGwei,
        // The cost of a transfer of the chain's own coin.
        estimatedCostUSD: usdTransfer === null ? null : `$${plain(usdTransfer)}`,
      })),
      unavailable,
    };
  },
});

const tokenInfo = defineEndpoint({
  path: 'token-info',
  service: 'token-price',
  priceUsd: null,
  reads: z.object({
    price: z.number(),
    symbol: words,
    name: words,
    tokenAddress: words,
    chain: words,
    source: z.string(),
  }),
  async shape({ answered, beside }) {
    const { price, symbol, name, tokenAddress, chain, source } = await answered;
    // A coin that is found by its ticker has no single address, and so no decimals of a contract.
    const metadata =
      tokenAddress === null || chain === null
        ? null
        : await beside('token-metadata', { tokenAddress, chain }, z.object({ decimals: number }));
    const decimals = metadata?.decimals ?? null;
    return { token: { symbol, name, decimals, priceUSD: price, chain, tokenAddress, source } };
  },
});

const trending = defineEndpoint({
  path: 'trending',
  service: 'trending-tokens',
  priceUsd: null,
  narrowed: { limit: limit(10, 20) },
  reads: z.object({
    tokens: z.array(
      z.object({ rank: z.number(), symbol: words, name: words, priceUsd: number, change24h: number }),
    ),
  }),
  async shape({ answered }) {
    const { tokens } = await answered;
    return {
      trending: tokens.map(({ rank, symbol, name, priceUsd, change24h }) => ({
        rank,
        symbol,
        name,
        priceUSD: priceUsd,
        priceChange24h: change24h,
      })),
    };
  },
});

const instantWallet = defineEndpoint({
  path: 'instant-wallet',
  service: 'instant-agent-wallet',
  priceUsd: '1.00',
  reads: z.object({
    address: z.string(),
    chain: z.string(),
    chainId: number,
    privateKey: z.string(),
    createdAt: z.string(),
    fundingInstructions: z.object({ asset: z.string() }).loose(),
    warning: z.string(),
  }),
  async shape({ answered }) {
    const { address, chain, chainId, privateKey, createdAt, fundingInstructions, warning } = await answered;
    return {
      wallet: {
        // The server stores nothing that an id could refer to.
        id: null,
        address,
        network: chain,
        chainId,
        type: 'ephemeral',
        privateKey,
        createdAt,
        supportedTokens: [fundingInstructions.asset],
        fundingInstructions,
        warning,
      },
    };
  },
});

const arbitrageScanner = defineEndpoint({
  path: 'arbitrage-scanner',
  service: 'arbitrage-scanner',
  priceUsd: '1.25',
  defaults: { assets: 'ETH' },
  aliases: { token: 'assets', symbol: 'assets' },
  reads: z.object({
    opportunities: z.array(
      z.looseObject({
        asset: words.optional(),
        profitPercentage: number.optional(),
        estimatedProfit: number.optional(),
      }),
    ),
  }),
  async shape({ answered, input, nowMs }) {
    const { opportunities } = await answered;
    return {
      token: Array.isArray(input.assets) ? input.assets.join() : null,
      scanTime: new Date(nowMs()).toISOString(),
      opportunities: opportunities.map((each) => ({
        ...each,
        pair: each.asset ?? null,
        spread: each.profitPercentage ?? null,
        potentialProfit: each.estimatedProfit ?? null,
        confidence: null,
      })),
      totalOpportunitiesFound: opportunities.length,
    };
  },
});

const tradeSignals = defineEndpoint({
  path: 'trade-signals',
  service: 'trade-signals',
  priceUsd: '0.75',
  defaults: { token: 'ETH', timeframe: '4h' },
  aliases: { symbol: 'token' },
  reads: z.object({
    signal: z.string(),
    entry: z.number(),
    target: number,
    stopLoss: number,
    confidence: z.number(),
    votes: z.array(z.object({ because: z.string() })),
    token: z.string(),
    pair: z.string(),
    timeframe: z.string(),
    asOf: z.string(),
    disclaimer: z.string(),
  }),
  async shape({ answered }) {
    const { signal, entry, target, votes, token, ...rest } = await answered;
    return {
      signal: {
        symbol: token,
        action: signal,
        entryPrice: entry,
        targetPrice: target,
        reasoning: votes.map(({ because }) => because).join('; '),
        ...rest,
      },
    };
  },
});

const multiChainBalance = defineEndpoint({
  path: 'multi-chain-balance',
  service: 'multi-chain-balance',
  priceUsd: '0.50',
  aliases: { wallet: 'walletAddress', address: 'walletAddress' },
  reads: z.object({
    walletAddress: z.string(),
    balances: z.array(
      z.object({
        chain: z.string(),
        native: words,
        nativeSymbol: words,
        nativeUsd: number,
        tokens: z.array(z.unknown()),
        error: words,
      }),
    ),
    totalValueUsd: z.number(),
    totalIsPartial: z.boolean(),
  }),
  async shape({ answered }) {
    const { walletAddress, balances, totalValueUsd, totalIsPartial } = await answered;
    return {
      wallet: walletAddress,
      balances: balances.map(({ chain, native, nativeSymbol, nativeUsd, tokens, error }) => ({
        chain,
        nativeBalance: native,
        nativeSymbol,
        // The value of the native coin; each token has its own.
        usdValue: nativeUsd,
        tokens,
        error,
      })),
      totalValueUSD: totalValueUsd,
      totalIsPartial,
    };
  },
});

const walletAnalysis = defineEndpoint({
  path: 'wallet-analysis',
  service: 'wallet-risk',
  priceUsd: '0.50',
  defaults: { chain: 'base' },
  aliases: { address: 'walletAddress', wallet: 'walletAddress' },
  reads: z.object({
    riskScore: number,
    riskTier: words,
    complianceFlags: z.array(z.unknown()),
    recommendation: words.optional(),
  }),
  async shape({ answered, input: { walletAddress, chain }, beside }) {
    const holdings = z.object({ totalValueUsd: z.number(), holdings: z.array(z.unknown()) });
    const [risk, held] = await Promise.all([
      answered,
      beside('portfolio-tracker', { walletAddress, chains: [chain] }, holdings),
    ]);
    return {
      analysis: {
        address: walletAddress,
        chain,
        totalValueUSD: held?.totalValueUsd ?? null,
        riskScore: risk.riskScore,
        riskLevel: risk.riskTier,
        complianceFlags: risk.complianceFlags,
        holdings: held?.holdings ?? null,
        recommendations: typeof risk.recommendation === 'string' ? [risk.recommendation] : [],
        disclaimer: NO_ADVICE,
      },
    };
  },
});

const polymarket = defineEndpoint({
  path: 'polymarket',
  service: 'polymarket-search',
  // Twice the price of the search itself; the 402 states the price of the search too.
  priceUsd: '0.50',
  aliases: { q: 'query', search: 'query', topic: 'query' },
  reads: z.object({
    query: z.string().optional(),
    results: z.array(
      z.looseObject({ prices: z.array(z.unknown()).optional(), probability: number.optional() }),
    ),
  }),
  async shape({ answered, input }) {
    const { results } = await answered;
    return {
      query: input.query ?? null,
      markets: results.map((each) => {
        const first = each.prices?.[0];
        // A share of the first outcome pays 1 USD, so its price is the market's estimate of its probability.
        return { ...each, probability: each.probability ?? (typeof first === 'number' ? first : null) };
      }),
      disclaimer: NO_ADVICE,
    };
  },
});

const stockSentiment = sentiment('stock-sentiment', { ticker: 'symbol' });
const forexSentiment = sentiment('forex-sentiment', { symbol: 'pair' });

function sentiment(path: string, aliases: Record<string, string>): LegacyEndpoint {
  return defineEndpoint({
    path,
    service: path,
    priceUsd: '0.40',
    aliases,
    reads: z.looseObject({ data: z.record(z.string(), z.unknown()).optional() }),
    async shape({ answered }) {
      const { data, ...rest } = await answered;
      return { analysis: data ?? rest, disclaimer: NO_ADVICE };
    },
  });
}

/** The endpoints as the interface lists them. */
const LEGACY_ENDPOINTS: readonly LegacyEndpoint[] = [
  gasPrices,
  tokenInfo,
  trending,
  instantWallet,
  arbitrageScanner,
  tradeSignals,
  multiChainBalance,
  walletAnalysis,
  polymarket,
  stockSentiment,
  forexSentiment,
];

/** An endpoint with the service that it sells; null while the registry has no such service. */
export interface OpenEndpoint {
  endpoint: LegacyEndpoint;
  sold: Service | null;
  /** The service that it stands for, as `/x402/…` sells it. */
  twin: Service | null;
}

/**
 * The endpoints that this registry can serve. An endpoint opens as soon as its service exists.
 *
 * @throws when an endpoint does not fit its service
 */
function openEndpoints(services: readonly Service[]): readonly OpenEndpoint[] {
  const registry = new Map(services.map((service) => [service.path, service]));
  return LEGACY_ENDPOINTS.map((endpoint) => {
    const twin = registry.get(endpoint.service) ?? null;
    return { endpoint, twin, sold: twin === null ? null : endpoint.made(twin, registry) };
  });
}

/** The endpoints that can be served now: made once for each table of services. */
export function endpointsOn(shelf: Pick<Shelf, 'services'>): () => readonly OpenEndpoint[] {
  let made: { services: readonly Service[]; endpoints: readonly OpenEndpoint[] } | null = null;
  return () => {
    const { services } = shelf;
    if (made?.services !== services) made = { services, endpoints: openEndpoints(services) };
    return made.endpoints;
  };
}

/** A number with as many digits as are meaningful, never in exponential notation. */
function plain(value: number): string {
  if (value === 0) return '0';
  const places = Math.max(2, 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 18));
}
