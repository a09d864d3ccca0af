/**
 * An agent buys credit with a card that the provider keeps for it: no person is there. The caller's idempotency key names
 * the purchase. It is a secret, which the new key follows from (see `checkout.ts`), and only its digest is kept.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../db/connection.ts';
import type { DistributionNote } from '../../db/distribution-note.ts';
import { deriveApiKey } from '../../keys/api-key.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { Secret, Secrets } from '../../secrets/secrets.ts';
import { createHandOver, DELIVERY_WINDOW_MS } from '../delivery/hand-over.ts';
import type { CardOrder, OrderStore } from '../orders/orders.ts';
import type { OrderReconciler } from '../orders/reconcile.ts';
import { type CardProvider, ProviderUnavailable } from '../provider.ts';
import type { Counted, LimitReached, PurchaseLimits } from './purchase-limits.ts';

/** After so long nothing is charged any more: by then the caller has bought elsewhere. */
const CHARGED_WITHIN_MS = 15 * 60_000;
/** The sweeper looks then, should whoever began the purchase have died. */
const SWEEP_AFTER_MS = 30_000;
/** Longer than it takes to ask the provider: until then somebody else is at it. */
const LEASE_MS = 30_000;
/** How long a request waits for another one that is at work on the same purchase, and how often it looks. */
const WAITS_MS = 5_000;
const LOOKS_EVERY_MS = 200;

export interface PurchaseRequest {
  paymentMethodId: string;
  /** The micro-USD that the card pays and the account gets. */
  amountMicros: bigint;
  /** The caller's secret name for this purchase: a UUID in lower case. */
  idempotencyKey: string;
  /** The account whose credit it is; null: a new account's, which gets a key. */
  accountId: bigint | null;
  email: string | null;
  keyName: string | null;
  /** The caller's. */
  address: string;
}

export type PurchaseOutcome =
  /** `apiKey` null: it bought none, or it was handed over before. `repeated`: the answer was given before, some time ago. */
  | { status: 'paid'; order: CardOrder; apiKey: string | null; repeated: boolean; debtPaidMicros: bigint }
  /** It was not paid for, and never will be. */
  | { status: 'failed'; order: CardOrder }
  /** The card may have been charged: nobody knows yet. */
  | { status: 'unknown' }
  /** Another request is at work on it. */
  | { status: 'in_progress' }
  /** The idempotency key names another purchase. */
  | { status: 'reused' }
  /** The purchase was not begun, for these reasons. */
  | { status: 'no_such_card' }
  | { status: 'provider_away'; cause: ProviderUnavailable }
  | { status: 'limited'; reached: LimitReached }
  | { status: 'paused'; untilMs: number };

export interface Purchases {
  /**
   * Buys once for each idempotency key, however often it is asked.
   *
   * @throws when the database fails; then too nobody knows whether the card was charged, or will be
   */
  buy(request: PurchaseRequest): Promise<PurchaseOutcome>;
}

interface PurchaseParts {
  sql: Database;
  distribution: DistributionNote;
  orders: OrderStore;
  provider: CardProvider;
  reconciler: OrderReconciler;
  limits: PurchaseLimits;
  secrets: Secrets;
  nowMs(): number;
  /** Told when nobody knows what came of a purchase. The sweeper finds out. */
  onUnknown(orderId: string, error: unknown): void;
}

