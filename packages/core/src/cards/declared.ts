import { z } from 'zod';
import { declare, list, url, whole } from '../declared.ts';
import { CARD_BOOKS } from './books-rules.ts';
import { CARD_PEOPLE } from './personal-data.ts';

export const CARDS = declare({
  name: 'cards',
  books: CARD_BOOKS,
  people: CARD_PEOPLE,
  variables: {
    url: {
      name: 'CARD_PROVIDER_URL',
      describe: 'The card provider’s API',
      shape: url,
      fallback: 'https://api.stripe.com',
    },
    /** Null: nothing is sold by card. */
    secretKey: {
      name: 'CARD_PROVIDER_KEY',
      describe: 'Secret key at the card provider. Without it nothing is sold by card',
      shape: z
        .string()
        .regex(/^(sk|rk)_(test|live)_\w{8,250}$/, 'must be a secret or restricted key: sk_… or rk_…'),
      fallback: null,
      secret: true,
      renewed: true,
    },
    webhookSecrets: {
      name: 'CARD_WEBHOOK_SECRET',
      describe:
        'Signing secrets of the card provider’s webhook `/api/m2m/credits/webhook`, comma-separated: two while one is replaced',
      shape: list(z.string().regex(/^whsec_\S{8,250}$/, 'must be webhook secrets: whsec_…')),
      fallback: '',
      secret: true,
      renewed: true,
    },
    unpaidRetentionDays: {
      name: 'UNPAID_ORDER_RETENTION_DAYS',
      describe: 'How many days a checkout that nobody tried to pay is kept',
      shape: whole(30, 3_650),
      fallback: '90',
    },
    rechargesPerDay: {
      name: 'RECHARGE_MAX_PER_DAY',
      describe: 'How often a kept card may be charged in 24 hours',
      shape: whole(1, 50),
      fallback: '3',
    },
  },
  problems({ secretKey, webhookSecrets }, { production }) {
    if (typeof secretKey !== 'string') return [];
    return [
      ...(webhookSecrets?.length === 0 ? ['CARD_WEBHOOK_SECRET: must be set with CARD_PROVIDER_KEY'] : []),
      ...(production && /_test_/.test(secretKey)
        ? ['CARD_PROVIDER_KEY: is a test key, which cannot serve in production']
        : []),
    ];
  },
  money: ({ secretKey }) => ({ cardKey: secretKey }),
});
