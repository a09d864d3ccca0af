/**
 * Credit that a payment on a chain buys. Before the payment goes to the chain, the beneficiary is stored, and nothing
 * moves. Once the call is captured the credit is granted, exactly once, by whichever comes first: the request itself,
 * the next one with the same payment, or the job.
 */
import type { Database, Transaction } from '../db/connection.ts';
import { eachDueRow } from '../db/due-rows.ts';
import { type WatchedQueue, watchQueue } from '../db/leased-queue.ts';
import type { StoredApiKey } from '../keys/api-key.ts';
import type { Keys } from '../keys/keys.ts';
import { bucketOfBuyer, recordRootBuyer } from '../keys/root-buyer.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../ledger/buckets.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';

const BATCH = 100;
/** `calls.state`, as in `db/migrations/280_baseline.sql`. */
const CAPTURED = 1;
const RELEASED = 2;
/** `settlements.state`, as in `db/migrations/280_baseline.sql`. */
const LOST = 4;

/** The beneficiary: an existing account, or one that is opened for a new key once the money has come. */
export type Beneficiary = { accountId: bigint } | { newKey: StoredApiKey; bucket: number };

/** The outcome of a top-up in one round of the job. */
export type TopupOutcome = 'granted' | 'dropped' | 'closed' | 'taken_back';

export interface Topups {
  /** The top-ups that are not over. */
  readonly queue: WatchedQueue;
  /** The bucket for a new key to name. */
  newBucket(): number;
  /** Stores whose credit a call will buy. Grants nothing. */
  intend(callId: string, beneficiary: Beneficiary, amountMicros: bigint): Promise<void>;
  /**
   * Grants what a captured call has bought. Running it again changes nothing.
   *
   * @throws when the call is not captured, or the database does not answer: then nothing was granted, or all of it
   */
  grant(callId: string): Promise<void>;
  /**
   * A round over all open top-ups. It grants what a crash left open, drops what was never paid, and takes back the
   * remaining credit of payments that the chain has lost.
   *
   * @returns how many it advanced
   * @throws the first failure, after all others were tried
   */
  finish(): Promise<number>;
}

/** A top-up that may need work. */
interface Due {
  call_id: string;
  created_at: string;
  call_state: number;
  granted: boolean;
  lost: boolean;
}

interface Row {
  call_id: string;
  account_id: bigint | null;
  key_lookup: bigint | null;
  key_digest: Buffer | null;
  key_prefix: string | null;
  /** The bucket that the new key names. */
  key_bucket: number;
  amount_micros: bigint;
  /** The wallet that paid. */
  wallet: string | null;
}

