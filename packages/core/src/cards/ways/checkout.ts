import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Database } from '../../db/connection.ts';
import type { DistributionNote } from '../../db/distribution-note.ts';
import { deriveApiKey } from '../../keys/api-key.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { Secret, Secrets } from '../../secrets/secrets.ts';
import { createHandOver } from '../delivery/hand-over.ts';
import { createReturnPage, type ReturnPage, sealForPage } from '../delivery/return-page.ts';
import { noteOf } from '../orders/order-note.ts';
import { type CardOrder, type OrderStore, titleOf } from '../orders/orders.ts';
import type { OrderReconciler } from '../orders/reconcile.ts';
import { type CardProvider, ProviderUnavailable, type ShownCard } from '../provider.ts';
import { agreementInWords } from '../recharge/agreement.ts';
import type { PurchaseLimits } from './purchase-limits.ts';
import { limitReached } from './purchase-refusals.ts';

/** How long a person has to pay. */
const OPEN_MS = 60 * 60_000;
/** The sweeper looks once while the page is open, should a message be lost, and again when it has closed. */
const SWEEP_AFTER_MS = 5 * 60_000;
/** The provider is asked about one checkout no more often than this, however often its status is. */
const LOOK_EVERY_MS = 2_000;

export interface CheckoutRequest {
  /** The micro-USD that the card pays, and below it those that the key gets. */
  amountMicros: bigint;
  creditMicros: bigint;
  email: string | null;
  keyName: string | null;
  recharge: CardOrder['recharge'];
  /** The account whose credit it is to be; null: that of a new key. */
  accountId: bigint | null;
  /** The caller's, for limits. */
  address: string;
}

export interface OpenedCheckout {
  sessionId: string;
  /** The secret that the key is delivered against. It stands in no address that a browser sees. */
  retrievalToken: string;
  checkoutUrl: string;
  expiresAtMs: number;
}

export type CheckoutStatus =
  /** There is no such session, or the token is not its own. */
  | { status: 'unknown' }
  | { status: 'unpaid'; checkoutUrl: string; expiresAtMs: number }
  | { status: 'ready'; apiKey: string; keyPrefix: string; creditMicros: bigint; amountMicros: bigint }
  /** It has bought no key but credit for one, which is there. */
  | { status: 'credited'; creditMicros: bigint; amountMicros: bigint }
  | { status: 'delivered' }
  | { status: 'expired' };

/** The part of a checkout that the payer may see: no key, and nothing that leads to one. */
export interface CheckoutSummary {
  status: 'unpaid' | 'paid' | 'expired';
  orderId: string;
  amountMicros: bigint;
  creditMicros: bigint;
  email: string | null;
  paidAtMs: number | null;
  /** The card that paid; null: not paid, or that is not kept of it. */
  card: ShownCard | null;
}

export interface Checkout {
  /** The page that the payer comes back to, and what it may do. */
  page: ReturnPage<CheckoutStatus>;
  /**
   * @throws Problem 429 when the caller's network has too many open
   * @throws ProviderUnavailable when no page could be opened; what is kept of it then ends by itself
   */
  open(request: CheckoutRequest): Promise<OpenedCheckout>;
  /** Tells what became of a checkout, and hands over the key. Asks the provider when nothing has been heard. */
  status(session: { sessionId: string; retrievalToken: string }): Promise<CheckoutStatus>;
  /** Null: there is no such session. */
  summary(sessionId: string): Promise<CheckoutSummary | null>;
}

export interface CheckoutParts {
  sql: Database;
  distribution: DistributionNote;
  orders: OrderStore;
  provider: CardProvider;
  reconciler: OrderReconciler;
  secrets: Secrets;
  limits: PurchaseLimits;
  baseUrl: string;
  /** How often a kept card may be charged in 24 hours. */
  rechargesPerDay: number;
  nowMs(): number;
}

/** An order for an account that has a key. */
const NO_NEW_KEY = { key: null, keySecretId: null, pageSeal: null };

/**
 * A person pays on the provider's page, and their agent fetches the key.
 *
 * The key is not kept: it follows from our secret, the order and the retrieval token, of which only a digest is here.
 * So it can be handed over again until it is certain that it arrived, and neither the database nor the provider has it.
 */
