import type { Database, Transaction } from '../../db/connection.ts';
import type { DistributionNote } from '../../db/distribution-note.ts';
import type { NewApiKey } from '../../keys/api-key.ts';
import { keepPlaces } from '../../ledger/buckets.ts';
import type { Secret, Secrets } from '../../secrets/secrets.ts';
import type { CardOrder, OrderStore } from '../orders/orders.ts';

/** How long a key that was handed over is handed over again, should the answer have been lost on its way. */
export const DELIVERY_WINDOW_MS = 120_000;

/**
 * Hands over the key that a paid order bought: until it has been used, or its time is over.
 *
 * @param make makes the key anew from a secret of ours and the one that its owner holds
 * @returns null: it was handed over before, and is not told again
 */
export interface HandOver {
  (order: CardOrder, to: 'agent' | 'page', make: (secret: Secret) => NewApiKey): Promise<NewApiKey | null>;
  /** Whether a key that was handed over is still handed over again. */
  lasts(order: CardOrder): Promise<boolean>;
}

export function createHandOver(parts: {
  sql: Database;
  distribution: DistributionNote;
  orders: Pick<OrderStore, 'deliver'>;
  secrets: Secrets;
  nowMs(): number;
}): HandOver {
  const { sql, distribution, orders, secrets, nowMs } = parts;

  const isUnused = async (keyId: bigint) => (await isUnusedKey(sql, distribution, keyId)) !== null;

  const give = async (order: CardOrder, to: 'agent' | 'page', make: (secret: Secret) => NewApiKey) => {
    const { key } = order;
    if (order.keyId === null || key === null) throw new Error(`order ${order.id} has no key`);
    // Before it counts as handed over: with a version missing, another replica may be able to.
    const made = secrets.all.map(make).find(({ digest }) => digest.equals(key.digest));
    if (made === undefined) throw new Error(`the key of order ${order.id} was made with another secret`);
    // The time of the question: whoever is the first must not be too late because the answer took its time.
    const askedAtMs = nowMs();
    const deliveredAtMs = await orders.deliver(order.id, to);
    if (askedAtMs - deliveredAtMs > DELIVERY_WINDOW_MS || !(await isUnused(order.keyId))) return null;
    return made;
  };
  return Object.assign(give, {
    async lasts({ keyId, deliveredAtMs }: CardOrder) {
      if (keyId === null || deliveredAtMs === null) return false;
      return nowMs() - deliveredAtMs <= DELIVERY_WINDOW_MS && (await isUnused(keyId));
    },
  });
}

/** The stored part of a key that may still be on its way to its owner: it stands, and was never used. Null otherwise. */
export async function isUnusedKey(
  sql: Database,
  { isDistributed }: DistributionNote,
  keyId: bigint,
): Promise<Buffer | null> {
  if (isDistributed) return sql.begin((transaction) => isUnusedKeyOf(transaction, keyId));
  const [row] = await sql<{ digest: Buffer }[]>`
    select k.digest from api_keys k where k.id = ${String(keyId)} and k.status <> 'revoked'
      and not exists (select 1 from calls c where c.account_id = k.account_id and c.key_id = k.id)
      and not exists (select 1 from calls_carried c where c.account_id = k.account_id and c.key_id = k.id)`;
  return row?.digest ?? null;
}

/** The same where the database is spread: archived weeks of calls are on the coordinator, and the rest in the key's bucket. */
async function isUnusedKeyOf(sql: Transaction, keyId: bigint): Promise<Buffer | null> {
  await keepPlaces(sql, { isDistributed: true });
  const [key] = await sql<{ digest: Buffer; account_id: bigint; bucket: number }[]>`
    select digest, account_id, bucket from api_keys where id = ${String(keyId)} and status <> 'revoked'`;
  if (key === undefined) return null;
  const account = String(key.account_id);
  const used = await sql`
    select 1 from calls where bucket = ${key.bucket} and account_id = ${account} and key_id = ${String(keyId)} limit 1`;
  const carried = await sql`
    select 1 from calls_carried where account_id = ${account} and key_id = ${String(keyId)} limit 1`;
  return used.length + carried.length > 0 ? null : key.digest;
}
