/** Queues of leased work against a real database, on tables of the tests' own; the clock is the tests' own too. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { type Held, LeasedQueue, type QueueShape } from './leased-queue.ts';

const SECOND_MS = 1_000;
const LEASE_MS = 60 * SECOND_MS;
const START_MS = Date.UTC(2026, 2, 4, 5, 6, 7);

interface Errand {
  shop: bigint;
  id: string;
  what: string;
}

const SHAPE: QueueShape = {
  name: 'errands',
  table: 'errands',
  key: ['shop', 'id'],
  columns: ['what'],
  attempts: 'attempts',
  leaseMs: LEASE_MS,
  backOffMs: (attempts) => attempts * 10 * SECOND_MS,
  mostAttempts: 3,
  settled: 'kept',
  givenUpAt: 'given_up_at',
  since: 'created_at',
};

let database: TestDatabase;
let nowMs = START_MS;
before(async () => {
  database = await openTestDatabase();
  await database.sql`
    create table errands (
      shop bigint not null, id text not null, what text not null, created_at timestamptz not null, next_at timestamptz,
      attempts smallint not null default 0, done_at timestamptz, given_up_at timestamptz, primary key (shop, id))`;
});
after(() => database?.close());
beforeEach(async () => {
  nowMs = START_MS;
  await database.sql`truncate errands`;
});

const at = () => new Date(nowMs).toISOString();

/** The queue as a replica has it. */
const replica = (more: Partial<QueueShape> = {}) =>
  new LeasedQueue<Errand>(database.sql, { ...SHAPE, ...more }, () => nowMs);

const add = (id: string, shop = 1) => database.sql`
  insert into errands (shop, id, what, created_at, next_at) values (${shop}, ${id}, ${`fetch ${id}`}, ${at()}, ${at()})`;

async function take(queue: LeasedQueue<Errand>) {
  const [held] = await queue.claim(1);
  assert(held !== undefined, 'something is due');
  return held;
}

async function rowOf(id: string) {
  const [row] = await database.sql<
    { attempts: number; next_at: Date | null; done_at: Date | null; given_up_at: Date | null }[]
  >`select attempts, next_at, done_at, given_up_at from errands where id = ${id}`;
  assert(row !== undefined);
  return {
    attempts: row.attempts,
    dueInMs: row.next_at === null ? null : row.next_at.getTime() - nowMs,
    done: row.done_at !== null,
    givenUp: row.given_up_at !== null,
  };
}

test('two that claim at once share what is due, those that are due for longest first', async () => {
  for (let number = 10; number < 50; number += 1) {
    await add(`${number}`);
    nowMs += 1;
  }
  const first = await replica().claim(5);
  assert.deepEqual(first.map(({ id }) => id).sort(), ['10', '11', '12', '13', '14']);
  assert.deepEqual(
    first.map(({ what, heldAttempts }) => [what, heldAttempts]).sort(),
    ['10', '11', '12', '13', '14'].map((id) => [`fetch ${id}`, 1]),
  );
  const claims = await Promise.all(Array.from({ length: 8 }, () => replica().claim(5)));
  const ids = claims.flat().map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, 'none is taken twice');
  const rest = (await replica().claim(100)).map(({ id }) => id);
  assert.equal(new Set([...ids, ...rest]).size, 35);
  assert.deepEqual(await replica().claim(100), []);
});

test('those that are due since the same time come in the order that the queue names', async () => {
  const queue = replica({ thenBy: 'what' });
  for (const id of ['c', 'a', 'b']) await add(id);
  for (const id of ['a', 'b', 'c']) assert.equal((await take(queue)).id, id);
});

test('an item whose state takes it out of its queue is done, and a late holder does not change that', async () => {
  const queue = replica({ settled: 'marked', only: (on) => on`done_at is null`, attempts: null });
  await add('a');
  const late = await take(queue);
  nowMs += LEASE_MS;
  const held = await take(queue);
  assert.equal(await queue.settle(late, { set: { done_at: at() } }), false);
  assert(await queue.settle(held, { set: { done_at: at() } }));
  assert.deepEqual(await rowOf('a'), { attempts: 0, dueInMs: LEASE_MS, done: true, givenUp: false });
  assert.equal(await queue.backOff(held), false);
  nowMs += LEASE_MS;
  assert.deepEqual([(await queue.claim(1)).length, await queue.depth()], [0, 0]);
});

