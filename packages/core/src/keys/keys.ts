import { timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Database, Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { holdBucket, keepPlaces } from '../ledger/buckets.ts';
import { commitAsOne } from '../ledger/one-commit.ts';
import {
  bucketNamedBy,
  digestOf,
  looksLikeApiKey,
  type NewApiKey,
  newApiKey,
  type StoredApiKey,
} from './api-key.ts';
import { createFreezes, type Freezes } from './freezes.ts';
import { createHeldCaps, type HeldCaps } from './held-caps.ts';
import { createKeySearch, type KeySearch } from './key-search.ts';
import { rootBuyerOf } from './root-buyer.ts';
import { createRotations, type Rotations } from './rotations.ts';
import { createSpending, type Spending } from './spending.ts';

export type KeyKind = 'trial' | 'paid' | 'grant';
export type KeyStatus = 'active' | 'revoked' | 'frozen';

/** The immutable part of a key, which may be cached. Status, expiry and caps are read with every call. */
export interface KnownKey {
  id: bigint;
  accountId: bigint;
  /** The account's bucket. */
  bucket: number;
  prefix: string;
}

/** A key that was presented. */
export interface FoundKey extends KnownKey {
  /** The root buyer's name, by which its account's shares are counted. */
  buyer: string;
}

export interface KeyRecord extends KnownKey {
  kind: KeyKind;
  label: string | null;
  status: KeyStatus;
  createdAt: Date;
  expiresAt: Date | null;
  capPerCallMicros: bigint | null;
  capPerDayMicros: bigint | null;
  /** The time until which its owner cannot raise the cap per day. */
  capFixedUntil: Date | null;
}

export interface Keys extends Freezes, HeldCaps, Rotations, Spending {
  /** Makes a key for an account, within a transaction. The key itself is in the answer and nowhere else. */
  issue(
    transaction: Transaction,
    key: { accountId: bigint; kind: KeyKind; label: string | null; expiresAtMs: number | null },
  ): Promise<NewApiKey>;
  /** Issues, as `issue` does, a key whose owner can derive it already: only what is stored of it comes here. @returns its id */
  admit(
    transaction: Transaction,
    key: {
      accountId: bigint;
      kind: KeyKind;
      label: string | null;
      stored: StoredApiKey;
      expiresAtMs?: number | null;
    },
  ): Promise<bigint>;
  /** Finds the key that was presented; null when there is no such key, whatever its status. */
  find(apiKey: string): Promise<FoundKey | null>;
  record(id: bigint): Promise<KeyRecord | null>;
  /**
   * Changes caps and label. `null` takes a cap away; what is left out stays.
   *
   * @returns why nothing was changed: it would raise a cap per day that is held, or the key has ended meanwhile, and its
   *   successor took over what stood until then
   */
  update(
    id: bigint,
    change: { label?: string | null; capPerCallMicros?: bigint | null; capPerDayMicros?: bigint | null },
  ): Promise<'done' | 'cap_held' | 'ended'>;
  /**
   * Ends every key of an account and puts a new one in their place, with label, caps and kind of the latest.
   *
   * @param stored what is stored of the new key
   * @returns its id; null, and nothing is changed, while the account is frozen
   */
  replaceAll(transaction: Transaction, accountId: bigint, stored: StoredApiKey): Promise<bigint | null>;
  revoke(id: bigint): Promise<void>;
  /** A trial whose account has bought credit is a trial no longer: nothing on it expires. */
  becomePaid(transaction: Transaction, accountId: bigint): Promise<void>;
}

interface KeyRow {
  id: bigint;
  account_id: bigint;
  bucket: number;
  prefix: string;
  kind: KeyKind;
  label: string | null;
  status: KeyStatus;
  created_at: Date;
  expires_at: Date | null;
  cap_per_call_micros: bigint | null;
  cap_per_day_micros: bigint | null;
  cap_fixed_until: Date | null;
}

/** How long it may take until an operator's lifting of bounds is seen by a process that knows the key. */
const KNOWN_FOR_MS = 10 * 60_000;

const ONE_POSTGRES: DistributionNote = { isDistributed: false };

/** The keys of a database. @param distribution whether it is spread over servers; it is not unless given */
export function createKeys(sql: Database, nowMs: () => number, distribution = ONE_POSTGRES): Keys {
  // By size and not by `max`, which takes the memory of all keys at once.
  const known = new LRUCache<bigint, StoredKey>({
    maxSize: 50_000,
    sizeCalculation: () => 1,
    ttl: KNOWN_FOR_MS,
  });
  const now = () => new Date(nowMs()).toISOString();
  const search = createKeySearch(sql, distribution);
  /** Changes keys wherever they are: none is passed by because it is being moved. */
  async function inTheirPlaces<T>(change: (on: Database | Transaction) => Promise<T>): Promise<T> {
    if (!distribution.isDistributed) return change(sql);
    const [changed] = await sql.begin(async (transaction) => {
      await keepPlaces(transaction, distribution);
      return [await change(transaction)] as const;
    });
    return changed as T;
  }

  return {
    ...createFreezes(sql, now, distribution),
    ...createHeldCaps(sql, now, distribution),
    ...createRotations(sql, nowMs, distribution),
    ...createSpending(sql, now),

    async issue(transaction, key) {
      const bucket = await bucketOf(transaction, key.accountId);
      const made = newApiKey(bucket);
      await insertKey(transaction, { ...key, bucket, stored: made, at: now() });
      return made;
    },

    async admit(transaction, { expiresAtMs = null, ...key }) {
      const bucket = await bucketOf(transaction, key.accountId);
      return insertKey(transaction, { ...key, expiresAtMs, bucket, at: now() });
    },

    async find(apiKey) {
      if (!looksLikeApiKey(apiKey)) return null;
      const { digest, lookup } = digestOf(apiKey);
      const remembered = known.get(lookup);
      const found = remembered ?? (await storedKey(sql, search, { lookup, bucket: bucketNamedBy(apiKey) }));
      if (found === null) return null;
      if (remembered === undefined) known.set(lookup, found);
      return timingSafeEqual(found.digest, digest) ? found.key : null;
    },

    async record(id) {
      const [row] = await sql<KeyRow[]>`
        select id, account_id, bucket, prefix, kind, label, status, created_at, expires_at, cap_per_call_micros,
               cap_per_day_micros, cap_fixed_until
        from api_keys where id = ${String(id)}`;
      return row === undefined ? null : recordOf(row);
    },

    update: (id, change) => inTheirPlaces((on) => updateKey(on, { id, now: now() }, change)),

    replaceAll: (on, accountId, stored) => replaceAll(on, accountId, stored, { at: now(), distribution }),

    revoke: (id) =>
      inTheirPlaces(async (on) => {
        await on`update api_keys set status = 'revoked' where id = ${String(id)}`;
      }),

    async becomePaid(transaction, accountId) {
      await keepPlaces(transaction, distribution);
      await transaction`
        update trial_credits set bought_at = ${now()} where account_id = ${String(accountId)} and bought_at is null`;
      await transaction`
        update api_keys set kind = 'paid', expires_at = null, trial_closed = false
        where account_id = ${String(accountId)} and kind = 'trial' and status <> 'revoked'`;
    },
  };
}

type KeyChange = Parameters<Keys['update']>[1];

/** Changes caps and label of a key, for `Keys.update`. @param of.now in ISO 8601 */
async function updateKey(
  on: Database | Transaction,
  { id, now }: { id: bigint; now: string },
  change: KeyChange,
): ReturnType<Keys['update']> {
  const columns = {
    ...(change.label === undefined ? {} : { label: change.label }),
    ...(change.capPerCallMicros === undefined
      ? {}
      : { cap_per_call_micros: textOf(change.capPerCallMicros) }),
    ...(change.capPerDayMicros === undefined ? {} : { cap_per_day_micros: textOf(change.capPerDayMicros) }),
  };
  if (Object.keys(columns).length === 0) return 'done';
  const cap = change.capPerDayMicros;
  if (cap === undefined) {
    const { count } = await on`
        update api_keys set ${on(columns)} where id = ${String(id)} and status <> 'revoked'`;
    return count === 1 ? 'done' : 'ended';
  }
  const { count } = await on`
      update api_keys set ${on(columns)},
        cap_afterwards_micros = case when cap_fixed_until is not null then ${textOf(cap)}::bigint end
      where id = ${String(id)} and status <> 'revoked' and (cap_fixed_until is null or cap_fixed_until <= ${now}
        or cap_per_day_micros >= ${textOf(cap)}::bigint)`;
  if (count === 1) return 'done';
  const [ended] = await on`select 1 from api_keys where id = ${String(id)} and status = 'revoked'`;
  return ended === undefined ? 'cap_held' : 'ended';
}

function textOf(micros: bigint | null): string | null {
  return micros === null ? null : String(micros);
}

interface StoredKey {
  key: FoundKey;
  digest: Buffer;
}

/** Reads what is stored of a key; null when there is none. */
async function storedKey(
  sql: Database,
  search: KeySearch,
  wanted: { lookup: bigint; bucket: number },
): Promise<StoredKey | null> {
  const row = await search.find(wanted);
  if (row === null) return null;
  const { id, account_id: accountId, bucket, prefix, digest } = row;
  const { name: buyer } = await rootBuyerOf(sql, accountId);
  return { key: { id, accountId, bucket, prefix, buyer }, digest };
}

interface KeyToInsert {
  accountId: bigint;
  bucket: number;
  kind: KeyKind;
  label: string | null;
  stored: StoredApiKey;
  expiresAtMs: number | null;
  /** Now, in ISO 8601. */
  at: string;
}

/** Stores a key. @returns its id */
async function insertKey(
  transaction: Transaction,
  { accountId, bucket, kind, label, stored, expiresAtMs, at }: KeyToInsert,
): Promise<bigint> {
  const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs).toISOString();
  const [row] = await transaction<{ id: bigint }[]>`
    insert into api_keys (account_id, bucket, lookup, digest, prefix, kind, label, created_at, expires_at)
    values (${String(accountId)}, ${bucket}, ${String(stored.lookup)}, ${stored.digest}, ${stored.prefix}, ${kind},
            ${label}, ${at}, ${expiresAt}) returning id`;
  if (row === undefined) throw new Error('the database returned no key');
  return row.id;
}

