/**
 * The shares that others get of a call's price. A share is noted while the call runs. The database sets it aside in the
 * commit that takes the price, and takes it back in the commit that gives the price back, whoever makes that commit
 * (`db/migrations/280_baseline.sql`). What card credit paid goes back with the card payment too, as far as it was spent on the
 * call (`functions/call_shares_reversed.v2.sql`). A job pays it out to its beneficiary's account.
 */
import type { PendingQuery, Row } from 'postgres';
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database, Pools, Transaction } from '../../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import type { PayerProof } from '../rail.ts';
import { type EarnedRow, SHARES_AT_ONCE, type ShareLedger, writePayout } from './share-payout.ts';
import { earnedOf, noteShareOf, payOutOf } from './spread-shares.ts';

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
  /** What an account has earned. */
  earned(beneficiary: bigint): Promise<Earned>;
  /**
   * Pays out what was set aside at least `holdMs` ago and is not held for another reason, in one transfer for each account.
   *
   * @returns the number of accounts paid
   */
  payOut(holdMs: number, limit: number): Promise<number>;
}

/** Amounts in micro-USD. */
export interface Earned {
  calls: number;
  earnedMicros: bigint;
  paidMicros: bigint;
  /** What is still to be paid. */
  dueMicros: bigint;
  /** What of it waits for more than the usual time, and why. */
  heldMicros: bigint;
  heldFor: HeldFor[];
}

/**
 * - new_card: a card payment that may have paid the call is too new.
 * - payer_owes: the customer's payment went back, and the claim is open.
 * - no_usable_key: the beneficiary has no key that works.
 */
type HeldFor = 'new_card' | 'payer_owes' | 'no_usable_key';

interface ShareParts {
  ledger: ShareLedger;
  nowMs(): number;
  /** How old a card payment must be before a share of what it paid is paid out. */
  cardHoldMs: number;
}

export function createCallShares(
  { sql, distribution }: Pick<Pools, 'sql' | 'distribution'>,
  { ledger, nowMs, cardHoldMs }: ShareParts,
): CallShares {
  const at = (beforeMs = 0) => new Date(nowMs() - beforeMs).toISOString();
  return {
    async note({ callId, payer, beneficiary, partPerMillion }) {
      const payerId = payer.by === 'account' ? payer.accountId : HOUSE_ACCOUNTS.chain_clearing;
      if (payerId === beneficiary || partPerMillion === 0n) return;
      if (distribution.isDistributed) {
        const share = { callId, accountId: payerId, beneficiary, partPerMillion, cardHoldMs };
        return noteShareOf(sql, { ...share, newCardAfter: at(cardHoldMs) });
      }
      const accountId = String(payerId);
      // Trial credit is spent before any other, so what was spent in all, less what came back, tells whether any trial
      // credit is left. A card may have paid for the account itself, or for the key that it was bought with.
      await sql`
        with cards as (
          select id from card_orders where account_id = ${accountId}
          union
          select order_id from credit_origins where account_id = ${accountId} and order_id is not null
        ), own as (
          select c.account_id, c.id, c.bucket, c.price_micros * ${String(partPerMillion)}::bigint / 1000000 as amount from calls c
          where c.account_id = ${accountId} and c.id = ${callId} and c.state in (0, 3) and not exists (
            select 1 from trial_credits t
            where t.account_id = c.account_id and (t.ended is distinct from 'expired' or t.due)
              and t.granted_micros > (
                select coalesce(sum(s.spent_micros), 0) from call_spending s where s.account_id = t.account_id
              ) - t.given_back_micros)
        ), noted as (
          insert into call_shares (bucket, account_id, call_id, beneficiary, amount_micros, held_until)
          select bucket, account_id, id, ${String(beneficiary)}, amount, (
            select max(o.paid_at) + ${String(cardHoldMs)}::bigint * interval '1 millisecond'
            from cards join card_orders o using (id) where o.state = 1 and o.paid_at > ${at(cardHoldMs)}
          ) from own where amount > 0
          on conflict do nothing returning bucket, account_id, call_id
        )
        update calls c set shared = true from noted n
        where c.bucket = n.bucket and c.account_id = n.account_id and c.id = n.call_id`;
    },

    async earned(beneficiary) {
      const sums = distribution.isDistributed ? earnedOf : earnedBy;
      return shownEarned(await sums(sql, beneficiary, at()));
    },

    async payOut(holdMs, limit) {
      const before = at(holdMs);
      const now = at();
      if (distribution.isDistributed) return payOutOf(sql, ledger, { before, now, limit });
      const due = await sql<{ beneficiary: bigint }[]>`
        select s.beneficiary from call_shares s where ${payable(sql, before, now)}
        group by s.beneficiary having sum(s.due_micros) > 0 and ${hasUsableKey(sql, sql`s.beneficiary`, now)}
        order by s.beneficiary limit ${limit}`;
      let paid = 0;
      for (const { beneficiary } of due) {
        if (await pay(sql, ledger, { beneficiary, before, now })) paid += 1;
      }
      return paid;
    },
  };
}

