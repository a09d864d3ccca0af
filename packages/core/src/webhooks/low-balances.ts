import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import type { BucketTurns } from '../ledger/bucket-turns.ts';
import { microsToUsd } from '../ledger/money.ts';
import type { EventLog } from './event-log.ts';
import { hasRoom } from './outbox.ts';

/** In one batch. */
const LOW_AT_ONCE = 200;

interface Telling {
  log: Pick<EventLog, 'addFor'>;
  nowMs(): number;
}

/** A webhook that waits to hear that its account's balance is low. Amounts in micro-USD. */
interface Low {
  id: string;
  balance: bigint;
  low_below_micros: bigint;
}

/**
 * Tells of balances that have fallen below what their owners named, once each time. It is looked up here and not noticed
 * by the calls: a call is not made slower for those who want to be told. What fell and rose again between two looks is
 * not told.
 *
 * @returns how many were told
 */
export async function tellOfLowBalances(
  sql: Database,
  { turns, stopping, ...telling }: Telling & { turns: BucketTurns; stopping?: AbortSignal | undefined },
): Promise<number> {
  let told = 0;
  /** The last webhook that was looked at, by bucket. */
  const lasts = new Map<number, string>();
  await turns.each(
    LOW_AT_ONCE,
    async (bucket) => {
      if (bucket === null) {
        const now = await tellAll(sql, telling);
        told += now;
        return now;
      }
      const looked = await tellOf(sql, bucket, { telling, after: lasts.get(bucket) ?? null });
      if (looked.last !== null) lasts.set(bucket, looked.last);
      told += looked.told;
      return looked.count;
    },
    stopping,
  );
  return told;
}

async function tellAll(sql: Database, telling: Telling): Promise<number> {
  await sql`
    update webhooks w set low_told = false from ledger_accounts a
    where a.id = w.account_id and w.low_told and a.credits_posted - a.debits_posted >= w.low_below_micros`;
  return sql.begin(async (transaction) => {
    const low = await transaction<Low[]>`
      select w.id, a.credits_posted - a.debits_posted as balance, w.low_below_micros
      from webhooks w join ledger_accounts a on a.id = w.account_id
      where ${isWaiting(transaction, telling)} and a.credits_posted - a.debits_posted < w.low_below_micros
        and exists (select 1 from api_keys k where k.account_id = w.account_id and k.status <> 'revoked')
      order by w.id limit ${LOW_AT_ONCE} for no key update of w skip locked`;
    return tell(transaction, low, telling);
  });
}

/** The same for the accounts of one bucket, which lie on another server than the webhooks. */
async function tellOf(
  sql: Database,
  bucket: number,
  { telling, after }: { telling: Telling; after: string | null },
): Promise<{ told: number; count: number; last: string | null }> {
  const watching = await sql<
    { id: string; account_id: bigint; low_below_micros: bigint; low_told: boolean }[]
  >`
    select id, account_id, low_below_micros, low_told from webhooks
    where low_below_micros is not null and (${after}::uuid is null or id > ${after}::uuid)
    order by id limit ${LOW_AT_ONCE}`;
  const last = watching.at(-1)?.id ?? null;
  if (last === null) return { told: 0, count: 0, last };
  const balances = await sql<{ id: bigint; balance: bigint; has_key: boolean }[]>`
    select a.id, a.credits_posted - a.debits_posted as balance, exists (
        select 1 from api_keys k where k.bucket = a.bucket and k.account_id = a.id and k.status <> 'revoked') as has_key
    from ledger_accounts a
    where a.bucket = ${bucket} and a.id = any(${arrayLiteral(watching.map((each) => each.account_id))}::text::bigint[])`;
  const known = new Map(balances.map((each) => [each.id, each]));
  const low = new Map<string, bigint>();
  const full: string[] = [];
  for (const { id, account_id, low_below_micros: below, low_told: isTold } of watching) {
    const account = known.get(account_id);
    if (account === undefined) continue;
    if (isTold && account.balance >= below) full.push(id);
    if (!isTold && account.balance < below && account.has_key) low.set(id, account.balance);
  }
  if (full.length > 0)
    await sql`update webhooks set low_told = false where id = any(${arrayLiteral(full)}::text::uuid[])`;
  if (low.size === 0) return { told: 0, count: watching.length, last };
  const told = await sql.begin(async (transaction) => {
    const rows = await transaction<Omit<Low, 'balance'>[]>`
      select w.id, w.low_below_micros from webhooks w
      where ${isWaiting(transaction, telling)} and w.id = any(${arrayLiteral([...low.keys()])}::text::uuid[])
      order by w.id for no key update of w skip locked`;
    return tell(
      transaction,
      rows.map((row) => ({ ...row, balance: low.get(row.id) ?? 0n })),
      telling,
    );
  });
  return { told, count: watching.length, last };
}

/** The condition that a webhook `w` is to be told. Those whose queue is full would keep others from being looked at. */
function isWaiting(on: Transaction, { nowMs }: Telling) {
  return on`w.low_below_micros is not null and not w.low_told and w.disabled_at is null
    and 'balance.low' = any (w.events) and ${hasRoom(on, new Date(nowMs()).toISOString())}`;
}

/** Writes the events of webhooks that are held. @returns how many */
async function tell(transaction: Transaction, low: readonly Low[], { log, nowMs }: Telling): Promise<number> {
  let told = 0;
  for (const { id, balance, low_below_micros: below } of low) {
    const written = await log.addFor(transaction, id, 'balance.low', {
      balanceUsd: microsToUsd(balance),
      lowBelowUsd: microsToUsd(below),
      asOf: new Date(nowMs()).toISOString(),
    });
    // A queue that filled up meanwhile: the next round tries again.
    if (!written) continue;
    told += 1;
    await transaction`update webhooks set low_told = true where id = ${id}`;
  }
  return told;
}