export function createTopups(
  sql: Database,
  parts: {
    ledger: Ledger;
    keys: Keys;
    /** Called within the commit that credited an account, for example to pay a debt from it. */
    credited(transaction: Transaction, accountId: bigint): Promise<void>;
    report(outcome: TopupOutcome, callId: string): void;
    nowMs(): number;
  },
): Topups {
  const { ledger, keys } = parts;
  const now = () => new Date(parts.nowMs()).toISOString();
  const payers = String(HOUSE_ACCOUNTS.chain_clearing);

  /** @param patient waits for another process that is granting it @returns false when that one, or an earlier one, did */
  function grantOnce(callId: string, patient: boolean): Promise<boolean> {
    return sql.begin(async (transaction) => {
      const row = await paidTopup(transaction, callId, patient);
      if (row === undefined) {
        if (!patient) return false;
        const [granted] = await transaction`
          select 1 from topups where call_id = ${callId} and granted_at is not null`;
        if (granted === undefined) throw new Error(`top-up ${callId} is not paid`);
        return false;
      }
      const accountId = await accountOf(transaction, row, parts);
      const { status } = await ledger.transferWithin(transaction, {
        id: transferIdFor(`topup:${callId}`),
        accountId,
        phase: 'posted',
        side: 'credit',
        house: 'revenue_x402',
        amountMicros: row.amount_micros,
        code: 'usdc_topup',
        note: `topup ${callId}`,
      });
      if (status !== 'done') throw new Error(`top-up ${callId} cannot be granted: ${status}`);
      // Once a holder has paid, their credit no longer expires.
      await keys.becomePaid(transaction, accountId);
      await parts.credited(transaction, accountId);
      await transaction`
        update topups set account_id = ${String(accountId)}, granted_at = ${now()} where call_id = ${callId}`;
      return true;
    });
  }

  /**
   * Takes credit back after the chain lost its payment: what is neither spent nor reserved goes back, and the rest is
   * our loss, as with any other call.
   */
  function takeBack(callId: string): Promise<boolean> {
    return sql.begin(async (transaction) => {
      const [row] = await transaction<Row[]>`
        select *, null as wallet from topups where call_id = ${callId} and granted_at is not null and closed_at is null
        for update skip locked`;
      if (row === undefined || row.account_id === null) return false;
      const { account_id: accountId, amount_micros: granted } = row;
      const available = (await ledger.lock(transaction, [accountId])).get(accountId) ?? 0n;
      const amountMicros = available < granted ? available : granted;
      if (amountMicros > 0n) {
        const { status } = await ledger.transferWithin(transaction, {
          id: transferIdFor(`topup-lost:${callId}`),
          accountId,
          phase: 'posted',
          side: 'debit',
          house: 'settlement_losses',
          amountMicros,
          code: 'usdc_topup_lost',
          note: `topup ${callId}`,
        });
        if (status !== 'done') throw new Error(`top-up ${callId} cannot be taken back: ${status}`);
      }
      await transaction`
        update topups set taken_back_micros = ${String(amountMicros)}, closed_at = ${now()}
        where call_id = ${callId}`;
      return true;
    });
  }

  async function bringFurther(topup: Due): Promise<TopupOutcome | null> {
    const { call_id: callId } = topup;
    if (topup.call_state === RELEASED) {
      const dropped = await sql`
        delete from topups where call_id = (
          select call_id from topups where call_id = ${callId} and granted_at is null for update skip locked)`;
      return dropped.count === 0 ? null : 'dropped';
    }
    if (!topup.granted) return (await grantOnce(callId, false)) ? 'granted' : null;
    if (topup.lost) return (await takeBack(callId)) ? 'taken_back' : null;
    const closed = await sql`
      update topups set closed_at = ${now()} where call_id = (
        select call_id from topups where call_id = ${callId} and closed_at is null for update skip locked)`;
    return closed.count === 0 ? null : 'closed';
  }

  return {
    queue: watchQueue(
      sql,
      { name: 'topups', table: 'topups', since: 'created_at', waiting: (on) => on`closed_at is null` },
      parts.nowMs,
    ),

    newBucket: ledger.newBucket,

    intend: (callId, beneficiary, amountMicros) =>
      store(sql, { callId, beneficiary, amountMicros, at: now() }),

    async grant(callId) {
      await grantOnce(callId, true);
    },

    finish: () =>
      eachDueRow({
        pageAfter: dueAfter,
        pageSize: BATCH,
        async act(topup: Due) {
          const outcome = await bringFurther(topup);
          if (outcome !== null) parts.report(outcome, topup.call_id);
          return outcome !== null;
        },
      }),
  };

  /** Lists what is due next, in order of time. */
  function dueAfter(last: Due | undefined): Promise<Due[]> {
    const after =
      last === undefined
        ? sql`true`
        : sql`(t.created_at, t.call_id) > (${last.created_at}::timestamptz, ${last.call_id}::uuid)`;
    return sql<Due[]>`
        select t.call_id, t.created_at::text as created_at, c.state as call_state, t.granted_at is not null as granted,
               coalesce(s.state = ${LOST}, false) as lost
        from topups t
        cross join lateral (select state from calls where bucket = ${HOUSE_BUCKET} and account_id = ${payers} and id = t.call_id offset 0) c
        left join lateral (select state, final_at from settlements where bucket = ${HOUSE_BUCKET} and account_id = ${payers} and call_id = t.call_id offset 0) s on true
        where t.closed_at is null and (c.state = ${RELEASED}
          or (c.state = ${CAPTURED} and (t.granted_at is null or s.final_at is not null)))
          and ${after}
        order by t.created_at, t.call_id limit ${BATCH}`;
  }
}

/** Locks a top-up that is paid and not granted. @param patient whether to wait for whoever has it */
async function paidTopup(
  transaction: Transaction,
  callId: string,
  patient: boolean,
): Promise<Row | undefined> {
  const [row] = await transaction<Row[]>`
    with t as materialized (
      select * from topups where call_id = ${callId} and granted_at is null
      for update ${patient ? transaction`` : transaction`skip locked`}
    )
    select t.*, s.payer as wallet from t
    join calls c on c.bucket = ${HOUSE_BUCKET} and c.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and c.id = t.call_id
    left join settlements s on s.bucket = c.bucket and s.account_id = c.account_id and s.call_id = c.id
    where c.state = ${CAPTURED} and c.outcome = 'answered'`;
  return row;
}

/** Writes a top-up down. @param topup.at now, in ISO 8601 */
async function store(
  sql: Database,
  topup: { callId: string; beneficiary: Beneficiary; amountMicros: bigint; at: string },
): Promise<void> {
  const { callId, beneficiary, amountMicros, at } = topup;
  const accountId = 'accountId' in beneficiary ? String(beneficiary.accountId) : null;
  const { newKey: key, bucket } = 'newKey' in beneficiary ? beneficiary : { newKey: null, bucket: 0 };
  await sql`
    insert into topups (call_id, account_id, key_lookup, key_digest, key_prefix, key_bucket, amount_micros, created_at)
    values (${callId}, ${accountId}, ${key === null ? null : String(key.lookup)}, ${key?.digest ?? null},
            ${key?.prefix ?? null}, ${bucket}, ${String(amountMicros)}, ${at})`;
}

/** The account to credit. For a new key it is opened only now, when there is money for it. */
async function accountOf(
  transaction: Transaction,
  row: Row,
  { ledger, keys }: { ledger: Ledger; keys: Keys },
): Promise<bigint> {
  if (row.account_id !== null) return row.account_id;
  const { key_lookup: lookup, key_digest: digest, key_prefix: prefix, wallet } = row;
  if (lookup === null || digest === null || prefix === null)
    throw new Error(`top-up ${row.call_id} is nobody's`);
  const ofBuyer = wallet === null ? null : await bucketOfBuyer(transaction, { wallet });
  const accountId = await ledger.openAccount(transaction, ofBuyer ?? row.key_bucket);
  if (wallet !== null) await recordRootBuyer(transaction, accountId, { wallet });
  await keys.admit(transaction, { accountId, kind: 'paid', label: null, stored: { lookup, digest, prefix } });
  return accountId;
}
