/**
 * The store of paid calls, and the only code that changes their table. A call and its money move in the same commit,
 * and many calls share one commit: see `call-batch.ts`.
 */
import { LRUCache } from 'lru-cache';
import { byKey } from '../../db/by-key.ts';
import {
  COMMIT_CONNECTIONS,
  type Database,
  isRefusal,
  type Pools,
  type Transaction,
} from '../../db/connection.ts';
import { sqlFunction } from '../../db/functions.ts';
import { createWeeks } from '../../db/weeks.ts';
import { HOUSE_ACCOUNTS, houseAccountName, isHouseAccount } from '../../ledger/accounts.ts';
import { inBucket } from '../../ledger/bucket-turns.ts';
import { bucketNow, HOUSE_BUCKET, keepPlaces, whereItIs } from '../../ledger/buckets.ts';
import { GroupCommit } from '../../ledger/group-commit.ts';
import { bucketNamedByCall } from '../../ledger/transfer-id.ts';
import { applyCalls, type CallWork, type CallWorkOutcome, mayBeLost } from './call-batch.ts';
import type {
  BeginOutcome,
  CallToBegin,
  CallToFinish,
  CallToKeep,
  FinishOutcome,
  KeepOutcome,
  PricedCall,
  StoredAnswer,
} from './call-steps.ts';

const OPEN_CALLS = sqlFunction('open_calls');
const CALLS_SETTLE_PAST = sqlFunction('calls_settle_past');

export interface CallStore {
  /**
   * Reserves the price and claims the payment's identity: both, or neither.
   *
   * @throws QueueFull or NotBegun when nothing was done. After any other error that is unknown, and the caller must
   *   release the call
   */
  begin(call: CallToBegin): Promise<BeginOutcome>;
  /**
   * Stores the answer and the evidence that settles the call. From then on the chain decides how the call ends. Running
   * it again changes nothing.
   */
  keep(call: CallToKeep): Promise<KeepOutcome>;
  /** Takes the price or gives it back, and keeps the answer: all, or nothing. Running it again changes nothing. */
  finish(call: CallToFinish): Promise<FinishOutcome>;
  answerOf(
    accountId: bigint,
    callId: string,
  ): Promise<(StoredAnswer & { transaction: string | null }) | null>;
  /**
   * What became of a payment, without claiming it; null when it bought nothing. As in `begin`, a key that has ended
   * gets nothing.
   */
  look(
    payment: { accountId: bigint; keyId: bigint | null; identity: string; onChainIdentity: string | null },
    fingerprint: Buffer,
  ): Promise<BeginOutcome | null>;
  /** Calls whose time is over, oldest first. Calls of accounts that are locked at this moment are left out. */
  expired(limit: number): Promise<PricedCall[]>;
  /** Calls that were running in a process which has ended. */
  heldByEnded(limit: number): Promise<PricedCall[]>;
  /** What is reserved by calls that are running, on all replicas, in micro-USD. */
  reservedMicros(): Promise<bigint>;
  /**
   * Deletes answers that nobody may ask for any more, at most `limit` of them.
   *
   * @param bucket of one bucket; null, or not given: of all
   * @returns how many were deleted
   */
  dropExpiredAnswers(limit: number, bucket?: number | null): Promise<number>;
  /** Makes the weeks ahead that calls will lie in. */
  makeWeeks(): Promise<void>;
  /** How much work waits for the database. */
  readonly depth: number;
}

/** Accounts with a lower id are the house's, and are never locked by a call. */
const FIRST_CUSTOMER = 1_000;
/** How long a caller waits for its call to be begun, kept or finished. */
const DEADLINE_MS = 4_000;

/**
 * A statement touches one bucket; and what may be lost waits for no disk, so it goes by itself. All lanes go over one
 * connection, one behind the other: none finds an account locked by another.
 */
