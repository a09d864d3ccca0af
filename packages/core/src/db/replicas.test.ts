import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { openTestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { startWire } from '../../../../apps/shop/test/fire/proxy.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import { createCallStore } from '../paid-call/inside/calls.ts';
import { createSettlementStore } from '../paid-call/inside/settlement-store.ts';
import { connectPools, endPools, isLockTimeout } from './connection.ts';
import { createLiveReplicas } from './live-replicas.ts';
import { createReplica } from './replicas.ts';

const TAKEN_OVER_WITHIN_MS = 10_000;

/** A database and a wire to it, for one test. */
async function setting(t: TestContext) {
  const database = await openTestDatabase();
  const wire = await startWire(database.url);
  t.after(async () => {
    await wire.close();
    await database.close();
  });
  const free: Parameters<typeof createReplica>[0]['free'] = (transaction, id) =>
    createSettlementStore(database.sql, Date.now).freeLeasesOf(transaction, id);
  return { database, wire, free };
}

// They wait for the signs of life of others, which come every few seconds.
describe('side by side', { concurrency: true }, () => {
  test('what a process held that says nothing any more is free within ten seconds; one that comes back goes on under a new name', async (t) => {
    const { database, wire, free } = await setting(t);
    const pools = connectPools(wire.url, 3);
    const lost = createReplica({
      sql: pools.sql,
      clock: pools.clock,
      nowMs: Date.now,
      free,
      ended: async () => {},
    });
    await lost.start();
    const before = lost.id();
    const calls = createCallStore(database, { nowMs: Date.now, answerTtlMs: 60_000, holder: lost.id });
    const call = {
      id: newTransferId(Date.now()),
      accountId: HOUSE_ACCOUNTS.chain_clearing,
      bucket: 0,
      keyId: null,
      rail: 'x402',
      service: 'ping',
      priceMicros: 10_000n,
      revenue: 'revenue_x402' as const,
      identity: null,
      onChainIdentity: null,
      fingerprint: null,
      ttlMs: 60_000,
    };
    const kept = { ...call, id: newTransferId(Date.now()) };
    await calls.begin(call);
    await calls.begin(kept);
    await calls.keep({
      id: kept.id,
      accountId: kept.accountId,
      bucket: 0,
      rail: 'x402',
      payment: {
        identity: 'k',
        network: 'eip155:8453',
        asset: 'a',
        payer: 'p',
        payTo: 'q',
        amountUnits: 10_000n,
        deadAfterMs: Date.now() + 60_000,
        evidence: {},
      },
      answer: null,
      leaseMs: 45_000,
    });

    const ended = Promise.withResolvers<number>();
    const witness = createReplica({
      sql: database.sql,
      clock: database.clock,
      nowMs: Date.now,
      free,
      ended: async () => ended.resolve(performance.now()),
    });
    await witness.start();
    wire.freeze('new ones too');
    const frozenAtMs = performance.now();
    assert((await ended.promise) - frozenAtMs < TAKEN_OVER_WITHIN_MS);
    assert.deepEqual(
      (await calls.heldByEnded(10)).map(({ id }) => id),
      [call.id],
    );
    const [settlement] = await database.sql<{ free: boolean }[]>`
    select lease_until <= now() and next_at <= now() as free from settlements where call_id = ${kept.id}`;
    assert.equal(settlement?.free, true);

    wire.thaw();
    await until('the lost one to have a new row', () => lost.id() !== before);
    await Promise.all([lost.stop(), witness.stop()]);
    const alive = await database.sql`select 1 from replicas where ended_at is null`;
    assert.equal(alive.length, 0, 'who stops says so');
    await endPools(pools, 1);
  });

  test('who could not look for a while does not believe others dead', async (t) => {
    const { database, wire, free } = await setting(t);
    const pools = connectPools(wire.url, 3);
    const [quiet] = await database.sql<{ id: bigint }[]>`
    insert into replicas (started_at, seen_at) values (now(), now()) returning id`;
    let endings = 0;
    let [beats, failures] = [0, 0];
    const counted = new Proxy(pools.sql, {
      apply(target, self, args) {
        const query = Reflect.apply(target, self, args);
        if (!String(args[0]).includes('update replicas set beats')) return query;
        query.then(
          () => {
            beats += 1;
          },
          () => {
            failures += 1;
          },
        );
        return query;
      },
    });
    const witness = createReplica({
      sql: counted,
      clock: pools.clock,
      nowMs: Date.now,
      free,
      ended: async () => {
        endings += 1;
      },
    });
    await witness.start();
    // Cut every few beats: it never sees six seconds in a row.
    for (let cut = 0; cut < 4; cut++) {
      const [beatsBefore, failuresBefore] = [beats, failures];
      await until('some beats', () => beats >= beatsBefore + 3);
      wire.cut();
      await until('a beat to fail', () => failures > failuresBefore);
      wire.mend();
    }
    const [row] = await database.sql`select ended_at from replicas where id = ${String(quiet?.id)}`;
    assert.deepEqual([endings, row?.ended_at], [0, null]);
    await witness.stop();
    await endPools(pools, 1);
  });

  test('a process that is lost between describing a statement and running it holds its locks for seconds', async (t) => {
    const { database, wire, free } = await setting(t);
    const pools = connectPools(wire.url, 3);
    const living = createReplica({
      sql: database.sql,
      clock: database.clock,
      nowMs: Date.now,
      free,
      ended: async () => {},
    });
    await living.start();
    wire.cutNext((sent) => sent.includes('as what_the_lost_ask'), ['then silent']);
    const account = String(HOUSE_ACCOUNTS.chain_clearing);
    const lost = pools.sql.begin(async (transaction) => {
      await transaction`select 1 from ledger_accounts where id = ${account} for no key update`;
      await transaction`select ${1}::integer as what_the_lost_ask`;
    });
    lost.catch(() => {});
    await until('the wire to fall silent', () => wire.met === 1);
    const lostAtMs = performance.now();
    const isHeld = () =>
      database.sql`select 1 from ledger_accounts where id = ${account} for no key update nowait`.then(
        () => false,
        (error: unknown) => {
          assert(isLockTimeout(error), String(error));
          return true;
        },
      );
    assert(await isHeld());
    await until('its lock to be free', async () => !(await isHeld()));
    assert(performance.now() - lostAtMs < TAKEN_OVER_WITHIN_MS);
    await assert.rejects(lost);
    await living.stop();
    await endPools(pools, 1);
  });

  test('a process whose clock is wrong is not ready while the clock of another one is right, and only then', async (t) => {
    const { database, free } = await setting(t);
    const machine = { aheadMs: -120_000 };
    const member = async (machineMs: () => number) => {
      const pools = connectPools(database.url, 3, { machineMs });
      const replica = createReplica({
        sql: pools.sql,
        clock: pools.clock,
        nowMs: pools.clock.nowMs,
        free,
        ended: async () => {},
      });
      t.after(() => endPools(pools, 1));
      await replica.start();
      await until('the time to be known', () => pools.clock.aheadMs !== null);
      return { ...replica, clock: pools.clock };
    };
    const wrong = await member(() => Date.now() + machine.aheadMs);
    const alsoWrong = await member(() => Date.now() - 5_000_000);
    const noted = async (least: number, most: number) => {
      const rows = await database.sql`
        select 1 from replicas
        where id = ${String(wrong.id())} and clock_ahead_ms between ${least} and ${most}`;
      return rows.length === 1;
    };
    await until('it to be noted', () => noted(-121_000, -119_000));
    await until('both to be noted', async () => {
      const [row] =
        await database.sql`select count(*)::integer as count from replicas where clock_ahead_ms is not null`;
      return row?.count === 2;
    });
    assert.deepEqual([wrong.notReady(), alsoWrong.notReady()], [null, null], 'all clocks are wrong');

    const right = await member(Date.now);
    await until('the wrong ones to see it', () => wrong.notReady() !== null && alsoWrong.notReady() !== null);
    assert.match(wrong.notReady() ?? '', /^The clock of this machine is 120 s behind the database's\.$/);
    assert.equal(right.notReady(), null);
    machine.aheadMs = 4_900;
    await until('the clock to be set', () => wrong.notReady() === null);
    machine.aheadMs = 5_600;
    await until('it to be wrong again', () => wrong.notReady() !== null);
    await right.stop();
    await until('nobody to be right any more', () => wrong.notReady() === null);
    await Promise.all([wrong.stop(), alsoWrong.stop()]);
  });

  test('each counts those that are alive', async (t) => {
    const { database, free } = await setting(t);
    const open = () => {
      const live = createLiveReplicas();
      const { sql, clock } = database;
      return {
        live,
        ...createReplica({ sql, clock, live, nowMs: clock.nowMs, free, ended: async () => {} }),
      };
    };
    const [first, next] = [open(), open()];
    assert.equal(first.live.count, 1);
    await first.start();
    assert.equal(first.live.count, 1);
    await next.start();
    assert.equal(next.live.count, 2, 'known before it serves');
    await until('the first to see it', () => first.live.count === 2);
    await first.stop();
    await until('one to be left', () => next.live.count === 1);
    await next.stop();
  });
});

test('a process notices that an older database has taken the place of the one that it knew', async (t) => {
  const { database, free } = await setting(t);
  let rewound = 0;
  const replica = createReplica({
    sql: database.sql,
    clock: database.clock,
    nowMs: Date.now,
    free,
    ended: async () => {},
    rewound: () => {
      rewound += 1;
    },
  });
  t.after(() => replica.stop());
  await replica.start();
  const id = String(replica.id());
  const beats = async () => {
    const [row] = await database.sql<{ beats: bigint }[]>`select beats from replicas where id = ${id}`;
    return row?.beats ?? -1n;
  };
  await until('two signs of life', async () => (await beats()) >= 2n);
  assert.equal(rewound, 0);
  await database.sql`update replicas set beats = 0 where id = ${id}`;
  await until('it to be noticed', () => rewound === 1);
  // An older one yet, in which this process had not begun.
  await database.sql`delete from replicas where id = ${id}`;
  await until('it to be noticed again', () => rewound === 2);
});
