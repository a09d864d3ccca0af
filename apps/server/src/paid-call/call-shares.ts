/**
 * The shares that others get of a call's price. A share is noted while the call runs. The database sets it aside in the
 * commit that takes the price, and takes it back in the commit that gives the price back, whoever makes that commit
 * (`db/migrations/027_call_shares.sql`). A job pays it out to its beneficiary's account.
 */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database } from '../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import type { PayerProof } from './rail.ts';

/** The most shares in one payout; the rest waits for the next one. */
const SHARES_AT_ONCE = 10_000;

export interface CallShares {
  /**
   * Notes that somebody has a share in a running call. Trial credit is not shared, nor is a call that the beneficiary
   * pays. Noting the same share again changes nothing.
   */
  note(share: {
    callId: string;
    payer: PayerProof;
    beneficiary: bigint;
    partPerMillion: bigint;
  }): Promise<void>;
  /** What an account has earned, in micro-USD. */
  earned(
    beneficiary: bigint,
  ): Promise<{ calls: number; earnedMicros: bigint; paidMicros: bigint; dueMicros: bigint }>;
  /**
   * Pays out what was set aside at least `holdMs` ago, in one transfer for each account. @returns the number of
   * accounts paid
   */
  payOut(holdMs: number, limit: number): Promise<number>;
}

export function createCallShares(
  sql: Database,
  { ledger, nowMs }: { ledger: Pick<Ledger, 'transferWithin'>; nowMs(): number },
): CallShares {
  const at = (beforeMs = 0) => new Date(nowMs() - beforeMs).toISOString();
  return {
    async note({ callId, payer, beneficiary, partPerMillion }) {
      const accountId = String(payer.by === 'account' ? payer.accountId : HOUSE_ACCOUNTS.chain_clearing);
      if (accountId === String(beneficiary) || partPerMillion === 0n) return;
      // Trial credit is spent before any other, so what was spent in all, less what came back, tells whether any trial
      // credit is left.
      await sql`
        with own as (
          select c.account_id, c.id, c.price_micros * ${String(partPerMillion)}::bigint / 1000000 as amount from calls c
          where c.account_id = ${accountId} and c.id = ${callId} and c.state in (0, 3) and not exists (
            select 1 from trial_credits t
            where t.account_id = c.account_id and (t.ended is distinct from 'expired' or t.due)
              and t.granted_micros > (
                select coalesce(sum(s.spent_micros), 0) from call_spending s where s.account_id = t.account_id
              ) - t.given_back_micros)
        ), noted as (
          insert into call_shares (account_id, call_id, beneficiary, amount_micros)
          select account_id, id, ${String(beneficiary)}, amount from own where amount > 0
          on conflict do nothing returning account_id, call_id
        )
        update calls c set shared = true from noted n where c.account_id = n.account_id and c.id = n.call_id`;
    },

    async earned(beneficiary) {
      const [row] = await sql<{ calls: number; earned: bigint; due: bigint; paid: bigint }[]>`
        select count(*)::integer as calls, coalesce(sum(amount_micros), 0)::bigint as earned,
               (select coalesce(sum(due_micros), 0)::bigint from call_shares
                where beneficiary = ${String(beneficiary)} and due_micros <> 0) as due,
               (select coalesce(sum(amount_micros), 0)::bigint from share_payouts
                where beneficiary = ${String(beneficiary)}) as paid
        from call_shares where beneficiary = ${String(beneficiary)} and state = 1`;
      const { calls = 0, earned = 0n, due = 0n, paid = 0n } = row ?? {};
      return { calls, earnedMicros: earned, dueMicros: due, paidMicros: paid };
    },

    async payOut(holdMs, limit) {
      const before = at(holdMs);
      const due = await sql<{ beneficiary: bigint }[]>`
        select beneficiary from call_shares where due_micros <> 0 and (due_micros < 0 or set_aside_at <= ${before})
        group by beneficiary having sum(due_micros) > 0 order by beneficiary limit ${limit}`;
      let paid = 0;
      for (const { beneficiary } of due) {
        if (await pay(sql, ledger, { beneficiary, before, now: at() })) paid += 1;
      }
      return paid;
    },
  };
}

/** @returns false when nothing is left to pay, or when another process is paying it */
async function pay(
  sql: Database,
  ledger: Pick<Ledger, 'transferWithin'>,
  { beneficiary, before, now }: { beneficiary: bigint; before: string; now: string },
): Promise<boolean> {
  return sql.begin(async (transaction) => {
    const [held] = await transaction<{ held: boolean }[]>`
        select pg_try_advisory_xact_lock(8403, hashtext(${String(beneficiary)})) as held`;
    if (held?.held !== true) return false;
    // Shares that were taken back after they were paid out come first.
    const shares = await transaction<{ account_id: bigint; call_id: string; due_micros: bigint }[]>`
        select account_id, call_id, due_micros from call_shares
        where beneficiary = ${String(beneficiary)} and due_micros <> 0 and (due_micros < 0 or set_aside_at <= ${before})
        order by due_micros limit ${SHARES_AT_ONCE} for update`;
    const amountMicros = shares.reduce((sum, { due_micros }) => sum + due_micros, 0n);
    if (amountMicros <= 0n) return false;
    const [last] = await transaction<{ nth: number }[]>`
        select coalesce(max(nth), 0) + 1 as nth from share_payouts where beneficiary = ${String(beneficiary)}`;
    const nth = last?.nth ?? 1;
    const id = transferIdFor(`share-payout:${beneficiary}:${nth}`);
    await transaction`
        update call_shares s set due_micros = 0
        from unnest(${arrayLiteral(shares.map((share) => share.account_id))}::text::bigint[],
                    ${arrayLiteral(shares.map((share) => share.call_id))}::text::uuid[]) as p (account_id, call_id)
        where s.account_id = p.account_id and s.call_id = p.call_id`;
    await transaction`
        insert into share_payouts (beneficiary, nth, transfer_id, amount_micros, paid_at)
        values (${String(beneficiary)}, ${nth}, ${id}, ${String(amountMicros)}, ${now})`;
    const { status } = await ledger.transferWithin(transaction, {
      ...{
        id,
        accountId: beneficiary,
        phase: 'posted',
        side: 'credit',
        house: 'shares_owed',
        amountMicros,
      },
      code: 'share_payout',
    });
    if (status !== 'done')
      throw new Error(`the share of account ${beneficiary} could not be paid: ${status}`);
    return true;
  });
}
