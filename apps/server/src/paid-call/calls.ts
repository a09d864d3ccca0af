/**
 * The table of paid calls, and the one way to change it. A call and its money move in the same commit, and many
 * calls share one: see `calls_apply` in `db/migrations/012_without_waiting.sql`.
 */
import { arrayLiteral } from '../db/array-literal.ts';
import { COMMIT_CONNECTIONS, isRefusal, type Pools } from '../db/connection.ts';
import { HOUSE_ACCOUNTS, type HouseAccount, houseAccountName, isHouseAccount } from '../ledger/accounts.ts';
import { GroupCommit } from '../ledger/group-commit.ts';
import type { OnChainPayment } from './rail.ts';

export interface CallToBegin {
  /** Also the id of its transfer. */
  id: string;
  /** The account that pays, and whose limit is at stake. */
  accountId: bigint;
  /** The key that was presented, whose status, expiry and caps are checked in the same statement; null: none. */
  keyId: bigint | null;
  rail: string;
  service: string;
  priceMicros: bigint;
  revenue: HouseAccount;
  /** What makes this payment itself: null for a call that is bought without a way to ask for it again. */
  identity: string | null;
  /** What a chain takes at most once; null where no chain is asked. The same payment under two names has one. */
  paymentKey: string | null;
  /** SHA-256 of the request, 32 bytes; needed with an identity. */
  fingerprint: Buffer | null;
  /** From when the reconciler may release it. */
  ttlMs: number;
}

export type BeginOutcome =
  | { status: 'authorized'; availableMicros: bigint }
  | { status: 'insufficient'; availableMicros: bigint }
  | { status: 'above_day_cap' | 'above_call_cap' | 'key_revoked' | 'key_expired' | 'key_frozen' }
  /** This payment has its answer already: read it with `answerOf`. */
  | { status: 'answered'; callId: string }
  /** This payment is with the chain: whoever may lease its settlement can go on with it. */
  | { status: 'settling'; callId: string }
  /** The same request with the same payment is running now, here or on another replica. */
  | { status: 'running' }
  /** The payment was made for another request. */
  | { status: 'other_request' };

export interface StoredAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** A call whose money a chain must move: from here on only what the chain says can end it. */
export interface CallToKeep {
  id: string;
  accountId: bigint;
  rail: string;
  payment: OnChainPayment;
  /** The answer, withheld until the money has come; null when the service runs only after that. */
  answer: StoredAnswer | null;
  /** For how long nobody else may settle it. */
  leaseMs: number;
}

export type KeepOutcome =
  | { status: 'kept' }
  /** It took too long and was released. */
  | { status: 'not_open' };

export interface CallToFinish {
  id: string;
  accountId: bigint;
  service: string;
  priceMicros: bigint;
  revenue: HouseAccount;
  /** True: the price is taken. False: it is given back. */
  capture: boolean;
  /** Why it was released, or `answered`. */
  outcome: string;
  /** Kept for as long as the same payment may ask again; null when nobody can, or when it was kept before. */
  answer: StoredAnswer | null;
  /** Of a call that was kept: where its money moved, or null when it never will. Absent for a call that was not. */
  settled?: { transaction: string; blockNumber: bigint | null } | null;
}

export type FinishOutcome =
  | { status: 'done'; availableMicros: bigint }
  /** Somebody else ended it the other way: for a capture, it had been released because it took too long. */
  | { status: 'not_open' };

type Work =
  | { kind: 'begin'; call: CallToBegin }
  | { kind: 'keep'; call: CallToKeep }
  | { kind: 'finish'; call: CallToFinish };
/** Somebody else holds what it needs, and nothing was done: it is tried again, and no caller hears of it. */
type Locked = { status: 'locked' };
type Outcome = BeginOutcome | KeepOutcome | FinishOutcome | Locked;
type Cell = Parameters<typeof arrayLiteral>[0][number];

interface Applied {
  b_status: number[];
  b_available: bigint[];
  b_answered: string[];
  k_status: number[];
  f_status: number[];
  f_available: bigint[];
}

/** A call that was authorized and never ended, as the reconciler finds it. */
export interface OpenCall {
  id: string;
  accountId: bigint;
  service: string;
  priceMicros: bigint;
  revenue: HouseAccount;
}

