/** Accounts that are moved to other buckets of a database that Citus spreads, and so to other servers. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pools } from '../../../../packages/core/src/db/connection.ts';
import { booksOf } from '../../../../packages/core/src/declared.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { moveAccounts } from '../../../../packages/core/src/ledger/account-moves.ts';
import { proveBooks } from '../../../../packages/core/src/ledger/books.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { beginMove } from '../../../../packages/core/src/ledger/buckets.ts';
import { closeDays } from '../../../../packages/core/src/ledger/closed-days.ts';
import { hearTransfers } from '../../../../packages/core/src/ledger/heard-transfers.ts';
import { createLedger, type Transfer } from '../../../../packages/core/src/ledger/ledger.ts';
import { newTransferId } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { salesOf } from '../../../../packages/core/src/operator/sales-figures.ts';
import { foldSpreadSales } from '../../../../packages/core/src/paid-call/inside/fold-spread-sales.ts';
import { moveSales } from '../../../../packages/core/src/paid-call/moved-sales.ts';
import { DECLARED } from '../../src/app.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { giveBackPrice, PRICE, sellCall, sellShared } from './citus-money.fixture.ts';
import { assertBooksClosed } from './money.fixture.ts';
import {
  type Customer,
  customerOf,
  moveAndCompare,
  moveElsewhere,
  openCustomer,
  sellBefore,
} from './moved-accounts.fixture.ts';
import { assertChargedOnce, endOpenCalls, namedCallers } from './named-callers.fixture.ts';
import { startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const HOUR_MS = 3_600_000;
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
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await transaction`
      update api_keys set status = 'revoked' where bucket = 0 and id = ${String(customer.keyId)}`;
    moved = moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4, lockTimeoutMs: 60_000 });
    await until('the move to wait', () => waitsFor('api_keys'));
  });
  assert.deepEqual(await moved, { moved: 1, open: [] });
  const [key] = await pools.sql`
    select bucket <> 0 as moved, status from api_keys where id = ${String(customer.keyId)}`;
  assert.deepEqual(key, { moved: true, status: 'revoked' });
});

/** Counts what was sold, of one bucket or of all: as if the minute were over in which a statement may still begin to write. */
async function count(bucket: number | null = null): Promise<void> {
  const { sql } = pools;
  const fold = () => foldSpreadSales(sql, { turns: createBucketTurns(pools), atOnce: 2 });
  await fold();
  await sql`
    update sales_folded_buckets set complete_to = now() where ${bucket === null ? sql`true` : sql`bucket = ${bucket}`}`;
  await fold();
}

/** What was counted, and what the overview shows with what was not counted yet. */
async function figures() {
  const { sql } = pools;
  const shown = await sql.begin(async (transaction) => {
    const of = { creditServices: [], notes: [], isSpread: true };
    return [await salesOf(transaction, new Date(Date.now() - 40 * HOUR_MS), of)] as const;
  });
  return {
    shown: shown[0],
    days: [...(await sql`select * from sales_days order by day, service, rail`)],
    accounts: [...(await sql`select * from account_sales_days order by account_id, day, service, rail`)],
    transfers: [...(await sql`select * from transfer_days order by day, code`)],
    open: [...(await sql`select * from sales_open`)],
  };
}

test('sales are counted once, wherever the account is and however far either bucket was counted', {
  skip: withoutCitus,
}, async () => {
  const ledger = createLedger(pools, Date.now);
  const give = async (customer: Customer) =>
    giveBackPrice(ledger, customer.id, await sellCall(pools, customer, async () => {}));
  const customer = await openCustomer(pools);
  const { bucket } = customer;
  await moveAccounts(pools, { carry: moveSales, from: 0, buckets: 4 });
  const there = (await customerOf(pools, customer.apiKey)).bucket;
  assert.notEqual(there, bucket);
  await count();
  // The bucket that the account comes from was counted, and then the one that it goes to; first with nothing new.
  for (const counted of [null, 'from', 'to'] as const) {
    const now = await customerOf(pools, customer.apiKey);
    // Passed while it is open, and then ended.
    const during = await sellCall(pools, now, async () => count(counted === 'from' ? now.bucket : null));
    await give(now);
    await sellCall(pools, now, async () => {}, { capture: false });
    await hear();
    await giveBackPrice(ledger, now.id, during);
    await hear();
    if (counted === 'from') await count(now.bucket);
    if (counted === 'to') {
      const others = await pools.sql<{ bucket: number }[]>`
        select bucket from sales_folded_buckets where bucket >= 0 and bucket <> ${now.bucket}`;
      for (const { bucket: other } of others) await count(other);
    }
    const before = await figures();
    await moveElsewhere(pools, customer);
    assert.deepEqual((await figures()).shown, before.shown, `counted: ${counted}`);
    await count();
    await count();
    const after = await figures();
    assert.deepEqual(after.shown, before.shown, `counted: ${counted}, after all is counted`);
    assert.deepEqual(after.open, []);
    assert.deepEqual(after, await countedAfresh());
  }
});