test('a row that somebody else holds a lock on keeps nobody waiting', async () => {
  const { sql } = database;
  await add('locked');
  nowMs += 1;
  await add('free');
  await sql.begin(async (transaction) => {
    await transaction`select 1 from errands where id = 'locked' for update`;
    assert.deepEqual(
      (await replica().claim(1)).map(({ id }) => id),
      ['free'],
    );
  });
});

test('an item whose holder died falls due when its lease is over, and not before', async () => {
  const queue = replica();
  await add('a');
  await queue.claim(1);
  nowMs += LEASE_MS - 1;
  assert.deepEqual(await queue.claim(1), []);
  nowMs += 1;
  const again = await take(queue);
  assert.equal(again.heldAttempts, 2);
  assert(await queue.settle(again, { set: { done_at: at() } }));
  assert.deepEqual(await rowOf('a'), { attempts: 2, dueInMs: null, done: true, givenUp: false });
});

for (const attempts of ['attempts', null])
  test(`a holder who comes back too late changes nothing (counting ${attempts})`, async () => {
    const { sql } = database;
    const queue = replica({ attempts });
    const changes: ((held: Held<Errand>) => Promise<boolean>)[] = [
      (held) => queue.settle(held, { set: { done_at: at() } }),
      (held) => queue.backOff(held),
      (held) => queue.backOff(held, { afterMs: 0 }),
      (held) => queue.giveUp(held),
      async (held) => (await queue.giveBack([held])) > 0,
      (held) => sql.begin((transaction) => queue.settle(held, { set: { done_at: at() }, on: transaction })),
    ];
    const ends: ((held: Held<Errand>) => Promise<unknown>)[] = [
      async () => {},
      (held) => queue.settle(held),
      (held) => queue.backOff(held),
      (held) => queue.giveUp(held),
    ];
    for (const [endNumber, end] of ends.entries())
      for (const [changeNumber, change] of changes.entries()) {
        const id = `${endNumber} ${changeNumber}`;
        await add(id);
        const late = await take(queue);
        nowMs += LEASE_MS;
        await end(await take(queue));
        const before = await rowOf(id);
        assert.equal(await change(late), false, id);
        assert.deepEqual(await rowOf(id), before, id);
        await sql`truncate errands`;
      }
  });

test('a holder is told from the next one although the item was made due within its lease', async () => {
  const queue = replica();
  await add('a');
  const first = await take(queue);
  await database.sql`update errands set next_at = ${at()}`;
  const second = await take(queue);
  assert.equal(first.leasedUntil, second.leasedUntil, 'in the same millisecond');
  assert.equal(await queue.giveUp(first), false);
  assert.equal(await queue.settle(second), true);
});

test('a fact is noted by a late holder too, and stands against what the next one made of it', async () => {
  const queue = replica();
  await add('a');
  const late = await take(queue);
  nowMs += LEASE_MS;
  const next = await take(queue);
  assert(await queue.giveUp(next));
  assert(await queue.settle(late, { set: { done_at: at() }, isFact: true }));
  assert.deepEqual(await rowOf('a'), { attempts: 2, dueInMs: null, done: true, givenUp: false });
  assert.equal(await queue.backOff(next), false, 'it is not due again');
});

test('an item that fails is put off for longer each time, keeps no other waiting, and is given up at the limit', async () => {
  const queue = replica();
  await add('poisoned');
  nowMs += 1;
  await add('good');
  const failed = await take(queue);
  assert.equal(failed.id, 'poisoned');
  assert(queue.mayTryAgain(failed));
  assert(await queue.backOff(failed));
  assert.equal((await take(queue)).id, 'good');
  for (const [attempts, pauseMs] of [
    [1, 10_000],
    [2, 20_000],
  ] as const) {
    assert.deepEqual(await rowOf('poisoned'), { attempts, dueInMs: pauseMs, done: false, givenUp: false });
    nowMs += pauseMs - 1;
    assert.deepEqual(await queue.claim(1), []);
    nowMs += 1;
    const held = await take(queue);
    assert.equal(held.heldAttempts, attempts + 1);
    assert.equal(queue.mayTryAgain(held), attempts < 2);
    assert(await (queue.mayTryAgain(held) ? queue.backOff(held) : queue.giveUp(held)));
  }
  assert.deepEqual(await rowOf('poisoned'), { attempts: 3, dueInMs: null, done: false, givenUp: true });
  nowMs += 86_400_000;
  assert.deepEqual(
    (await queue.claim(10)).map(({ id }) => id),
    ['good'],
  );
});

