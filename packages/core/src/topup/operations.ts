import { ABOUT_CREDITS, bodyOf, CREDITS_TAG, type Described, KEYED, REFUSED } from '../http/operation.ts';
import { BOUGHT, TIER } from '../keys/credit-operations.ts';

/** Credit for USDC. */
export const TOPUP_OPERATIONS = {
  tags: ABOUT_CREDITS,
  operations: [
    {
      method: 'POST',
      path: '/api/m2m/credits/topup',
      operation: {
        operationId: 'topUpCredits',
        tags: [CREDITS_TAG],
        summary: 'Buys credit with USDC: a new key, or credit for the presented one',
        security: [{}, ...KEYED],
        requestBody: bodyOf(
          { amountUsd: TIER, claimSecret: { type: 'string', minLength: 16, maxLength: 128 } },
          ['amountUsd'],
          { amountUsd: 10 },
        ),
        responses: {
          200: BOUGHT,
          400: REFUSED,
          402: { $ref: '#/components/responses/402' },
        },
      },
    },
  ],
  untold: [
    {
      path: '/api/m2m/credits/topup*',
      because: 'A GET tells the price, and each tier has an address of its own.',
    },
  ],
} as const satisfies Described;
