/** Rotation of keys: how often, and how long the rows of the old ones stay. */

import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { Problem } from '../http/problem.ts';
import type { BucketTurns } from '../ledger/bucket-turns.ts';
import { keepPlaces } from '../ledger/buckets.ts';
import { type NewApiKey, newApiKey } from './api-key.ts';

const DAY_MS = 86_400_000;
/** How many rotations an account has in 24 hours, over all of its keys. */
const ROTATIONS_A_DAY = 24;
/** How long the row of a key stays that a rotation ended. */
const ROTATED_KEPT_MS = 90 * DAY_MS;
const KEYS_LOOKED_AT_ONCE = 500;

export interface Rotations {
  /**
   * Replaces a key by a new one of the same account, caps and expiry; the old one ends in the same commit.
   *
   * @returns null when the old one is not active any more: of two rotations at once one wins
   * @throws Problem 429 when the account's keys were rotated as often as they may be in a day
   */
  rotate(id: bigint): Promise<NewApiKey | null>;
  /**
   * Forgets keys that were ended by a rotation 90 days ago, in short steps. One that an order, an operator's act or
   * anything else but a call names stays. A call keeps the number of its key.
   */
  forgetRotated(turns: BucketTurns, stopping?: AbortSignal): Promise<void>;
}

export function createRotations(
  sql: Database,
  nowMs: () => number,
  distribution: DistributionNote,
): Rotations {
  const at = (afterMs: number) => new Date(nowMs() + afterMs).toISOString();

  return {
    async rotate(id) {
      return sql.begin(async (transaction) => {
        // Freezing locks the account. Without this lock a key made meanwhile would escape the freeze, and rotations at
        // once would not count each other.
        const account = await (distribution.isDistributed
          ? holdAccountOf(transaction, id)
          : holdAccount(transaction, id));
        if (account === undefined) return null;
        const made = newApiKey(account.bucket);
        const replaced = await (distribution.isDistributed
          ? replaceOf(transaction, account, { id, made, now: at(0) })
          : replace(transaction, { id, made, now: at(0) }));
        if (!replaced) return null;
        await refuseTooMany(transaction, account.id, nowMs());
        return made;
      });
    },

    async forgetRotated(turns, stopping) {
      const until = at(-ROTATED_KEPT_MS);
      // What stays must not keep a step from what comes after it.
      const lasts = new Map<number | null, KeyLooked>();
      await turns.each(
        KEYS_LOOKED_AT_ONCE,
        async (bucket) => {
          const last = lasts.get(bucket) ?? { rotated_at: '-infinity', id: '0' };
          const looked = await (bucket === null
            ? forgetStep(sql, until, last)
            : forgetStepOf(sql, bucket, { until, last }));
          lasts.set(bucket, looked.at(-1) ?? last);
          return looked.length;
        },
        stopping,
      );
    },
  };
}

interface HeldAccount {
  id: bigint;
  bucket: number;
}

interface Replacement {
  /** The key that ends. */
  id: bigint;
  made: NewApiKey;
  /** Now, in ISO 8601. */
  now: string;
}

async function holdAccount(transaction: Transaction, keyId: bigint): Promise<HeldAccount | undefined> {
  const [account] = await transaction<HeldAccount[]>`
    select id, bucket from ledger_accounts
    where id = (select account_id from api_keys where id = ${String(keyId)}) for no key update`;
  return account;
}

/** The same where the database is spread: a statement that locks names the bucket. */
async function holdAccountOf(transaction: Transaction, keyId: bigint): Promise<HeldAccount | undefined> {
  await keepPlaces(transaction, { isDistributed: true });
  const [key] = await transaction<{ account_id: bigint; bucket: number }[]>`
    select account_id, bucket from api_keys where id = ${String(keyId)}`;
  if (key === undefined) return undefined;
  const [account] = await transaction<HeldAccount[]>`
    select id, bucket from ledger_accounts where bucket = ${key.bucket} and id = ${String(key.account_id)}
    for no key update`;
  return account;
}

/** Ends a key and stores the one in its place. @returns false when it was not active any more */
async function replace(transaction: Transaction, { id, made, now }: Replacement): Promise<boolean> {
  const replaced = await transaction`
    with old as (
      update api_keys set status = 'revoked', rotated_at = ${now} where id = ${String(id)} and status = 'active'
      returning account_id, bucket, kind, label, expires_at, cap_per_call_micros, cap_per_day_micros, cap_fixed_until,
                cap_afterwards_micros
    )
    insert into api_keys (account_id, bucket, lookup, digest, prefix, kind, label, created_at, expires_at,
                          cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros)
    select account_id, bucket, ${String(made.lookup)}::bigint, ${made.digest}, ${made.prefix}, kind, label, ${now}::timestamptz,
           expires_at, cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros
    from old returning id`;
  return replaced.length > 0;
}