export interface CallStore {
  /**
   * Reserves the price and claims the payment's identity, both or neither.
   *
   * @throws QueueFull or NotBegun, when nothing was done; any other error when that is not known: it is to be released
   */
  begin(call: CallToBegin): Promise<BeginOutcome>;
  /** Stores the answer and what settles the call, and gives its end over to the chain. Again changes nothing. */
  keep(call: CallToKeep): Promise<KeepOutcome>;
  /** Takes or gives back the price and keeps the answer, all or nothing. Doing it again changes nothing. */
  finish(call: CallToFinish): Promise<FinishOutcome>;
  answerOf(
    accountId: bigint,
    callId: string,
  ): Promise<(StoredAnswer & { transaction: string | null }) | null>;
  /** What became of a payment, without claiming it; null when nothing did. A key that ended gets nothing, as in `begin`. */
  look(
    payment: { accountId: bigint; keyId: bigint | null; identity: string; paymentKey: string | null },
    fingerprint: Buffer,
  ): Promise<BeginOutcome | null>;
  /** Calls whose time is over, oldest first; not those of an account that somebody else holds at this moment. */
  expired(limit: number): Promise<OpenCall[]>;
  /** Calls that were running in a process which has ended. */
  heldByEnded(limit: number): Promise<OpenCall[]>;
  /** What is reserved by calls that are running, on all replicas, in micro-USD. */
  reservedMicros(): Promise<bigint>;
  /** Forgets answers that nobody may ask for any more, so many at most. @returns how many */
  dropExpiredAnswers(limit: number): Promise<number>;
  /** How much work waits for the database. */
  readonly depth: number;
}

/** Accounts below this are the house's: no call waits for who holds one. */
const FIRST_CUSTOMER = 1_000;
/** For how long a caller waits for its call to be begun, kept or finished. */
const DEADLINE_MS = 4_000;

/**
 * The store on a database. Answers are kept for `answerTtlMs`.
 *
 * @param options.holder this process, by its row in `replicas`; what it holds is free when it has ended
 */
