import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database } from '../../db/connection.ts';
import { type Held, LeasedQueue, type QueueShape, type WatchedQueue } from '../../db/leased-queue.ts';
import { HOUSE_ACCOUNTS, houseAccountName } from '../../ledger/accounts.ts';
import type { PricedCall } from './call-steps.ts';

/** A call whose capture may have been committed while its answer was withheld. */
export interface UndeliveredCall extends PricedCall {
  /** Whether the payer can still ask for the answer. If so, a price that was taken stays taken. */
  retrievable: boolean;
}

interface Row {
  account_id: bigint;
  call_id: string;
  bucket: number;
  service: string;
  price_micros: bigint;
  revenue_account: bigint;
  retrievable: boolean;
}

/** One that a process has taken to deal with. */
export interface LeasedCall extends UndeliveredCall {
  held: Held<Row>;
}

const QUEUE: QueueShape = {
  name: 'undelivered-calls',
  table: 'undelivered_calls',
  key: ['account_id', 'call_id'],
  columns: ['bucket', 'service', 'price_micros', 'revenue_account', 'retrievable'],
  attempts: null,
  leaseMs: 30_000,
  backOffMs: () => 30_000,
  mostAttempts: null,
  settled: 'deleted',
  givenUpAt: null,
  since: 'next_at',
};

/** The table of these calls. A row is deleted when its call has been dealt with. */
export interface UndeliveredCalls {
  /** Stores them, in one commit. Storing one again changes nothing. */
  note(calls: readonly UndeliveredCall[]): Promise<void>;
  readonly queue: WatchedQueue;
  /** Takes so many at most of those that are due. One that is not done is due again when its lease is over. */
  lease(limit: number): Promise<LeasedCall[]>;
  /**
   * The amount that was taken for it; null when nothing was. A call that is no longer open may also have been released by another job, or
   * never have begun.
   */
  takenFor(call: Pick<UndeliveredCall, 'accountId' | 'id'>): Promise<bigint | null>;
  /** Forgets a call that has been dealt with; whoever has it now would find the same. */
  done(call: LeasedCall): Promise<void>;
  waiting(): Promise<number>;
}

export function createUndeliveredCalls(sql: Database, nowMs: () => number): UndeliveredCalls {
  const at = (afterMs = 0) => new Date(nowMs() + afterMs).toISOString();
  const queue = new LeasedQueue<Row>(sql, QUEUE, nowMs);
  return {
    queue,
    async note(calls) {
      await sql`
        insert into undelivered_calls (account_id, call_id, bucket, service, price_micros, revenue_account, retrievable, next_at)
        select *, ${at()}::timestamptz from unnest(
          ${arrayLiteral(calls.map((call) => call.accountId))}::text::bigint[],
          ${arrayLiteral(calls.map((call) => call.id))}::text::uuid[],
          ${arrayLiteral(calls.map((call) => call.bucket))}::text::smallint[],
          ${arrayLiteral(calls.map((call) => call.service))}::text::text[],
          ${arrayLiteral(calls.map((call) => call.priceMicros))}::text::bigint[],
          ${arrayLiteral(calls.map((call) => HOUSE_ACCOUNTS[call.revenue]))}::text::bigint[],
          ${arrayLiteral(calls.map((call) => call.retrievable))}::text::boolean[])
        on conflict do nothing`;
    },

    async lease(limit) {
      const rows = await queue.claim(limit);
      return rows.map((row) => {
        const revenue = houseAccountName(row.revenue_account);
        if (revenue === null)
          throw new Error(`call ${row.call_id} is paid to account ${row.revenue_account}`);
        return {
          id: row.call_id,
          accountId: row.account_id,
          bucket: row.bucket,
          service: row.service,
          priceMicros: row.price_micros,
          revenue,
          retrievable: row.retrievable,
          held: row,
        };
      });
    },

    async takenFor({ accountId, id }) {
      const [row] = await sql<{ price_micros: bigint }[]>`
        select price_micros from calls where account_id = ${String(accountId)} and id = ${id} and state = 1`;
      return row?.price_micros ?? null;
    },

    async done({ held }) {
      await queue.settle(held, { isFact: true });
    },

    async waiting() {
      const [row] = await sql<{ count: number }[]>`select count(*)::integer as count from undelivered_calls`;
      return row?.count ?? 0;
    },
  };
}
