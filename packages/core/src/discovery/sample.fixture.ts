/** For tests: a small world to publish, with four services, of which one is not for sale and two are sold by MPP. */
import { z } from 'zod';
import { ACCOUNT_OPERATIONS } from '../account/operations.ts';
import { CARD_OPERATIONS } from '../cards/operations.ts';
import { CUSTODY_OPERATIONS } from '../custody/operations.ts';
import { KEY_OPERATIONS } from '../keys/operations.ts';
import { HEALTH_OPERATIONS } from '../operations/operations.ts';
import { RECEIPT_OPERATIONS } from '../rails/x402/operations.ts';
import { secretsOf } from '../secrets/secrets.ts';
import { definersFor, type Service } from '../service/define.ts';
import { chainName, isoDate, latitude, limit, longitude, text, tokenAddress } from '../service/fields.ts';
import { NO_FIGURES } from '../service/figures.ts';
import { TOPUP_OPERATIONS } from '../topup/operations.ts';
import { answer } from '../words/answer.ts';
import { createCardSigner } from './card-signature.ts';
import type { DiscoveryContext } from './context.ts';
import { DOCUMENT_OPERATIONS, MPP_DOCUMENTS, WALLET_DOCUMENTS } from './operations.ts';

const ABOUT_TAGS = {
  Discovery: 'Cheap calls that show whether paying works.',
  'Trading Intelligence': 'Tokens, wallets, gas and liquidity, from chains and markets.',
  'Satellite Intelligence': 'Air, water, ground and fires at a place.',
};
const { defineService } = definersFor<{ defillama: object }>({ costsMoney: () => false });

