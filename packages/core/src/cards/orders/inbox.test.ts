import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { type CardProvider, type EventRef, ProviderUnavailable } from '../provider.ts';
import { createInbox, workSoon } from './inbox.ts';
import type { CardOrder, OrderStore } from './orders.ts';
import type { OrderReconciler } from './reconcile.ts';

const NONE_FORGOTTEN = { look: async () => null, rebuild: async () => {}, rebuilt: async () => null };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
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
    forgotten: NONE_FORGOTTEN,
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
    forgotten: NONE_FORGOTTEN,
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
    forgotten: NONE_FORGOTTEN,
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

/** An inbox of which the one thing that matters is what becomes of a look at an order. */
function inboxWith(look: (id: string) => Promise<unknown>, nowMs: () => number) {
  const orders: Pick<OrderStore, 'findBySession'> = {
    findBySession: async () => ({ id: 'order' }) as CardOrder,
  };
  return createInbox({
    forgotten: NONE_FORGOTTEN,
    sql: database.sql,
    provider: {} as CardProvider,
    orders: orders as OrderStore,
    reconciler: { reconcile: look } as OrderReconciler,
    nowMs,
    onError: () => {},
    onForgotten: () => assert.fail(),
  });
}

const aboutOrder = (id: string): EventRef => ({
  id,
  type: 'charge.refunded',
  createdAtMs: NOW_MS,
  orderId: null,
  sessionId: 'cs',
  paymentIntentId: null,
});

async function eventOf(id: string): Promise<{ attempts: number; nextAtMs: number | null }> {
  const [row] = await database.sql<{ attempts: number; next_at: Date | null }[]>`
    select attempts, next_at from card_events where id = ${id}`;
  assert(row !== undefined);
  return { attempts: row.attempts, nextAtMs: row.next_at?.getTime() ?? null };
}

test('whoever comes back after its lease changes nothing: neither what is done comes back, nor what failed is gone', async () => {
  await database.sql`delete from card_events`;
  for (const { ofLate, ofOther } of [
    { ofLate: 'fails', ofOther: 'works' },
    { ofLate: 'works', ofOther: 'fails' },
    { ofLate: 'fails', ofOther: 'fails' },
  ]) {
    let nowMs = NOW_MS;
    const begun = Promise.withResolvers<void>();
    const back = Promise.withResolvers<void>();
    const ends = async (how: string) => {
      if (how === 'fails') throw new Error('it cannot be looked at');
    };
    const late = inboxWith(
      async () => {
        begun.resolve();
        await back.promise;
        await ends(ofLate);
      },
      () => nowMs,
    );
    const other = inboxWith(
      () => ends(ofOther),
      () => nowMs,
    );
    const id = `evt_${ofLate}_${ofOther}`;
    await late.receive(aboutOrder(id));
    const working = late.work();
    await begun.promise;
    assert.equal(await other.work(), 0, 'it is leased');
    nowMs += MINUTE_MS;
    assert.equal(await other.work(), 1, 'its lease is over');
    const before = await eventOf(id);
    assert.equal(before.nextAtMs === null, ofOther === 'works');
    nowMs += 1;
    back.resolve();
    assert.equal(await working, 1);
    assert.deepEqual(await eventOf(id), before, `${ofLate} late, ${ofOther} before`);
    await database.sql`delete from card_events`;
  }
});

test('an event that fails is looked at later and later, keeps no other waiting, and is given up after twelve looks', async () => {
  await database.sql`delete from card_events`;
  let nowMs = NOW_MS;
  let looks = 0;
  const inbox = inboxWith(
    async () => {
      looks += 1;
      throw new Error('it cannot be looked at');
    },
    () => nowMs,
  );
  await inbox.receive(aboutOrder('evt_poisoned'));
  const pausesMs: number[] = [];
  for (;;) {
    assert.equal(await inbox.work(), 1);
    const { attempts, nextAtMs } = await eventOf('evt_poisoned');
    assert.equal(attempts, looks);
    if (nextAtMs === null) break;
    pausesMs.push(nextAtMs - nowMs);
    nowMs = nextAtMs - 1;
    assert.equal(await inbox.work(), 0);
    nowMs += 1;
  }
  assert.equal(looks, 12);
  assert.deepEqual(
    pausesMs,
    [2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048].map((seconds) => seconds * 1_000),
  );
});

test('an event is looked at for as long as the provider is away, an hour apart at most', async () => {
  await database.sql`delete from card_events`;
  let nowMs = NOW_MS;
  const inbox = inboxWith(
    async () => {
      throw new ProviderUnavailable('it is away');
    },
    () => nowMs,
  );
  await inbox.receive(aboutOrder('evt_waiting'));
  for (let look = 1; look <= 20; look += 1) {
    await inbox.work();
    const { attempts, nextAtMs } = await eventOf('evt_waiting');
    assert(nextAtMs !== null && nextAtMs - nowMs <= HOUR_MS);
    assert.equal(attempts, look);
    nowMs = nextAtMs;
  }
});

test('what was not begun before the end of the process is anybody’s at once, and counts as no look', async () => {
  await database.sql`delete from card_events`;
  const stopping = new AbortController();
  const inbox = inboxWith(
    async () => {},
    () => NOW_MS,
  );
  await inbox.receive(aboutOrder('evt_left'));
  stopping.abort();
  await inbox.work(stopping.signal);
  assert.deepEqual(await eventOf('evt_left'), { attempts: 0, nextAtMs: NOW_MS });
  assert.equal(await inbox.work(), 1);
  assert.equal((await eventOf('evt_left')).nextAtMs, null);
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
