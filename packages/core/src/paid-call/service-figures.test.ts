/** How the last day of services is measured, against a real database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { LEAST_CALLS, measureServices } from './service-figures.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 2, 4, 12);
let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
beforeEach(() => database.sql`truncate calls, service_figures`);
after(() => database.close());

/** Calls that ended so. @param about.state 1 captured, 2 released */
async function ended(
  service: string,
  count: number,
  about: { ms?: number; state?: number; outcome?: string; ago?: number } = {},
): Promise<void> {
  const { ms = 100, state = 1, outcome = 'answered', ago = 60_000 } = about;
  const time = (NOW_MS - ago).toString(16).padStart(12, '0');
  const [begun, end] = [NOW_MS - ago, NOW_MS - ago + ms].map((at) => new Date(at).toISOString());
  for (let made = 0; made < count; made += 1)
    await database.sql`
      insert into calls (account_id, id, state, rail, service, price_micros, created_at, expires_at, finished_at, outcome)
      values (1000, ${time + randomUUID().replaceAll('-', '').slice(12)}, ${state}, 'credits', ${service}, 1, ${begun ?? ''}, ${end ?? ''}, ${end ?? ''}, ${outcome})`;
}

test('a service has a median and a part that was answered, of the last day, without the faults of its buyers', async () => {
  await ended('map', LEAST_CALLS - 1, { ms: 200 });
  await ended('map', 10, { ms: 900 });
  await ended('map', 1, { state: 2, outcome: 'UPSTREAM_UNAVAILABLE' });
  await ended('map', 50, { state: 2, outcome: 'NOT_FOUND' });
  await ended('map', 50, { state: 2, outcome: 'CLIENT_GONE' });
  await ended('map', 50, { ms: 5_000, ago: DAY_MS + 60_000 });
  await ended('map', 5, { state: 0 });
  await ended('seldom', LEAST_CALLS - 1);
  await ended('down', LEAST_CALLS, { state: 2, outcome: 'FAILED' });
  const figures = measureServices(database.sql, () => NOW_MS);
  assert.deepEqual([figures.of('map'), figures.ofAll(), figures.measuredAtMs()], [null, null, null]);
  await figures.job.run();
  assert.deepEqual(figures.of('map'), { medianMs: 200, answeredPercent: 96.6 });
  assert.equal(figures.of('seldom'), null, 'too few calls say nothing');
  assert.equal(figures.of('down'), null);
  assert.equal(figures.of('nothing'), null);
  assert.deepEqual(figures.ofAll(), { medianMs: 200, answeredPercent: 69.5 });
  assert.equal(figures.measuredAtMs(), NOW_MS);
});

test('what was just measured is read by other processes, and a day later it is forgotten', async () => {
  await ended('map', LEAST_CALLS);
  await measureServices(database.sql, () => NOW_MS).job.run();
  await ended('map', LEAST_CALLS, { ms: 700 });
  const other = measureServices(database.sql, () => NOW_MS + 60_000);
  await other.job.run();
  assert.deepEqual(other.of('map'), { medianMs: 100, answeredPercent: 100 });
  const later = measureServices(database.sql, () => NOW_MS + DAY_MS);
  await later.job.run();
  assert.deepEqual([later.of('map'), later.ofAll()], [null, null]);
  assert.equal((await database.sql`select service from service_figures`).length, 0);
});
