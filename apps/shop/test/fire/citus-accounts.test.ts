/** Accounts that are moved to other buckets of a database that Citus spreads, and so to other servers. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pools } from '../../../../packages/core/src/db/connection.ts';
import { moveAccounts } from '../../../../packages/core/src/ledger/account-moves.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { hearTransfers } from '../../../../packages/core/src/ledger/heard-transfers.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { foldSpreadSales } from '../../../../packages/core/src/paid-call/inside/fold-spread-sales.ts';
import { moveSales } from '../../../../packages/core/src/paid-call/moved-sales.ts';
import { StartError } from '../../../../packages/process/src/start-error.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { giveBackPrice, sellCall } from './citus-money.fixture.ts';
import { assertBooksClosed } from './money.fixture.ts';
import { customerOf, moveAndCompare, openCustomer, sellBefore } from './moved-accounts.fixture.ts';
import { until } from './until.fixture.ts';

const COMMAND = join(import.meta.dirname, '../../src/commands/move-accounts.ts');

let database: SpreadDatabase;
let pools: Pools;
before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  pools = await database.spread(6);
});
after(async () => {
  await database?.close();
});

/** Whether a statement about a table waits for a lock of a row on the coordinator. */
async function waitsFor(table: string): Promise<boolean> {
  const rows = await pools.sql`
    select 1 from pg_locks l join pg_stat_activity a using (pid)
    where not l.granted and a.datname = current_database() and a.query like ${`%from ${table}%`}`;
  return rows.length > 0;
}

const hear = () => hearTransfers(pools, { turns: createBucketTurns(pools), atOnce: 10 });

test('an account goes to another server with all that is its own, and what was bought before is answered, given back and shared', {
  skip: withoutCitus,
}, async () => {
  const sold = await sellBefore(pools);
  await hear();
  await moveAndCompare(pools, sold, { proveBooks: () => assertBooksClosed(pools.sql), hear });
});

test('an account stays until what is noted of it was heard of', { skip: withoutCitus }, async () => {
  const customer = await openCustomer(pools);
  const callId = await sellCall(pools, customer, async () => {});
  await giveBackPrice(createLedger(pools, Date.now), customer.id, callId);
  assert.deepEqual(await moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }), {
    moved: 0,
    open: [customer.id],
  });
  await hear();
  assert.deepEqual(await moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }), {
    moved: 1,
    open: [],
  });
  await assertBooksClosed(pools.sql);
});

test('what somebody changes of an account while it waits to be moved is moved as they left it', {
  skip: withoutCitus,
}, async () => {
  const customer = await openCustomer(pools);
  let moved: Promise<unknown> | null = null;
  await pools.patient.begin(async (transaction) => {
    await transaction`
      update api_keys set status = 'revoked' where bucket = 0 and id = ${String(customer.keyId)}`;
    moved = moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 });
    await until('the move to wait', () => waitsFor('api_keys'));
  });
  assert.deepEqual(await moved, { moved: 1, open: [] });
  const [key] = await pools.sql`
    select bucket <> 0 as moved, status from api_keys where id = ${String(customer.keyId)}`;
  assert.deepEqual(key, { moved: true, status: 'revoked' });
});

test('nothing is moved once sales or days were counted by bucket', { skip: withoutCitus }, async () => {
  const { sql } = pools;
  const isCounted = (error: unknown) =>
    error instanceof StartError &&
    /a server has run on this database since it was spread/.test(error.message);
  const turns = createBucketTurns(pools);
  await foldSpreadSales(sql, { turns, atOnce: 10 });
  await assert.rejects(moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }), isCounted);
  await sql`delete from sales_folded_buckets`;
  await sql`
    insert into ledger_days (day, transfers, transfers_digest, moves_digest, digest, by_bucket)
    select '2026-01-01', 0, d, d, d, true from (select sha256('') as d) one`;
  await assert.rejects(moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }), isCounted);
  await sql`delete from ledger_days`;
});

test('a move whose worker is away, or that is killed half-way, has moved nothing, and the next one does', {
  skip: withoutCitus,
}, async () => {
  const { sql } = pools;
  const customer = await openCustomer(pools);
  await sellCall(pools, customer, async () => {});
  for (const worker of database.workers) worker.kill();
  await assert.rejects(moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }));
  for (const worker of database.workers) await worker.start();
  assert.equal((await customerOf(pools, customer.apiKey)).bucket, 0);

  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', COMMAND], {
    env: {
      ...SURROUNDINGS,
      DATABASE_URL: database.url,
      FAREBOX_SECRET: 'a secret of the tests of Citus',
      ACCOUNT_BUCKETS: '4',
    },
    stdio: 'ignore',
  });
  const ended = once(child, 'close');
  await pools.patient.begin(async (transaction) => {
    await transaction`
      select 1 from call_spending where bucket = 0 and account_id = ${String(customer.id)} for update`;
    // The account and its key were written on the worker, and not committed.
    await until('the move to wait', () => waitsFor('call_spending'));
    child.kill('SIGKILL');
    await ended;
  });
  await until('its session to end', async () => {
    const rows = await sql`
      select 1 from pg_locks where relation = 'replicas'::regclass and mode = 'ShareLock'`;
    return rows.length === 0;
  });
  assert.equal((await customerOf(pools, customer.apiKey)).bucket, 0);
  await assertBooksClosed(sql);
  assert.deepEqual(await moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 }), {
    moved: 1,
    open: [],
  });
  await sellCall(pools, await customerOf(pools, customer.apiKey), async () => {});
  await assertBooksClosed(sql);
});