const laneOf = (work: CallWork) => work.call.bucket * 2 + Number(mayBeLost(work));
/** How many moved accounts a process remembers; each of the others is looked for once more with every call. */
const MOST_MOVED = 50_000;
const BOUNDS = { maxBatch: 512, maxFlights: COMMIT_CONNECTIONS, maxWaiting: 10_000, maxAttempts: 5 };

/** The account that a free call would pay, which has no transfer. */
const REVENUE_OF_FREE = String(HOUSE_ACCOUNTS.revenue_credits);

/** The status of a key without a row: it was revoked, and has been forgotten since. */
const FORGOTTEN = 'revoked';

/**
 * Opens the store on a database. Answers are kept for `answerTtlMs`.
 *
 * @param options.holder this process, by its row in `replicas`; the calls it holds are released when it has ended
 */
export function createCallStore(
  { sql, patient, commits: pool, hot, distribution }: Pools,
  options: { nowMs: () => number; answerTtlMs: number; holder?: () => bigint | null },
): CallStore {
  const { nowMs, answerTtlMs, holder = () => null } = options;
  const now = () => new Date(nowMs()).toISOString();
  const weeks = createWeeks({ sql, patient });
  const given = () => ({ answerTtlMs, nowMs: nowMs(), holder: holder(), apart: distribution.isDistributed });
  const commits = inGroups((batch) =>
    weeks.run((weekOf) => applyCalls(pool, batch, { ...given(), weekOf, hot })),
  );
  const submit = inItsPlace(commits, (accountId) => bucketNow(sql, accountId, distribution));

  return {
    begin: (call) => submit({ kind: 'begin', call }) as Promise<BeginOutcome>,
    keep: (call) => submit({ kind: 'keep', call }) as Promise<KeepOutcome>,
    finish: (call) => submit({ kind: 'finish', call }) as Promise<FinishOutcome>,
    get depth() {
      return commits.depth;
    },

    answerOf: (accountId, callId) => answerNow({ sql, distribution }, { accountId, callId, now: now() }),

    async look({ accountId, keyId, identity, onChainIdentity }, fingerprint) {
      const [row] = await sql<{ id: string; state: number; same: boolean; key_status: string | null }[]>`
        select c.id, c.state, c.fingerprint = ${fingerprint} as same, coalesce(k.status, ${keyId === null ? null : FORGOTTEN}) as key_status
        from call_identities i join calls c on c.bucket = i.bucket and c.account_id = i.account_id and c.id = i.call_id
        left join api_keys k on k.bucket = i.bucket and k.id = ${keyId === null ? null : String(keyId)}
        where i.account_id = ${String(accountId)}
          and (i.kind, i.identity) in ((0, ${identity}), (1, ${onChainIdentity}))
        order by c.state = 2 limit 1`;
      if (row === undefined || row.state === 2) return null;
      if (row.key_status === 'revoked') return { status: 'key_revoked' };
      if (row.key_status === 'frozen') return { status: 'key_frozen' };
      if (!row.same) return { status: 'other_request' };
      if (row.state === 0) return { status: 'running' };
      return { status: row.state === 1 ? 'answered' : 'settling', callId: row.id };
    },

    async expired(limit) {
      let more = true;
      while (more) {
        const [settled] = await sql<{ more: boolean }[]>`select ${sql(CALLS_SETTLE_PAST)}() as more`;
        more = settled?.more === true;
      }
      // Whoever ends a call leaves it while its account is locked.
      if (distribution.isDistributed)
        return openCalls(sql, sql`c.expires_at <= ${now()} order by c.expires_at limit ${limit}`);
      const rows = await sql<OpenRow[]>`
        with due as materialized (
          select account_id, id, bucket, service, price_micros, expires_at from ${sql(OPEN_CALLS)}()
          where expires_at <= ${now()}
        ), free as materialized (
          select a.id from ledger_accounts a where a.id in (select account_id from due) and a.id >= ${FIRST_CUSTOMER}
          for no key update skip locked
        )
        select c.id, c.account_id, c.bucket, c.service, c.price_micros, coalesce(t.credit_account, ${REVENUE_OF_FREE}) as revenue
        from due c left join lateral (${reservationOf(sql)}) t on true
        where (c.account_id < ${FIRST_CUSTOMER} or c.account_id in (select id from free)) and (t.id is not null or c.price_micros = 0)
        order by c.expires_at limit ${limit}`;
      return rows.map(openCall);
    },

    heldByEnded: (limit) => heldByEnded(sql, limit, distribution),

    async reservedMicros() {
      const [row] = await sql<{ reserved: bigint }[]>`
        select coalesce(sum(price_micros), 0)::bigint as reserved from ${sql(OPEN_CALLS)}()`;
      return row?.reserved ?? 0n;
    },

    makeWeeks: () => weeks.make(nowMs()),
    dropExpiredAnswers: (limit, bucket = null) => dropExpiredAnswers(sql, { limit, bucket, now: now() }),
  };
}

