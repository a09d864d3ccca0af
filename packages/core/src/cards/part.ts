import type { Transaction } from '../db/connection.ts';
import type { Configured } from '../declared.ts';
import type { Job } from '../jobs/schedule.ts';
import type { Keys } from '../keys/keys.ts';
import { createBucketTurns } from '../ledger/bucket-turns.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { House, Part } from '../part.ts';
import type { Secrets } from '../secrets/secrets.ts';
import { type Cards, openCards } from './cards.ts';
import { closedCardRoutes } from './closed.ts';
import { CARDS } from './declared.ts';
import { type LostKeys, openLostKeys } from './delivery/lost-keys.ts';
import { createDebts, type Debts } from './disputes/debts.ts';
import { CardReversalWalks, type ReversalWalks } from './disputes/reversal-walks.ts';
import { createCardMetrics } from './metrics.ts';
import { CARD_OPERATIONS } from './operations.ts';
import { CHECKOUTS_PER_MINUTE } from './ways/checkout-session-route.ts';
import { PURCHASE_REQUESTS_PER_MINUTE } from './ways/purchase-route.ts';

export { CARDS };

const DEBTS_AT_ONCE = 100;

/** The part, and what others may ask of it. */
interface CardMoney extends Part {
  /** Null: nothing is sold by card. */
  cards: (Cards & Pick<LostKeys, 'prepareKeyLink'>) | null;
  debts: Debts;
  walks: ReversalWalks;
  /**
   * Collects what an account owes, within the commit that credited the account.
   *
   * @param reason stands in the ledger before the account's number, such as `top-up of`
   */
  collectAfter(reason: string): (transaction: Transaction, accountId: bigint) => Promise<void>;
}

/**
 * Credit that is bought by card, and what accounts owe since a payment went back. Without a key for the provider nothing
 * is sold by card; debts are collected all the same.
 */
export function openCardMoney(
  house: House,
  { settings, secrets: ours }: Configured<typeof CARDS.variables>,
  needs: { ledger: Ledger; keys: Keys; mailer: Mailer; secrets: Secrets },
): CardMoney {
  const { logger, nowMs, baseUrl, firstCall, addressOf } = house;
  const debts = openDebts(house, needs);
  const walks = openWalks(house, { ledger: needs.ledger, keys: needs.keys, debts });
  const cards =
    ours.reveal().secretKey === null
      ? null
      : openCards({
          ...needs,
          settings: { ...settings, secrets: () => secretsNow(ours) },
          pools: house.pools,
          debts,
          walks,
          baseUrl,
          firstCall,
          addressOf,
          nowMs,
          checkoutLimit: house.limitByAddress(CHECKOUTS_PER_MINUTE),
          purchaseLimit: house.limitByAddress(PURCHASE_REQUESTS_PER_MINUTE),
          accountLimit: house.limitByAddress(),
          report(what, { id, kind, amountMicros }) {
            metrics.order(kind, what);
            const line = { what, orderId: id, kind, amountMicros: String(amountMicros) };
            if (what === 'mismatch') logger.error(line, 'a payment by card is not what its order says');
            else logger.info(line, 'card order');
          },
          reportRecharge(outcome, { accountId, error, ...line }) {
            metrics.recharge(outcome);
            const told = { outcome, accountId: String(accountId), ...line };
            if (error === undefined) logger.info(told, 'recharge');
            else logger.warn({ ...told, err: error }, 'recharge');
          },
          onError: (what, error) => logger.error({ what, err: error }, 'card money'),
        });
  const metrics = createCardMetrics({
    owedMicros: debts.total,
    eventsWaiting: async () => (await cards?.inbox.waiting()) ?? 0,
  });
  const lost = cards === null ? null : openLostKeys(cards, house, needs);
  return {
    name: 'cards',
    cards: cards === null || lost === null ? null : { ...cards, prepareKeyLink: lost.prepareKeyLink },
    debts,
    walks,
    collectAfter: (reason) => (transaction, accountId) =>
      debts.collect(transaction, accountId, `${reason} account ${accountId}`),
    routes(http) {
      if (cards === null) return closedCardRoutes(http);
      cards.routes(http);
      lost?.routes(http);
    },
    jobs: [...(cards?.jobs ?? []), ...(lost?.jobs ?? []), ...debtJobs(debts, walks)],
    metrics: metrics.registry,
    queues: cards === null ? [] : [cards.inbox.queue],
    requestHeaders: ['X-Retrieval-Token'],
    // Where the card provider leads a person to: what was bought is asked for by the page, not written into it.
    assets: {
      '/credits/return': 'credits-return.html',
      '/credits/new-key': 'credits-new-key.html',
      '/credits/cancel': 'credits-cancel.html',
    },
    operations: [{ ...CARD_OPERATIONS, offered: () => cards !== null }],
    close: async () => cards?.close(),
  };
}

/** The secrets that are in force now. Without a key nobody asks for them. */
function secretsNow(ours: Configured<typeof CARDS.variables>['secrets']) {
  const { secretKey, webhookSecrets } = ours.reveal();
  return { secretKey: secretKey ?? '', webhookSecrets };
}

function openDebts({ pools, nowMs }: House, { ledger, keys }: { ledger: Ledger; keys: Keys }): Debts {
  return createDebts(pools.sql, { ledger, keys, turns: createBucketTurns(pools), nowMs });
}

function openWalks(
  { logger, pools, nowMs }: House,
  needs: { ledger: Ledger; keys: Keys; debts: Debts },
): ReversalWalks {
  return new CardReversalWalks(pools.sql, {
    ...needs,
    distribution: pools.distribution,
    nowMs,
    report: (what, orderId, amountMicros) =>
      logger.info({ what, orderId, amountMicros: String(amountMicros) }, 'a reversed payment on sold keys'),
  });
}

/** The jobs about debts, done whether or not anything is sold by card. */
function debtJobs(debts: Debts, walks: ReversalWalks): Job[] {
  return [
    {
      name: 'collect-debts',
      intervalMs: 60_000,
      run: async (stopping) => void (await debts.sweep(DEBTS_AT_ONCE, stopping)),
    },
    {
      name: 'follow-reversals',
      intervalMs: 2_000,
      run: async (stopping) => void (await walks.run(stopping)),
    },
  ];
}
