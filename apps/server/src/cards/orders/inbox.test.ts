import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../test/database.fixture.ts';
import type { CardProvider } from '../provider.ts';
import { createInbox } from './inbox.ts';
import type { OrderStore } from './orders.ts';
import type { OrderReconciler } from './reconcile.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse('2026-11-21T12:00:00Z');

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

test('when the process is to end, the provider’s list is read no further, and from there by the next process', async () => {
  const { sql } = database;
  const readUntil = async () => {
    const [row] = await sql<{ read_until: Date }[]>`select read_until from card_event_cursor`;
    return row?.read_until.getTime();
  };
  await sql`insert into card_event_cursor (one, read_until) values (true, ${new Date(NOW_MS - 48 * HOUR_MS).toISOString()})`;
  const stopping = new AbortController();
  const asked: number[] = [];
  const provider: Pick<CardProvider, 'events'> = {
    async events(sinceMs) {
      asked.push(sinceMs);
      stopping.abort();
      return [];
    },
  };
  const inbox = createInbox({
    sql,
    provider: provider as CardProvider,
    orders: {} as OrderStore,
    reconciler: {} as OrderReconciler,
    nowMs: () => NOW_MS,
    onError: () => assert.fail(),
    onForgotten: () => assert.fail(),
  });
  await inbox.catchUp(stopping.signal);
  assert.equal(asked.length, 1);
  const stoppedMs = await readUntil();
  assert(stoppedMs !== undefined && stoppedMs > NOW_MS - 48 * HOUR_MS && stoppedMs < NOW_MS);
  await inbox.catchUp();
  assert((asked[1] ?? NOW_MS) < stoppedMs, 'nothing is passed over');
  assert.equal(await readUntil(), NOW_MS);
});
