/** Which request paid for which call, against a real database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import type { CallReport } from './outcome.ts';
import { createRequestNotes } from './request-notes.ts';

const DAY_MS = 86_400_000;
let database: TestDatabase;
let nowMs = Date.UTC(2026, 2, 4, 23, 59);
before(async () => {
  database = await openTestDatabase();
});
beforeEach(() => database.sql`delete from paid_requests`);
after(() => database.close());

let count = 0;
function report(of: Partial<CallReport>): CallReport {
  count += 1;
  return {
    service: 'ping',
    rail: 'x402',
    outcome: 'captured',
    status: 200,
    durationMs: 1,
    priceMicros: 1n,
    requestId: `req_${count}`,
    callId: randomUUID(),
    ...of,
  };
}

const noted = async () =>
  (
    await database.sql<{ request_id: string }[]>`select request_id from paid_requests order by at, request_id`
  ).map(({ request_id: id }) => id);

test('what a chain paid and what failed here is noted once; what a key paid, and what costs nobody anything, is not', async () => {
  const notes = createRequestNotes(database.sql, () => nowMs, 30);
  const kept = [
    report({}),
    report({ rail: 'mpp', outcome: 'replayed' }),
    report({
      rail: 'credits',
      status: 500,
      outcome: 'failed',
      callId: null,
      reason: 'with \ud800 half a letter',
    }),
  ];
  for (const each of [
    ...kept,
    ...kept,
    report({ rail: 'credits' }),
    report({ rail: 'none', status: 402, outcome: 'unpaid', callId: null }),
    report({ status: 402, outcome: 'refused', callId: null }),
  ])
    notes.note(each);
  await notes.flush();
  await notes.flush();
  assert.deepEqual(await noted(), kept.map(({ requestId }) => requestId).sort());
});

test('a database that is away loses no note, and a flood is bounded by day', async () => {
  let away = true;
  const sql = new Proxy(database.sql, {
    apply: (real, self, args) =>
      away ? Promise.reject(new Error('away')) : Reflect.apply(real as never, self, args),
  });
  const notes = createRequestNotes(sql, () => nowMs, 30);
  const first = report({});
  notes.note(first);
  await assert.rejects(notes.flush(), /away/);
  away = false;
  await notes.flush();
  assert.deepEqual(await noted(), [first.requestId]);

  for (let batch = 0; batch < 11; batch += 1) {
    for (let nth = 0; nth < 5_001; nth += 1) notes.note(report({ status: 503 }));
    await notes.flush();
  }
  assert.equal((await noted()).length, 50_000);
  nowMs += DAY_MS;
  const next = report({});
  notes.note(next);
  await notes.flush();
  assert.equal((await noted()).at(-1), next.requestId, 'a new day');
});

test('notes are forgotten after thirty days', async () => {
  const notes = createRequestNotes(database.sql, () => nowMs, 30);
  notes.note(report({}));
  await notes.flush();
  nowMs += 30 * DAY_MS;
  assert.equal(await notes.forget(), 0);
  nowMs += 1;
  assert.equal(await notes.forget(), 1);
});
