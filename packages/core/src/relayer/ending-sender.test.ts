import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { createEndingSender, type EndingTransaction, type Fate } from './ending-sender.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

const WAIT_MS = 10_000;
const NO_WAIT_MS = 0;

/** A chain on which time is a number, and the replicas that send to it. */
function settingOf(test: { name: string }) {
  let nowMs = Date.now();
  let time = 0n;
  let made = 0;
  const sent: string[] = [];
  const landed = new Map<string, { ok: boolean; final: boolean }>();
  const setting = {
    sent,
    landed,
    /** The node's way with what it is sent. */
    take: (hash: string) => void landed.set(hash, { ok: true, final: true }),
    isSilent: false,
    /** The cost of each; null: the chain does not say. */
    cost: null as bigint | null,
    /** The transaction of which the chain says nothing. */
    silentOf: '',
    pass(ticks: bigint) {
      time += ticks;
      nowMs += 3_000;
    },
    get made() {
      return made;
    },
    replica: () =>
      createEndingSender({
        sql: database.sql,
        network: test.name,
        nowMs: () => nowMs,
        chain: {
          async fates(transactions) {
            if (setting.isSilent || transactions.some(({ hash }) => hash === setting.silentOf))
              throw new Error('no answer');
            return transactions.map(({ hash, endsAt }): Fate => {
              const found = landed.get(hash);
              if (found !== undefined) return { status: 'landed', ...found };
              return { status: time > endsAt ? 'over' : 'unseen' };
            });
          },
          async cost() {
            if (setting.cost === null) throw new Error('no answer');
            return setting.cost;
          },
          async send(raw) {
            sent.push(raw);
            setting.take(raw);
          },
        },
      }),
    async make(): Promise<EndingTransaction> {
      made += 1;
      return { hash: `${made}`, raw: `${made}`, endsAt: time + 10n, paidBy: 'key' };
    },
    rows: async () => [
      ...(await database.sql<{ hash: string; state: number }[]>`
      select hash, state from ending_transactions where network = ${test.name} order by created_at, hash`),
    ],
  };
  return setting;
}

function order(setting: ReturnType<typeof settingOf>, changes: { once?: boolean } = {}) {
  return { id: 'it', once: false, make: setting.make, until: 'final' as const, ...changes };
}

test('however often it is asked for, at once and again, it lands once', async (t) => {
  const setting = settingOf(t);
  const replicas = Array.from({ length: 4 }, () => setting.replica());
  const all = await Promise.all(replicas.map((each) => each.deliver(order(setting), WAIT_MS)));
  const again = await setting.replica().deliver(order(setting), WAIT_MS);
  const hashes = new Set([...all, again].map((each) => each?.hash));
  assert.equal(hashes.size, 1);
  assert.deepEqual([...hashes], [...setting.landed.keys()]);
  assert.deepEqual(
    (await setting.rows()).map(({ state }) => state),
    [1],
  );
});

test('killed between storing and sending: whoever comes next sends the very same', async (t) => {
  const setting = settingOf(t);
  setting.take = () => {};
  await setting.replica().deliver(order(setting), NO_WAIT_MS);
  // What it sent is lost with it; its row is what is left.
  setting.sent.length = 0;
  setting.take = (hash) => void setting.landed.set(hash, { ok: true, final: true });
  setting.pass(1n);
  assert.equal(await setting.replica().resume(), 1);
  assert.deepEqual(setting.sent, ['1']);
  setting.pass(1n);
  await setting.replica().resume();
  const told = await setting.replica().deliver(order(setting), WAIT_MS);
  assert.deepEqual([told?.hash, setting.made], ['1', 1]);
  assert.deepEqual(await setting.rows(), [{ hash: '1', state: 1 }]);
});