/** The same where the database is spread: a statement each, of one bucket. */
async function replaceOf(
  transaction: Transaction,
  { bucket }: HeldAccount,
  { id, made, now }: Replacement,
): Promise<boolean> {
  const { count } = await transaction`
    update api_keys set status = 'revoked', rotated_at = ${now}
    where status = 'active' and bucket = ${bucket} and id = ${String(id)}`;
  if (count === 0) return false;
  await transaction`
    insert into api_keys (account_id, bucket, lookup, digest, prefix, kind, label, created_at, expires_at,
                          cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros)
    select account_id, bucket, ${String(made.lookup)}::bigint, ${made.digest}::bytea, ${made.prefix}::text, kind, label,
           ${now}::timestamptz, expires_at, cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros
    from api_keys where bucket = ${bucket} and id = ${String(id)}`;
  return true;
}

/** Undoes a rotation that is one too many, by ending its transaction. */
async function refuseTooMany(transaction: Transaction, accountId: bigint, nowMs: number): Promise<void> {
  const [beyond] = await transaction<{ rotated_at: Date }[]>`
    select rotated_at from api_keys
    where account_id = ${String(accountId)} and rotated_at > ${new Date(nowMs - DAY_MS).toISOString()}
    order by rotated_at desc offset ${ROTATIONS_A_DAY} limit 1`;
  if (beyond === undefined) return;
  const retryAfter = Math.max(1, Math.ceil((beyond.rotated_at.getTime() + DAY_MS - nowMs) / 1_000));
  throw new Problem(
    429,
    'KEY_ROTATED_TOO_OFTEN',
    `The keys of an account are rotated at most ${ROTATIONS_A_DAY} times in 24 hours. This key goes on.`,
    { details: { retryAfter, charged: false }, headers: { 'retry-after': String(retryAfter) } },
  );
}

/** A key that was looked at, in the order of their end. */
interface KeyLooked {
  rotated_at: string;
  id: string;
}

/**
 * The same for the keys of one bucket, which lie on another server than what may name them. A key that was ended so long ago cannot be named
 * anew.
 */
async function forgetStepOf(
  sql: Database,
  bucket: number,
  { until, last }: { until: string; last: KeyLooked },
): Promise<KeyLooked[]> {
  const due = await sql<(KeyLooked & { account_id: bigint })[]>`
    select rotated_at::text as rotated_at, id::text as id, account_id from api_keys
    where bucket = ${bucket} and rotated_at <= ${until}
      and (rotated_at, id) > (${last.rotated_at}::text::timestamptz, ${last.id}::bigint)
    order by api_keys.rotated_at, api_keys.id limit ${KEYS_LOOKED_AT_ONCE}`;
  if (due.length === 0) return [];
  const free = await sql<{ id: string }[]>`
    select d.id::text as id from unnest(
      ${arrayLiteral(due.map((key) => key.account_id))}::text::bigint[], ${arrayLiteral(due.map((key) => key.id))}::text::bigint[]) as d (account_id, id)
    where ${unnamed(sql)}`;
  await sql`
    delete from api_keys where bucket = ${bucket} and status = 'revoked'
      and id = any(${arrayLiteral(free.map(({ id }) => id))}::text::bigint[])`;
  return due;
}

/** The condition that nothing but a call names a key `d`. */
function unnamed(sql: Database) {
  return sql`
    not exists (select 1 from card_orders o where o.account_id = d.account_id and o.key_id = d.id)
    and not exists (select 1 from operator_acts a where a.account_id = d.account_id and a.key_id = d.id)
    and not exists (select 1 from key_links l where l.key_id = d.id)
    and not exists (select 1 from key_addresses s where s.key_id = d.id)
    and not exists (select 1 from followed_calls f where f.key_id = d.id and f.state <> 2)`;
}

/** Looks at the next keys in order of their end, and forgets those that nothing names. */
async function forgetStep(sql: Database, until: string, last: KeyLooked): Promise<KeyLooked[]> {
  return sql<KeyLooked[]>`
    with due as (
      select id, account_id, rotated_at from api_keys
      where rotated_at <= ${until} and (rotated_at, id) > (${last.rotated_at}::text::timestamptz, ${last.id}::bigint)
      order by rotated_at, id limit ${KEYS_LOOKED_AT_ONCE} for update skip locked
    ), gone as (
      delete from api_keys k using due d
      where k.id = d.id and k.status = 'revoked' and ${unnamed(sql)}
    )
    select rotated_at::text as rotated_at, id::text as id from due order by due.rotated_at, due.id`;
}
