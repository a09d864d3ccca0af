/** The operations that cost nothing, as OpenAPI describes them. A document shows those that the app serves. */

import { CREDIT_TIERS } from '../keys/credit-tiers.ts';

interface FreeOperation {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  /** About one way to pay: shown while that is on. */
  rail?: 'x402' | 'mpp' | 'cards';
  operation: Readonly<Record<string, unknown>>;
}

const KEYED = [{ ApiKeyHeader: [] }, { BearerKey: [] }];
/** Of a managed wallet: who holds its secret, or a key of the account that paid. */
const OWNER = [{ WalletSecret: [] }, ...KEYED];

/** An error of the usual shape whose status says all. */
const REFUSED = { $ref: '#/components/responses/Refused' };

/** The same, with a description of its own (OpenAPI 3.1 lets a reference have one). */
function refused(description: string) {
  return { ...REFUSED, description };
}

function answered(description: string, example: unknown, schema?: object) {
  const shape = schema === undefined ? {} : { schema };
  return { description, content: { 'application/json': { ...shape, example } } };
}

const KEY_REFUSED = { $ref: '#/components/responses/KeyRefused' };
const KEY_ANSWERED = { $ref: '#/components/responses/Key' };
const SERVICE_PARAMETER = {
  name: 'service',
  in: 'path',
  required: true,
  description: "The service's id",
  schema: { type: 'string' },
  example: 'ping',
};

const WALLET_PARAMETER = {
  name: 'walletId',
  in: 'path',
  required: true,
  schema: { type: 'string', format: 'uuid' },
};
const WALLET_EXAMPLE = {
  success: true,
  walletId: '0b5f2c1e-…',
  addresses: [{ network: 'base', address: '0x…' }],
  status: 'active',
  custodyType: 'managed',
};

export const CREDITS_TAG = 'Credits';
const TIER = { enum: CREDIT_TIERS.map(({ amountUsd }) => amountUsd) };
const BOUGHT = answered('Bought', { apiKey: 'fbx_live_…', creditsAdded: 10 });
const EMAIL = { type: 'string', format: 'email' };
const RECHARGE = {
  type: 'object',
  properties: {
    enabled: { type: 'boolean' },
    thresholdUsd: { type: 'number' },
    topUpUsd: { type: 'number' },
  },
};

function bodyOf(properties: object, required: readonly string[], example: object) {
  const schema = { type: 'object', properties, required };
  return { required: true, content: { 'application/json': { schema, example } } };
}

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

/** Component schemas that the free operations refer to. */
export const FREE_SCHEMAS = {
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
      autoRecharge: { type: 'object' },
      caps: { $ref: '#/components/schemas/Caps' },
      spentTodayUsd: usd,
      spending: { type: 'array', items: { type: 'object' } },
    },
  },
  Caps: {
    type: 'object',
    description: 'USD; null lifts a cap',
    properties: { perCallUsd: cap, perDayUsd: cap },
  },
} as const;

/** Component responses that the free operations refer to. */
export const FREE_RESPONSES = {
  Refused: {
    description: 'Refused',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  },
  KeyRefused: refused('The key is missing, unknown, revoked or expired.'),
  Key: answered('The key as it is now', KEY_EXAMPLE, { $ref: '#/components/schemas/Key' }),
  Wallet: answered('The wallet, without its key', WALLET_EXAMPLE),
} as const;