/** Shares `s` that are paid out now; those that were taken back after they were paid out count against the others. */
function payable(on: Database | Transaction, before: string, now: string): PendingQuery<Row[]> {
  return on`
    s.due_micros <> 0 and (s.due_micros < 0 or (
      s.set_aside_at <= ${before} and (s.held_until is null or s.held_until <= ${now}) and not ${payerOwes(on)}))`;
}

/** Whether the customer of a share `s` owes for a payment that went back. */
function payerOwes(on: Database | Transaction): PendingQuery<Row[]> {
  return on`
    exists (select 1 from account_debts d where d.account_id = s.account_id and d.owed_micros > 0)`;
}

function hasUsableKey(
  on: Database | Transaction,
  accountId: PendingQuery<Row[]>,
  now: string,
): PendingQuery<Row[]> {
  return on`
    exists (select 1 from api_keys k where k.account_id = ${accountId} and k.status = 'active'
      and (k.expires_at is null or k.expires_at > ${now}))`;
}

async function earnedBy(sql: Database, beneficiary: bigint, now: string): Promise<EarnedRow> {
  const account = sql`${String(beneficiary)}::bigint`;
  const [row] = await sql<EarnedRow[]>`
    select count(s.call_id)::integer as calls, coalesce(sum(s.amount_micros - s.reversed_micros), 0)::bigint as earned,
           h.due, h.new_card, h.payer_owes, ${hasUsableKey(sql, account, now)} as has_key,
           (select coalesce(sum(amount_micros), 0)::bigint from share_payouts where beneficiary = ${account}) as paid
    from (
      select coalesce(sum(s.due_micros), 0)::bigint as due,
             coalesce(sum(s.due_micros) filter (where s.held_until > ${now}), 0)::bigint as new_card,
             coalesce(sum(s.due_micros) filter (
               where s.due_micros > 0 and (s.held_until is null or s.held_until <= ${now}) and ${payerOwes(sql)}
             ), 0)::bigint as payer_owes
      from call_shares s where s.beneficiary = ${account} and s.due_micros <> 0
    ) h left join call_shares s on s.beneficiary = ${account} and s.state = 1
    group by h.due, h.new_card, h.payer_owes`;
  if (row === undefined) throw new Error('the database returned nothing');
  return row;
}

function shownEarned(row: EarnedRow): Earned {
  const dueMicros = row.due;
  const isKeyless = !row.has_key && dueMicros > 0n;
  const heldFor: HeldFor[] = [
    ...(row.new_card > 0n ? (['new_card'] as const) : []),
    ...(row.payer_owes > 0n ? (['payer_owes'] as const) : []),
    ...(isKeyless ? (['no_usable_key'] as const) : []),
  ];
  return {
    calls: row.calls,
    earnedMicros: row.earned,
    paidMicros: row.paid,
    dueMicros,
    heldMicros: isKeyless ? dueMicros : row.new_card + row.payer_owes,
    heldFor,
  };
}

/** @returns false when nothing is left to pay, or when another process is paying it */
async function pay(
  sql: Database,
  ledger: ShareLedger,
  { beneficiary, before, now }: { beneficiary: bigint; before: string; now: string },
): Promise<boolean> {
  return sql.begin(async (transaction) => {
    const [held] = await transaction<{ held: boolean }[]>`
        select pg_try_advisory_xact_lock(8403, hashtext(${String(beneficiary)})) as held`;
    if (held?.held !== true) return false;
    // The account before the shares, as whoever takes shares back holds them.
    await ledger.lock(transaction, [beneficiary]);
    const [usable] = await transaction<{ usable: boolean }[]>`
        select ${hasUsableKey(transaction, transaction`${String(beneficiary)}::bigint`, now)} as usable`;
    if (usable?.usable !== true) return false;
    // Shares that were taken back after they were paid out come first.
    const shares = await transaction<{ account_id: bigint; call_id: string; due_micros: bigint }[]>`
        select s.account_id, s.call_id, s.due_micros from call_shares s
        where s.beneficiary = ${String(beneficiary)} and ${payable(transaction, before, now)}
        order by s.due_micros limit ${SHARES_AT_ONCE} for update`;
    const amountMicros = shares.reduce((sum, { due_micros }) => sum + due_micros, 0n);
    if (amountMicros <= 0n) return false;
    await transaction`
        update call_shares s set due_micros = 0
        from unnest(${arrayLiteral(shares.map((share) => share.account_id))}::text::bigint[],
                    ${arrayLiteral(shares.map((share) => share.call_id))}::text::uuid[]) as p (account_id, call_id)
        where s.account_id = p.account_id and s.call_id = p.call_id`;
    await writePayout(transaction, ledger, { beneficiary, amountMicros, now });
    return true;
  });
}
