import type { CatalogLine } from '@farebox/core/service/define';
import { text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { defineService } from '../define.ts';

const NEXT_SERVICES = 5;

export default defineService({
  path: 'first-call',
  name: 'First Paid Call',
  tag: 'Discovery',
  priceUsd: '0.05',
  mpp: true,
  featured: true,
  summary:
    'The cheapest way to see a payment work: confirms how it was paid and names services to call next.',
  keywords:
    'try test demo sample trial payment hello start begin first cheapest tutorial example learn beginner how paying works',
  input: z.object({
    agentId: text(200, 'A name for your agent, echoed').optional(),
  }),
  output: z.object({
    goldenPath: z.boolean().describe('Always true: this is the call to begin with'),
    sessionId: z.string().describe('Names this call'),
    payment: z
      .object({
        verified: z.boolean().describe('True when the price is reserved or paid'),
        amount: z.string().describe('Price in USD'),
        amountMicro: z.number().int().describe('Price in micro-USD'),
        rail: z.string().describe('How it was paid: credits, x402 or mpp'),
        payer: z.string().describe("The key's prefix, or the wallet"),
        chain: z.string().nullable().describe('Where it settles; null inside the ledger'),
        timestamp: z.string().describe('When (ISO 8601)'),
      })
      .describe('How this call was paid'),
    welcome: z.string().describe('A greeting'),
    agentId: z.string().nullable().describe('As asked; null where none was given'),
    nextServices: z
      .array(
        z.object({
          id: z.string().describe('Name of the service in its path'),
          name: z.string().describe('Name of the service'),
          price: z.string().describe('Price of a call'),
          endpoint: z.string().describe('Where to send it'),
          curl: z.string().describe('A command that calls it'),
        }),
      )
      .describe('What to call next: featured services first, then the cheapest'),
    catalog: z.string().describe('All services, with prices'),
    documentation: z.string().describe('Where to read more'),
  }),
  example: { agentId: 'my-agent' },
  async run({ agentId }, { call, catalog, baseUrl, nowMs }) {
    const cost = Number(call.priceMicros);
    return answer(
      {
        goldenPath: true,
        sessionId: `gp-${call.callId}`,
        payment: {
          // A service runs only after its price was reserved, so this is always true.
          verified: true,
          amount: `${usdOf(call.priceMicros)} USD`,
          amountMicro: cost,
          rail: call.rail,
          payer: call.payer,
          chain: call.network,
          timestamp: new Date(nowMs()).toISOString(),
        },
        welcome: 'Your payment works. Any service of the catalog is bought the same way.',
        agentId: agentId ?? null,
        nextServices: suggestions(catalog()).map(({ path, name, priceUsd, example }) => ({
          id: path,
          name,
          price: `${priceUsd} USD`,
          endpoint: `${baseUrl}/x402/${path}`,
          curl: `curl -X POST ${baseUrl}/x402/${path} -H 'X-API-KEY: <key>' -H 'Content-Type: application/json' -d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`,
        })),
        catalog: `${baseUrl}/x402/catalog`,
        documentation: `${baseUrl}/docs`,
      },
      { method: 'Answered by this server itself.' },
    );
  },
});

function suggestions(catalog: readonly CatalogLine[]): CatalogLine[] {
  return catalog
    .filter(({ path, available }) => available && path !== 'first-call')
    .toSorted((a, b) => Number(b.featured) - Number(a.featured) || Number(a.priceUsd) - Number(b.priceUsd))
    .slice(0, NEXT_SERVICES);
}

/** A price in USD to the cent, such as `0.01`. */
function usdOf(priceMicros: bigint): string {
  const cents = (priceMicros + 5_000n) / 10_000n;
  return `${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`;
}