async function dropExpiredAnswers(
  sql: Pools['sql'],
  { limit, bucket, now }: { limit: number; bucket: number | null; now: string },
): Promise<number> {
  const here = inBucket(sql, bucket);
  const dropped = await byKey(
    sql,
    (on) => on`
    with old as (
      select account_id, id from call_answers where ${here} expires_at <= ${now} order by expires_at limit ${limit}
      for update skip locked
    )
    delete from call_answers a using old where ${here} a.account_id = old.account_id and a.id = old.id`,
  );
  return dropped.count;
}

async function heldByEnded(
  sql: Pools['sql'],
  limit: number,
  distribution: Pools['distribution'],
): Promise<PricedCall[]> {
  if (distribution.isDistributed)
    return openCalls(
      sql,
      sql`c.holder in (select id from replicas where ended_at is not null) limit ${limit}`,
    );
  const rows = await sql<OpenRow[]>`
    select c.id, c.account_id, c.bucket, c.service, c.price_micros, coalesce(t.credit_account, ${REVENUE_OF_FREE}) as revenue
    from ${sql(OPEN_CALLS)}() c join replicas r on r.id = c.holder and r.ended_at is not null
    left join lateral (${reservationOf(sql)}) t on true
    where t.id is not null or c.price_micros = 0 limit ${limit}`;
  return rows.map(openCall);
}

/** Finds the transfer that reserved the price of each call `c`: looked up by its key, however many open calls there are. */
function reservationOf(sql: Pools['sql']): ReturnType<Pools['sql']> {
  return sql`select id, credit_account from ledger_transfers
    where account_id = c.account_id and id = c.id and phase = 2 offset 0`;
}

/** Finds open calls of a database that is spread, each with its transfer from its own bucket. @param which of them, in what order */
async function openCalls(sql: Pools['sql'], which: ReturnType<Pools['sql']>): Promise<PricedCall[]> {
  const rows = await sql<OpenRow[]>`
    select c.id, c.account_id, c.bucket, c.service, c.price_micros, coalesce(t.credit_account, ${REVENUE_OF_FREE}) as revenue
    from calls c left join ledger_transfers t
      on t.bucket = c.bucket and t.account_id = c.account_id and t.id = c.id and t.phase = 2
    where c.state = 0 and (t.id is not null or c.price_micros = 0)
      and (c.account_id, c.id) in (select account_id, id from ${sql(OPEN_CALLS)}()) and ${which}`;
  return rows.map(openCall);
}

/** Reads a stored answer, in the bucket that the call's id names, and then in all: an id from before there were buckets names none. */
async function answerOf(
  sql: Database | Transaction,
  { accountId, callId, now }: { accountId: bigint; callId: string; now: string },
): ReturnType<CallStore['answerOf']> {
  const bucket = isHouseAccount(accountId) ? HOUSE_BUCKET : bucketNamedByCall(callId);
  for (const where of [sql`a.bucket = ${bucket} and`, sql``]) {
    const [row] = await sql<
      { status: number; headers: Record<string, string>; body: string; transaction: string | null }[]
    >`
      select a.status, a.headers, a.body, s.transaction from call_answers a
      left join settlements s on s.bucket = a.bucket and s.account_id = a.account_id and s.call_id = a.id
      where ${where} a.account_id = ${String(accountId)} and a.id = ${callId} and a.expires_at > ${now}`;
    if (row !== undefined) return row;
  }
  return null;
}