/** The bucket of an account, for a key of it: the account stays there until the transaction ends. */
async function bucketOf(transaction: Transaction, accountId: bigint): Promise<number> {
  const bucket = await holdBucket(transaction, accountId);
  if (bucket === null) throw new Error(`no account ${accountId}`);
  return bucket;
}

function recordOf(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    bucket: row.bucket,
    prefix: row.prefix,
    kind: row.kind,
    label: row.label,
    status: row.status,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    capPerCallMicros: row.cap_per_call_micros,
    capPerDayMicros: row.cap_per_day_micros,
    capFixedUntil: row.cap_fixed_until,
  };
}

/** Replaces all keys of an account, for `Keys.replaceAll`. @param of.at now, in ISO 8601 */
async function replaceAll(
  transaction: Transaction,
  accountId: bigint,
  stored: StoredApiKey,
  { at, distribution }: { at: string; distribution: DistributionNote },
): Promise<bigint | null> {
  if (distribution.isDistributed) return replaceAllOf(transaction, accountId, stored, at);
  const { lookup, digest, prefix } = stored;
  // As in `Rotations.rotate`: whoever freezes the account holds it.
  await transaction`select 1 from ledger_accounts where id = ${String(accountId)} for no key update`;
  const frozen = await transaction`
    select 1 from account_freezes where account_id = ${String(accountId)}
    union all select 1 from api_keys where account_id = ${String(accountId)} and status = 'frozen' limit 1`;
  if (frozen.length > 0) return null;
  const [made] = await transaction<{ id: bigint }[]>`
    insert into api_keys (account_id, bucket, lookup, digest, prefix, kind, label, created_at, expires_at,
                          cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros)
    select account_id, bucket, ${String(lookup)}::bigint, ${digest}, ${prefix}, kind, label, ${at}::timestamptz,
           expires_at, cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros
    from api_keys where account_id = ${String(accountId)} order by id desc limit 1 returning id`;
  if (made === undefined) return null;
  await transaction`
    update api_keys set status = 'revoked' where account_id = ${String(accountId)} and id <> ${String(made.id)}`;
  return made.id;
}

