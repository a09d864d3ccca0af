import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { overviewOf } from './overview.ts';
import { createSections } from './overview-sections.ts';

const NOW_MS = Date.parse('2026-03-10T12:00:00Z');
const HOUR_MS = 3_600_000;

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

/** A call that a chain pays, as the books have it. */
async function called(begunMs: number, endedMs: number, isCaptured: boolean): Promise<void> {
  const { sql } = database;
  const [id, account] = [randomUUID(), HOUSE_ACCOUNTS.chain_clearing];
  const [begun, ended] = [new Date(begunMs), new Date(endedMs)];
  await sql`
    insert into calls (account_id, id, rail, service, price_micros, state, created_at, expires_at, finished_at, outcome)
    values (${account}, ${id}, 'x402', 'ping', 250000, ${isCaptured ? 1 : 2}, ${begun}, ${begun}, ${ended}, 'test')`;
  for (const [phase, at] of [
    [2, begun],
    [isCaptured ? 3 : 4, ended],
  ] as const)
    await sql`
      insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
      values (${account}, ${id}, ${phase}, ${account}, ${HOUSE_ACCOUNTS.revenue_x402}, 250000, 'call', ${at})`;
}

test('a call counts for the day on which its price was taken, however long before it began', async () => {
  await called(NOW_MS - 80 * HOUR_MS, NOW_MS - HOUR_MS, true);
  await called(NOW_MS - 80 * HOUR_MS, NOW_MS - HOUR_MS, false);
  await called(NOW_MS - 2 * HOUR_MS, NOW_MS - HOUR_MS, true);
  await called(NOW_MS - 80 * HOUR_MS, NOW_MS - 79 * HOUR_MS, true);
  const sections = createSections(database.sql, ({ error }) => assert.fail(String(error)));
  const asked = { creditServices: [], trialBudgetMicrosPerDay: null, nowMs: NOW_MS };
  const { sales } = await overviewOf(sections, { ...asked, days: 1 });
  assert.deepEqual(
    [sales?.calls, sales?.capturedUsd, sales?.released, sales?.releasedUsd],
    [2, '0.500000', 1, '0.250000'],
  );
  const { sales: ofWeek } = await overviewOf(sections, { ...asked, days: 7 });
  assert.deepEqual([ofWeek?.calls, ofWeek?.released], [3, 1], 'none counts twice');
});

test('a section that cannot be read is told as not known, and leaves the others standing', async () => {
  const held = Promise.withResolvers<void>();
  const holds = Promise.withResolvers<void>();
  const holding = database.patient.begin(async (transaction) => {
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await transaction`lock table account_debts in access exclusive mode`;
    holds.resolve();
    await held.promise;
  });
  await holds.promise;
  const failed: string[] = [];
  const sections = createSections(database.sql, ({ section }) => failed.push(section));
  const found = await overviewOf(sections, {
    days: 7,
    creditServices: [],
    trialBudgetMicrosPerDay: null,
    nowMs: NOW_MS,
  });
  held.resolve();
  await holding;
  assert.equal(found.sales?.calls, 3);
  assert.equal(found.money, null);
  assert.notEqual(found.unfinished, null);
  assert.deepEqual(sections.notes, ['Money: not known, because the database took too long to read it.']);
  assert.deepEqual(failed, ['Money']);
});

test('what fails for another reason is told without the reason, which is for the log', async () => {
  const errors: unknown[] = [];
  const sections = createSections(database.sql, ({ error }) => errors.push(error));
  const broken = new Error('a secret address');
  assert.equal(await sections.read('Lists', () => Promise.reject(broken)), null);
  assert.equal(
    await sections.read('Gas', () => {
      throw broken;
    }),
    null,
  );
  assert.equal(await sections.read('Chains', () => 3), 3);
  assert.deepEqual(sections.notes, [
    "Lists: not known, because reading it failed. The server's log says why.",
    "Gas: not known, because reading it failed. The server's log says why.",
  ]);
  assert.deepEqual(errors, [broken, broken]);
});

test('when too many calls wait to be counted, the days are shown alone, and up to when they are counted', async () => {
  const sections = createSections(database.sql, ({ error }) => assert.fail(String(error)));
  await database.sql`
    insert into calls (account_id, id, rail, service, price_micros, state, created_at, expires_at, finished_at)
    select 5, gen_random_uuid(), 'x402', 'ping', 1, 1, now(), now(), now() from generate_series(1, 20000)`;
  const asked = { days: 7, creditServices: [], trialBudgetMicrosPerDay: null, nowMs: NOW_MS };
  const { sales } = await overviewOf(sections, asked);
  assert.equal(sales?.calls, 0);
  assert.match(sections.notes.join('\n'), /^Sales: so many came.*fold-sales/);
});
