/** Card money, put together: what `app.ts` needs to know of it. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Pools } from '../db/connection.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import { type Job, untilNoneIsDue } from '../jobs/schedule.ts';
import type { FirstCall } from '../keys/key-usage.ts';
import type { Keys } from '../keys/keys.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { Debts } from './disputes/debts.ts';
import type { ReversalWalks } from './disputes/reversal-walks.ts';
import { createForgottenOrders, type ForgottenOrders } from './orders/forgotten-orders.ts';
import {
  createInbox,
  EVENTS_AT_ONCE,
  EVENTS_FORGOTTEN_AT_ONCE,
  type Inbox,
  workSoon,
} from './orders/inbox.ts';
import { type CardOrder, createOrderStore, type OrderStore } from './orders/orders.ts';
import { createOrderReconciler, type OrderReconciler } from './orders/reconcile.ts';
import { type OrderRefund, type RefundOutcome, refundOrder } from './orders/refund.ts';
import { createSweeper, type Sweeper } from './orders/sweep.ts';
import { cardWebhookRoute } from './orders/webhook-route.ts';
import type { CardProvider } from './provider.ts';
import { type AutoRecharges, createAutoRecharges } from './recharge/auto-recharge.ts';
import type { RechargeReport } from './recharge/due-recharges.ts';
import { readRechargeRequest } from './recharge/recharge-settings.ts';
import { createCardProvider } from './stripe/card-provider.ts';
import { type Checkout, createCheckout } from './ways/checkout.ts';
import { checkoutSessionRoute } from './ways/checkout-session-route.ts';
import { checkoutStatusRoute } from './ways/checkout-status-route.ts';
import { checkoutSummaryRoute } from './ways/checkout-summary-route.ts';
import { createPurchases, type Purchases } from './ways/purchase.ts';
import { createPurchaseLimits } from './ways/purchase-limits.ts';
import { purchaseRoute } from './ways/purchase-route.ts';

const INBOX_EVERY_MS = 1_000;
const RECHARGE_EVERY_MS = 2_000;
const SWEEP_EVERY_MS = 15_000;
const CATCH_UP_EVERY_MS = 5 * 60_000;
const FORGET_EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;
const FORGOTTEN_AT_ONCE = 5_000;

export interface Cards {
  orders: OrderStore;
  provider: CardProvider;
  reconciler: OrderReconciler;
  checkout: Checkout;
  purchases: Purchases;
  inbox: Inbox;
  forgotten: ForgottenOrders;
  recharges: AutoRecharges;
  /** Sends money back that a paid order brought, once for each key. */
  refund(refund: OrderRefund): Promise<RefundOutcome>;
  /** Looks at the orders whose time has come. @returns how many */
  sweep(): Promise<number>;
  routes(app: FastifyInstance): void;
  jobs: readonly Job[];
  /** Waits for what is being worked. */
  close(): Promise<void>;
}

export interface CardParts {
  pools: Pick<Pools, 'sql' | 'distribution'>;
  settings: Pick<Parameters<typeof createCardProvider>[0], 'url' | 'secrets'> & {
    rechargesPerDay: number;
    unpaidRetentionDays: number;
  };
  ledger: Ledger;
  keys: Keys;
  debts: Debts;
  walks: ReversalWalks;
  mailer: Mailer;
  secrets: Secrets;
  baseUrl: string;
  firstCall: FirstCall;
  checkoutLimit: RateLimit;
  purchaseLimit: RateLimit;
  accountLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
  report(what: Parameters<Parameters<typeof createOrderReconciler>[0]['report']>[0], order: CardOrder): void;
  reportRecharge(outcome: string, account: RechargeReport): void;
  onError(what: string, error: unknown): void;
}

/** Tells of what the inbox could not do. */
function inboxReports(onError: CardParts['onError']) {
  return {
    onError: (eventId: string, error: unknown) => onError(`event ${eventId}`, error),
    onForgotten: (payments: number) =>
      onError(
        'events are missing',
        new Error(`the provider was not asked for a month: ${payments} payments are looked at`),
      ),
  };
}