export function createPurchases(parts: PurchaseParts): Purchases {
  const { sql, distribution, orders, provider, reconciler, limits, secrets, nowMs } = parts;
  const keyOf = ({ value }: Secret, orderId: string, idempotencyKey: string) =>
    deriveApiKey(value, 'purchase', [orderId, idempotencyKey]);
  const handOver = createHandOver({ sql, distribution, orders, secrets, nowMs });

  /** Begins a purchase, unless a limit is in the way or another request was first. */
  async function begin(
    request: PurchaseRequest,
    card: { paymentMethodId: string; cardName: string },
    digests: { tokenDigest: Buffer; requestDigest: Buffer },
  ): Promise<LimitReached | null> {
    const id = newTransferId(nowMs());
    const { amountMicros, accountId, email, keyName } = request;
    const isNewAccount = accountId === null;
    const made = isNewAccount ? keyOf(secrets.current, id, request.idempotencyKey) : null;
    const origin = limits.originOf(request.address);
    const { cardName, paymentMethodId } = card;
    const counted: Counted = { orderId: id, origin, cardName, amountMicros, isNewAccount };
    try {
      await sql.begin(async (transaction) => {
        await limits.takeTurn(transaction, counted);
        const isNew = await orders.insert(transaction, {
          id,
          ...PURCHASE,
          amountMicros,
          creditMicros: amountMicros,
          accountId,
          email,
          keyName,
          ...digests,
          paymentMethodId,
          cardFingerprint: cardName,
          addressDigest: origin.network.current,
          siteDigest: origin.site?.current ?? null,
          key: made === null ? null : { lookup: made.lookup, digest: made.digest, prefix: made.prefix },
          keySecretId: made === null ? null : secrets.current.id,
          expiresAtMs: nowMs() + CHARGED_WITHIN_MS,
          nextAtMs: nowMs() + SWEEP_AFTER_MS,
        });
        const reached = isNew ? await limits.reached(transaction, counted) : null;
        if (reached !== null) throw new Refused(reached);
      });
      return null;
    } catch (error) {
      if (error instanceof Refused) return error.reached;
      throw error;
    }
  }

  /** Sees an open purchase through, or waits for whoever does. */
  async function settle(order: CardOrder): Promise<{ order: CardOrder; isKnown: boolean } | null> {
    if (await orders.mayLook(order.id, LEASE_MS)) {
      try {
        const settled = (await reconciler.reconcile(order.id)) ?? order;
        return { order: settled, isKnown: settled.state !== 'open' };
      } catch (error) {
        parts.onUnknown(order.id, error);
        // Nobody is at it any more: who asks next need not wait. If this fails as well they wait a little.
        await sql`
          update card_orders set looked_at = null where id = ${order.id} and state = 0`.catch(() => {});
        // Perhaps the provider has told somebody else meanwhile.
        const now = (await orders.find(order.id)) ?? order;
        return { order: now, isKnown: now.state !== 'open' };
      }
    }
    for (let waitedMs = 0; waitedMs < WAITS_MS; waitedMs += LOOKS_EVERY_MS) {
      await sleep(LOOKS_EVERY_MS);
      const now = await orders.find(order.id);
      if (now !== null && now.state !== 'open') return { order: now, isKnown: true };
    }
    return null;
  }

  /** Finds what became of a purchase, from wherever it stands. */
  async function outcomeOf(known: CardOrder, idempotencyKey: string): Promise<PurchaseOutcome> {
    let order = known;
    if (order.state === 'open') {
      const settled = await settle(order);
      if (settled === null) return { status: 'in_progress' };
      if (!settled.isKnown) return { status: 'unknown' };
      order = settled.order;
    }
    if (order.state !== 'paid') return { status: 'failed', order };
    const debtPaidMicros = await debtPaidFrom(sql, order);
    if (order.key === null) {
      const repeated = nowMs() - (order.paidAtMs ?? 0) > DELIVERY_WINDOW_MS;
      return { status: 'paid', order, apiKey: null, repeated, debtPaidMicros };
    }
    const made = await handOver(order, 'agent', (secret) => keyOf(secret, order.id, idempotencyKey));
    const apiKey = made?.apiKey ?? null;
    return { status: 'paid', order, apiKey, repeated: made === null, debtPaidMicros };
  }

  return {
    async buy(request) {
      const { idempotencyKey } = request;
      const digests = { tokenDigest: sha256(idempotencyKey), requestDigest: requestDigestOf(request) };
      let order = await orders.findPurchase(digests.tokenDigest);
      if (order === null) {
        const untilMs = await limits.pausedUntil();
        if (untilMs !== null) return { status: 'paused', untilMs };
        let card: Awaited<ReturnType<CardProvider['card']>>;
        try {
          card = await provider.card(request.paymentMethodId);
        } catch (cause) {
          if (cause instanceof ProviderUnavailable) return { status: 'provider_away', cause };
          throw cause;
        }
        // Each purchase is a customer of its own, so a card that has one could not pay for it.
        if (card === null || card.customerId !== null) return { status: 'no_such_card' };
        const { paymentMethodId, fingerprint } = card;
        const named = { paymentMethodId, cardName: fingerprint ?? paymentMethodId };
        const reached = await begin(request, named, digests);
        if (reached !== null) return { status: 'limited', reached };
        order = await orders.findPurchase(digests.tokenDigest);
        if (order === null) throw new Error('a purchase was begun and is not there');
      }
      if (!order.requestDigest?.equals(digests.requestDigest)) return { status: 'reused' };
      return outcomeOf(order, idempotencyKey);
    },
  };
}

/** The part that all purchases have in common. */
const PURCHASE = { kind: 'purchase', recharge: null, customerId: null } as const;

/** How much of what it bought went to what the account owed. */
async function debtPaidFrom(sql: Database, { id, accountId }: CardOrder): Promise<bigint> {
  const [row] = await sql<{ paid: bigint }[]>`
    select coalesce(sum(amount_micros), 0)::bigint as paid from ledger_transfers
    where account_id = ${String(accountId)} and code = 'debt_paid' and note = ${`order ${id}`}`;
  return row?.paid ?? 0n;
}

/** Ends a transaction that a limit is in the way of. */
class Refused extends Error {
  readonly reached: LimitReached;

  constructor(reached: LimitReached) {
    super(reached.limit);
    this.reached = reached;
  }
}

/** The digest of what was asked for: the same idempotency key is good for nothing else. */
function requestDigestOf(request: PurchaseRequest): Buffer {
  const { paymentMethodId, amountMicros, accountId, email, keyName } = request;
  const account = accountId === null ? null : String(accountId);
  return sha256(JSON.stringify([paymentMethodId, String(amountMicros), account, email, keyName]));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
