/** Money on a database that Citus spreads: calls that are sold past a server, and servers that are killed while they move something. */
import assert from 'node:assert/strict';
import type { Pools, Transaction } from '../../../../packages/core/src/db/connection.ts';
import type { Ledger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { newCallId, transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { createCallStore } from '../../../../packages/core/src/paid-call/inside/calls.ts';
import type { ServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

export const PRICE = usdToMicros('0.25');
const HOUR_MS = 3_600_000;

/**
 * A call that was charged.
 *
 * @param meanwhile done while it runs
 * @param how by which clock it is sold, and whether it is charged at all
 * @returns its id
 */
export async function sellCall(
  pools: Pools,
  { id: accountId, bucket }: { id: bigint; bucket: number },
  meanwhile: (callId: string) => Promise<unknown>,
  { nowMs = Date.now, capture = true }: { nowMs?(): number; capture?: boolean } = {},
): Promise<string> {
  const calls = createCallStore(pools, { nowMs, answerTtlMs: HOUR_MS });
  const call = {
    id: newCallId(nowMs(), bucket),
    accountId,
    bucket,
    keyId: null,
    rail: 'credits',
    service: 'ping',
    ttlMs: 40_000,
    priceMicros: PRICE,
    revenue: 'revenue_credits' as const,
    identity: null,
    onChainIdentity: null,
    fingerprint: null,
  };
  assert.equal((await calls.begin(call)).status, 'authorized');
  await meanwhile(call.id);
  const answer = { status: 200, headers: {}, body: '{}' };
  const ended = capture
    ? await calls.finish({ ...call, capture, outcome: 'answered', answer })
    : await calls.finish({ ...call, capture, outcome: 'failed', answer: null });
  assert.equal(ended.status, 'done');
  return call.id;
}

/** A call that was charged, of which another account has a share. @returns its id */
export function sellShared(
  pools: Pools,
  customer: { id: bigint; bucket: number },
  { beneficiary, micros, nowMs = Date.now }: { beneficiary: bigint; micros: bigint; nowMs?(): number },
): Promise<string> {
  const { id: accountId, bucket } = customer;
  return sellCall(
    pools,
    customer,
    async (callId) => {
      const { sql } = pools;
      await sql`
      insert into call_shares (bucket, account_id, call_id, beneficiary, amount_micros)
      values (${bucket}, ${String(accountId)}, ${callId}, ${String(beneficiary)}, ${String(micros)})`;
      await sql`update calls set shared = true where bucket = ${bucket} and account_id = ${String(accountId)} and id = ${callId}`;
    },
    { nowMs },
  );
}

/** Gives the price of a call back to the account that paid it, as a job does with a call that was not delivered. */
export async function giveBackPrice(ledger: Ledger, accountId: bigint, callId: string): Promise<void> {
  const { status } = await ledger.transfer({
    id: transferIdFor(`refund:${callId}`),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'revenue_credits',
    amountMicros: PRICE,
    code: 'call_refund',
    note: `undelivered call ${callId}`,
  });
  assert.equal(status, 'done');
}

/**
 * Starts a server while the test holds something that a job of it wants, and kills it once the job waits for that.
 *
 * @param hold takes the lock
 * @param waiting a part of the statement that waits
 */
export async function killWaiting(
  { pools, start }: { pools: Pools; start(): Promise<ServerProcess> },
  hold: (transaction: Transaction) => Promise<unknown>,
  waiting: string,
): Promise<void> {
  await pools.patient.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await hold(transaction);
    const server = await start();
    try {
      await until('the server to wait', async () => {
        const rows = await pools.sql`
          select 1 from citus_lock_waits where blocked_statement like ${`%${waiting}%`}`;
        return rows.length > 0;
      });
    } finally {
      await server.end('SIGKILL');
    }
  });
}