export function openCards(parts: CardParts): Cards {
  const { pools, ledger, keys, debts, walks, nowMs } = parts;
  const orders = createOrderStore(pools.sql, nowMs);
  const provider = createCardProvider({ ...parts.settings, nowMs });
  const reconcile = (orderId: string) => reconciler.reconcile(orderId);
  const { report, secrets, baseUrl, firstCall } = parts;
  const { rechargesPerDay, unpaidRetentionDays } = parts.settings;
  const common = { ...pools, orders, provider, secrets, baseUrl, nowMs, rechargesPerDay };
  const recharges = createAutoRecharges(pools, {
    ...common,
    reconcile,
    mailer: parts.mailer,
    maxPerDay: rechargesPerDay,
    report: parts.reportRecharge,
  });
  const reconciler = createOrderReconciler({ ...common, ledger, keys, debts, walks, recharges, report });
  const limits = createPurchaseLimits({
    ...common,
    onPause: ({ declined, attempts }) => {
      const why = `${declined} of the last ${attempts} cards were declined`;
      parts.onError('purchases are paused', new Error(why));
    },
  });
  const checkout = createCheckout({ ...common, limits, reconciler });
  const purchases = createPurchases({
    ...common,
    reconciler,
    limits,
    onUnknown: (orderId, error) => parts.onError(`outcome of order ${orderId}`, error),
  });
  const forgotten = createForgottenOrders(common);
  const inbox = createInbox({
    ...common,
    reconciler,
    forgotten,
    ...inboxReports(parts.onError),
  });

  const soon = workSoon(inbox, (error) => parts.onError('inbox', error));
  const sweeper = createSweeper({ orders, reconciler, nowMs, onError: parts.onError });

  return {
    orders,
    provider,
    reconciler,
    checkout,
    purchases,
    inbox,
    forgotten,
    recharges,
    sweep: () => sweeper.sweep(),

    refund: (refund) => refundOrder({ orders, provider, reconcile }, refund),

    routes(app) {
      const { checkoutLimit, accountLimit, addressOf } = parts;
      const shared = { keys, baseUrl, firstCall, addressOf, nowMs };
      purchaseRoute(app, {
        ...shared,
        purchases,
        ledger,
        debts,
        addressLimit: parts.purchaseLimit,
        onError: (error) => parts.onError('purchase', error),
      });
      const ofCheckout = { ...shared, checkout, checkoutLimit, accountLimit };
      checkoutSessionRoute(app, { ...ofCheckout, readRecharge: readRechargeRequest });
      checkoutStatusRoute(app, ofCheckout);
      checkoutSummaryRoute(app, ofCheckout);
      cardWebhookRoute(app, { provider, inbox: soon });
    },

    jobs: jobsOf({ inbox, recharges, sweeper, orders, unpaidRetentionDays, nowMs }),
    async close() {
      await soon.close();
      provider.close();
    },
  };
}

/** The jobs of card money, done without a request. */
function jobsOf(parts: {
  inbox: Inbox;
  recharges: AutoRecharges;
  sweeper: Sweeper;
  orders: OrderStore;
  unpaidRetentionDays: number;
  nowMs(): number;
}): Job[] {
  const { inbox, recharges, sweeper, orders, unpaidRetentionDays, nowMs } = parts;
  return [
    {
      name: 'work-card-inbox',
      intervalMs: INBOX_EVERY_MS,
      run: async (stopping) =>
        void (await untilNoneIsDue(EVENTS_AT_ONCE, () => inbox.work(stopping), stopping)),
    },
    {
      name: 'recharge',
      intervalMs: RECHARGE_EVERY_MS,
      run: async (stopping) => void (await recharges.run(stopping)),
    },
    {
      name: 'forget-disputed-cards',
      intervalMs: RECHARGE_EVERY_MS,
      run: (stopping) => recharges.forgetDisputed(stopping),
    },
    {
      name: 'sweep-card-orders',
      intervalMs: SWEEP_EVERY_MS,
      run: async (stopping) => void (await sweeper.sweep(stopping)),
    },
    {
      name: 'read-card-events',
      intervalMs: CATCH_UP_EVERY_MS,
      run: async (stopping) => void (await inbox.catchUp(stopping)),
    },
    {
      name: 'forget-card-events',
      intervalMs: FORGET_EVERY_MS,
      run: async (stopping) => void (await untilNoneIsDue(EVENTS_FORGOTTEN_AT_ONCE, inbox.forget, stopping)),
    },
    {
      name: 'forget-unpaid-orders',
      intervalMs: FORGET_EVERY_MS,
      run: async (stopping) =>
        void (await untilNoneIsDue(
          FORGOTTEN_AT_ONCE,
          () => orders.forgetUnpaid(nowMs() - unpaidRetentionDays * DAY_MS, FORGOTTEN_AT_ONCE),
          stopping,
        )),
    },
  ];
}
