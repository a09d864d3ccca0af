import type { Database } from '../db/connection.ts';
import type { NewApiKey } from '../keys/api-key.ts';
import type { Secret, Secrets } from '../secrets/secrets.ts';
import type { CardOrder, OrderStore } from './orders.ts';

/** How long a key that was handed over is handed over again, should the answer have been lost on its way. */
export const DELIVERY_WINDOW_MS = 120_000;

/**
 * Hands over the key that a paid order bought: until it has been used, or its time is over.
 *
 * @param make makes the key anew from a secret of ours and the one that its owner holds
 * @returns null: it was handed over before, and is not told again
 */
export type HandOver = (order: CardOrder, make: (secret: Secret) => NewApiKey) => Promise<NewApiKey | null>;

export function createHandOver(parts: {
  sql: Database;
  orders: Pick<OrderStore, 'deliver'>;
  secrets: Secrets;
  nowMs(): number;
}): HandOver {
  const { sql, orders, secrets, nowMs } = parts;

  /** Whether a key may still be on its way to its owner: it has never been used, and is the account's own. */
  async function isUnused(keyId: bigint): Promise<boolean> {
    const rows = await sql`
      select 1 from api_keys k where k.id = ${String(keyId)} and k.status <> 'revoked'
        and not exists (select 1 from calls c where c.account_id = k.account_id and c.key_id = k.id)`;
    return rows.length === 1;
  }

  return async (order, make) => {
    const { key } = order;
    if (order.keyId === null || key === null) throw new Error(`order ${order.id} has no key`);
    // Before it counts as handed over: with a version missing, another replica may be able to.
    const made = secrets.all.map(make).find(({ digest }) => digest.equals(key.digest));
    if (made === undefined) throw new Error(`the key of order ${order.id} was made with another secret`);
    // The time of the question: whoever is the first must not be too late because the answer took its time.
    const askedAtMs = nowMs();
    const deliveredAtMs = await orders.deliver(order.id);
    if (askedAtMs - deliveredAtMs > DELIVERY_WINDOW_MS || !(await isUnused(order.keyId))) return null;
    return made;
  };
}
