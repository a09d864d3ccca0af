import { answered, bodyOf, type Described, KEY_REFUSED, KEYED, REFUSED, refused } from '../http/operation.ts';
import { EVENT_TYPES } from './events.ts';

const WEBHOOK = {
  name: 'webhookId',
  in: 'path',
  required: true,
  schema: { type: 'string', format: 'uuid' },
};
const NOT_YOURS = refused('Your account has no such webhook.');
const EXAMPLE = {
  success: true,
  webhookId: '0199f0a2-…',
  url: 'https://example.com/farebox',
  events: ['balance.low', 'recharge.failed'],
  lowBalanceUsd: '5.000000',
  email: null,
  enabled: true,
  disabledReason: null,
  disabledAt: null,
  oldSecretUntil: null,
  oldSecretsUntil: [],
  missedEvents: 0,
};
const SHOWN = { $ref: '#/components/responses/Webhook' };
const SECRET = answered('The secret, shown once', { ...EXAMPLE, secret: 'whsec_…' });
const BEFORE = {
  name: 'before',
  in: 'query',
  description: 'The `next` of the page before',
  schema: { type: 'string' },
};
const LIMIT = {
  name: 'limit',
  in: 'query',
  schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
};
const usd = { type: ['string', 'number', 'null'] };

/** The operations by which an owner of a key manages webhooks. */
export const WEBHOOK_OPERATIONS = {
  operations: [
    {
      method: 'POST',
      path: '/api/webhooks',
      operation: {
        operationId: 'createWebhook',
        tags: ['Free'],
        summary: 'Has your account’s events sent to an address, signed by Standard Webhooks',
        security: KEYED,
        requestBody: bodyOf(
          {
            url: { type: 'string', format: 'uri' },
            events: { type: 'array', items: { enum: EVENT_TYPES } },
            lowBalanceUsd: { ...usd, description: 'With balance.low: below it' },
            email: {
              type: ['string', 'null'],
              description: 'Told when the webhook is switched off for failing',
            },
          },
          ['url', 'events'],
          { url: EXAMPLE.url, events: EXAMPLE.events, lowBalanceUsd: '5' },
        ),
        responses: {
          201: SECRET,
          400: REFUSED,
          401: KEY_REFUSED,
          403: refused('A trial has none.'),
          409: refused('The account has as many as it may.'),
        },
      },
    },
    {
      method: 'GET',
      path: '/api/webhooks',
      operation: {
        operationId: 'listWebhooks',
        tags: ['Free'],
        summary: 'Your account’s webhooks',
        security: KEYED,
        responses: { 200: answered('All', { success: true, webhooks: [] }), 401: KEY_REFUSED },
      },
    },
    {
      method: 'PATCH',
      path: '/api/webhooks/{webhookId}',
      operation: {
        operationId: 'changeWebhook',
        tags: ['Free'],
        summary: 'Switches a webhook off or on again, or changes where it leads and what it hears of',
        security: KEYED,
        parameters: [WEBHOOK],
        requestBody: bodyOf(
          {
            enabled: { type: 'boolean' },
            url: { type: 'string', format: 'uri' },
            events: { type: 'array', items: { enum: EVENT_TYPES } },
            lowBalanceUsd: { ...usd, description: 'With balance.low: below it' },
            email: { type: ['string', 'null'] },
          },
          [],
          { enabled: true },
        ),
        responses: { 200: SHOWN, 400: REFUSED, 401: KEY_REFUSED, 404: NOT_YOURS, 409: REFUSED },
      },
    },
    {
      method: 'DELETE',
      path: '/api/webhooks/{webhookId}',
      operation: {
        operationId: 'deleteWebhook',
        tags: ['Free'],
        summary: 'Deletes a webhook with its deliveries',
        security: KEYED,
        parameters: [WEBHOOK],
        responses: { 200: answered('Deleted', { success: true }), 401: KEY_REFUSED, 404: NOT_YOURS },
      },
    },
    {
      method: 'POST',
      path: '/api/webhooks/{webhookId}/rotate',
      operation: {
        operationId: 'rotateWebhook',
        tags: ['Free'],
        summary: 'Gives a webhook a new secret; the old one signs too for a while',
        security: KEYED,
        parameters: [WEBHOOK],
        requestBody: bodyOf(
          { overlapHours: { type: 'integer', minimum: 0, maximum: 168, default: 24 } },
          [],
          {
            overlapHours: 24,
          },
        ),
        responses: {
          200: SECRET,
          400: REFUSED,
          401: KEY_REFUSED,
          404: NOT_YOURS,
          409: refused('Five old secrets sign beside the current one already.'),
        },
      },
    },
    {
      method: 'POST',
      path: '/api/webhooks/{webhookId}/test',
      operation: {
        operationId: 'testWebhook',
        tags: ['Free'],
        summary: 'Sends a test message',
        security: KEYED,
        parameters: [WEBHOOK],
        responses: {
          202: answered('It will be sent', { success: true, deliveryId: '…' }),
          401: KEY_REFUSED,
          404: NOT_YOURS,
          409: refused('It is off, enough waits, or enough was sent in a day.'),
        },
      },
    },
    {
      method: 'GET',
      path: '/api/webhooks/{webhookId}/deliveries',
      operation: {
        operationId: 'listDeliveries',
        tags: ['Free'],
        summary: 'The messages of a webhook, and what became of them',
        security: KEYED,
        parameters: [WEBHOOK, BEFORE, LIMIT],
        responses: {
          200: answered('Newest first', { success: true, deliveries: [], next: null }),
          400: REFUSED,
          401: KEY_REFUSED,
          404: NOT_YOURS,
        },
      },
    },
    {
      method: 'POST',
      path: '/api/webhooks/{webhookId}/recover',
      operation: {
        operationId: 'recoverWebhook',
        tags: ['Free'],
        summary: 'Sends what a webhook has missed or given up since a time',
        security: KEYED,
        parameters: [WEBHOOK],
        requestBody: bodyOf({ since: { type: 'string', format: 'date-time' } }, ['since'], {
          since: '2026-01-31T00:00:00Z',
        }),
        responses: {
          202: answered('It will be sent', { success: true, missed: 3, givenUp: 1, more: false }),
          400: REFUSED,
          401: KEY_REFUSED,
          404: NOT_YOURS,
          409: refused('It is off.'),
        },
      },
    },
    {
      method: 'POST',
      path: '/api/webhooks/{webhookId}/deliveries/{deliveryId}/resend',
      operation: {
        operationId: 'resendDelivery',
        tags: ['Free'],
        summary: 'Sends a message again, with the id that it had',
        security: KEYED,
        parameters: [WEBHOOK, { ...WEBHOOK, name: 'deliveryId' }],
        responses: {
          202: answered('It will be sent', { success: true, deliveryId: '…' }),
          401: KEY_REFUSED,
          404: NOT_YOURS,
          409: refused('It is off.'),
        },
      },
    },
  ],
  responses: { Webhook: answered('The webhook as it is now', EXAMPLE) },
} as const satisfies Described;

/** The log of what happened to an account. */
export const EVENT_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/api/events',
      operation: {
        operationId: 'listEvents',
        tags: ['Free'],
        summary: 'What happened to your account in the last 30 days, whether or not a webhook took it',
        security: KEYED,
        parameters: [
          BEFORE,
          {
            name: 'after',
            in: 'query',
            description: 'Oldest first, behind this `next`',
            schema: { type: 'string' },
          },
          {
            name: 'since',
            in: 'query',
            description: 'Oldest first, from this time on',
            schema: { type: 'string', format: 'date-time' },
          },
          LIMIT,
        ],
        responses: {
          200: answered('Newest first unless `after` or `since` is given', {
            success: true,
            events: [
              {
                eventId: '0199f0a2-…',
                type: 'refund.made',
                createdAt: '2026-01-31T12:00:00.000Z',
                data: { of: 'call', callId: '0199f0a1-…', amountUsd: '0.250000' },
                webhookId: null,
              },
            ],
            next: null,
          }),
          400: REFUSED,
          401: KEY_REFUSED,
        },
      },
    },
  ],
} as const satisfies Described;