/** Reads a stored answer, and once more when there is none: half of a move of the account may have been seen. */
async function answerNow(
  { sql, distribution }: Pick<Pools, 'sql' | 'distribution'>,
  asked: Parameters<typeof answerOf>[1],
): ReturnType<CallStore['answerOf']> {
  const answer = await answerOf(sql, asked);
  if (answer !== null || isHouseAccount(asked.accountId) || !distribution.isDistributed) return answer;
  const [settled] = await sql.begin(async (transaction) => {
    await keepPlaces(transaction, distribution);
    return [await answerOf(transaction, asked)] as const;
  });
  return settled;
}

/**
 * Sends each call to the bucket that its account is in. Whoever names the call remembers where the account was, which may have been moved
 * since: then nothing is done there, and the account is looked for.
 */
function inItsPlace(
  commits: GroupCommit<CallWork, CallWorkOutcome>,
  bucketNow: (accountId: bigint) => Promise<number | null>,
): (work: CallWork) => Promise<CallWorkOutcome> {
  /** Where accounts are that were not where they were remembered. */
  const moved = new LRUCache<bigint, number>({ maxSize: MOST_MOVED, sizeCalculation: () => 1 });
  return (work) => {
    const { accountId } = work.call;
    return whereItIs(accountId, {
      remembered: moved.get(accountId) ?? work.call.bucket,
      act: (bucket) => commits.submit({ ...work, call: { ...work.call, bucket } } as CallWork),
      async bucketNow() {
        moved.delete(accountId);
        const bucket = await bucketNow(accountId);
        if (bucket !== null) moved.set(accountId, bucket);
        return bucket;
      },
    });
  };
}

/** What two works may not do at once: an account, or of an account of the house the payment or the call. */
function lockOf({ kind, call }: CallWork): string {
  if (!isHouseAccount(call.accountId)) return String(call.accountId);
  return kind === 'begin' ? (call.onChainIdentity ?? call.identity ?? call.id) : call.id;
}

function inGroups(flush: (batch: readonly CallWork[]) => Promise<CallWorkOutcome[]>) {
  return new GroupCommit<CallWork, CallWorkOutcome>({
    isRefusal,
    deadlineMs: DEADLINE_MS,
    firstBackoffMs: 100,
    isLocked: ({ status }) => status === 'locked',
    lockOf,
    laneOf,
    ...BOUNDS,
    keysOf,
    flush,
  });
}

/** What no two pieces of work at the database may have in common. */
function keysOf({ kind, call }: CallWork): string[] {
  const keys = [call.id];
  if (kind !== 'begin') return keys;
  if (call.identity !== null) keys.push(`${call.accountId} ${call.identity}`);
  if (call.onChainIdentity !== null) keys.push(`chain ${call.onChainIdentity}`);
  // Payments of one payer are summed, so the second must see the first.
  if (call.inFlight?.payer !== undefined) keys.push(`payer ${call.inFlight.payer}`);
  return keys;
}

interface OpenRow {
  id: string;
  account_id: bigint;
  bucket: number;
  service: string;
  price_micros: bigint;
  revenue: bigint;
}

function openCall(row: OpenRow): PricedCall {
  const revenue = houseAccountName(row.revenue);
  if (revenue === null) throw new Error(`call ${row.id} would be paid to account ${row.revenue}`);
  return {
    id: row.id,
    accountId: row.account_id,
    bucket: row.bucket,
    service: row.service,
    priceMicros: row.price_micros,
    revenue,
  };
}