export function createCheckout(parts: CheckoutParts): Checkout {
  const { sql, distribution, orders, provider, reconciler, secrets, baseUrl, nowMs } = parts;
  const keyOf = ({ value }: Secret, orderId: string, retrievalToken: string) =>
    deriveApiKey(value, 'checkout', [orderId, retrievalToken]);
  const handedOver = createHandOver({ sql, distribution, orders, secrets, nowMs });

  /** The order as it stands now, as far as anybody can say. */
  async function upToDate(order: CardOrder): Promise<CardOrder> {
    if (order.state !== 'open' || !(await orders.mayLook(order.id, LOOK_EVERY_MS))) return order;
    try {
      return (await reconciler.reconcile(order.id)) ?? order;
    } catch (error) {
      if (error instanceof ProviderUnavailable) return order;
      throw error;
    }
  }

  async function handOver(
    order: CardOrder,
    retrievalToken: string,
    to: 'agent' | 'page' = 'agent',
  ): Promise<CheckoutStatus> {
    const made = await handedOver(order, to, (secret) => keyOf(secret, order.id, retrievalToken));
    if (made === null) return { status: 'delivered' };
    const { amountMicros, creditMicros } = order;
    return { status: 'ready', apiKey: made.apiKey, keyPrefix: made.prefix, creditMicros, amountMicros };
  }

  const deliver = (order: CardOrder, token: string) => handOver(order, token, 'page');
  const page = createReturnPage({ orders, upToDate, handOver: handedOver, deliver });

  return {
    page,
    async open({ address, ...request }) {
      const id = newTransferId(nowMs());
      const retrievalToken = randomBytes(16).toString('hex');
      const { lookup, digest, prefix } = keyOf(secrets.current, id, retrievalToken);
      const { proof, seal } = sealForPage(id, retrievalToken);
      const expiresAtMs = nowMs() + OPEN_MS;
      const newKey = { key: { lookup, digest, prefix }, keySecretId: secrets.current.id, pageSeal: seal };
      const bought = request.accountId === null ? newKey : NO_NEW_KEY;
      const ordered = { ...request, ...CHECKOUT, ...bought, tokenDigest: digestOf(retrievalToken) };
      const nextAtMs = nowMs() + SWEEP_AFTER_MS;
      await addWithinLimits(parts, address, { ...ordered, id, expiresAtMs, nextAtMs });
      const session = await provider.openSession({
        orderId: id,
        note: noteOf(id, ordered, secrets),
        amountMicros: request.amountMicros,
        title: titleOf(request),
        email: request.email,
        keepCard:
          request.recharge === null ? null : agreementInWords(request.recharge, parts.rechargesPerDay),
        successUrl: returnUrl(baseUrl, request.accountId === null ? proof : null),
        cancelUrl: `${baseUrl}/credits/cancel`,
        expiresAtMs,
      });
      const order = await orders.find(id);
      const { sessionId, url: checkoutUrl, expiresAtMs: closesAtMs } = session;
      const page = { sessionId, sessionUrl: checkoutUrl, expiresAtMs: closesAtMs };
      if (order === null || !(await orders.change(sql, order, page)))
        throw new Error(`the order ${id} was changed before its page was known`);
      return { sessionId, retrievalToken, checkoutUrl, expiresAtMs: closesAtMs };
    },

    async status({ sessionId, retrievalToken }) {
      const known = await orders.findBySession(sessionId);
      const right = timingSafeEqual(digestOf(retrievalToken), known?.tokenDigest ?? Buffer.alloc(32));
      if (known === null || !right) return { status: 'unknown' };
      const order = await upToDate(known);
      const { amountMicros, creditMicros } = order;
      if (order.state === 'paid' && order.key === null)
        return { status: 'credited', amountMicros, creditMicros };
      if (order.state === 'paid') return handOver(order, retrievalToken);
      if (order.state === 'over') return { status: 'expired' };
      if (order.sessionUrl === null) throw new Error(`order ${order.id} has a session without a page`);
      return { status: 'unpaid', checkoutUrl: order.sessionUrl, expiresAtMs: order.expiresAtMs };
    },

    async summary(sessionId) {
      const known = await orders.findBySession(sessionId);
      if (known === null) return null;
      return summaryOf(await upToDate(known));
    },
  };
}

/** Adds an order, unless the caller's network has too many open. @throws Problem 429 */
async function addWithinLimits(
  { sql, orders, limits }: Pick<CheckoutParts, 'sql' | 'orders' | 'limits'>,
  address: string,
  order: Omit<Parameters<OrderStore['insert']>[1], 'addressDigest' | 'siteDigest'>,
): Promise<void> {
  const origin = limits.originOf(address);
  await sql.begin(async (transaction) => {
    const reached = await limits.checkoutsReached(transaction, origin);
    if (reached !== null) throw limitReached(reached);
    const addressDigest = origin.network.current;
    await orders.insert(transaction, { ...order, addressDigest, siteDigest: origin.site?.current ?? null });
  });
}

/** The part that all checkouts have in common: nobody knows who comes with which card. */
const CHECKOUT = {
  kind: 'checkout',
  requestDigest: null,
  customerId: null,
  paymentMethodId: null,
  cardFingerprint: null,
} as const;

function summaryOf(order: CardOrder): CheckoutSummary {
  return {
    status: order.state === 'open' ? 'unpaid' : order.state === 'paid' ? 'paid' : 'expired',
    orderId: order.id,
    amountMicros: order.amountMicros,
    creditMicros: order.creditMicros,
    email: order.email,
    paidAtMs: order.paidAtMs,
    card: order.shownCard,
  };
}

/** Where the provider leads whoever paid. A proof stands behind the #, which a browser sends to nobody. */
function returnUrl(baseUrl: string, proof: string | null): string {
  return `${baseUrl}/credits/return?session={CHECKOUT_SESSION_ID}${proof === null ? '' : `#${proof}`}`;
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
