/** Accounts that are moved to other buckets on one PostgreSQL; `fire/citus-accounts` does the same where the buckets lie on several servers. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { StartError } from '@farebox/process/start-error';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { assertBooksClosed } from '../../../../apps/shop/test/fire/money.fixture.ts';
import {
  customerOf,
  moveAndCompare,
  openCustomer,
  sellBefore,
} from '../../../../apps/shop/test/fire/moved-accounts.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { SURROUNDINGS } from '../../../../apps/shop/test/surroundings.fixture.ts';
import { moveAccounts } from './account-moves.ts';
import { createLedger } from './ledger.ts';
import { newTransferId } from './transfer-id.ts';

const COMMAND = join(import.meta.dirname, '../../../../apps/shop/src/commands/move-accounts.ts');

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

test('an account goes with all that is its own, and what was bought before is answered, given back and shared as before', async () => {
  const sold = await sellBefore(database);
  await moveAndCompare(database, sold, {
    proveBooks: () => assertBooksClosed(database.patient),
    hear: async () => {},
  });
});

test('nothing is moved while a server lives, and none begins to serve in the middle of a move', async () => {
  const { sql, patient } = database;
  const customer = await openCustomer(database);
  const isServer = (error: unknown) =>
    error instanceof StartError && /a server runs on this database/.test(error.message);
  await sql`insert into replicas (started_at, seen_at) values (now(), now())`;
  await assert.rejects(moveAccounts(database, { from: 0, buckets: 4 }), isServer);
  assert.equal((await customerOf(database, customer.apiKey)).bucket, 0);
  await sql`delete from replicas`;

  // Somebody holds the key, so the move waits; a server that starts meanwhile waits for the move.
  const waitsFor = (lock: string) => sql`
    select 1 from pg_locks l join pg_stat_activity a using (pid)
    where not l.granted and a.datname = current_database() and a.query like ${`%${lock}%`}`;
  let moved: Promise<unknown> | null = null;
  let served: Promise<unknown> | null = null;
  await patient.begin(async (transaction) => {
    await transaction`select 1 from api_keys where id = ${String(customer.keyId)} for update`;
    moved = moveAccounts(database, { from: 0, buckets: 4 });
    await until('the move to wait', async () => (await waitsFor('update api_keys')).length > 0);
    served = sql`insert into replicas (started_at, seen_at) values (now(), now())`;
    served.catch(() => {});
    await until('the server to wait', async () => (await waitsFor('insert into replicas')).length > 0);
  });
  assert.deepEqual(await moved, { moved: 1, open: [] });
  await served;
  await sql`delete from replicas`;
});

test('nothing is moved while a week is being archived: its rows are in files already', async () => {
  const { sql } = database;
  const customer = await openCustomer(database);
  await sql`
    insert into call_archives (week, from_id, to_id, sealed_at)
    values ('w20251124', '0199a000-0000-0000-0000-000000000000', '0199b000-0000-0000-0000-000000000000', now())`;
  await assert.rejects(
    moveAccounts(database, { from: 0, buckets: 4 }),
    (error) => error instanceof StartError && /the week w20251124 is being archived/.test(error.message),
  );
  assert.equal((await customerOf(database, customer.apiKey)).bucket, 0);
  await sql`delete from call_archives`;
});

test('an account stays while something of its credit is reserved, whatever for', async () => {
  const customer = await openCustomer(database);
  const ledger = createLedger(database, Date.now);
  const reserved = {
    id: newTransferId(Date.now()),
    accountId: customer.id,
    side: 'debit',
    house: 'revenue_credits',
    amountMicros: 1n,
    code: 'call',
  } as const;
  await ledger.transfer({ ...reserved, phase: 'pending' });
  const { open } = await moveAccounts(database, { from: 0, buckets: 4 });
  assert.deepEqual(open, [customer.id]);
  await createLedger(database, Date.now).transfer({ ...reserved, phase: 'void' });
  assert.deepEqual(await moveAccounts(database, { from: 0, buckets: 4 }), { moved: 1, open: [] });
});

test('an account stays while a call of it has still to be given back', async () => {
  const { sql } = database;
  const customer = await openCustomer(database);
  await sql`
    insert into undelivered_calls (account_id, call_id, service, price_micros, revenue_account, retrievable, next_at)
    values (${String(customer.id)}, gen_random_uuid(), 'ping', 1, 1, false, now())`;
  assert.deepEqual(await moveAccounts(database, { from: 0, buckets: 4 }), { moved: 0, open: [customer.id] });
  await sql`delete from undelivered_calls`;
});

test('the command says what it moved, and needs buckets to move accounts to', () => {
  const run = (buckets: string, ...args: string[]) =>
    spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', COMMAND, ...args], {
      env: {
        ...SURROUNDINGS,
        DATABASE_URL: database.url,
        FAREBOX_SECRET: 'a secret of the tests',
        ACCOUNT_BUCKETS: buckets,
      },
      encoding: 'utf8',
    });
  assert.match(run('1').stderr, /ACCOUNT_BUCKETS is 1.*\nusage: npm run database:move-accounts/);
  assert.match(run('4', '--from', 'x').stderr, /--from must be the number of a bucket/);
  const { status, stdout } = run('4');
  assert.equal(status, 0);
  assert.equal(stdout, '1 accounts moved\nAll accounts of the bucket are moved.\n');
  assert.equal(run('4').stdout, '0 accounts moved\nNo account had to be moved.\n');
});
