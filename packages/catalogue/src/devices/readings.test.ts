/** Readings are stored at midnight, behind a lock of somebody else and without their day, and cost the same in a full day. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { connectPools, endPools } from '../../../core/src/db/connection.ts';
import { createDays } from './partitions.ts';
import { createReadings } from './readings.ts';

const DAY_MS = 86_400_000;
const MIDNIGHT_MS = Date.parse('2031-03-01T00:00:00Z');
const DEVICES = 2_000;

let database: TestDatabase;
let devices: bigint[];
before(async () => {
  database = await openTestDatabase();
  const rows = await database.sql<{ no: bigint }[]>`
    insert into devices (id, owner, public, simulated, sensors, public_key, created_at)
    select 'd-' || n, 1, true, false, '{"t":"celsius"}', '\\x00', now() from generate_series(1, ${DEVICES}) n
    returning no`;
  devices = rows.map(({ no }) => no);
});
after(() => database.close());

const reading = (atMs: number, t = 1) => ({ atMs, key: '', measured: { t }, lat: null, lon: null });
const storedAt = async (atMs: number) => {
  const [row] = await database.sql<{ count: number }[]>`
    select count(*)::integer as count from device_readings where at = ${new Date(atMs).toISOString()}`;
  return row?.count ?? 0;
};
const opened = (nowMs: () => number) => {
  const days = createDays(database.sql, nowMs);
  return { days, readings: createReadings(database.sql, nowMs, days) };
};
const first = () => devices[0] ?? 0n;

test('at midnight all devices are served, whoever holds a lock on the table', async () => {
  let nowMs = MIDNIGHT_MS - 1_000;
  const { days, readings } = opened(() => nowMs);
  await days.make();
  await database.patient.begin(async (other) => {
    // As a long ANALYZE or a day that is detached holds it: no partition can be made beside it.
    await other`lock table device_readings in share update exclusive mode`;
    nowMs = MIDNIGHT_MS + 1_000;
    const again = async (device: bigint): Promise<number> => {
      // On a slow machine a device may have to come again, as for any batch.
      for (;;) {
        const taken = await readings.take(device, [reading(nowMs)]).catch(() => null);
        await other`select 1`;
        if (taken !== null && taken !== 'revoked') return taken.stored + taken.known;
      }
    };
    const counts = await Promise.all(devices.map(again));
    assert(counts.every((count) => count === 1));
    assert.equal(await storedAt(nowMs), DEVICES);
    // As old as it may be, and as far ahead.
    const edges = [reading(nowMs - 7 * DAY_MS), reading(nowMs + 300_000)];
    assert.deepEqual(await readings.take(first(), edges), { stored: 2, known: 0 });
  });
});

test('what has no day yet delays nobody else, and is stored once the day can be made', async () => {
  const yesterdayMs = MIDNIGHT_MS + 20 * DAY_MS;
  let nowMs = yesterdayMs;
  const { days, readings } = opened(() => nowMs);
  await days.make();
  // The job did not run for days.
  nowMs += 4 * DAY_MS;
  let early: Promise<unknown> = Promise.resolve();
  await database.patient.begin(async (other) => {
    await other`lock table device_readings in share update exclusive mode`;
    early = readings.take(first(), [reading(nowMs)]).catch(() => 'to be sent again');
    const known = await Promise.all(
      devices.slice(1, 50).map((device) => readings.take(device, [reading(yesterdayMs)])),
    );
    assert(known.every((taken) => taken !== 'revoked' && taken.stored === 1));
    assert.equal(await storedAt(nowMs), 0);
  });
  await early;
  await until('it is stored, sent again if need be', async () => {
    const taken = await readings.take(first(), [reading(nowMs)]).catch(() => null);
    return taken !== null;
  });
  assert.equal(await storedAt(nowMs), 1);
});

test('a day that somebody dropped is made anew, and nothing of another day is lost with it', async () => {
  const nowMs = MIDNIGHT_MS + 60 * DAY_MS;
  const { days, readings } = opened(() => nowMs);
  await days.make();
  await database.sql`drop table device_readings_20310430`;
  const send = async (device: bigint, atMs: number) => {
    for (;;) {
      const taken = await readings.take(device, [reading(atMs)]).catch(() => null);
      if (taken !== null) return taken;
    }
  };
  await Promise.all(
    devices.slice(0, 40).map((device, nth) => send(device, nth === 7 ? nowMs : nowMs - DAY_MS)),
  );
  assert.deepEqual([await storedAt(nowMs), await storedAt(nowMs - DAY_MS)], [1, 39]);
});

test('a batch reads no day from its beginning, however new the day is', async () => {
  // Of one connection, so that it tells what it has counted.
  const pools = connectPools(database.url, 2);
  const nowMs = MIDNIGHT_MS + 80 * DAY_MS;
  const days = createDays(pools.sql, () => nowMs);
  const readings = createReadings(pools.sql, () => nowMs, days);
  await days.make();
  const scans = async () => {
    await pools.sql`select pg_stat_force_next_flush()`;
    const [row] = await pools.sql<{ whole: number; byKey: number }[]>`
      select seq_scan::integer as whole, idx_scan::integer as "byKey" from pg_stat_user_tables
      where relname = 'device_readings_20310520'`;
    return row ?? { whole: 0, byKey: 0 };
  };
  try {
    const beginning = await scans();
    for (let nth = 0; nth < 12; nth++)
      await Promise.all(devices.slice(0, 100).map((no) => readings.take(no, [reading(nowMs + nth)])));
    const { whole, byKey } = await scans();
    assert.equal(whole, beginning.whole);
    assert(byKey >= 1_200, `${byKey} readings were looked up by their key`);
  } finally {
    await endPools(pools, 1);
  }
});
