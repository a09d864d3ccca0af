/**
 * Credit that a payment on a chain buys. Before the payment goes to the chain it is written down whose credit it will be,
 * and nothing moves; once its call is captured the credit moves, once, by whoever comes first: the request itself, the
 * next one with the same payment, or the job.
 */
import type { Database, Transaction } from '../db/connection.ts';
import type { StoredApiKey } from '../keys/api-key.ts';
import type { Keys } from '../keys/keys.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';

const BATCH = 100;
/** `calls.state`, as in `db/migrations/003_calls.sql`. */
const CAPTURED = 1;
const RELEASED = 2;
/** `settlements.state`, as in `db/migrations/004_settlements.sql`. */
const LOST = 4;

/** Whose credit it is: an account that is there, or one that is opened for a new key once the money has come. */
export type Beneficiary = { accountId: bigint } | { newKey: StoredApiKey };

/** What became of a top-up in one round of the job. */
export type TopupOutcome = 'granted' | 'dropped' | 'closed' | 'taken_back';

export interface Topups {
  /** Writes down whose credit a call will buy. Grants nothing. */
  intend(callId: string, beneficiary: Beneficiary, amountMicros: bigint): Promise<void>;
  /**
   * Grants what a captured call has bought. Again changes nothing.
   *
   * @throws when the call is not captured, or the database does not answer: nothing is granted then, or all of it
   */
  grant(callId: string): Promise<void>;
  /**
   * A round over all that is not closed: grants what a crash left, drops what was never paid, and takes back what is left
   * of credit whose payment the chain has forgotten.
   *
   * @returns how many it brought further
   * @throws the first failure, after the others had their turn
   */
  finish(): Promise<number>;
}

/** A top-up for which there may be something to do. */
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
  amount_micros: bigint;
}

export function createTopups(
  sql: Database,
  parts: {
    ledger: Ledger;
    keys: Keys;
    /** Told within the commit that credited an account, such as to cover what it owes. */
    credited(transaction: Transaction, accountId: bigint): Promise<void>;
    report(outcome: TopupOutcome, callId: string): void;
    nowMs(): number;
  },
): Topups {
  const { ledger, keys } = parts;
  const now = () => new Date(parts.nowMs()).toISOString();
  const payers = String(HOUSE_ACCOUNTS.chain_clearing);

  /** The account to credit; for a new key it is opened now, and not before there is money for it. */
  async function accountOf(transaction: Transaction, row: Row): Promise<bigint> {
    if (row.account_id !== null) return row.account_id;
    const { key_lookup: lookup, key_digest: digest, key_prefix: prefix } = row;
    if (lookup === null || digest === null || prefix === null)
      throw new Error(`top-up ${row.call_id} is nobody's`);
    const accountId = await ledger.openAccount(transaction);
    await keys.admit(transaction, {
      accountId,
      kind: 'paid',
      label: null,
      stored: { lookup, digest, prefix },
    });
    return accountId;
  }

  /** @param patient whether to wait for whoever is at it @returns false when it was granted before, or they are */
  function grantOnce(callId: string, patient: boolean): Promise<boolean> {
    return sql.begin(async (transaction) => {
      const [row] = await transaction<Row[]>`
        select t.* from topups t
        join calls c on c.account_id = ${payers} and c.id = t.call_id
        where t.call_id = ${callId} and t.granted_at is null and c.state = ${CAPTURED} and c.outcome = 'answered'
        for update of t ${patient ? sql`` : sql`skip locked`}`;
      if (row === undefined) {
        if (!patient) return false;
        const [granted] = await transaction`
          select 1 from topups where call_id = ${callId} and granted_at is not null`;
        if (granted === undefined) throw new Error(`top-up ${callId} is not paid`);
        return false;
      }
      const accountId = await accountOf(transaction, row);
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
      // Nobody who has paid holds credit that expires.
      await keys.becomePaid(transaction, accountId);
      await parts.credited(transaction, accountId);
      await transaction`
        update topups set account_id = ${String(accountId)}, granted_at = ${now()} where call_id = ${callId}`;
      return true;
    });
  }

  /**
   * The chain forgot the payment after its credit had been granted: what is not spent and not reserved goes back, and
   * the rest is our loss, as it is with any other call.
   */
  function takeBack(callId: string): Promise<boolean> {
    return sql.begin(async (transaction) => {
      const [row] = await transaction<Row[]>`
        select * from topups where call_id = ${callId} and granted_at is not null and closed_at is null
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
    async intend(callId, beneficiary, amountMicros) {
      const accountId = 'accountId' in beneficiary ? String(beneficiary.accountId) : null;
      const key = 'newKey' in beneficiary ? beneficiary.newKey : null;
      await sql`
        insert into topups (call_id, account_id, key_lookup, key_digest, key_prefix, amount_micros, created_at)
        values (${callId}, ${accountId}, ${key === null ? null : String(key.lookup)}, ${key?.digest ?? null},
                ${key?.prefix ?? null}, ${String(amountMicros)}, ${now()})`;
    },

    async grant(callId) {
      await grantOnce(callId, true);
    },

    async finish() {
      let further = 0;
      const failures: unknown[] = [];
      // Onwards by time, and past what fails or is held: a batch of such is not the end.
      for (let after: Due | undefined, more = true; more; ) {
        const due: Due[] = await dueAfter(after);
        for (const topup of due) {
          try {
            const outcome = await bringFurther(topup);
            if (outcome === null) continue;
            further += 1;
            parts.report(outcome, topup.call_id);
          } catch (error) {
            failures.push(error);
          }
        }
        after = due.at(-1);
        more = due.length === BATCH;
      }
      if (failures.length > 0) throw failures[0];
      return further;
    },
  };

  /** What is due next, in order of time. */
  function dueAfter(last: Due | undefined): Promise<Due[]> {
    const after =
      last === undefined
        ? sql`true`
        : sql`(t.created_at, t.call_id) > (${last.created_at}::timestamptz, ${last.call_id}::uuid)`;
    return sql<Due[]>`
        select t.call_id, t.created_at::text as created_at, c.state as call_state, t.granted_at is not null as granted,
               coalesce(s.state = ${LOST}, false) as lost
        from topups t
        join calls c on c.account_id = ${payers} and c.id = t.call_id
        left join settlements s on s.account_id = c.account_id and s.call_id = c.id
        where t.closed_at is null and (c.state = ${RELEASED}
          or (c.state = ${CAPTURED} and (t.granted_at is null or s.final_at is not null)))
          and ${after}
        order by t.created_at, t.call_id limit ${BATCH}`;
  }
}
