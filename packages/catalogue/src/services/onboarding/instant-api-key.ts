import { nameText } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { defineService } from '../define.ts';

const PRICE_USD = '1.00';

export default defineService({
  path: 'instant-api-key',
  name: 'Instant API Key',
  tag: 'Onboarding',
  priceUsd: PRICE_USD,
  summary: 'A new API key that holds what you pay: 1 USD of credit for any service.',
  keywords:
    'buy purchase get sign up register account credential access token credits prepaid balance top up new key subscription onboarding',
  input: z.object({
    name: nameText(100, 'A name for the key, shown to its owner').optional(),
  }),
  output: z.object({
    api_key: z.string().describe('The key: send it in X-API-KEY. Save it now'),
    apiKey: z.string().describe('The same as api_key'),
    key_prefix: z.string().describe('Its first 12 characters, which are no secret'),
    keyPrefix: z.string().describe('The same as key_prefix'),
    key_id: z.string().describe('Names the purchase to the operator'),
    keyId: z.string().describe('The same as key_id'),
    user_id: z.null().describe('Always null: a key is its own account'),
    userId: z.null().describe('Always null'),
    starter_credits: z.number().describe('What the key holds, in USD: what was paid'),
    starterCredits: z.number().describe('The same as starter_credits'),
    credits_note: z.string().describe('Where its credit comes from, and whether it ends'),
    expires_at: z
      .string()
      .nullable()
      .describe('When its credit ends (ISO 8601): of trial credit with the trial, of other never: null'),
    payment: z
      .object({
        chain: z.string().nullable().describe('Where it settles; null inside the ledger'),
        token: z.string().describe('"USDC", or "credits"'),
        amount_paid: z.string().describe('In USD'),
        tx_hash: z.null().describe('Null: the receipt stands in the headers of this answer'),
      })
      .describe('How it was paid'),
    message: z.string().describe('What to do now'),
    usage: z
      .object({
        base_url: z.string().describe('Where services are'),
        example: z.string().describe('A command that uses the key'),
        docs: z.string().describe('Where to read more'),
      })
      .describe('How to use it'),
    requestId: z.string().describe('Names this call'),
  }),
  example: { name: 'my-agent' },
  aliases: { label: 'name', keyName: 'name' },
  requires: ['keySales'],
  effect: 'write',
  secretAnswer: true,
  async run({ name }, { keySales, call, baseUrl }) {
    const { apiKey, prefix, trial } = await keySales.keyFor({
      callId: call.callId,
      label: name ?? null,
      amountMicros: call.priceMicros,
    });
    const trialEndsAt = trial === null ? null : new Date(trial.endsAtMs).toISOString();
    const expiresAt = trial?.isAll === true ? trialEndsAt : null;
    const holds = Number(PRICE_USD);
    return answer(
      {
        api_key: apiKey,
        apiKey,
        key_prefix: prefix,
        keyPrefix: prefix,
        key_id: call.callId,
        keyId: call.callId,
        user_id: null,
        userId: null,
        starter_credits: holds,
        starterCredits: holds,
        credits_note:
          trial === null
            ? 'What was paid for the key is its credit. It does not expire.'
            : `What was paid for the key is its credit. ${trial.isAll ? 'It' : `Of it ${trial.usd} USD`} was trial credit and stays it, until ${trialEndsAt}.`,
        expires_at: expiresAt,
        payment: {
          chain: call.network,
          token: call.rail === 'credits' ? 'credits' : 'USDC',
          amount_paid: PRICE_USD,
          tx_hash: null,
        },
        message:
          'Save this key now. The same request with the same payment shows it again for a while; nothing else does.',
        usage: {
          base_url: `${baseUrl}/x402`,
          example: `curl -X POST ${baseUrl}/x402/ping -H 'X-API-KEY: ${apiKey}' -H 'Content-Type: application/json' -d '{}'`,
          docs: `${baseUrl}/docs`,
        },
        requestId: call.callId,
      },
      {
        method:
          'A key from the system’s random generator; what was paid moves to it with the call’s capture.',
        notes: ['More credit can be bought for it, by card or with USDC, without its changing.'],
      },
    );
  },
});
