/** Each call is counted once into its day, whatever ends late, waits for its commit or dies, against a real database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { connectPools, endPools, type Transaction } from '../../db/connection.ts';
import { sqlFunction } from '../../db/functions.ts';
import { foldSales } from './fold-sales.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Noon of a day, some days before the day of the database's clock. */
const NOON_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - 5 * DAY_MS + DAY_MS / 2;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
beforeEach(async () => {
  await database.sql`truncate calls, ledger_transfers, sales_days, account_sales_days, transfer_days, sales_open`;
  await database.sql`
    update sales_folded set calls_to = '-infinity', transfers_to = '-infinity', complete_to = '-infinity',
      marked_at = '-infinity', marked_xid = '0'`;
});
after(() => database.close());

interface Made {
  account?: number;
  service?: string;
  rail?: string;
  state?: number;
  micros?: number;
  begunMs?: number;
  endedMs?: number | null;
}

async function call(made: Made, on: TestDatabase['sql'] | Transaction = database.sql): Promise<string> {
  const { account = 1_000, service = 'ping', rail = 'credits', state = 1, micros = 250_000 } = made;
  const { begunMs = NOON_MS, endedMs = begunMs + 5 } = made;
  const id = randomUUID();
  const begun = new Date(begunMs).toISOString();
  await on`
    insert into calls (account_id, id, state, rail, service, price_micros, created_at, begun_at, expires_at, finished_at)
    values (${account}, ${id}, ${state}, ${rail}, ${service}, ${micros}, ${begun}, ${begun}, ${begun},
            ${endedMs === null ? null : new Date(endedMs).toISOString()})`;
  return id;
}

async function transfer(made: { code: string; id?: string; note?: string; micros?: number; atMs: number }) {
  const { code, id = randomUUID(), note = null, micros = 250_000, atMs } = made;
  await database.sql`
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
    values (1000, ${id}, 1, 1, 1000, ${micros}, ${code}, ${note}, ${new Date(atMs).toISOString()})`;
}

/**
 * Counts all that was begun until a minute ago. A round marks, and a later one counts what was there at the mark, as soon as
 * whatever was written then has ended: on this server other tests write too.
 */
async function fold(atOnce = 2): Promise<void> {
  const job = foldSales(database.sql, atOnce);
  const [at] = await database.sql<{ now: string }[]>`select clock_timestamp()::text as now`;
  for (;;) {
    await job.run();
    const [folded] = await database.sql<{ done: boolean }[]>`
      select complete_to >= ${at?.now ?? ''}::timestamptz - interval '1 minute' as done from sales_folded`;
    if (folded?.done === true) break;
  }
  await job.run();
}

const sums = async () =>
  (
    await database.sql<Record<string, unknown>[]>`
      select to_char(day, 'YYYY-MM-DD') as day, service, rail, answered, answered_micros, released, released_micros,
             refunded, refunded_micros
      from sales_days order by day, service, rail`
  ).map((row) => Object.values(row).map(String).join(' '));

test('calls count for the day on which they end, by service, rail and account, once however often the job runs', async () => {
  await call({ begunMs: NOON_MS });
  await call({ begunMs: NOON_MS + 1, account: 1_001, micros: 100_000 });
  await call({ begunMs: NOON_MS + 2, state: 2 });
  await call({ begunMs: NOON_MS + 3, account: 5, rail: 'x402' });
  await call({ begunMs: NOON_MS + 4, micros: 0, service: 'free' });
  await call({ begunMs: NOON_MS, endedMs: NOON_MS + DAY_MS });
  const [first, second] = [dayOf(NOON_MS), dayOf(NOON_MS + DAY_MS)];
  const expected = [
    `${first} free credits 1 0 0 0 0 0`,
    `${first} ping credits 2 350000 1 250000 0 0`,
    `${first} ping x402 1 250000 0 0 0 0`,
    `${second} ping credits 1 250000 0 0 0 0`,
  ];
  await fold();
  assert.deepEqual(await sums(), expected);
  await fold();
  await fold();
  assert.deepEqual(await sums(), expected, 'nothing is counted again');
  const accounts = await database.sql<{ account_id: bigint; micros: bigint }[]>`
    select account_id, sum(answered_micros)::bigint as micros from account_sales_days group by 1 order by 1`;
  assert.deepEqual(
    accounts.map((row) => [row.account_id, row.micros]),
    [
      [5n, 250_000n],
      [1_000n, 500_000n],
      [1_001n, 100_000n],
    ],
  );
});

test('a call that is open when the job passes it counts when it has ended, on that day', async () => {
  const id = await call({ begunMs: NOON_MS + DAY_MS / 2 - 1, state: 0, endedMs: null });
  const kept = await call({ begunMs: NOON_MS, state: 3, endedMs: null, account: 5, rail: 'x402' });
  await call({ begunMs: NOON_MS + DAY_MS });
  await fold();
  const next = dayOf(NOON_MS + DAY_MS);
  assert.deepEqual(await sums(), [`${next} ping credits 1 250000 0 0 0 0`]);
  await database.sql`update calls set state = 1, finished_at = ${new Date(NOON_MS + DAY_MS).toISOString()} where id = ${id}`;
  await fold();
  assert.deepEqual(await sums(), [`${next} ping credits 2 500000 0 0 0 0`]);
  await database.sql`update calls set state = 2, finished_at = ${new Date(NOON_MS + 2 * DAY_MS).toISOString()} where id = ${kept}`;
  await fold();
  assert.deepEqual((await sums()).at(-1), `${dayOf(NOON_MS + 2 * DAY_MS)} ping x402 0 0 1 250000 0 0`);
  assert.equal((await database.sql`select 1 from sales_open`).length, 0);
});

