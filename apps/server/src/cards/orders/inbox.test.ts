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

test('an event that cannot be put off keeps nobody from the orders of the others', async () => {
  const { sql } = database;
  const looked: string[] = [];
  const provider: Pick<CardProvider, 'payment'> = {
    async payment() {
      throw new Error('it cannot be read');
    },
  };
  const orders = {
    findBySession: async () => ({ id: 'good' }),
    findByPayment: async () => null,
  } as unknown as OrderStore;
  const reconciler = { reconcile: async (id: string) => void looked.push(id) } as unknown as OrderReconciler;
  const inbox = createInbox({
    sql,
    provider: provider as CardProvider,
    orders,
    reconciler,
    nowMs: () => NOW_MS,
    onError: () => {
      throw new Error('it cannot be put off');
    },
    onForgotten: () => assert.fail(),
  });
  const about = { type: 'charge.refunded', orderId: null, createdAtMs: NOW_MS };
  await inbox.receive({ ...about, id: 'evt_bad', sessionId: null, paymentIntentId: 'pi_bad' });
  await inbox.receive({ ...about, id: 'evt_good', sessionId: 'cs_good', paymentIntentId: null });
  await assert.rejects(inbox.work(), /it cannot be put off/);
  assert.deepEqual(looked, ['good']);
  const waiting = await sql<{ id: string }[]>`select id from card_events where next_at is not null`;
  assert.deepEqual(
    waiting.map(({ id }) => id),
    ['evt_bad'],
  );
});

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