test('killed between sending and hearing of it: it is found by its hash, and none is sent', async (t) => {
  const setting = settingOf(t);
  await setting.replica().deliver(order(setting), NO_WAIT_MS);
  assert.deepEqual(setting.sent, ['1']);
  setting.pass(1n);
  const told = await setting.replica().deliver(order(setting), WAIT_MS);
  assert.deepEqual(told, { hash: '1', fate: { status: 'landed', ok: true, final: true } });
  assert.deepEqual(setting.sent, ['1']);
});

test('a node that takes it and answers an error has taken it', async (t) => {
  const setting = settingOf(t);
  setting.take = (hash) => {
    setting.landed.set(hash, { ok: true, final: true });
    throw new Error('it would fail');
  };
  const told = await setting.replica().deliver(order(setting), WAIT_MS);
  assert.deepEqual([told?.fate.status, setting.made], ['landed', 1]);
});

test('while the chain is silent no second one is made, and before its end neither', async (t) => {
  const setting = settingOf(t);
  setting.take = () => {};
  await setting.replica().deliver(order(setting), NO_WAIT_MS);
  setting.isSilent = true;
  setting.pass(11n);
  await assert.rejects(setting.replica().deliver(order(setting), NO_WAIT_MS));
  await assert.rejects(setting.replica().resume());
  assert.equal(setting.made, 1);
  setting.isSilent = false;
  setting.pass(-5n);
  assert.equal((await setting.replica().deliver(order(setting), NO_WAIT_MS))?.fate.status, 'unseen');
  assert.equal(setting.made, 1);
});

test('its end has come: another one is made, once, by whoever asks; but none of what must be one for ever', async (t) => {
  const setting = settingOf(t);
  setting.take = () => {};
  await setting.replica().deliver(order(setting), NO_WAIT_MS);
  setting.pass(11n);
  const once = await setting.replica().deliver(order(setting, { once: true }), NO_WAIT_MS);
  assert.deepEqual([once?.hash, once?.fate.status], ['1', 'over']);
  setting.take = (hash) => void setting.landed.set(hash, { ok: true, final: true });
  const told = await Promise.all(
    Array.from({ length: 3 }, () => setting.replica().deliver(order(setting), WAIT_MS)),
  );
  assert.equal(new Set(told.map((each) => each?.hash)).size, 1);
  assert.equal(setting.landed.size, 1);
  assert.deepEqual(
    (await setting.rows()).map(({ state }) => state),
    [3, 1],
  );
});

