/** The services of this door: credit, one service for each amount. They are in no catalog. */
import { z } from 'zod';
import { newApiKey } from '../keys/api-key.ts';
import { CREDIT_TIERS, type CreditTier } from '../keys/credit-tiers.ts';
import { defineService, type Service } from '../service/define.ts';
import { answer } from '../words/answer.ts';
import type { Topups } from './topups.ts';

export const NEW_KEY = 'a new key';
/** The account to credit, as a payment is bound to it. Only the route writes it. */
export type CreditTo = `account:${bigint}` | typeof NEW_KEY;

const creditTo = z.union([
  z
    .string()
    .regex(/^account:\d+$/)
    .transform((text) => ({ accountId: BigInt(text.slice('account:'.length)) })),
  z.literal(NEW_KEY).transform(() => ({ accountId: null })),
]);

const output = z.object({
  amountUsd: z.number().describe('What was paid, in USDC.'),
  creditsAdded: z.number().describe('What was credited, in USD.'),
  currency: z.literal('USD'),
  tier: z.string(),
  newKey: z
    .boolean()
    .describe('Whether a key was made; otherwise the account of the presented key was credited.'),
  apiKey: z.string().nullable(),
  keyPrefix: z.string().nullable(),
  usage: z.object({
    header: z.string(),
    alternativeHeader: z.string(),
    balance: z.string(),
    catalogUrl: z.string(),
  }),
  note: z.string(),
});

export const claimSecret = z
  .string()
  .min(16)
  .max(128)
  .describe('Without a key: a secret of your own, with which alone the answer can be asked for again.');

/** The service that sells this much credit; its path goes below `/api/m2m`. */
function topupService(tier: CreditTier, topups: Topups): Service {
  const { amountUsd } = tier;
  return defineService({
    path: `credits/topup/${amountUsd}`,
    name: `${amountUsd} USD of credit`,
    tag: 'Onboarding',
    priceUsd: `${amountUsd}.00`,
    summary: `${amountUsd} USD of prepaid credit for the API key that is presented, or for a new key in the answer.`,
    // A loose object, because the route adds what the payment is bound to. A caller cannot send those fields.
    input: z.looseObject({
      amountUsd: z.literal(amountUsd).describe('USD to buy.'),
      claimSecret: claimSecret.optional(),
    }),
    output,
    example: { amountUsd },
    secretAnswer: ({ creditTo }) => creditTo === NEW_KEY,
    effect: 'read',
    timeoutMs: 10_000,
    async run(input, { call, baseUrl }) {
      const { accountId } = creditTo.parse(input.creditTo);
      const bucket = topups.newBucket();
      const beneficiary = accountId === null ? { newKey: newApiKey(bucket), bucket } : { accountId };
      await topups.intend(call.callId, beneficiary, call.priceMicros);
      const key = beneficiary.newKey ?? null;
      return answer(
        {
          amountUsd,
          creditsAdded: amountUsd,
          currency: 'USD' as const,
          tier: tier.label,
          newKey: key !== null,
          apiKey: key?.apiKey ?? null,
          keyPrefix: key?.prefix ?? null,
          usage: {
            header: 'X-API-KEY',
            alternativeHeader: 'Authorization: Bearer <key>',
            balance: `${baseUrl}/api/keys/me`,
            catalogUrl: `${baseUrl}/x402/catalog`,
          },
          note:
            key === null
              ? 'The account of the key that was presented has the credit.'
              : 'Save this key now. The same request with the same payment shows it again for a while; nothing else does.',
        },
        { method: 'Credit of the same amount, granted once the payment has settled.' },
      );
    },
  });
}

export function topupServices(topups: Topups): readonly { tier: CreditTier; service: Service }[] {
  return CREDIT_TIERS.map((tier) => ({ tier, service: topupService(tier, topups) }));
}
