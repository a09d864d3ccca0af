/**
 * The credit that trials gave, account by account, and its end. It hangs on no key: whichever keys an account has had, by
 * rotation or as a second demo key, there is one row for its trial.
 *
 * Trial credit is spent before any other, so what is left of it is what the balance holds beyond all that was bought. The
 * first money that an account buys, or that an operator gives it, ends its trial: what was left is its owner's for good.
 * Credit is taken at the end of the seven days only where no bought money is, and never so much that any of it would be.
 * A key that was bought with trial credit and other credit together keeps the other: that alone ends no trial.
 */
import type { Database, Transaction } from '../db/connection.ts';
import { type BucketTurns, inBucket } from '../ledger/bucket-turns.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';

interface DueRow {
  bought_at: Date | null;
  ended: 'kept' | 'expired' | null;
  rounds: number;
  pending: bigint;
  balance: bigint;
  bought: bigint | null;
  /** The same as `bought`, without what the account was opened with. */
  bought_since: bigint | null;
}

/** Writes down what a trial gave, in the commit that gives it or moves it. */
export async function openTrialCredit(
  transaction: Transaction,
  trial: {
    accountId: bigint;
    grantedMicros: bigint;
    grantedAtMs: number;
    expiresAtMs: number;
    /** The account whose trial it was, when it moved; left out for a trial that is given. */
    movedFrom?: bigint;
  },
): Promise<void> {
  await transaction`
    insert into trial_credits (account_id, granted_micros, granted_at, expires_at, moved_from)
    values (${String(trial.accountId)}, ${String(trial.grantedMicros)},
            ${new Date(trial.grantedAtMs).toISOString()}, ${new Date(trial.expiresAtMs).toISOString()},
            ${trial.movedFrom === undefined ? null : String(trial.movedFrom)})`;
}

interface ExpiryParts {
  ledger: Ledger;
  turns: BucketTurns;
  nowMs: number;
  atOnce: number;
  stopping?: AbortSignal | undefined;
}

/**
 * Takes back what is left of trials whose time is over, by a transfer each. A price that is given back to an account whose
 * trial has ended makes it due once more (see `functions/trial_credit_came_back.v1.sql`). An account that somebody holds, or
 * that fails, is passed by: each has one turn in a round.
 *
 * @param parts.atOnce how many are looked for at a time, until there is none left
 * @returns how many accounts it is done with
 * @throws the first failure, after the others had their turn
 */
export async function expireTrialCredit(sql: Database, parts: ExpiryParts): Promise<number> {
  const { ledger, turns, atOnce, stopping } = parts;
  const now = new Date(parts.nowMs).toISOString();
  let done = 0;
  const failures: unknown[] = [];
  const lasts = new Map<number | null, { expires: string; account_id: bigint }>();
  const expirePage = async (bucket: number | null) => {
    const last = lasts.get(bucket) ?? { expires: '-infinity', account_id: 0n };
    // Money that a running call has reserved is neither spent nor left: the account is handled after the call.
    const due: (typeof last)[] = await sql`
      select t.expires_at::text as expires, t.account_id from trial_credits t join ledger_accounts a on a.id = t.account_id
      where ${inBucket(sql, bucket)} t.due and t.expires_at <= ${now} and a.debits_pending = 0
        and (t.expires_at, t.account_id) > (${last.expires}::text::timestamptz, ${String(last.account_id)}::bigint)
      order by t.expires_at, t.account_id limit ${atOnce}`;
    for (const each of due) {
      if (stopping?.aborted === true) break;
      lasts.set(bucket, each);
      await sql
        .begin(async (transaction) => {
          if (await hold(transaction, bucket, each.account_id))
            await end(transaction, bucket, each.account_id);
        })
        .catch((error: unknown) => void failures.push(error));
    }
    return due.length;
  };
  await turns.each(atOnce, expirePage, stopping).catch((error: unknown) => void failures.push(error));
  if (failures.length > 0) throw failures[0];
  return done;

  async function end(transaction: Transaction, bucket: number | null, accountId: bigint): Promise<void> {
    const row = await dueRow(transaction, bucket, { accountId, now });
    // Somebody else ended it, or a call slipped in: the next round finds what is left then.
    if (row === undefined || row.pending > 0n) return;
    const bought = row.bought ?? 0n;
    const isKept =
      row.ended === null && (row.bought_since === null ? row.bought_at !== null : row.bought_since > 0n);
    const left = isKept ? 0n : row.balance - (bought > 0n ? bought : 0n);
    if (left > 0n) {
      const round = row.rounds === 0 ? '' : `:${row.rounds}`;
      const { status } = await ledger.transferWithin(transaction, {
        id: transferIdFor(`trial-expiry:${accountId}${round}`),
        accountId,
        phase: 'posted',
        side: 'debit',
        house: 'trial_expired',
        amountMicros: left,
        code: 'trial_expiry',
      });
      if (status !== 'done')
        throw new Error(`the trial of account ${accountId} could not be ended: ${status}`);
    }
    const taken = left > 0n ? left : 0n;
    await transaction`
      update trial_credits
      set due = false, ended = ${isKept ? 'kept' : 'expired'}, ended_at = coalesce(ended_at, ${now}),
          expired_micros = expired_micros + ${String(taken)}::bigint, rounds = rounds + ${taken > 0n ? 1 : 0}
      where account_id = ${String(accountId)}`;
    if (!isKept)
      await transaction`
        update api_keys set trial_closed = true
        where ${inBucket(transaction, bucket)} account_id = ${String(accountId)} and kind = 'trial'`;
    done += 1;
  }
}

/**
 * Holds the account and its trial until the commit; on a database that is spread the account alone, which all hold who change its trial.
 *
 * @returns false when somebody else does: they are not waited for
 */
async function hold(transaction: Transaction, bucket: number | null, accountId: bigint): Promise<boolean> {
  const held = await (bucket === null
    ? transaction`
      select 1 from ledger_accounts a join trial_credits t on t.account_id = a.id
      where a.id = ${String(accountId)} for no key update of a, t skip locked`
    : transaction`
      select 1 from ledger_accounts where bucket = ${bucket} and id = ${String(accountId)}
      for no key update skip locked`);
  return held.length === 1;
}

/** Reads what the end of a trial is reckoned from; left out when nothing is due. @param of.now in ISO 8601 */
async function dueRow(
  transaction: Transaction,
  bucket: number | null,
  { accountId, now }: { accountId: bigint; now: string },
): Promise<DueRow | undefined> {
  // Everything that is neither a trial's nor a call's is bought money, coming or going.
  const [row] = await transaction<DueRow[]>`
    select t.bought_at, t.ended, t.rounds, a.debits_pending as pending, a.credits_posted - a.debits_posted as balance,
           b.bought, b.bought_since
    from trial_credits t join ledger_accounts a on a.id = t.account_id
    cross join lateral (
      select sum(micros)::bigint as bought,
             (sum(micros) filter (
               where code not in ('sold_key', 'sold_key_undone', 'key_reversal', 'key_reversal_undone')))::bigint
               as bought_since
      from (
        select x.code, case when x.credit_account = x.account_id then x.amount_micros else -x.amount_micros end as micros
        from ledger_transfers x
        where ${inBucket(transaction, bucket)} x.account_id = t.account_id and x.code <> 'call' and x.phase in (1, 3)
          and x.code not in ('trial_grant', 'trial_expiry', 'call_refund', 'operator_refund', 'sold_key_trial')
      ) x
    ) b
    where ${inBucket(transaction, bucket)} t.account_id = ${String(accountId)} and t.due and t.expires_at <= ${now}`;
  return row;
}