/** The same where the database is spread: a statement that locks or changes rows names the bucket, and freezes lie on the coordinator. */
async function replaceAllOf(
  transaction: Transaction,
  accountId: bigint,
  { lookup, digest, prefix }: StoredApiKey,
  at: string,
): Promise<bigint | null> {
  await commitAsOne(transaction, { isDistributed: true });
  const bucket = await bucketOf(transaction, accountId);
  await transaction`
    select 1 from ledger_accounts where bucket = ${bucket} and id = ${String(accountId)} for no key update`;
  const frozen = await transaction`
    select 1 from account_freezes where account_id = ${String(accountId)} limit 1`;
  const [latest] = await transaction<{ id: bigint; frozen: boolean }[]>`
    select id, (select count(*) > 0 from api_keys where bucket = ${bucket} and account_id = ${String(accountId)} and status = 'frozen') as frozen
    from api_keys where bucket = ${bucket} and account_id = ${String(accountId)} order by id desc limit 1`;
  if (frozen.length > 0 || latest === undefined || latest.frozen) return null;
  const [made] = await transaction<{ id: bigint }[]>`
    insert into api_keys (bucket, account_id, lookup, digest, prefix, kind, label, created_at, expires_at,
                          cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros)
    select bucket, account_id, ${String(lookup)}::bigint, ${digest}::bytea, ${prefix}::text, kind, label, ${at}::timestamptz,
           expires_at, cap_per_call_micros, cap_per_day_micros, cap_fixed_until, cap_afterwards_micros
    from api_keys where bucket = ${bucket} and id = ${String(latest.id)} returning id`;
  if (made === undefined) throw new Error('the database returned no key');
  await transaction`
    update api_keys set status = 'revoked'
    where bucket = ${bucket} and account_id = ${String(accountId)} and id <> ${String(made.id)}`;
  return made.id;
}
