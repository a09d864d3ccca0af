import {
  ABOUT_CREDITS,
  answered,
  bodyOf,
  CREDITS_TAG,
  type Described,
  KEYED,
  REFUSED,
  refused,
} from '../http/operation.ts';
import { BOUGHT, TIER } from '../keys/credit-operations.ts';
import { NEW_CUSTOMER_CAP } from '../keys/credit-tiers.ts';

const EMAIL = { type: 'string', format: 'email' };
export const RECHARGE = {
  type: 'object',
  properties: {
    enabled: { type: 'boolean' },
    thresholdUsd: { type: 'number' },
    topUpUsd: { type: 'number' },
  },
};

/** Credit by card. */
export const CARD_OPERATIONS = {
  tags: ABOUT_CREDITS,
  operations: [
    {
      method: 'POST',
      path: '/api/m2m/credits/checkout/session',
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
      operation: {
        operationId: 'purchaseCredits',
        tags: [CREDITS_TAG],
        summary: 'Charges a card of yours: a new key, or credit for the presented one',
        description: NEW_CUSTOMER_CAP.rule,
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
          { paymentMethodId: 'pm_…', amountUsd: 10, idempotencyKey: '5b0e3f0e-7c6a-4d53-9a51-8f2d1c4b7a90' },
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
  ],
  untold: [
    { path: '/credits/*', because: 'They are pages.' },
    { path: '/api/m2m/credits/checkout/summary/*', because: 'The page after a payment asks it.' },
    { path: '/api/m2m/credits/checkout/hand-over', because: 'The page after a payment asks it.' },
    { path: '/api/m2m/credits/checkout/mail-key', because: 'The page after a payment asks it.' },
    { path: '/api/m2m/credits/new-key', because: 'The page that a mail leads to asks it.' },
    { path: '/api/m2m/credits/webhook', because: 'The card provider sends to it.' },
  ],
} as const satisfies Described;