test('a replica that was paused with another one signed finds that the first has landed, and sends nothing', async (t) => {
  const setting = settingOf(t);
  const [signed, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const make = async () => {
    const made = { hash: 'late', raw: 'late', endsAt: 100n, paidBy: 'key' };
    signed.resolve();
    await goesOn.promise;
    return made;
  };
  const late = setting.replica().deliver({ ...order(setting), make }, WAIT_MS);
  await signed.promise;
  const first = await setting.replica().deliver(order(setting), WAIT_MS);
  goesOn.resolve();
  assert.deepEqual(await late, first);
  assert.deepEqual(setting.sent, ['1']);
});

test('of what must be one for ever, a replica that looked too early makes no second one', async (t) => {
  for (const [id, ends] of [
    [
      'fails',
      (hash: string, setting: ReturnType<typeof settingOf>) =>
        setting.landed.set(hash, { ok: false, final: true }),
    ],
    ['over', (_: string, setting: ReturnType<typeof settingOf>) => setting.pass(11n)],
  ] as const) {
    const setting = settingOf({ name: `${t.name} ${id}` });
    setting.take = () => {};
    const found = Promise.withResolvers<void>();
    const slow = Promise.withResolvers<void>();
    const late = setting.replica().deliver(
      {
        ...order(setting, { once: true }),
        async make() {
          found.resolve();
          await slow.promise;
          return { hash: 'late', raw: 'late', endsAt: 100n, paidBy: 'key' };
        },
      },
      WAIT_MS,
    );
    await found.promise;
    await setting.replica().deliver(order(setting, { once: true }), NO_WAIT_MS);
    ends('1', setting);
    const first = await setting.replica().deliver(order(setting, { once: true }), NO_WAIT_MS);
    slow.resolve();
    assert.deepEqual(await late, first, 'it is told what became of the first');
    assert.deepEqual(setting.sent, ['1']);
    assert.equal((await setting.rows()).length, 1);
  }
});

test('one that landed and failed is made again only once that is final', async (t) => {
  const setting = settingOf(t);
  setting.take = (hash) => void setting.landed.set(hash, { ok: false, final: false });
  await setting.replica().deliver(order(setting), NO_WAIT_MS);
  await setting.replica().deliver(order(setting), NO_WAIT_MS);
  assert.equal(setting.made, 1);
  setting.landed.set('1', { ok: false, final: true });
  setting.take = (hash) => void setting.landed.set(hash, { ok: true, final: true });
  const told = await setting.replica().deliver(order(setting), WAIT_MS);
  assert.deepEqual([told?.hash, told?.fate.status], ['2', 'landed']);
});

test('what has landed and is not final is not sent again, and comes back if the chain drops it', async (t) => {
  const setting = settingOf(t);
  setting.take = (hash) => void setting.landed.set(hash, { ok: true, final: false });
  const told = await setting.replica().deliver({ ...order(setting), until: 'landed' }, WAIT_MS);
  assert.equal(told?.fate.status, 'landed');
  setting.pass(1n);
  await setting.replica().resume();
  assert.deepEqual(setting.sent, ['1']);
  setting.landed.clear();
  setting.pass(1n);
  await setting.replica().resume();
  assert.deepEqual(setting.sent, ['1', '1']);
  setting.landed.set('1', { ok: true, final: true });
  setting.pass(1n);
  await setting.replica().resume();
  assert.deepEqual(await setting.rows(), [{ hash: '1', state: 1 }]);
  setting.pass(1n);
  assert.equal(await setting.replica().resume(), 0);
});

test('one that the chain says nothing of keeps no other one waiting', async (t) => {
  const setting = settingOf(t);
  setting.take = () => {};
  for (const id of ['bad', 'lost', 'landed'])
    await setting.replica().deliver({ ...order(setting), id }, NO_WAIT_MS);
  setting.sent.length = 0;
  setting.silentOf = '1';
  setting.landed.set('3', { ok: true, final: true });
  setting.pass(1n);
  await assert.rejects(setting.replica().resume(), /no answer/);
  assert.deepEqual(setting.sent, ['2']);
  assert.deepEqual(
    (await setting.rows()).map(({ state }) => state),
    [0, 0, 1],
  );
});

test('what one cost is written down with its end, once; one that never landed cost nothing', async (t) => {
  const setting = settingOf(t);
  const spent = async () =>
    (
      await database.sql<{ address: string; transactions: number; priced: number; spent: string }[]>`
        select address, transactions, priced, spent::text from gas_spent where network = ${t.name}`
    ).map((row) => ({ ...row }));
  setting.take = () => {};
  await setting.replica().deliver({ ...order(setting), id: 'over' }, NO_WAIT_MS);
  setting.pass(11n);
  await setting.replica().resume();
  assert.deepEqual(await spent(), []);

  const replicas = Array.from({ length: 3 }, () => setting.replica());
  for (const [id, ok, cost] of [
    ['lands', true, 5_000n],
    ['fails', false, 7_000n],
  ] as const) {
    setting.cost = cost;
    setting.take = (hash) => void setting.landed.set(hash, { ok, final: true });
    await Promise.all(replicas.map((each) => each.deliver({ ...order(setting), id, once: true }, WAIT_MS)));
  }
  assert.deepEqual(await spent(), [{ address: 'key', transactions: 2, priced: 2, spent: '12000' }]);

  // Of this one the chain does not say what it cost: that keeps nothing from its end.
  setting.cost = null;
  await setting.replica().deliver({ ...order(setting), id: 'untold', once: true }, WAIT_MS);
  assert.deepEqual(await spent(), [{ address: 'key', transactions: 3, priced: 2, spent: '12000' }]);
});