test('an item whose every attempt was cut short is known to have had them all', async () => {
  const queue = replica();
  await add('a');
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    assert.equal(queue.isSpent(await take(queue)), false);
    nowMs += LEASE_MS;
  }
  assert.equal(queue.isSpent(await take(queue)), true);
  const endless = replica({ mostAttempts: null });
  nowMs += LEASE_MS;
  const held = await take(endless);
  assert.deepEqual([endless.isSpent(held), endless.mayTryAgain(held)], [false, true]);
});

test('an item that is given back is due at once, as if it had not been taken', async () => {
  const queue = replica();
  await add('a');
  assert.equal(await queue.giveBack([await take(queue)]), 1);
  assert.deepEqual(await rowOf('a'), { attempts: 0, dueInMs: 0, done: false, givenUp: false });
  assert.equal((await take(queue)).heldAttempts, 1);
});

test('what is done is deleted, or falls due again, where the queue says so; a change is undone with its transaction', async () => {
  const { sql } = database;
  const recurring = replica({ settled: { againAfterMs: 5_000 } });
  await add('a');
  const held = await take(recurring);
  await assert.rejects(
    sql.begin(async (transaction) => {
      assert(await recurring.settle(held, { on: transaction }));
      throw new Error('undone');
    }),
    /undone/,
  );
  assert.equal((await rowOf('a')).dueInMs, LEASE_MS);
  assert(await recurring.settle(held));
  assert.equal((await rowOf('a')).dueInMs, 5_000);

  const deleting = replica({ settled: 'deleted' });
  nowMs += 5_000;
  const late = await take(deleting);
  nowMs += LEASE_MS;
  const next = await take(deleting);
  assert.equal(await deleting.settle(late), false);
  assert(await deleting.settle(next));
  assert.equal((await sql`select 1 from errands`).length, 0);
});

test('of several that are done at once, those that have passed to another stay as they are', async () => {
  const queue = replica();
  for (const id of ['a', 'b', 'c']) await add(id);
  const all = await queue.claim(3);
  await database.sql`update errands set next_at = ${at()} where id = 'b'`;
  const passed = await take(queue);
  assert.equal(await queue.settleAll(all), 2);
  assert.equal((await rowOf('a')).dueInMs, null);
  assert.equal((await rowOf('b')).dueInMs, LEASE_MS);
  assert.equal(await queue.settleAll([]), 0);
  assert.equal(await queue.giveBack(all), 0);
  assert.equal(await queue.giveBack([]), 0);
  assert.equal(await queue.settleAll([passed]), 1);
});

test('rows of another queue in the same table are neither taken nor changed nor counted', async () => {
  const only: QueueShape['only'] = (on) => on`shop = 2`;
  const second = replica({ only });
  await add('theirs', 1);
  await add('ours', 2);
  assert.deepEqual([await second.depth(), await replica().depth()], [1, 2]);
  const [held, ...others] = await second.claim(10);
  assert(held !== undefined && others.length === 0);
  assert.equal(held.id, 'ours');
  assert.equal((await rowOf('theirs')).attempts, 0);
  await database.sql`update errands set shop = 3 where id = 'ours'`;
  assert.equal(await second.settle({ ...held, shop: 3n }, { isFact: true }), false);
});

test('the depth is what waits or is being worked, the age that of its oldest; of an empty queue both are 0', async () => {
  const queue = replica();
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [0, 0]);
  await add('a');
  nowMs += 3 * SECOND_MS;
  await add('b');
  nowMs += 2 * SECOND_MS;
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [2, 5]);
  const first = await take(queue);
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [2, 5], 'taken is not done');
  await queue.backOff(first);
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [2, 5], 'put off is not done');
  const second = await take(queue);
  await queue.settle(second);
  nowMs += LEASE_MS;
  await queue.giveUp(await take(queue));
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [0, 0]);
  // One whose time is written by another machine's clock.
  nowMs += SECOND_MS;
  await add('c');
  nowMs -= SECOND_MS;
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [1, 0]);
});

test('where items recur, those that are to be done now wait', async () => {
  const queue = replica({
    settled: { againAfterMs: 5_000 },
    waiting: (on, now) => on`next_at <= ${now}`,
    since: 'next_at',
  });
  await add('a');
  nowMs += 2_000;
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [1, 2]);
  await queue.settle(await take(queue));
  assert.deepEqual([await queue.depth(), await queue.oldestSeconds()], [0, 0]);
});
