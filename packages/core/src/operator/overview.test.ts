import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { overviewOf } from './overview.ts';

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
  const asked = { creditServices: [], trialBudgetMicrosPerDay: null, nowMs: NOW_MS };
  const { sales } = await overviewOf(database.sql, { ...asked, days: 1 });
  assert.deepEqual(
    [sales?.calls, sales?.capturedUsd, sales?.released, sales?.releasedUsd],
    [2, '0.500000', 1, '0.250000'],
  );
  const { sales: ofWeek } = await overviewOf(database.sql, { ...asked, days: 7 });
  assert.deepEqual([ofWeek?.calls, ofWeek?.released], [3, 1], 'none counts twice');
});
