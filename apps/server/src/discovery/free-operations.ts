/** The operations that cost nothing, as OpenAPI describes them. A document shows those that the app serves. */

interface FreeOperation {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  operation: Readonly<Record<string, unknown>>;
}

const KEYED = [{ ApiKeyHeader: [] }, { BearerKey: [] }];

function refused(description: string) {
  return { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } };
}

function answered(description: string, example: unknown, schema: object = { type: 'object' }) {
  return { description, content: { 'application/json': { schema, example } } };
}

const KEY_REFUSED = refused('The key is missing, unknown, revoked or expired.');
const SERVICE_PARAMETER = {
  name: 'service',
  in: 'path',
  required: true,
  description: "The service's id",
  schema: { type: 'string' },
  example: 'ping',
};

const KEY_EXAMPLE = {
  success: true,
  keyPrefix: 'fbx_live_1a2',
  label: null,
  createdAt: '2026-01-05T09:00:00.000Z',
  expiresAt: '2026-01-12T09:00:00.000Z',
  kind: 'trial',
  status: 'active',
  currency: 'USD',
  balanceUsd: '4.750000',
  availableUsd: '4.750000',
  reservedUsd: '0.000000',
  spentUsd: '0.250000',
  caps: { perCallUsd: '1.000000', perDayUsd: null },
  spentTodayUsd: '0.250000',
  spending: [{ day: '2026-01-05', service: 'ping', calls: 1, spentUsd: '0.250000' }],
};

const usd = { type: 'string', pattern: '^\\d+\\.\\d{6}$' };
const cap = {
  type: ['string', 'null'],
  pattern: '^\\d+(\\.\\d{1,6})?$',
  description: 'USD; null lifts the cap',
};

/** Component schemas that the free operations refer to. */
export const FREE_SCHEMAS = {
  Key: {
    type: 'object',
    description: 'What a key holds and has spent. Amounts are USD with six decimals.',
    properties: {
      success: { const: true },
      keyPrefix: { type: 'string', description: 'The first characters of the key, safe to show' },
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
      caps: { $ref: '#/components/schemas/Caps' },
      spentTodayUsd: usd,
      spending: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            day: { type: 'string', format: 'date' },
            service: { type: 'string' },
            calls: { type: 'integer' },
            spentUsd: usd,
          },
        },
      },
    },
  },
  Caps: { type: 'object', properties: { perCallUsd: cap, perDayUsd: cap } },
} as const;

export const FREE_OPERATIONS: readonly FreeOperation[] = [
  {
    method: 'GET',
    path: '/api/auth/capabilities',
    operation: {
      operationId: 'getCapabilities',
      tags: ['Free'],
      summary: 'The ways to pay that work now, and how to get a key',
      security: [],
      responses: {
        200: answered('Capabilities', {
          authModes: [
            { mode: 'api_key', header: 'X-API-KEY', alternativeHeader: 'Authorization: Bearer <key>' },
          ],
        }),
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
        200: answered(
          'The key. It cannot be shown again.',
          {
            success: true,
            apiKey: 'fbx_live_<64 hex characters>',
            keyPrefix: 'fbx_live_1a2',
            credits: 5,
            currency: 'USD',
            expiresIn: '7 days',
          },
          {
            type: 'object',
            properties: {
              success: { type: 'boolean' },
              apiKey: { type: 'string' },
              keyPrefix: { type: 'string' },
              credits: { type: 'number', description: 'USD' },
              currency: { const: 'USD' },
              serviceCalls: { type: 'string' },
              expiresIn: { type: 'string' },
              usage: { type: 'object' },
              upgradeAt: { type: 'string' },
              note: { type: 'string' },
            },
            required: ['success', 'apiKey'],
          },
        ),
        403: refused('The caller has an internal address.'),
        429: refused('This address has claimed its key already.'),
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
          api_key: 'fbx_live_<64 hex characters>',
          credits_remaining: 5,
          status: 'new',
        }),
        400: refused('A field is missing or malformed.'),
        403: refused('The caller has an internal address.'),
        429: refused('Too many keys for this installation or address.'),
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
              properties: {
                installId: { type: 'string' },
                sdkType: { type: 'string' },
                sdkVersion: { type: 'string' },
                event: { type: 'string' },
                environment: { type: 'object' },
              },
            },
            example: {
              installId: 'mcp-0123456789abcdef',
              sdkType: 'python-mcp',
              sdkVersion: '1.2.0',
              event: 'usage',
            },
          },
        },
      },
      responses: {
        202: answered('Received and forgotten: nothing is stored', { success: true }),
        400: refused('The body is malformed.'),
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
        200: answered('The key', KEY_EXAMPLE, { $ref: '#/components/schemas/Key' }),
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
      summary: 'Sets the label or the spending caps of the presented key',
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
              },
            },
            example: { caps: { perCallUsd: '1.00', perDayUsd: '5.00' } },
          },
        },
      },
      responses: {
        200: answered('The key as it is now', KEY_EXAMPLE, { $ref: '#/components/schemas/Key' }),
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
      summary: 'Revokes the presented key for good; what it holds stays on the books',
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
          apiKey: 'fbx_live_<64 hex characters>',
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
      summary: 'How to buy one service: a call ready to paste, its schemas and its errors',
      security: [],
      parameters: [SERVICE_PARAMETER],
      responses: {
        200: answered('The recipe', { service: 'ping', method: 'POST', priceUsd: '0.25' }),
        404: refused('There is no such service.'),
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
