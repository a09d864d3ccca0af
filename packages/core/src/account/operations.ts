import { RECHARGE } from '../cards/operations.ts';
import { answered, bodyOf, type Described, KEY_REFUSED, KEYED, refused } from '../http/operation.ts';

const KEY_ANSWERED = { $ref: '#/components/responses/Key' };
const KEY_EXAMPLE = {
  success: true,
  keyPrefix: 'fbx_live_1a2',
  kind: 'trial',
  status: 'active',
  balanceUsd: '4.750000',
  caps: { perCallUsd: '1.000000', perDayUsd: null },
};

/** Its form is told once, in the description of the schema. */
const usd = { type: 'string' };
const cap = { type: ['string', 'null'], pattern: '^\\d+(\\.\\d{1,6})?$' };

/** The operations by which a key’s owner sees and changes its account. */
export const ACCOUNT_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/api/keys/me',
      operation: {
        operationId: 'getKey',
        tags: ['Free'],
        summary: 'What the presented key holds and has spent',
        security: KEYED,
        responses: {
          200: KEY_ANSWERED,
          401: KEY_REFUSED,
        },
      },
    },
    {
      method: 'PATCH',
      path: '/api/keys/me',
      operation: {
        operationId: 'updateKey',
        tags: ['Free'],
        summary: 'Sets label, spending caps or auto-recharge of the presented key',
        security: KEYED,
        requestBody: bodyOf(
          {
            label: { type: ['string', 'null'] },
            caps: { $ref: '#/components/schemas/Caps' },
            autoRecharge: RECHARGE,
          },
          [],
          { caps: { perCallUsd: '1.00', perDayUsd: '5.00' } },
        ),
        responses: {
          200: KEY_ANSWERED,
          400: refused('A cap is not an amount.'),
          401: KEY_REFUSED,
        },
      },
    },
    {
      method: 'DELETE',
      path: '/api/keys/me',
      operation: {
        operationId: 'revokeKey',
        tags: ['Free'],
        summary: 'Revokes the presented key for good',
        security: KEYED,
        responses: { 200: answered('Revoked', { success: true }), 401: KEY_REFUSED },
      },
    },
    {
      method: 'POST',
      path: '/api/keys/me/rotate',
      operation: {
        operationId: 'rotateKey',
        tags: ['Free'],
        summary: 'Replaces the presented key; the new one keeps the balance and is shown once',
        security: KEYED,
        responses: {
          200: answered('The new key', {
            success: true,
            apiKey: 'fbx_live_…',
            keyPrefix: 'fbx_live_3c4',
          }),
          401: KEY_REFUSED,
          409: refused('The key is not active any more.'),
          429: refused('The keys of the account were rotated as often as they may be in a day.'),
        },
      },
    },
  ],
  schemas: {
    Key: {
      type: 'object',
      description: 'What a key holds and has spent. Amounts are USD with six decimals.',
      properties: {
        success: { const: true },
        keyPrefix: { type: 'string' },
        label: { type: ['string', 'null'] },
        createdAt: { type: 'string', format: 'date-time' },
        expiresAt: { type: ['string', 'null'], format: 'date-time' },
        kind: { enum: ['trial', 'paid', 'grant'] },
        status: { type: 'string' },
        currency: { const: 'USD' },
        balanceUsd: usd,
        availableUsd: usd,
        reservedUsd: usd,
        spentUsd: usd,
        owedUsd: usd,
        frozenUsd: usd,
        autoRecharge: {
          type: 'object',
          properties: { enabled: { type: 'boolean' }, disabledReason: { type: ['string', 'null'] } },
        },
        caps: { $ref: '#/components/schemas/Caps' },
        spentTodayUsd: usd,
        spending: {
          type: 'array',
          description: 'By day (UTC) and service',
          items: {
            type: 'object',
            properties: {
              day: { type: 'string' },
              service: { type: 'string' },
              calls: { type: 'integer' },
              spentUsd: usd,
            },
          },
        },
      },
    },
    Caps: {
      type: 'object',
      description: 'USD; null lifts a cap',
      properties: { perCallUsd: cap, perDayUsd: cap },
    },
  },
  responses: {
    Key: answered('The key as it is now', KEY_EXAMPLE, { $ref: '#/components/schemas/Key' }),
  },
  untold: [{ path: '/keys', because: 'It is a page.' }],
} as const satisfies Described;
