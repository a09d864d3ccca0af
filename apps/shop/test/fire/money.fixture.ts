/** Reads what the database says about money, past the product's own code where a test must not believe it. */
import assert from 'node:assert/strict';
import type { Database } from '../../../../packages/core/src/db/connection.ts';
import { proveBooks } from '../books.fixture.ts';

export interface CallRow {
  id: string;
  account_id: bigint;
  service: string;
  /** 0 open, 1 captured, 2 released. */
  state: number;
  identity: string | null;
  price_micros: bigint;
  /** UTC. */
  finished_day: string | null;
  /** Whether its answer is kept. */
  kept: boolean;
}

/** The account behind a key. */
export async function accountOf(sql: Database, apiKey: string): Promise<bigint> {
  const [row] = await sql<{ account_id: bigint }[]>`
    select account_id from api_keys where digest = sha256(convert_to(${apiKey}, 'UTF8'))`;
  assert(row !== undefined, 'the key is not in the database');
  return row.account_id;
}

/** Every call of an account, oldest first. */
export async function callsOf(sql: Database, accountId: bigint): Promise<CallRow[]> {
  return sql<CallRow[]>`
    select c.id, c.account_id, c.service, c.state, c.identity, c.price_micros,
           to_char(c.finished_at at time zone 'UTC', 'YYYY-MM-DD') as finished_day,
           exists (select 1 from call_answers a where a.bucket = c.bucket and a.account_id = c.account_id and a.id = c.id) as kept
    from calls c where c.account_id = ${String(accountId)} order by c.created_at, c.id`;
}

/** Ids of the calls that were given back after they had been captured, one for each refund. */
export async function refundsOf(sql: Database, accountId: bigint): Promise<string[]> {
  const rows = await sql<{ call: string }[]>`
    select replace(note, 'undelivered call ', '') as call from ledger_transfers
    where account_id = ${String(accountId)} and code = 'call_refund'`;
  return rows.map(({ call }) => call);
}

/** Sum of the posted transfers of an account: what it holds, in micro-USD, by the transfers alone. */
export async function balanceOf(sql: Database, accountId: bigint): Promise<bigint> {
  const [row] = await sql<{ balance: bigint }[]>`
    select coalesce(sum(case when credit_account = account_id then amount_micros else -amount_micros end), 0)::bigint
      as balance
    from ledger_transfers where account_id = ${String(accountId)} and phase in (1, 3)`;
  return row?.balance ?? 0n;
}

/** Asks, and holds what it cost an account against what it must, in micro-USD. */
export async function assertCost(
  { sql, account }: { sql: Database; account: bigint },
  micros: bigint,
  asking: () => Promise<Response>,
): Promise<Response> {
  const held = await balanceOf(sql, account);
  const answer = await asking();
  assert.equal(held - (await balanceOf(sql, account)), micros, `status ${answer.status}`);
  return answer;
}

export async function openCalls(sql: Database): Promise<number> {
  const [row] = await sql<{ open: number }[]>`select count(*)::integer as open from calls where state = 0`;
  return row?.open ?? 0;
}

/** Promise 3 of the design, once nothing runs any more. */
export async function assertBooksClosed(sql: Database): Promise<void> {
  const books = await proveBooks(sql);
  assert.deepEqual(
    books.checks.filter(({ ok }) => !ok),
    [],
  );
  assert.equal(books.calls.open, 0n, 'a call was left open');
  assert.equal(books.reservedMicros, 0n, 'money was left reserved');
}
