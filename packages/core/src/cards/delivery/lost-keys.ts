/** Keys that were bought by card and lost, put together: the return page, mailed links, and what an operator does. */
import type { FastifyInstance } from 'fastify';
import type { Transaction } from '../../db/connection.ts';
import { type Job, untilNoneIsDue } from '../../jobs/schedule.ts';
import type { Keys } from '../../keys/keys.ts';
import type { Mailer } from '../../mail/mailer.ts';
import type { House } from '../../part.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import type { Cards } from '../cards.ts';
import { CHECKOUTS_PER_MINUTE } from '../ways/checkout-session-route.ts';
import { createKeyLinks, LINKS_FORGOTTEN_AT_ONCE } from './key-links.ts';
import { lostKeyRoutes, preparedKeyLink } from './lost-key-routes.ts';

export interface LostKeys {
  /**
   * Finds out where a link to a new key for a paid order goes, before anything is held.
   *
   * @returns writes the mail down in a transaction
   * @throws Problem when none can be sent
   */
  prepareKeyLink(orderId: string): Promise<(transaction: Transaction) => Promise<void>>;
  routes(app: FastifyInstance): void;
  jobs: readonly Job[];
}

export function openLostKeys(
  { orders, provider, checkout }: Pick<Cards, 'orders' | 'provider' | 'checkout'>,
  house: House,
  { keys, mailer, secrets }: { keys: Keys; mailer: Mailer; secrets: Secrets },
): LostKeys {
  const { baseUrl, nowMs, addressOf } = house;
  const { sql, distribution } = house.pools;
  const links = createKeyLinks({
    sql,
    distribution,
    orders,
    provider,
    keys,
    mailer,
    secrets,
    baseUrl,
    nowMs,
  });
  const linkLimit = house.limitByAddress(CHECKOUTS_PER_MINUTE);
  return {
    prepareKeyLink: (orderId) => preparedKeyLink(links, orders, orderId),
    routes: (app) =>
      lostKeyRoutes(app, { checkout, links, accountLimit: house.limitByAddress(), linkLimit, addressOf }),
    jobs: [
      {
        name: 'forget-key-links',
        intervalMs: 3_600_000,
        run: async (stopping) => void (await untilNoneIsDue(LINKS_FORGOTTEN_AT_ONCE, links.forget, stopping)),
      },
    ],
  };
}