/** The same, counted from nothing. */
async function countedAfresh() {
  const { sql } = pools;
  await sql`delete from sales_days`;
  await sql`delete from account_sales_days`;
  await sql`delete from transfer_days`;
  await sql`delete from sales_open`;
  await sql`delete from sales_folded_buckets`;
  await sql`update sales_folded set calls_to = '-infinity', transfers_to = '-infinity'`;
  await count();
  await count();
  return figures();
}

test('days that are closed stay proved when their accounts move, and the next ones close', {
  skip: withoutCitus,
}, async () => {
  const dayMs = 24 * HOUR_MS;
  const firstMs = (Math.floor(Date.now() / dayMs) - 10) * dayMs;
  const noonOf = (day: number) => firstMs + (day + 0.5) * dayMs;
  const dayOf = (day: number) => new Date(firstMs + day * dayMs).toISOString().slice(0, 10);
  const customers = [await openCustomer(pools), await openCustomer(pools)] as const;
  const [customer, owner] = customers;
  const sellOn = async (day: number) => {
    const now = await customerOf(pools, customer.apiKey);
    const how = { nowMs: () => noonOf(day) };
    await sellCall(pools, now, async () => {}, how);
    await sellCall(pools, now, async () => {}, { ...how, capture: false });
    await sellShared(pools, now, { beneficiary: owner.id, micros: PRICE / 5n, ...how });
  };
  const findings = async (reads: 'everything' | 'open days') => {
    const { checks } = await proveBooks(
      pools.patient,
      booksOf(DECLARED),
      { name: 'a test', wanted: () => true },
      reads,
    );
    return checks.flatMap(({ finding }) => finding ?? []);
  };
  await sellOn(0);
  await sellOn(1);
  await sellOn(2);
  assert.deepEqual(await closeDays(pools.patient, dayOf(1), () => true), [dayOf(0), dayOf(1)]);
  const days = () => pools.sql`select day, transfers, transfers_digest, digest from ledger_days order by day`;
  const before = [...(await days())];
  for (const buckets of [4, 53]) {
    const { bucket: from } = await customerOf(pools, customer.apiKey);
    await moveAccounts(pools, { carry: moveSales, from, buckets });
    assert.notEqual((await customerOf(pools, customer.apiKey)).bucket, from);
    assert.deepEqual([await findings('everything'), await findings('open days')], [[], []]);
  }
  // A day that is being closed while an account is on its way has all of its transfers.
  let closed: Promise<unknown> = Promise.resolve();
  await pools.patient.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    await transaction.unsafe('lock table ledger_days_head in share mode');
    const { bucket } = await customerOf(pools, customer.apiKey);
    const bring = await takeAway(
      'ledger_transfers',
      `bucket = ${bucket} and account_id = ${customer.id} and created_at >= '${dayOf(2)}'`,
    );
    closed = closeDays(pools.patient, dayOf(3), () => true);
    closed.catch(() => {});
    await isWaiting(1);
    await bring();
  });
  assert.deepEqual(await closed, [dayOf(2), dayOf(3)]);
  assert.deepEqual((await days()).slice(0, 2), before);
  // What is changed of a closed day is found where it is now.
  const { bucket } = await customerOf(pools, customer.apiKey);
  for (const which of [`account_id = ${customer.id} and phase = 3`, `account_id = 13`]) {
    const set = (note: string) =>
      pools.sql.unsafe(
        `update ledger_transfers set note = ${note} where bucket = ${bucket} and ${which} and created_at < '${dayOf(1)}'`,
      );
    const [was] = await pools.sql.unsafe<{ note: string | null }[]>(
      `select note from ledger_transfers where bucket = ${bucket} and ${which} and created_at < '${dayOf(1)}' limit 1`,
    );
    assert(was !== undefined);
    await set(`'changed'`);
    assert.match(
      (await findings('everything')).join('\n'),
      new RegExp(`closed day ${dayOf(0)} was closed with`),
    );
    await set(was.note === null ? 'null' : `'${was.note}'`);
  }
  assert.deepEqual(await findings('everything'), []);
});

/** Takes rows away and brings them back later, perhaps to another bucket: so a move is seen while its servers commit one after the other. */
async function takeAway(table: string, which: string) {
  const { sql } = pools;
  const columns = await sql<{ name: string }[]>`
    select attname as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''`;
  const names = columns.map(({ name }) => name);
  // As text: JSON of JavaScript has no such numbers.
  const [taken] = await sql.unsafe<{ rows: string }[]>(
    `select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows from ${table} t where ${which}`,
  );
  await sql.unsafe(`delete from ${table} where ${which}`);
  return async (changed: { bucket?: number } = {}) => {
    await sql.unsafe(
      `insert into ${table} (${names.join(', ')}) overriding system value
       select ${names.map((name) => `r.${name}`).join(', ')}
       from jsonb_array_elements($1::text::jsonb) as e (row)
       cross join lateral jsonb_populate_record(null::${table}, e.row || $2::text::jsonb) as r`,
      [taken?.rows ?? '[]', JSON.stringify(changed)],
    );
  };
}

