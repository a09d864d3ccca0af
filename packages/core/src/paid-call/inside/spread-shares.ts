/**
 * Shares of calls on a database that is spread: shares lie with their calls, on the servers of those who paid them; beneficiaries' accounts on
 * others; card orders, debts and payouts on the coordinator. A statement that locks or changes rows names one bucket.
 */
import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database, Transaction } from '../../db/connection.ts';
import { eachDueRow } from '../../db/due-rows.ts';
import { keepPlaces } from '../../ledger/buckets.ts';
import {
  type EarnedRow,
  type NotedShare,
  type Payable,
  SHARES_AT_ONCE,
  type ShareLedger,
  writePayout,
} from './share-payout.ts';

/** Notes a share. What cards paid is read on the coordinator before, and all that is written lies in one bucket. */
export async function noteShareOf(
  sql: Database,
  { callId, accountId, beneficiary, partPerMillion, cardHoldMs, newCardAfter }: NotedShare,
): Promise<void> {
  const payer = String(accountId);
  // An account stays where it is while a call of it is open.
  const [call] = await sql<{ bucket: number }[]>`
    select bucket from calls where account_id = ${payer} and id = ${callId} and state in (0, 3)`;
  if (call === undefined) return;
  const { bucket } = call;
  const [held] = await sql<{ until: string | null }[]>`
    with cards as (
      select id from card_orders where account_id = ${payer}
      union
      select order_id from credit_origins where account_id = ${payer} and order_id is not null
    )
    select (max(o.paid_at) + ${String(cardHoldMs)}::bigint * interval '1 millisecond')::text as until
    from cards join card_orders o using (id) where o.state = 1 and o.paid_at > ${newCardAfter}`;
  await sql.begin(async (transaction) => {
    const [trial] = await transaction<{ left: boolean }[]>`
      select t.granted_micros > (
               select coalesce(sum(s.spent_micros), 0) from call_spending s
               where s.bucket = ${bucket} and s.account_id = ${payer}
             ) - t.given_back_micros as left
      from trial_credits t where t.account_id = ${payer} and (t.ended is distinct from 'expired' or t.due)`;
    if (trial?.left === true) return;
    const noted = await transaction`
      insert into call_shares (bucket, account_id, call_id, beneficiary, amount_micros, held_until)
      select c.bucket, c.account_id, c.id, ${String(beneficiary)}::bigint, c.price_micros * ${String(partPerMillion)}::bigint / 1000000,
             ${held?.until ?? null}::text::timestamptz
      from calls c
      where c.bucket = ${bucket} and c.account_id = ${payer} and c.id = ${callId} and c.state in (0, 3)
        and c.price_micros * ${String(partPerMillion)}::bigint / 1000000 > 0
      on conflict do nothing`;
    if (noted.count === 0) return;
    await transaction`
      update calls set shared = true where bucket = ${bucket} and account_id = ${payer} and id = ${callId}`;
  });
}

/** What an account has earned. @param now in ISO 8601 */
export async function earnedOf(sql: Database, beneficiary: bigint, now: string): Promise<EarnedRow> {
  const account = String(beneficiary);
  const owing = await debtors(sql);
  const [sums] = await sql<Omit<EarnedRow, 'paid' | 'has_key'>[]>`
    select (count(*) filter (where state = 1))::integer as calls,
           coalesce(sum(amount_micros - reversed_micros) filter (where state = 1), 0)::bigint as earned,
           coalesce(sum(due_micros), 0)::bigint as due,
           coalesce(sum(due_micros) filter (where due_micros <> 0 and held_until > ${now}), 0)::bigint as new_card,
           coalesce(sum(due_micros) filter (
             where due_micros > 0 and (held_until is null or held_until <= ${now}) and account_id = any(${owing}::text::bigint[])
           ), 0)::bigint as payer_owes
    from call_shares where beneficiary = ${account}`;
  const [paid] = await sql<{ micros: bigint }[]>`
    select coalesce(sum(amount_micros), 0)::bigint as micros from share_payouts where beneficiary = ${account}`;
  if (sums === undefined || paid === undefined) throw new Error('the database returned nothing');
  return { ...sums, paid: paid.micros, has_key: await hasUsableKeyOf(sql, beneficiary, now) };
}

