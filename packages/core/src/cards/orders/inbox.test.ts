import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import type { CardProvider, EventRef } from '../provider.ts';
import { createInbox, workSoon } from './inbox.ts';
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

test('what is left of the events that were read is read again by the next process', async () => {
  const { sql } = database;
  const before = new Date(NOW_MS - HOUR_MS);
  await sql`
    insert into card_event_cursor (one, read_until) values (true, ${before.toISOString()})
    on conflict (one) do update set read_until = excluded.read_until`;
  const eventOf = (id: string): EventRef => ({
    id,
    type: 'charge.refunded',
    createdAtMs: NOW_MS,
    orderId: null,
    sessionId: null,
    paymentIntentId: null,
  });
  const stopping = new AbortController();
  const provider: Pick<CardProvider, 'events'> = {
    async events() {
      stopping.abort();
      return ['evt_1', 'evt_2'].map(eventOf);
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
  assert.equal(await inbox.catchUp(stopping.signal), 0);
  const [cursor] = await sql<{ read_until: Date }[]>`select read_until from card_event_cursor`;
  assert.deepEqual(cursor?.read_until, before);
  assert.equal(await inbox.catchUp(), 2);
});

test('what is worked as soon as it has come begins nothing more once it is to close', async () => {
  let given: AbortSignal | undefined;
  const soon = workSoon(
    {
      receive: async () => true,
      work: (stopping) =>
        new Promise((resolve) => {
          given = stopping;
          stopping?.addEventListener('abort', () => resolve(1));
        }),
    },
    () => assert.fail(),
  );
  await soon.receive({} as EventRef);
  assert.equal(given?.aborted, false);
  await soon.close();
  assert.equal(given?.aborted, true);
});