test('a call whose commit is late is not passed by: nothing is counted beyond it until it is there', async () => {
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const other = connectPools(database.url, 2);
  const late = other.patient.begin(async (transaction) => {
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await call({ begunMs: NOON_MS }, transaction);
    begun.resolve();
    await held.promise;
  });
  await begun.promise;
  await call({ begunMs: NOON_MS + 1_000 });
  for (let round = 0; round < 4; round += 1) await foldSales(database.sql, 2).run();
  assert.deepEqual(await sums(), [], 'somebody still writes');
  held.resolve();
  await late;
  await fold();
  assert.deepEqual(await sums(), [`${dayOf(NOON_MS)} ping credits 2 500000 0 0 0 0`]);
  await endPools(other, 1);
});

test('replicas that fold at once count each call once, and one that dies has counted nothing', async () => {
  await fold();
  // From the first call on again, with what is complete known.
  await database.sql`update sales_folded set calls_to = '-infinity'`;
  for (let n = 0; n < 40; n += 1) await call({ begunMs: NOON_MS + n });
  const dying = connectPools(database.url, 2);
  const name = sqlFunction('sales_fold_calls');
  await assert.rejects(
    dying.patient.begin(async (transaction) => {
      const [row] = await transaction<{ looked: number }[]>`select ${transaction(name)}(10) as looked`;
      assert.equal(row?.looked, 10);
      await transaction`select pg_terminate_backend(pg_backend_pid())`;
    }),
  );
  await endPools(dying, 1);
  assert.deepEqual(await sums(), []);
  await Promise.all(Array.from({ length: 4 }, () => foldSales(database.sql, 3).run()));
  await fold(3);
  assert.deepEqual(await sums(), [`${dayOf(NOON_MS)} ping credits 40 10000000 0 0 0 0`]);
});

test('more calls of one moment than one statement takes are taken together, and what comes after them too', async () => {
  for (let n = 0; n < 5; n += 1) await call({ begunMs: NOON_MS });
  await call({ begunMs: NOON_MS + 1 });
  await fold(2);
  assert.deepEqual(await sums(), [`${dayOf(NOON_MS)} ping credits 6 1500000 0 0 0 0`]);
});

test('a refund counts for its own day, with the service of its call; other transfers count by code', async () => {
  const [undelivered, onChain] = [
    await call({}),
    await call({ account: 1_000, rail: 'mpp', service: 'map' }),
  ];
  const atMs = NOON_MS + 2 * DAY_MS;
  await transfer({ code: 'call_refund', note: `undelivered call ${undelivered}`, atMs });
  await transfer({ code: 'onchain_refund', note: `refund of call ${onChain}`, atMs, micros: 100_000 });
  await transfer({ code: 'call_refund', note: `undelivered call ${randomUUID()}`, atMs: atMs + 1 });
  await transfer({ code: 'call_refund', note: 'of nothing', atMs: atMs + 2 });
  await transfer({ code: 'trial_grant', atMs: atMs + 3, micros: 5 });
  await transfer({ code: 'call', atMs: atMs + 3 });
  await fold();
  assert.deepEqual(await sums(), [
    `${dayOf(NOON_MS)} map mpp 1 250000 0 0 0 0`,
    `${dayOf(NOON_MS)} ping credits 1 250000 0 0 0 0`,
    `${dayOf(atMs)} map mpp 0 0 0 0 1 100000`,
    `${dayOf(atMs)} ping credits 0 0 0 0 1 250000`,
  ]);
  const moved = await database.sql<Record<string, unknown>[]>`
    select to_char(day, 'YYYY-MM-DD') as day, code, transfers, moved_micros from transfer_days order by code`;
  assert.deepEqual(
    moved.map((row) => Object.values(row).map(String).join(' ')),
    [
      `${dayOf(atMs)} call_refund 3 750000`,
      `${dayOf(atMs)} onchain_refund 1 100000`,
      `${dayOf(atMs)} trial_grant 1 5`,
    ],
  );
});

test('an operator who gives a call back is found by the act, and an empty ledger has nothing to count', async () => {
  await fold();
  assert.deepEqual(await sums(), []);
  const id = await call({});
  await database.sql`update sales_folded set calls_to = '-infinity', transfers_to = '-infinity'`;
  await database.sql`insert into ledger_accounts (id, house) values (1000, false)`;
  const [act, transferId] = [randomUUID(), randomUUID()];
  await database.sql`
    insert into operator_acts (id, at, actor, act, account_id, call_id, amount_micros, reason, transfer_id,
      idempotency_digest, request_digest)
    values (${act}, now(), 'one', 'refund_call', 1000, ${id}, 250000, 'was wrong', ${transferId},
      sha256(${act}::text::bytea), sha256('1'))`;
  await transfer({ code: 'operator_refund', id: transferId, atMs: NOON_MS + DAY_MS });
  await fold();
  assert.deepEqual((await sums()).at(-1), `${dayOf(NOON_MS + DAY_MS)} ping credits 0 0 0 0 1 250000`);
});

test('when the clock was put back, nothing is passed until it has caught up', async () => {
  await database.sql`update sales_folded set calls_to = now() + interval '1 hour'`;
  await call({ begunMs: NOON_MS });
  await fold();
  assert.deepEqual(await sums(), []);
  const [folded] = await database.sql<{ stays: boolean }[]>`
    select calls_to > now() + interval '59 minutes' as stays from sales_folded`;
  assert.equal(folded?.stays, true);
});