/** Pays out what is payable, account after account. @returns how many were paid */
export async function payOutOf(
  sql: Database,
  ledger: ShareLedger,
  { before, now, limit }: Payable & { limit: number },
): Promise<number> {
  return eachDueRow({
    pageSize: limit,
    pageAfter: (last?: { beneficiary: bigint }) => sql<{ beneficiary: bigint }[]>`
      select s.beneficiary from call_shares s
      where s.beneficiary > ${String(last?.beneficiary ?? 0n)} and s.due_micros <> 0
        and (s.due_micros < 0 or (s.set_aside_at <= ${before} and (s.held_until is null or s.held_until <= ${now})))
      group by s.beneficiary having sum(s.due_micros) > 0 order by s.beneficiary limit ${limit}`,
    act: ({ beneficiary }) => pay(sql, ledger, { beneficiary, before, now }),
  });
}

/** The accounts that owe something, as the text of an array: the coordinator has them, and shares lie on workers. */
async function debtors(on: Database | Transaction): Promise<string> {
  const rows = await on<{ account_id: bigint }[]>`
    select account_id from account_debts where owed_micros > 0`;
  return arrayLiteral(rows.map(({ account_id }) => account_id));
}

async function hasUsableKeyOf(on: Database | Transaction, accountId: bigint, now: string): Promise<boolean> {
  const rows = await on`
    select 1 from api_keys where account_id = ${String(accountId)} and status = 'active'
      and (expires_at is null or expires_at > ${now}) limit 1`;
  return rows.length > 0;
}

/** One commit of the servers that have shares, of the beneficiary's and of the coordinator. @returns false when nothing was paid */
async function pay(
  sql: Database,
  ledger: ShareLedger,
  { beneficiary, before, now }: Payable & { beneficiary: bigint },
): Promise<boolean> {
  return sql
    .begin(async (transaction) => {
      const [held] = await transaction<{ held: boolean }[]>`
      select pg_try_advisory_xact_lock(8403, hashtext(${String(beneficiary)})) as held`;
      if (held?.held !== true) return false;
      await ledger.lock(transaction, [beneficiary]);
      await keepPlaces(transaction, { isDistributed: true });
      if (!(await hasUsableKeyOf(transaction, beneficiary, now))) return false;
      let amountMicros = 0n;
      for (const { bucket, calls } of await payableByBucket(transaction, { beneficiary, before, now })) {
        const ids = arrayLiteral(calls);
        const shares = await transaction<{ due_micros: bigint }[]>`
        select due_micros from call_shares
        where bucket = ${bucket} and beneficiary = ${String(beneficiary)} and call_id = any(${ids}::text::uuid[])
        order by account_id, call_id for update`;
        amountMicros += shares.reduce((sum, { due_micros }) => sum + due_micros, 0n);
        await transaction`
        update call_shares set due_micros = 0
        where bucket = ${bucket} and beneficiary = ${String(beneficiary)} and call_id = any(${ids}::text::uuid[])`;
      }
      // Taken back after it was paid out, or since it was looked for.
      if (amountMicros <= 0n) throw new NothingToPay();
      await writePayout(transaction, ledger, { beneficiary, amountMicros, now });
      return true;
    })
    .catch((error: unknown) => {
      if (error instanceof NothingToPay) return false;
      throw error;
    });
}

/** Ends a transaction that would have paid nothing. */
class NothingToPay extends Error {}

/** The calls whose shares are payable, by their buckets in order. Those that were taken back after they were paid out come first. */
async function payableByBucket(
  transaction: Transaction,
  { beneficiary, before, now }: Payable & { beneficiary: bigint },
): Promise<{ bucket: number; calls: string[] }[]> {
  const rows = await transaction<{ bucket: number; call_id: string }[]>`
    select bucket, call_id from call_shares
    where beneficiary = ${String(beneficiary)} and due_micros <> 0
      and (due_micros < 0 or (set_aside_at <= ${before} and (held_until is null or held_until <= ${now})
        and not account_id = any(${await debtors(transaction)}::text::bigint[])))
    order by due_micros limit ${SHARES_AT_ONCE}`;
  const byBucket = Map.groupBy(rows, (row) => row.bucket);
  return [...byBucket]
    .sort(([a], [b]) => a - b)
    .map(([bucket, of]) => ({ bucket, calls: of.map((row) => row.call_id) }));
}