export const FREE_OPERATIONS: readonly FreeOperation[] = [
  {
    method: 'POST',
    path: '/api/m2m/credits/checkout/session',
    rail: 'cards',
    operation: {
      operationId: 'openCheckout',
      tags: [CREDITS_TAG],
      summary: 'A page on which a person buys a key by card, or credit for the presented one',
      security: [{}, ...KEYED],
      requestBody: bodyOf(
        { amountUsd: TIER, email: EMAIL, keyName: { type: 'string' }, autoRecharge: RECHARGE },
        ['amountUsd'],
        { amountUsd: 10 },
      ),
      responses: {
        200: answered('Where to pay', { sessionId: 'cs_…', checkoutUrl: 'https://…', retrievalToken: '…' }),
        400: REFUSED,
      },
    },
  },
  {
    method: 'GET',
    path: '/api/m2m/credits/checkout/status/{sessionId}',
    rail: 'cards',
    operation: {
      operationId: 'getCheckout',
      tags: [CREDITS_TAG],
      summary: 'Whether it is paid; delivers the key, once',
      security: [],
      parameters: [
        { name: 'sessionId', in: 'path', required: true, schema: { type: 'string' } },
        {
          name: 'token',
          in: 'query',
          required: true,
          schema: { type: 'string' },
          description: 'retrievalToken',
        },
      ],
      responses: {
        200: answered('Its state', { status: 'paid', keyReady: true, apiKey: 'fbx_live_…' }),
        401: REFUSED,
        403: REFUSED,
      },
    },
  },
  {
    method: 'POST',
    path: '/api/m2m/credits/purchase',
    rail: 'cards',
    operation: {
      operationId: 'purchaseCredits',
      tags: [CREDITS_TAG],
      summary: 'Charges a card of yours: a new key, or credit for the presented one',
      security: [{}, ...KEYED],
      requestBody: bodyOf(
        {
          paymentMethodId: { type: 'string' },
          amountUsd: TIER,
          idempotencyKey: { type: 'string', format: 'uuid' },
          email: EMAIL,
          keyName: { type: 'string' },
        },
        ['paymentMethodId', 'amountUsd', 'idempotencyKey'],
        { paymentMethodId: 'pm_…', amountUsd: 10, idempotencyKey: '5b0e…' },
      ),
      responses: {
        200: BOUGHT,
        400: refused(
          'What is wrong is told by field; or the card provider does not take this paymentMethodId.',
        ),
        402: refused('Declined, or a person must confirm it: use the checkout.'),
        409: refused(
          'IDEMPOTENCY_KEY_REUSED: it names another purchase. PURCHASE_IN_PROGRESS: ask again with the same one.',
        ),
        429: refused('This card or network has bought, or been declined, as often as it may.'),
        503: refused('Not known yet: ask again with the same idempotencyKey.'),
      },
    },
  },
  {
    method: 'POST',
    path: '/api/m2m/credits/topup',
    rail: 'x402',
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
  {
    method: 'GET',
    path: '/api/auth/capabilities',
    operation: {
      operationId: 'getCapabilities',
      tags: ['Free'],
      summary: 'The ways to pay that work now, and how to get a key',
      security: [],
      responses: {
        200: answered('Capabilities', { authModes: [{ mode: 'api_key', header: 'X-API-KEY' }] }),
      },
    },
  },
  {
    method: 'GET',
    path: '/api/m2m/credits/trial',
    operation: {
      operationId: 'getTrialKey',
      tags: ['Free'],
      summary: 'A free key with credits, shown once',
      security: [],
      responses: {
        200: answered('The key. It cannot be shown again.', {
          success: true,
          apiKey: 'fbx_live_…',
          credits: 5,
          expiresIn: '7 days',
        }),
        403: refused('The caller has an internal address.'),
        429: refused('This address, or its network, has claimed its keys already.'),
        503: refused('All trials of today are given out: `TRIALS_TEMPORARILY_DISABLED`, until midnight UTC.'),
      },
    },
  },
  {
    method: 'POST',
    path: '/api/sdk/demo-key',
    operation: {
      operationId: 'createDemoKey',
      tags: ['Free'],
      summary: 'A trial key for an installed SDK, by the same terms',
      security: [],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              properties: {
                installId: { type: 'string', minLength: 8, maxLength: 64 },
                sdkType: { type: 'string' },
              },
              required: ['installId', 'sdkType'],
            },
            example: { installId: 'mcp-0123456789abcdef', sdkType: 'python-mcp' },
          },
        },
      },
      responses: {
        200: answered('The key', {
          success: true,
          api_key: 'fbx_live_…',
          credits_remaining: 5,
          status: 'new',
        }),
        400: REFUSED,
        403: refused('The caller has an internal address.'),
        429: refused('Too many keys for this installation or address.'),
        503: refused('All trials of today are given out. A key that is replaced costs none.'),
      },
    },
  },
  {
    method: 'POST',
    path: '/api/sdk/telemetry',
    operation: {
      operationId: 'sendTelemetry',
      tags: ['Free'],
      summary: 'What an SDK reports of its use; optional',
      security: [],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              properties: { installId: { type: 'string' }, event: { type: 'string' } },
            },
            example: { installId: 'mcp-0123456789abcdef', event: 'usage' },
          },
        },
      },
      responses: {
        202: answered('Received and forgotten: nothing is stored', { success: true }),
        400: REFUSED,
      },
    },
  },
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
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              properties: {
                label: { type: ['string', 'null'] },
                caps: { $ref: '#/components/schemas/Caps' },
                autoRecharge: RECHARGE,
              },
            },
            example: { caps: { perCallUsd: '1.00', perDayUsd: '5.00' } },
          },
        },
      },
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
      },
    },
  },
  {
    method: 'GET',
    path: '/x402/catalog',
    operation: {
      operationId: 'getCatalog',
      tags: ['Free'],
      summary: 'Every service with its price and availability',
      security: [],
      responses: {
        200: answered('The catalog', {
          currency: 'USD',
          services: [{ id: 'ping', path: '/x402/ping', priceUSD: 0.25, available: true }],
        }),
      },
    },
  },
  {
    method: 'GET',
    path: '/x402/recipes/{service}',
    operation: {
      operationId: 'getRecipe',
      tags: ['Free'],
      summary: 'How to buy one service: calls to paste, schemas, errors',
      security: [],
      parameters: [SERVICE_PARAMETER],
      responses: {
        200: answered('The recipe', { service: 'ping', method: 'POST', priceUsd: '0.25' }),
        404: REFUSED,
      },
    },
  },
  {
    method: 'GET',
    path: '/x402/receipts/{id}',
    rail: 'x402',
    operation: {
      operationId: 'getReceipt',
      tags: ['Free'],
      summary: 'What became of a payment on a chain',
      security: [],
      parameters: [
        {
          name: 'id',
          in: 'path',
          required: true,
          description: 'X-Call-Id of the answer, or the id that an error named',
          schema: { type: 'string', format: 'uuid' },
        },
      ],
      responses: {
        200: answered(
          'The receipt',
          {
            id: '01a1fe1f-…',
            service: 'ping',
            status: 'delivered',
            transaction: '0x…',
            final: false,
          },
          {
            type: 'object',
            properties: {
              status: {
                enum: [
                  ...['settling', 'delivered', 'not_charged', 'paid_not_delivered'],
                  ...['refund_owed', 'refunded', 'lost'],
                ],
              },
              transaction: { type: ['string', 'null'] },
              final: { type: 'boolean', description: 'Deep enough in the chain to stay' },
            },
          },
        ),
        404: REFUSED,
      },
    },
  },
  {
    method: 'GET',
    path: '/api/wallets/{walletId}',
    operation: {
      operationId: 'getWallet',
      tags: ['Free'],
      summary: 'The addresses and the state of a managed wallet',
      security: [],
      parameters: [WALLET_PARAMETER],
      responses: { 200: { $ref: '#/components/responses/Wallet' }, 404: REFUSED },
    },
  },
  {
    method: 'POST',
    path: '/api/wallets/{walletId}/export',
    operation: {
      operationId: 'exportWallet',
      tags: ['Free'],
      summary: 'The private keys of a managed wallet, for its owner',
      security: OWNER,
      parameters: [WALLET_PARAMETER],
      responses: {
        200: answered('The keys', {
          success: true,
          walletId: '0b5f2c1e-…',
          keys: [{ networks: ['base'], address: '0x…', privateKey: '0x…' }],
        }),
        401: REFUSED,
        403: refused('The credential is not that of the owner.'),
        404: REFUSED,
        410: refused('The wallet was deleted, and its key with it.'),
      },
    },
  },
  {
    method: 'DELETE',
    path: '/api/wallets/{walletId}',
    operation: {
      operationId: 'deleteWallet',
      tags: ['Free'],
      summary: 'Destroys the key of a managed wallet for good',
      security: OWNER,
      parameters: [WALLET_PARAMETER],
      responses: {
        200: { $ref: '#/components/responses/Wallet' },
        401: REFUSED,
        403: refused('The credential is not that of the owner.'),
        404: REFUSED,
      },
    },
  },
  {
    method: 'GET',
    path: '/x402/payment-manifest.json',
    rail: 'x402',
    operation: {
      operationId: 'getPaymentManifest',
      tags: ['Free'],
      summary: 'To whom a wallet pays, in what, and how much for each service',
      security: [],
      responses: {
        200: answered('The manifest', {
          protocol: 'x402',
          x402Version: 2,
          network: 'eip155:8453',
          resources: [{ id: 'ping', priceMicro: '250000' }],
        }),
        404: REFUSED,
      },
    },
  },
  {
    method: 'GET',
    path: '/mpp/catalog',
    rail: 'mpp',
    operation: {
      operationId: 'getMppCatalog',
      tags: ['Free'],
      summary: 'What MPP buys below /mpp/, with amounts',
      security: [],
      responses: {
        200: answered('The catalog', {
          protocol: 'mpp',
          services: [{ id: 'ping', path: '/mpp/ping', amount: '0.25', currency: 'USD' }],
        }),
        404: REFUSED,
      },
    },
  },
  {
    method: 'GET',
    path: '/health/live',
    operation: {
      operationId: 'getLive',
      tags: ['Free'],
      summary: 'Whether the process runs',
      security: [],
      responses: { 200: answered('It runs', { status: 'ok' }) },
    },
  },
  {
    method: 'GET',
    path: '/health/ready',
    operation: {
      operationId: 'getReady',
      tags: ['Free'],
      summary: 'Whether calls can be taken now',
      security: [],
      responses: { 200: answered('Ready', { status: 'ok' }), 503: { description: 'Not ready' } },
    },
  },
];
