/**
 * What trials gave, account by account, and how it ends. It hangs on no key: whichever keys an account has had, by
 * rotation or as a second demo key, there is one row for its trial.
 *
 * Trial credit is spent before any other, so what is left of it is what the balance holds beyond all that was bought. The
 * first money that an account buys, or that an operator gives it, ends its trial: what was left is its owner's for good.
 * Credit is taken at the end of the seven days only where no bought money is, and never so much that any of it would be.
 */
import type { Database, Transaction } from '../db/connection.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';

interface DueRow {
  bought_at: Date | null;
  ended: 'kept' | 'expired' | null;
  rounds: number;
  pending: bigint;
  balance: bigint;
  bought: bigint | null;
}

/** Writes down what a trial gave, in the commit that gives it. */
export async function openTrialCredit(
  transaction: Transaction,
  trial: { accountId: bigint; grantedMicros: bigint; grantedAtMs: number; expiresAtMs: number },
): Promise<void> {
  await transaction`
    insert into trial_credits (account_id, granted_micros, granted_at, expires_at)
    values (${String(trial.accountId)}, ${String(trial.grantedMicros)},
            ${new Date(trial.grantedAtMs).toISOString()}, ${new Date(trial.expiresAtMs).toISOString()})`;
}

/**
 * Takes back what is left of trials whose time is over, by a transfer each. A price that is given back to an account whose
 * trial has ended makes it due once more (see `db/migrations/015_trial_credits.sql`).
 *
 * @returns how many accounts it is done with
 * @throws the first failure, after the others had their turn
 */
export async function expireTrialCredit(
  sql: Database,
  { ledger, nowMs, limit }: { ledger: Ledger; nowMs: number; limit: number },
): Promise<number> {
  const now = new Date(nowMs).toISOString();
  // What a running call has reserved is neither spent nor left: such an account has its turn when it is known.
  const due = await sql<{ account_id: bigint }[]>`
    select t.account_id from trial_credits t join ledger_accounts a on a.id = t.account_id
    where t.due and t.expires_at <= ${now} and a.debits_pending = 0
    order by t.expires_at limit ${limit}`;
  let done = 0;
  const failures: unknown[] = [];
  for (const { account_id: accountId } of due) {
    const ending = sql.begin(async (transaction) => {
      await ledger.lock(transaction, [accountId]);
      if (await end(transaction, accountId)) done += 1;
    });
    await ending.catch((error: unknown) => void failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
  return done;

  /** @returns whether it was this one that ended it */
  async function end(transaction: Transaction, accountId: bigint): Promise<boolean> {
    // Everything that is neither a trial's nor a call's is bought money, coming or going.
    const [row] = await transaction<DueRow[]>`
      select t.bought_at, t.ended, t.rounds, a.debits_pending as pending, a.credits_posted - a.debits_posted as balance,
             (select sum(case when x.credit_account = x.account_id then x.amount_micros else -x.amount_micros end)::bigint
              from ledger_transfers x
              where x.account_id = t.account_id and x.code <> 'call' and x.phase in (1, 3)
                and x.code not in ('trial_grant', 'trial_expiry', 'call_refund', 'operator_refund')) as bought
      from trial_credits t join ledger_accounts a on a.id = t.account_id
      where t.account_id = ${String(accountId)} and t.due and t.expires_at <= ${now}`;
    // Somebody else ended it, or a call slipped in: the next round finds what is left then.
    if (row === undefined || row.pending > 0n) return false;
    const bought = row.bought ?? 0n;
    const isKept = row.ended === null && (row.bought === null ? row.bought_at !== null : bought > 0n);
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
        update api_keys set trial_closed = true where account_id = ${String(accountId)} and kind = 'trial'`;
    return true;
  }
}
