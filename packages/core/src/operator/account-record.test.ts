/** The days of an account, as its page shows them to an operator. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { accountRecord } from './account-record.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

const daysOf = async (account: bigint) =>
  (await database.sql.begin((on) => accountRecord(on, account, { nowMs: Date.now() })))?.days;

test('the days of an account and of no other are told, the newest first, with what was released and refunded', async () => {
  await database.sql`insert into ledger_accounts (id, house) values (1000, false), (1001, false)`;
  await database.sql`
    insert into account_sales_days
      (account_id, day, service, rail, answered, answered_micros, released, released_micros, refunded, refunded_micros) values
      (1000, '2026-03-09', 'ping', 'credits', 3, 750000, 2, 500000, 0, 0),
      (1000, '2026-03-10', 'ping', 'credits', 0, 0, 0, 0, 1, 250000),
      (1001, '2026-03-10', 'ping', 'credits', 9, 2250000, 0, 0, 0, 0)`;
  const ping = { service: 'ping', rail: 'credits' };
  assert.deepEqual(await daysOf(1000n), [
    {
      day: '2026-03-10',
      ...ping,
      calls: 0,
      paidUsd: '0.000000',
      released: 0,
      refunded: 1,
      refundedUsd: '0.250000',
    },
    {
      day: '2026-03-09',
      ...ping,
      calls: 3,
      paidUsd: '0.750000',
      released: 2,
      refunded: 0,
      refundedUsd: '0.000000',
    },
  ]);
});

test('of an account with many days the newest hundred lines are told', async () => {
  await database.sql`
    insert into account_sales_days (account_id, day, service, rail, answered, answered_micros)
    select 1001, '2026-03-10'::date - n, 'ping', 'credits', 1, 250000 from generate_series(1, 150) n`;
  const days = await daysOf(1001n);
  assert(Array.isArray(days));
  assert.equal(days.length, 100);
  assert.equal(days[0].day, '2026-03-10');
});