const isWaiting = (count: number) =>
  until('them to wait', async () => {
    const rows = await pools.sql`
      select 1 from pg_locks l join pg_stat_activity a using (pid)
      where not l.granted and a.datname = current_database() and l.locktype in ('advisory', 'relation')`;
    return rows.length >= count;
  });

test('whoever finds an account or its key nowhere waits for the move that is under way', {
  skip: withoutCitus,
}, async () => {
  const customer = await openCustomer(pools);
  const keys = createKeys(pools.sql, Date.now, pools.distribution);
  const ledger = createLedger(pools, Date.now);
  const grant = () => ledger.transfer(creditOf(customer));
  assert.equal((await grant()).status, 'done');
  const transfers = `bucket = 0 and account_id = ${customer.id}`;
  let all: Promise<unknown> = Promise.resolve();
  await pools.patient.begin(async (transaction) => {
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
    assert.equal(await beginMove(transaction, pools.distribution), true);
    const back = [
      await takeAway('ledger_accounts', `bucket = 0 and id = ${customer.id}`),
      await takeAway('api_keys', `bucket = 0 and account_id = ${customer.id}`),
      await takeAway('ledger_transfers', transfers),
    ];
    all = Promise.all([
      keys.find(customer.apiKey),
      keys.revoke(customer.keyId),
      grant(),
      sellCall(pools, customer, async () => {}),
    ]);
    all.catch(() => {});
    await isWaiting(4);
    for (const bring of back) await bring({ bucket: 5 });
  });
  const [found, , credited] = (await all) as [{ bucket: number }, unknown, { status: string }];
  assert.deepEqual([found.bucket, credited.status], [5, 'done']);
  const [key] = await pools.sql`select bucket, status from api_keys where id = ${String(customer.keyId)}`;
  assert.deepEqual(key, { bucket: 5, status: 'revoked' });
  await assertBooksClosed(pools.sql);
});

const creditOf = ({ id: accountId }: Customer): Transfer => ({
  id: newTransferId(Date.now()),
  accountId,
  phase: 'posted',
  side: 'credit',
  house: 'operator_grants',
  amountMicros: 5n,
  code: 'operator_grant',
});

test('two replicas sell while an account is moved to other servers: each name is charged once, before the move and after', {
  skip: withoutCitus,
}, async (t) => {
  // With what other tests sold on days of the past, behind the count.
  await countedAfresh();
  const grantedMicros = PRICE * 4_000n;
  const customer = await openCustomer(pools, grantedMicros);
  const start = () =>
    startServerProcess({
      DATABASE_URL: database.url,
      DATABASE_HOT_HOSTS: database.hotHosts,
      ACCOUNT_BUCKETS: '16',
      RECONCILE_INTERVAL_MS: '1000',
      SERVICES: 'ping',
    });
  const servers = [await start(), await start()];
  try {
    const callers = servers.map(({ url }) => namedCallers(url, customer.apiKey));
    const name = randomUUID();
    const idsOf = () =>
      Promise.all(
        callers.map(async (each) => {
          let id: string | null = null;
          await until('an answer', async () => {
            const response = await each.ask(name);
            await response.text();
            id = response.headers.get('x-call-id');
            return response.status === 200;
          });
          return id;
        }),
      );
    const [first, second] = await idsOf();
    assert(typeof first === 'string' && first === second);
    let isOver = false;
    const buying = Promise.all(callers.map((each) => each.buyAtOnce(1, 3, () => isOver)));
    for (let moves = 0; moves < 2; moves++) {
      const before = Math.min(...callers.map(({ sold }) => sold.length));
      await moveElsewhere(pools, customer);
      await until('each to sell more', () => callers.every(({ sold }) => sold.length > before + 2));
      assert.deepEqual(await idsOf(), [first, first]);
    }
    isOver = true;
    await buying;
    const refused = callers.flatMap((each) =>
      [...each.takeRefusals()].map(([code, times]) => `${times} × ${code}`),
    );
    t.diagnostic(
      `sold ${callers.map(({ sold }) => sold.length).join(' and ')}; refused: ${refused.join(', ') || 'none'}`,
    );
    await endOpenCalls(pools.sql);
    const sold = [first, ...callers.flatMap((each) => each.sold)];
    await assertChargedOnce(pools.sql, { key: customer.apiKey, sold, grantedMicros });
  } finally {
    await Promise.all(servers.map((server) => server.end('SIGKILL')));
  }
  await assertBooksClosed(pools.sql);
  await count();
  await count();
  assert.deepEqual(await figures(), await countedAfresh());
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
  // A session that was at a worker when it died may be closed only now.
  await until('the account where it was', async () => {
    const now = await customerOf(pools, customer.apiKey).catch(() => null);
    return now?.bucket === 0;
  });

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
    await transaction.unsafe('set local idle_in_transaction_session_timeout = 0');
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
