import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import postgres from 'postgres';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { startWire } from '../../../../apps/shop/test/fire/proxy.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { connectPools, endPools, isLockTimeout } from './connection.ts';
import { DatabaseSilent, withDeadline } from './deadline.ts';
import { onlyHost } from './primary.ts';
import { createSocketPool, STARTUP_FILLING } from './socket.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
  await database.sql`create table marks (name text primary key)`;
});
after(() => database.close());

/** A wire to the database and pools on it, for one test. */
async function setting(t: TestContext) {
  const wire = await startWire(database.url);
  const pools = connectPools(wire.url, 3);
  const told: boolean[] = [];
  pools.silence.onChange((silent) => told.push(silent));
  t.after(async () => {
    await endPools(pools, 1);
    await wire.close();
  });
  return { wire, pools, told };
}

const markedAs = async (name: string) =>
  (await database.sql`select 1 from marks where name = ${name}`).length === 1;

// They wait for deadlines, and mostly for nothing else.
describe('side by side', { concurrency: true }, () => {
  for (const everybody of [undefined, 'new ones too'] as const) {
    test(`a database that falls silent${everybody === undefined ? '' : ', for new connections too'}: every query is answered for it within its deadline`, async (t) => {
      const { wire, pools, told } = await setting(t);
      await Promise.all([pools.sql`select 1`, pools.sql`select 1`, pools.commits`select 1`]);
      wire.freeze(everybody);
      const startedAtMs = performance.now();
      // More than there are connections: some are written, some wait for one.
      const asked = await Promise.allSettled([
        ...Array.from({ length: 12 }, () => pools.sql`select 1`),
        pools.commits`select 1`,
        pools.sql.begin((transaction) => transaction`select 1`),
      ]);
      for (const one of asked) {
        assert.equal(one.status, 'rejected');
        assert.match(
          String('code' in one.reason ? one.reason.code : one.reason),
          /^(ETIMEDOUT|CONNECT_TIMEOUT)$/,
        );
      }
      assert(performance.now() - startedAtMs < 5_000, 'nobody waits longer than five seconds');
      assert.deepEqual(told, [true], 'it is told once');
      if (everybody === undefined) {
        assert.equal(
          (await pools.sql`select 1`).length,
          1,
          'what is silent was dropped, and a new connection tried',
        );
        assert.equal(pools.silence.isSilent, false);
        await until('it to be told that it answers again', async () => {
          await pools.sql`select 1`;
          return told.length === 2;
        });
        assert.deepEqual(told, [true, false]);
      }
    });
  }

  test('a transaction whose commit gets no answer is rejected, and one whose begin gets none does nothing later', async (t) => {
    const { wire, pools } = await setting(t);
    await pools.sql`select 1`;
    const inside = Promise.withResolvers<void>();
    const committing = pools.sql.begin(async (transaction) => {
      await transaction`insert into marks values ('committed')`;
      wire.freeze('new ones too');
      inside.resolve();
    });
    await inside.promise;
    await assert.rejects(committing, DatabaseSilent);
    let ran = 0;
    const waiting = Array.from({ length: 4 }, () =>
      pools.sql.begin(async () => {
        ran += 1;
      }),
    );
    for (const one of waiting) await assert.rejects(one);
    wire.thaw();
    await until('a connection', () =>
      pools.sql`select 1`.then(
        () => true,
        () => false,
      ),
    );
    assert.equal(ran, 0);
  });

  test('what nobody waits for any more is not carried out when a connection is there at last', async (t) => {
    const { wire, pools } = await setting(t);
    wire.freeze('new ones too');
    const rejected = await Promise.allSettled(
      Array.from({ length: 6 }, (_, i) => pools.sql`insert into marks values (${`late ${i}`})`),
    );
    for (const { status } of rejected) assert.equal(status, 'rejected');
    wire.thaw();
    await until('a connection', () =>
      pools.sql`select 1`.then(
        () => true,
        () => false,
      ),
    );
    // The two that were on an open connection may have arrived with the thaw; those that waited for one must not.
    for (const i of [2, 3, 4, 5]) assert.equal(await markedAs(`late ${i}`), false, `late ${i}`);
  });

  test('a lock that somebody else holds is not waited for without end', async (t) => {
    const { pools } = await setting(t);
    await database.sql`insert into marks values ('locked')`;
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const holder = database.sql.begin(async (transaction) => {
      await transaction`select 1 from marks where name = 'locked' for update`;
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    await assert.rejects(pools.sql`delete from marks where name = 'locked'`.then(), isLockTimeout);
    held.resolve();
    await holder;
  });

  test('a session of ours that idles in a transaction is ended by the server, and its locks go with it', async (t) => {
    const { pools } = await setting(t);
    await database.sql`insert into marks values ('idle')`;
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const idle = pools.sql.begin(async (transaction) => {
      await transaction`select 1 from marks where name = 'idle' for update`;
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    await assert.rejects(idle, 'the driver hears of it');
    await database.sql`delete from marks where name = 'idle'`;
    held.resolve();
  });
});

test('a query that is given while its connection breaks is answered by an error, and never by an empty result', async (t) => {
  const { wire, pools } = await setting(t);
  for (let round = 0; round < 20; round++) {
    await pools.commits`select 1`;
    const asked: Promise<unknown>[] = [];
    wire.cut();
    wire.reconnect();
    // One at every turn of the event loop in which the driver hears of the break.
    for (let turn = 0; turn < 12; turn++) {
      asked.push(
        pools.commits<{ one: number }[]>`select 1 as one`.then(
          ([row]) => assert.equal(row?.one, 1, 'an answer is what was asked for'),
          (error: unknown) => assert(error instanceof Error && 'code' in error, String(error)),
        ),
      );
      await new Promise(setImmediate);
    }
    await Promise.all(asked);
  }
});

test('a connection that breaks while something is about to be written keeps nobody waiting who asks afterwards', async () => {
  const { hostname, port } = new URL(database.url);
  const sockets = createSocketPool({
    target: onlyHost({ host: hostname, port: Number(port) }),
    tls: null,
    connectTimeoutMs: 4_000,
    heard: () => {},
  });
  const opened: Socket[] = [];
  const options = {
    max: 1,
    fetch_types: false,
    connect_timeout: 4,
    connection: STARTUP_FILLING,
    // Not in the driver's types.
    socket: async () => {
      const socket = await sockets.open();
      opened.push(socket);
      return socket;
    },
  };
  const driver = postgres(database.url, options);
  try {
    for (let round = 1; round <= 5; round++) {
      assert.equal((await driver`select ${round}::integer as round`)[0]?.round, round);
      const lost = driver`select 'never sent'`.execute();
      const rejected = assert.rejects(lost.then(), /broken/);
      // In the same turn: the driver has the query, and writes in the next one.
      for (let step = 0; step < 5; step++) await null;
      opened.at(-1)?.emit('error', new Error('broken'));
      await rejected;
      assert.equal(opened.length, round);
    }
    assert.equal((await driver`show application_name`)[0]?.application_name, 'postgres.js');
  } finally {
    await driver.end({ timeout: 1 });
  }
});

test('a process that stood still while it connected finds the answer, and does not take the database for silent', async () => {
  const { hostname, port } = new URL(database.url);
  const connectTimeoutMs = 3_000;
  const target = onlyHost({ host: hostname, port: Number(port) });
  const sockets = createSocketPool({ target, tls: null, connectTimeoutMs, heard: () => {} });
  let opened = 0;
  const options = {
    max: 1,
    fetch_types: false,
    connect_timeout: 60,
    connection: STARTUP_FILLING,
    // Not in the driver's types.
    socket: async () => {
      const socket = await sockets.open();
      opened += 1;
      const awakeAtMs = performance.now() + connectTimeoutMs + 500;
      while (performance.now() < awakeAtMs);
      return socket;
    },
  };
  const driver = postgres(database.url, options);
  try {
    assert.equal((await driver`select 1 as one`)[0]?.one, 1);
    assert.equal(opened, 1);
  } finally {
    await driver.end({ timeout: 1 });
  }
});

test('no statement of a call or a job is compiled, also where PostgreSQL compiles what it thinks is long', async () => {
  await database.sql.unsafe(`alter database ${new URL(database.url).pathname.slice(1)} set jit = on`);
  const pools = connectPools(database.url, 3);
  const compiles = (pool: typeof pools.sql) => pool`select current_setting('jit') as jit`;
  try {
    const asked = await Promise.all([pools.sql, pools.commits, pools.patient].map(compiles));
    assert.deepEqual(
      asked.map(([row]) => row?.jit),
      ['off', 'off', 'on'],
    );
  } finally {
    await endPools(pools, 1);
  }
});

test('a server that lets nobody in is given up in time', async () => {
  const silent = createServer(() => {});
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const address = silent.address();
  assert(address !== null && typeof address === 'object');
  const target = onlyHost({ host: '127.0.0.1', port: address.port });
  const sockets = createSocketPool({ target, tls: null, connectTimeoutMs: 500, heard: () => {} });
  const socket = await sockets.open();
  const [error] = await once(socket, 'error');
  assert.equal(error.code, 'ETIMEDOUT');
  silent.close();
});

test('a transaction whose work ends in the moment in which its connection closes is rejected, and the process lives', async () => {
  const { hostname, port } = new URL(database.url);
  const sockets: Socket[] = [];
  const options = {
    max: 1,
    fetch_types: false,
    // Not in the driver's types.
    socket: async () => {
      const socket = connect(Number(port), hostname);
      sockets.push(socket);
      return socket;
    },
  };
  const driver = postgres(database.url, options);
  const sql = withDeadline(driver, { deadlineMs: 4_000, late: () => {}, ended: () => {} });
  try {
    for (const end of ['commit', 'rollback']) {
      const begun = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      const work = sql.begin(async (transaction) => {
        await transaction`select 1`;
        begun.resolve();
        await held.promise;
        if (end === 'rollback') throw new Error('changed our mind');
      });
      const rejected = assert.rejects(work, /CONNECTION_CLOSED|changed our mind/);
      await begun.promise;
      // Both in one turn: the socket tells of its end before the work goes on.
      setImmediate(() => {
        held.resolve();
        sockets.at(-1)?.destroy();
      });
      await rejected;
      assert.equal((await sql`select 1 as one`)[0]?.one, 1, end);
    }
  } finally {
    await driver.end({ timeout: 1 });
  }
});