export const SAMPLE_SERVICES: readonly Service[] = [
  defineService({
    path: 'first-call',
    name: 'First Paid Call',
    tag: 'Discovery',
    priceUsd: '0.05',
    mpp: true,
    featured: true,
    summary: 'Proves that a key works and names good services to call next.',
    input: z.object({ agentId: text(100, 'Any name for the caller').optional() }),
    output: z.object({
      sessionId: z.string().describe('Id of this first call'),
      nextServices: z.array(z.object({ id: z.string(), price: z.number() })),
    }),
    example: { agentId: "Ada's agent" },
    run: async () => answer({ sessionId: 's', nextServices: [] }, { method: 'none' }),
  }),
  defineService({
    path: 'ping',
    name: 'Ping/Echo Service',
    tag: 'Discovery',
    priceUsd: '0.25',
    mpp: true,
    featured: true,
    summary: 'Echoes a message.',
    input: z.object({ message: text(500, 'Sent back as it is').default('pong') }),
    output: z.object({ echo: z.string(), servicesAvailable: z.int() }),
    example: {},
    run: async () => answer({ echo: 'pong', servicesAvailable: 4 }, { method: 'none' }),
  }),
  defineService({
    path: 'token-price',
    name: 'Token Price Feed',
    tag: 'Trading Intelligence',
    priceUsd: '0.25',
    summary: 'Spot price, 24 h change and volume, and market cap of a token.',
    input: z.object({ tokenAddress, chain: chainName, limit: limit(10, 50) }),
    output: z.object({
      price: z.number().describe('USD'),
      marketCap: z.number().nullable().describe('USD; null when no source knows it'),
      pools: z.array(z.object({ dex: z.string(), liquidityUsd: z.number() })),
    }),
    example: { tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', chain: 'base' },
    needs: ['defillama'],
    run: async () => answer({ price: 1, marketCap: null, pools: [] }, { method: 'none' }),
  }),
  defineService({
    path: 'sea-temperature',
    name: 'Sea Surface Temperature',
    tag: 'Satellite Intelligence',
    priceUsd: '10.00',
    summary: 'The temperature of the sea at a point.',
    input: z.object({
      lat: latitude,
      lon: longitude,
      date: isoDate.optional(),
      tokenAddress: tokenAddress.optional(),
      options: z.looseObject({ pattern: z.string().optional() }).optional(),
    }),
    output: z.object({ celsius: z.number().nullable() }),
    example: { lat: 43.5, lon: 7.1, options: { pattern: 'x' } },
    needs: ['defillama'],
    run: async () => answer({ celsius: null }, { method: 'none' }),
  }),
];

/** What the sample server has: no on-chain rail and no card. */
export function sampleContext(overrides: Partial<DiscoveryContext> = {}): DiscoveryContext {
  return {
    product: 'Farebox',
    tags: ABOUT_TAGS,
    shop: {
      name: "Ada's <Fares>",
      contactEmail: 'operator@farebox.test',
      logoUrl: 'https://pictures.test/logo.svg',
    },
    leftOut: ['left-out'],
    version: '0.1.0',
    baseUrl: 'https://farebox.test',
    sandbox: false,
    services: SAMPLE_SERVICES,
    availability: (service) =>
      service.path === 'sea-temperature'
        ? {
            available: false,
            reason: 'upstream_down',
            message: `${service.name} is not for sale now: the source is down.`,
            retryAfterMs: 20_000,
            chains: [],
          }
        : { available: true, reason: null, message: null, retryAfterMs: 0, chains: [] },
    figures: NO_FIGURES,
    rails: { x402: null, mpp: null },
    trial: { creditsUsd: '5.00', lifetimeDays: 7, onePerDays: 7 },
    cardCheckout: false,
    cardSigner: createCardSigner(secretsOf(['a secret of the sample, of no server at all'])),
    tiers: [{ amountUsd: 5, label: 'Intro' }],
    limits: { requestsPerMinute: 200, bodyBytes: 262_144 },
    routes: SAMPLE_ROUTES,
    nowMs: () => Date.UTC(2026, 0, 31, 12),
    described: () => [
      { ...CARD_OPERATIONS, offered: () => overrides.cardCheckout === true },
      ...[KEY_OPERATIONS, ACCOUNT_OPERATIONS, CUSTODY_OPERATIONS, HEALTH_OPERATIONS, DOCUMENT_OPERATIONS],
      ...[TOPUP_OPERATIONS, RECEIPT_OPERATIONS, WALLET_DOCUMENTS].map((each) => ({
        ...each,
        offered: () => (overrides.rails?.x402 ?? null) !== null,
      })),
      { ...MPP_DOCUMENTS, offered: () => (overrides.rails?.mpp ?? null) !== null },
    ],
    ...overrides,
  };
}

/** Every route of an app that serves the sample, the published documents among them. */
export const SAMPLE_ROUTES = [
  'GET /',
  'GET /docs',
  'GET /docs/:service',
  'GET /keys',
  'GET /openapi.json',
  'GET /openapi/:part',
  'GET /llms.txt',
  'GET /robots.txt',
  'GET /x402/catalog',
  'GET /x402/recipes/:service',
  'GET /x402/receipts/:id',
  'GET /x402/payment-manifest.json',
  'GET /.well-known/x402',
  'GET /.well-known/x402.json',
  'GET /api/wallets/:walletId',
  'POST /api/wallets/:walletId/export',
  'DELETE /api/wallets/:walletId',
  'GET /.well-known/agent-instructions.json',
  'GET /api/auth/capabilities',
  'GET /api/m2m/credits/trial',
  'POST /api/m2m/credits/checkout/session',
  'GET /api/m2m/credits/checkout/status/:sessionId',
  'POST /api/m2m/credits/purchase',
  'POST /api/m2m/credits/topup',
  'POST /api/sdk/demo-key',
  'POST /api/sdk/telemetry',
  'GET /api/keys/me',
  'PATCH /api/keys/me',
  'DELETE /api/keys/me',
  'POST /api/keys/me/rotate',
  'GET /health/live',
  'GET /health/ready',
  'GET /mpp/catalog',
  'GET /.well-known/mpp.json',
  'POST /x402/:service',
  'POST /mpp/:service',
  'POST /mcp',
  'POST /a2a',
  'GET /.well-known/agent-card.json',
  'GET /mcp/services',
  'GET /llms-full.txt',
].map((line) => {
  const [method = '', path = ''] = line.split(' ');
  return { method, path };
});
