import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { createClaims } from './claims.ts';

const START_MS = Date.UTC(2026, 2, 4, 5, 6, 7);
const MINUTE_MS = 60_000;
const CLAIM = { signature: 'a signature', wallet: 'a wallet', claimed_usdc: 1_000_000n };

let database: TestDatabase;
let nowMs = START_MS;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());
beforeEach(async () => {
  nowMs = START_MS;
  await database.sql`truncate solana_yield_claims`;
});

const replica = () => createClaims(database.sql, () => nowMs);

async function claimed() {
  const claims = replica();
  assert(await claims.keep({ ...CLAIM, nextMs: nowMs }));
  const [held] = await claims.takeDue(10);
  assert(held !== undefined);
  assert.deepEqual([held.signature, held.wallet, held.claimed_usdc], Object.values(CLAIM));
  return { claims, held };
}

async function stored() {
  const [row] = await database.sql<{ state: string; reason: string | null; next_at: Date }[]>`
    select state, reason, next_at from solana_yield_claims`;
  return { state: row?.state, reason: row?.reason, dueInMs: (row?.next_at.getTime() ?? 0) - nowMs };
}

test('a claim that its wallet has had confirmed is not given up by a keeper that had not seen its transaction', async () => {
  const { claims, held } = await claimed();
  await replica().end(CLAIM, 'confirmed', null);
  assert.equal(await claims.giveUp(held, 'NOT_SEEN'), false);
  const { state, reason } = await stored();
  assert.deepEqual([state, reason], ['confirmed', null]);
  assert.equal(await claims.lookAgain(held, 0), false);
});

test('a keeper that comes back too late neither gives a claim up nor takes it from the next one', async () => {
  const { claims, held } = await claimed();
  nowMs += 2 * MINUTE_MS;
  const [next] = await replica().takeDue(10);
  assert(next !== undefined);
  assert.equal(await claims.giveUp(held, 'NOT_SEEN'), false);
  assert.equal(await claims.lookAgain(held, 0), false);
  assert.deepEqual(await stored(), { state: 'pending', reason: null, dueInMs: 2 * MINUTE_MS });
  assert.equal(await claims.lookAgain(next, MINUTE_MS), true);
  assert.equal((await stored()).dueInMs, MINUTE_MS);
});

test('what waits is counted until the chain has said what it is', async () => {
  const { claims, held } = await claimed();
  nowMs += MINUTE_MS;
  assert.deepEqual([await claims.queue.depth(), await claims.queue.oldestSeconds()], [1, 60]);
  assert(await claims.giveUp(held, 'NOT_SEEN'));
  assert.deepEqual(await stored(), { state: 'given_up', reason: 'NOT_SEEN', dueInMs: MINUTE_MS });
  assert.equal(await claims.queue.depth(), 0);
  nowMs += 10 * MINUTE_MS;
  assert.equal((await claims.takeDue(10)).length, 0);
});
