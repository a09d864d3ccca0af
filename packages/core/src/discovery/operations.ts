import { answered, type Described, REFUSED, refused } from '../http/operation.ts';

const SERVICE_PARAMETER = {
  name: 'service',
  in: 'path',
  required: true,
  description: "The service's id",
  schema: { type: 'string' },
  example: 'ping',
};

const SEARCH_PARAMETERS = [
  {
    name: 'q',
    in: 'query',
    description:
      'What is wanted, in plain words: the services that fit, best first, each with `inputSchema` and `example` too. Without it, all',
    schema: { type: 'string', maxLength: 200 },
    example: 'price of ETH',
  },
  {
    name: 'limit',
    in: 'query',
    description: 'With `q`: how many at most',
    schema: { type: 'integer', minimum: 1, maximum: 20, default: 5 },
  },
];

/** Documents that programs read. */
export const DOCUMENT_OPERATIONS = {
  tags: { Free: 'What costs nothing: the catalog, keys, and what their owners see and set.' },
  operations: [
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
      path: '/x402/catalog',
      operation: {
        operationId: 'getCatalog',
        tags: ['Free'],
        summary: 'Every service with its price and availability, or those that a question is about',
        security: [],
        parameters: SEARCH_PARAMETERS,
        responses: {
          200: answered('The catalog', {
            currency: 'USD',
            services: [{ id: 'ping', path: '/x402/ping', priceUSD: 0.25, available: true }],
          }),
          400: REFUSED,
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
  ],
  untold: [
    { path: '/', because: 'It leads to the documents.' },
    { path: '/openapi.json', because: 'It is this document.' },
    { path: '/openapi/*', because: 'It is a part of this document.' },
    { path: '/llms.txt', because: 'It is text for a model.' },
    { path: '/llms-full.txt', because: 'It is text for a model.' },
    { path: '/robots.txt', because: 'Crawlers know it.' },
    { path: '/sitemap.xml', because: 'Crawlers know it.' },
    { path: '/server.json', because: 'Registries of MCP servers know it.' },
    { path: '/mcp/services', because: 'It is about MCP, which describes itself.' },
    { path: '/x402/payment-docs', because: 'It is about the protocol, and not about a call.' },
    { path: '/.well-known/*', because: 'Each is told by the standard that names it.' },
    { path: '/api/x402/catalog', because: 'It is the catalog at the address of the oldest SDK.' },
    { path: '/docs*', because: 'It is a page.' },
    { path: '/legal/*', because: 'It is a page.' },
    { path: '/services*', because: 'It is a page.' },
    { path: '/pricing*', because: 'It is a page.' },
    { path: '/favicon*', because: 'It is a picture.' },
    { path: '/assets/*', because: 'A page loads them.' },
  ],
  responses: {
    Refused: {
      description: 'Refused',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    },
    KeyRefused: refused('The key is missing, unknown, revoked or expired.'),
  },
} as const satisfies Described;

/** Included while x402 is offered. */
export const WALLET_DOCUMENTS = {
  operations: [
    {
      method: 'GET',
      path: '/x402/payment-manifest.json',
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
  ],
} as const satisfies Described;

/** Included while MPP is offered. */
export const MPP_DOCUMENTS = {
  operations: [
    {
      method: 'GET',
      path: '/mpp/catalog',
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
  ],
} as const satisfies Described;
