/**
 * Orders that the card provider knows and this database does not, because it was restored. Each is written anew from its
 * note at the provider; from then on it is an order like any other.
 */
import type { Database } from '../../db/connection.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import type { CardProvider, EventRef, KeptOrder } from '../provider.ts';
import { type NotedOrder, readNote } from './order-note.ts';
import { nextLookAfterMs, type OrderStore } from './orders.ts';

/** What becomes of a forgotten order. */
type Forgotten =
  /** Its payer gets the credit, and the key if it bought one. */
  | { becomes: 'granted'; orderId: string; noted: NotedOrder; kept: KeptOrder }
  /** The account that it was for is forgotten too: the payment goes back. */
  | { becomes: 'refunded'; orderId: string; noted: NotedOrder; kept: KeptOrder };

export interface ForgottenOrders {
  /** Looks for the order that an event names and nobody here knows. @returns null: none of ours, or not paid */
  look(event: Pick<EventRef, 'orderId' | 'sessionId' | 'paymentIntentId'>): Promise<Forgotten | null>;
  /** Looks for the order of an event, and writes it anew. @returns its id; null: it is none of ours */
  rebuilt(
    event: { session_id: string | null; payment_intent_id: string | null },
    orderId: string,
  ): Promise<string | null>;
  /** Writes it anew; a payment that nobody can be credited with is sent back first. */
  rebuild(forgotten: Forgotten): Promise<void>;
}

export function createForgottenOrders(parts: {
  sql: Database;
  orders: OrderStore;
  provider: CardProvider;
  secrets: Secrets;
  nowMs(): number;
}): ForgottenOrders {
  const { sql, orders, provider, secrets, nowMs } = parts;

  async function hasAccount(accountId: bigint): Promise<boolean> {
    const rows = await sql`select 1 from ledger_accounts where id = ${String(accountId)} and not house`;
    return rows.length > 0;
  }

  const forgotten: ForgottenOrders = {
    async rebuilt({ session_id: sessionId, payment_intent_id: paymentIntentId }, orderId) {
      const found = await forgotten.look({ orderId, sessionId, paymentIntentId });
      if (found === null) return null;
      await forgotten.rebuild(found);
      return orderId;
    },

    async look({ orderId, sessionId, paymentIntentId }) {
      if (orderId === null) return null;
      const kept = await provider.kept({ sessionId, paymentIntentId });
      if (kept === null || kept.payment?.status !== 'paid') return null;
      const noted = readNote(orderId, kept.note, secrets);
      // A checkout is looked at by its page, which other events do not name: its own event comes too.
      if (noted === null || (noted.kind === 'checkout' && kept.sessionId === null)) return null;
      const isFor = noted.accountId === null || (await hasAccount(noted.accountId));
      return { becomes: isFor ? 'granted' : 'refunded', orderId, noted, kept };
    },

    async rebuild({ becomes, orderId, noted, kept }) {
      const { payment } = kept;
      if (payment === null) throw new Error(`order ${orderId} has no payment`);
      const { paymentIntentId, customerId, paymentMethodId, card } = payment;
      // First, and once for its key: an order that is written here is not looked for again.
      if (becomes === 'refunded') await provider.refund(paymentIntentId, null, `forgotten:${orderId}`, false);
      const whose = becomes === 'granted' ? noted : { ...noted, accountId: null, key: null, recharge: null };
      await orders.insert(sql, {
        ...whose,
        id: orderId,
        keySecretId: whose.key === null ? null : whose.keySecretId,
        email: kept.email,
        customerId,
        paymentMethodId,
        cardFingerprint: card?.fingerprint ?? null,
        addressDigest: null,
        siteDigest: null,
        expiresAtMs: nowMs(),
        nextAtMs: nowMs() + nextLookAfterMs(0),
      });
      const order = await orders.find(orderId);
      // Another charge of the same card may still be open: this one is tried again once that has ended.
      if (order === null) throw new Error(`order ${orderId} cannot be written anew yet`);
      const { sessionId } = kept;
      await orders.change(sql, order, {
        paymentIntentId,
        ...(sessionId === null ? {} : { sessionId }),
      });
    },
  };
  return forgotten;
}
