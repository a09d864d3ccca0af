/** Accounts that are moved to other buckets of one PostgreSQL and back while two replicas sell to them; `fire/citus-accounts` does it on a cluster. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { assertBooksClosed } from './money.fixture.ts';
import { customerOf, moveElsewhere, openCustomer } from './moved-accounts.fixture.ts';
import { assertChargedOnce, endOpenCalls, type NamedCallers, namedCallers } from './named-callers.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const COMMAND = join(import.meta.dirname, '../../src/commands/move-accounts.ts');
const GRANT = usdToMicros('1000');
const MOVES = 4;

let database: TestDatabase;
const servers: ServerProcess[] = [];
before(async () => {
  database = await openTestDatabase();
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await database?.close();
});

async function start(): Promise<string> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    RECONCILE_INTERVAL_MS: '1000',
    SERVICES: 'ping',
  });
  servers.push(server);
  return server.url;
}

/** Asks a replica by a name, and again until it is answered. @returns the call's id */
async function idOf(callers: NamedCallers, name: string): Promise<string | null> {
  let id: string | null = null;
  await until('an answer', async () => {
    const response = await callers.ask(name);
    await response.text();
    assert([200, 409, 503].includes(response.status), String(response.status));
    id = response.headers.get('x-call-id');
    return response.status === 200;
  });
  return id;
}

test('two replicas sell while the accounts are moved there and back: each name is charged once, before the move and after', async (t) => {
  const urls = [await start(), await start()];
  const customers = [await openCustomer(database, GRANT), await openCustomer(database, GRANT)];
  const callersOf = customers.map(({ apiKey }) => urls.map((url) => namedCallers(url, apiKey)));
  const named = customers.map(() => randomUUID());
  const ids = await Promise.all(
    callersOf.map(([first], nth) => idOf(first as NamedCallers, named[nth] ?? '')),
  );
  let isOver = false;
  const all = callersOf.flat();
  const buying = Promise.all(all.map((callers) => callers.buyAtOnce(1, 5, () => isOver)));
  for (let moves = 0; moves < MOVES; moves++) {
    const before = Math.min(...all.map(({ sold }) => sold.length));
    for (const customer of customers) await moveElsewhere(database, customer);
    await until('each to sell more', () => all.every(({ sold }) => sold.length > before + 2));
    // The same name, asked of both at once: one answer, which was given before the first move.
    for (const [nth, both] of callersOf.entries())
      for (const id of await Promise.all(both.map((callers) => idOf(callers, named[nth] ?? ''))))
        assert.equal(id, ids[nth]);
  }
  isOver = true;
  await buying;
  const refused = all.flatMap((each) =>
    [...each.takeRefusals()].map(([code, count]) => `${count} × ${code}`),
  );
  t.diagnostic(`refused: ${refused.join(', ') || 'none'}`);
  await endOpenCalls(database.sql);
  for (const [nth, { apiKey }] of customers.entries())
    await assertChargedOnce(database.sql, {
      key: apiKey,
      sold: [ids[nth] ?? '', ...(callersOf[nth] ?? []).flatMap(({ sold }) => sold)],
      grantedMicros: GRANT,
    });
  await assertBooksClosed(database.patient);
});

test('a key that is revoked in the middle of a move is revoked after it, at servers that knew it', async () => {
  const [url] = servers.map((server) => server.url);
  assert(url !== undefined);
  const { sql, patient } = database;
  const customer = await openCustomer(database, GRANT);
  const callers = namedCallers(url, customer.apiKey);
  const id = await idOf(callers, randomUUID());
  assert(id !== null);
  let moved: Promise<void> = Promise.resolve();
  let revoked: Promise<unknown> = Promise.resolve();
  const waits = (query: string) =>
    until(`${query} to wait`, async () => {
      const rows = await sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${query}%`}`;
      return rows.length > 0;
    });
  await patient.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await transaction`select 1 from call_spending where account_id = ${String(customer.id)} for update`;
    moved = moveElsewhere(database, customer);
    await waits('update call_spending');
    revoked = sql`update api_keys set status = 'revoked' where id = ${String(customer.keyId)}`.execute();
    await waits('set status');
  });
  await Promise.all([moved, revoked]);
  assert.match(await (await callers.ask(randomUUID())).text(), /KEY_REVOKED/);
  assert.equal((await customerOf(database, customer.apiKey)).bucket === customer.bucket, false);
});

test('a move that is killed half-way has moved nothing, and the calls that waited for it are sold where the account was', async () => {
  const [url] = servers.map((server) => server.url);
  assert(url !== undefined);
  const { sql, patient } = database;
  const customer = await openCustomer(database, GRANT);
  const callers = namedCallers(url, customer.apiKey);
  await callers.buy();
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', COMMAND], {
    env: {
      ...SURROUNDINGS,
      DATABASE_URL: database.url,
      FAREBOX_SECRET: 'a secret of the tests',
      ACCOUNT_BUCKETS: '4',
    },
    stdio: 'ignore',
  });
  const ended = once(child, 'close');
  let buying: Promise<void> = Promise.resolve();
  await patient.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await transaction`select 1 from call_spending where account_id = ${String(customer.id)} for update`;
    const moving = async () => {
      const rows = await sql`
        select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like 'update call_spending%'`;
      return rows.length > 0;
    };
    await until('the move to wait', moving);
    buying = callers.buy();
    buying.catch(() => {});
    child.kill('SIGKILL');
    await ended;
  });
  await buying;
  assert.equal((await customerOf(database, customer.apiKey)).bucket, 0);
  await moveElsewhere(database, customer);
  await callers.buy();
  await endOpenCalls(sql);
  await assertChargedOnce(sql, { key: customer.apiKey, sold: callers.sold, grantedMicros: GRANT });
  await assertBooksClosed(patient);
});