export function createCallStore(
  { sql, commits: connection }: Pools,
  options: { nowMs: () => number; answerTtlMs: number; holder?: () => bigint | null },
): CallStore {
  const { nowMs, answerTtlMs, holder = () => null } = options;
  const now = () => new Date(nowMs()).toISOString();

  const commits = new GroupCommit<Work, Outcome>({
    maxBatch: 512,
    isRefusal,
    maxFlights: COMMIT_CONNECTIONS,
    maxWaiting: 10_000,
    maxAttempts: 5,
    deadlineMs: DEADLINE_MS,
    firstBackoffMs: 100,
    isLocked: ({ status }) => status === 'locked',
    lockOf({ kind, call }) {
      if (!isHouseAccount(call.accountId)) return String(call.accountId);
      return kind === 'begin' ? (call.paymentKey ?? call.identity ?? call.id) : call.id;
    },
    keysOf({ kind, call }) {
      const keys = [call.id];
      if (kind === 'begin' && call.identity !== null) keys.push(`${call.accountId} ${call.identity}`);
      if (kind === 'begin' && call.paymentKey !== null) keys.push(`${call.accountId} key ${call.paymentKey}`);
      return keys;
    },
    async flush(batch) {
      const begins = batch.filter((work) => work.kind === 'begin').map((work) => work.call);
      const keeps = batch.filter((work) => work.kind === 'keep').map((work) => work.call);
      const finishes = batch.filter((work) => work.kind === 'finish').map((work) => work.call);
      const b = (pick: (call: CallToBegin) => Cell) => arrayLiteral(begins.map(pick));
      const k = (pick: (call: CallToKeep) => Cell) => arrayLiteral(keeps.map(pick));
      const f = (pick: (call: CallToFinish) => Cell) => arrayLiteral(finishes.map(pick));
      const [applied] = await connection<Applied[]>`
        select * from calls_apply(
          ${b((c) => c.accountId)}::text::bigint[], ${b((c) => c.id)}::text::uuid[],
          ${b((c) => c.keyId)}::text::bigint[], ${b((c) => c.rail)}::text::text[],
          ${b((c) => c.service)}::text::text[], ${b((c) => c.priceMicros)}::text::bigint[],
          ${b((c) => HOUSE_ACCOUNTS[c.revenue])}::text::bigint[], ${b((c) => c.identity)}::text::text[],
          ${b((c) => c.paymentKey)}::text::text[],
          ${b((c) => hexOf(c.fingerprint))}::text::bytea[], ${b((c) => c.ttlMs)}::text::integer[],
          ${k((c) => c.accountId)}::text::bigint[], ${k((c) => c.id)}::text::uuid[],
          ${k((c) => c.rail)}::text::text[], ${k((c) => c.payment.network)}::text::text[],
          ${k((c) => c.payment.asset)}::text::text[], ${k((c) => c.payment.payer)}::text::text[],
          ${k((c) => c.payment.payTo)}::text::text[], ${k((c) => c.payment.amountUnits)}::text::bigint[],
          ${k((c) => JSON.stringify(c.payment.evidence))}::text::text[],
          ${k((c) => new Date(c.payment.deadAfterMs).toISOString())}::text::timestamptz[],
          ${k((c) => c.leaseMs)}::text::integer[], ${k((c) => c.answer?.status ?? null)}::text::smallint[],
          ${k((c) => (c.answer === null ? null : JSON.stringify(c.answer.headers)))}::text::text[],
          ${k((c) => c.answer?.body ?? null)}::text::text[],
          ${f((c) => c.accountId)}::text::bigint[], ${f((c) => c.id)}::text::uuid[],
          ${f((c) => (c.capture ? 3 : 4))}::text::smallint[], ${f((c) => c.priceMicros)}::text::bigint[],
          ${f((c) => HOUSE_ACCOUNTS[c.revenue])}::text::bigint[], ${f((c) => c.service)}::text::text[],
          ${f((c) => c.outcome)}::text::text[], ${f((c) => c.settled !== undefined)}::text::boolean[],
          ${f((c) => c.settled?.transaction ?? null)}::text::text[],
          ${f((c) => c.settled?.blockNumber ?? null)}::text::bigint[], ${f((c) => c.answer?.status ?? null)}::text::smallint[],
          ${f((c) => (c.answer === null ? null : JSON.stringify(c.answer.headers)))}::text::text[],
          ${f((c) => c.answer?.body ?? null)}::text::text[],
          ${`${answerTtlMs} milliseconds`}::interval, ${now()}::timestamptz, ${textOf(holder())}::text::bigint
        )`;
      if (applied === undefined) throw new Error('calls_apply answered nothing');
      let nextBegin = 0;
      let nextKeep = 0;
      let nextFinish = 0;
      return batch.map(({ kind }) => {
        if (kind === 'begin') return beginOutcome(applied, nextBegin++);
        return kind === 'keep' ? keepOutcome(applied, nextKeep++) : finishOutcome(applied, nextFinish++);
      });
    },
  });

  return {
    begin: (call) => commits.submit({ kind: 'begin', call }) as Promise<BeginOutcome>,
    keep: (call) => commits.submit({ kind: 'keep', call }) as Promise<KeepOutcome>,
    finish: (call) => commits.submit({ kind: 'finish', call }) as Promise<FinishOutcome>,
    get depth() {
      return commits.depth;
    },

    async answerOf(accountId, callId) {
      const [row] = await sql<
        { status: number; headers: Record<string, string>; body: string; transaction: string | null }[]
      >`
        select a.status, a.headers, a.body, s.transaction
        from call_answers a left join settlements s on s.account_id = a.account_id and s.call_id = a.id
        where a.account_id = ${String(accountId)} and a.id = ${callId} and a.expires_at > ${now()}`;
      return row ?? null;
    },

    async look({ accountId, keyId, identity, paymentKey }, fingerprint) {
      const [row] = await sql<{ id: string; state: number; same: boolean; key_status: string | null }[]>`
        select c.id, c.state, c.fingerprint = ${fingerprint} as same, k.status as key_status
        from calls c left join api_keys k on k.id = ${keyId === null ? null : String(keyId)}
        where c.account_id = ${String(accountId)} and (c.identity = ${identity} or c.payment_key = ${paymentKey})
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
        const [settled] = await sql<{ more: boolean }[]>`select calls_settle_past() as more`;
        more = settled?.more === true;
      }
      const rows = await sql<OpenRow[]>`
        with due as materialized (
          select c.account_id, c.id, c.service, c.price_micros, c.expires_at
          from open_calls() o join calls c on c.account_id = o.account_id and c.id = o.id
          where c.state = 0 and c.expires_at <= ${now()}
        ), free as materialized (
          select a.id from ledger_accounts a where a.id in (select account_id from due) and a.id >= ${FIRST_CUSTOMER}
          for no key update skip locked
        )
        select c.id, c.account_id, c.service, c.price_micros, t.credit_account as revenue
        from due c join ledger_transfers t on t.account_id = c.account_id and t.id = c.id and t.phase = 2
        where c.account_id < ${FIRST_CUSTOMER} or c.account_id in (select id from free)
        order by c.expires_at limit ${limit}`;
      return rows.map(openCall);
    },

    async heldByEnded(limit) {
      const rows = await sql<OpenRow[]>`
        select c.id, c.account_id, c.service, c.price_micros, t.credit_account as revenue
        from open_calls() o join calls c on c.account_id = o.account_id and c.id = o.id
        join replicas r on r.id = c.holder and r.ended_at is not null
        join ledger_transfers t on t.account_id = c.account_id and t.id = c.id and t.phase = 2
        limit ${limit}`;
      return rows.map(openCall);
    },

    async reservedMicros() {
      const [row] = await sql<{ reserved: bigint }[]>`
        select coalesce(sum(c.price_micros), 0)::bigint as reserved
        from open_calls() o join calls c on c.account_id = o.account_id and c.id = o.id`;
      return row?.reserved ?? 0n;
    },

    async dropExpiredAnswers(limit) {
      const dropped = await sql`
        with old as (
          select account_id, id from call_answers where expires_at <= ${now()} order by expires_at limit ${limit}
          for update skip locked
        )
        delete from call_answers a using old where a.account_id = old.account_id and a.id = old.id`;
      return dropped.count;
    },
  };
}

interface OpenRow {
  id: string;
  account_id: bigint;
  service: string;
  price_micros: bigint;
  revenue: bigint;
}

function openCall(row: OpenRow): OpenCall {
  const revenue = houseAccountName(row.revenue);
  if (revenue === null) throw new Error(`call ${row.id} would be paid to account ${row.revenue}`);
  return {
    id: row.id,
    accountId: row.account_id,
    service: row.service,
    priceMicros: row.price_micros,
    revenue,
  };
}

function textOf(id: bigint | null): string | null {
  return id === null ? null : String(id);
}

function hexOf(bytes: Buffer | null): string | null {
  return bytes === null ? null : `\\x${bytes.toString('hex')}`;
}

function keepOutcome(applied: Applied, index: number): KeepOutcome | Locked {
  const status = applied.k_status[index];
  if (status === 0) return { status: 'kept' };
  if (status === 1) return { status: 'not_open' };
  if (status === 2) return { status: 'locked' };
  throw new Error(`calls_apply answered the unknown status ${status}`);
}

function finishOutcome(applied: Applied, index: number): FinishOutcome | Locked {
  const status = applied.f_status[index];
  if (status === 0) return { status: 'done', availableMicros: applied.f_available[index] ?? 0n };
  if (status === 1) return { status: 'not_open' };
  if (status === 2) return { status: 'locked' };
  throw new Error(`calls_apply answered the unknown status ${status}`);
}

function beginOutcome(applied: Applied, index: number): BeginOutcome | Locked {
  const availableMicros = applied.b_available[index] ?? 0n;
  const status = applied.b_status[index];
  switch (status) {
    case 0:
      return { status: 'authorized', availableMicros };
    case 1:
      return { status: 'insufficient', availableMicros };
    case 2:
      return { status: 'above_day_cap' };
    case 10:
      return { status: 'key_revoked' };
    case 11:
      return { status: 'key_expired' };
    case 12:
      return { status: 'key_frozen' };
    case 13:
      return { status: 'above_call_cap' };
    case 20: {
      const callId = applied.b_answered[index];
      if (callId === undefined) throw new Error('an answered call has no id');
      return { status: 'answered', callId };
    }
    case 23: {
      const callId = applied.b_answered[index];
      if (callId === undefined) throw new Error('a call that is with the chain has no id');
      return { status: 'settling', callId };
    }
    case 21:
      return { status: 'running' };
    case 22:
      return { status: 'other_request' };
    case 30:
      return { status: 'locked' };
    default:
      throw new Error(`calls_apply answered the unknown status ${status}`);
  }
}
