/**
 * What was counted of an account's sales, when it moves to another bucket of a database that is spread. Each bucket is counted up to a place of
 * its own, so the one may have passed calls that the other has still to read. All this is one commit of the coordinator with the move.
 */
import type { Transaction } from '../db/connection.ts';
import { type Move, transfersOf } from '../ledger/account-moves.ts';
import {
  addEnded,
  addRefunded,
  beginCount,
  type Ended,
  passedCalls,
  takeClosed,
} from './inside/fold-spread-sales.ts';

/** How far the count of a bucket has come. Times are text, which has microseconds. */
interface Counted {
  bucket: number;
  calls_to: string;
  transfers_to: string;
}

/** Calls or transfers that one of the two buckets has passed and the other has not. */
interface Between {
  since: string;
  until: string;
  /** 1: the new bucket has passed them, so they are counted now. -1: it will count them again, so they are taken out. 0: there are none. */
  sign: number;
}

/**
 * Lets each call and transfer of an account be counted once, before it is moved from a bucket to another. Who counts either of them holds
 * it up, and waits for it.
 */
export async function moveSales(transaction: Transaction, move: Move): Promise<void> {
  const { from, to } = move;
  for (const bucket of [from, to].sort((a, b) => a - b)) await beginCount(transaction, bucket);
  const counted = await transaction<Counted[]>`
    select bucket, calls_to::text, transfers_to::text from sales_folded_buckets
    where bucket in (${from}, ${to}) order by bucket for update`;
  const here = counted.find(({ bucket }) => bucket === from);
  const there = counted.find(({ bucket }) => bucket === to);
  if (here === undefined || there === undefined) throw new Error('a bucket has no count');
  // None of its calls is open, so this leaves none of them among those that were passed while they were.
  await addEnded(transaction, await takeClosed(transaction, from));
  await moveCalls(transaction, move, await between(transaction, here.calls_to, there.calls_to));
  await moveTransfers(transaction, move, await between(transaction, here.transfers_to, there.transfers_to));
  await countAnew(transaction, move, { here, there });
}

async function between(transaction: Transaction, here: string, there: string): Promise<Between> {
  const [row] = await transaction<Between[]>`
    select least(h, t)::text as since, greatest(h, t)::text as until, case when h < t then 1 when h > t then -1 else 0 end as sign
    from (select ${here}::text::timestamptz as h, ${there}::text::timestamptz as t) places`;
  if (row === undefined) throw new Error('the database returned nothing');
  return row;
}

async function moveCalls(
  transaction: Transaction,
  { id, from }: Move,
  { since, until, sign }: Between,
): Promise<void> {
  if (sign === 0) return;
  const ended = await passedCalls(
    transaction,
    transaction`
      bucket = ${from} and account_id = ${String(id)}
      and begun_at >= ${since}::text::timestamptz and begun_at < ${until}::text::timestamptz`,
  );
  await addEnded(
    transaction,
    ended.map((each) => signed(each, sign)),
  );
}

function signed(ended: Ended, sign: number): Ended {
  const of = (amount: string) => String(BigInt(sign) * BigInt(amount));
  return {
    ...ended,
    answered: of(ended.answered),
    answered_micros: of(ended.answered_micros),
    released: of(ended.released),
    released_micros: of(ended.released_micros),
  };
}

async function moveTransfers(
  transaction: Transaction,
  move: Move,
  { since, until, sign }: Between,
): Promise<void> {
  if (sign === 0) return;
  await transaction`
    insert into transfer_days as d (day, code, transfers, moved_micros)
    select day, code, ${sign}::integer * transfers, ${sign}::integer * micros from (
      select (created_at at time zone 'UTC')::date as day, code, count(*) as transfers, sum(amount_micros) as micros
      from ledger_transfers
      where ${transaction.unsafe(transfersOf(move))} and code <> 'call'
        and created_at >= ${since}::text::timestamptz and created_at < ${until}::text::timestamptz
      group by 1, 2
    ) m order by 1, 2
    on conflict (day, code) do update set
      transfers = d.transfers + excluded.transfers, moved_micros = d.moved_micros + excluded.moved_micros`;
  await addRefunded(transaction, { bucket: move.from, from: since, to: until, of: move.id, sign });
}

/**
 * Has both buckets wait anew for what is being written, where something of the account has still to be counted: until the servers of both have
 * committed the move it is seen in both or in neither.
 */
async function countAnew(
  transaction: Transaction,
  move: Move,
  { here, there }: { here: Counted; there: Counted },
): Promise<void> {
  const { id, from, to } = move;
  const [left] = await transaction<{ calls: boolean; transfers: boolean }[]>`
    select
      exists (
        select 1 from calls where bucket = ${from} and account_id = ${String(id)}
          and begun_at >= least(${here.calls_to}::text::timestamptz, ${there.calls_to}::text::timestamptz)
      ) as calls,
      exists (
        select 1 from ledger_transfers where ${transaction.unsafe(transfersOf(move))} and code <> 'call'
          and created_at >= least(${here.transfers_to}::text::timestamptz, ${there.transfers_to}::text::timestamptz)
      ) as transfers`;
  if (left?.calls !== true && left?.transfers !== true) return;
  await transaction`
    update sales_folded_buckets set complete_to = '-infinity', marked_on = 0 where bucket in (${from}, ${to})`;
}
