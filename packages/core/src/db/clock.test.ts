import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createDatabaseClock } from './clock.ts';

/** A machine whose clock is ahead by some milliseconds, the true time, and a database that answers after a while. */
function world(aheadMs: number) {
  let trueMs = 1_800_000_000_000;
  let stopwatch = 0;
  const machine = { aheadMs };
  const clock = createDatabaseClock(
    () => trueMs + machine.aheadMs,
    () => stopwatch,
  );
  const pass = (ms: number) => {
    trueMs += ms;
    stopwatch += ms;
  };
  return {
    clock,
    machine,
    pass,
    errorMs: () => clock.nowMs() - trueMs,
    measure: (onWayMs: number, backMs: number) =>
      clock.measure(async () => {
        pass(onWayMs);
        const said = trueMs;
        pass(backMs);
        return said;
      }),
  };
}

test("until the database has said its time, it is the machine's", async () => {
  const { clock, errorMs } = world(-120_000);
  assert.deepEqual([clock.aheadMs, errorMs()], [null, -120_000]);
  await clock.measure(async () => null);
  assert.equal(clock.aheadMs, null);
});

test('a clock that is wrong is corrected within half of the round trip', async () => {
  for (const aheadMs of [-120_000, -1, 0, 300_000]) {
    const { clock, errorMs, measure } = world(aheadMs);
    await measure(0, 10);
    assert.deepEqual([errorMs(), clock.aheadMs], [-5, aheadMs + 5]);
    await measure(2, 0);
    // It lies within what the second answer allows, which was quicker.
    assert.deepEqual([errorMs(), clock.aheadMs], [0, aheadMs]);
  }
});

test('an answer that took half a second says nothing, nor does one during which the clock was set', async () => {
  const { clock, machine, measure, pass } = world(-120_000);
  await measure(250, 250);
  assert.equal(clock.aheadMs, null);
  for (const setMs of [-600_000, 600_000]) {
    await clock.measure(async () => {
      machine.aheadMs += setMs;
      return 0;
    });
    assert.equal(clock.aheadMs, null);
  }
  await measure(250, 249);
  assert.notEqual(clock.aheadMs, null);
  await assert.rejects(
    clock.measure(async () => {
      pass(1);
      throw new Error('away');
    }),
    /away/,
  );
});

test('however quick the answers are, the time is never wrong by more than the last round trip', async () => {
  const trip = fc.record({
    onWayMs: fc.nat(300),
    backMs: fc.nat(300),
    driftMs: fc.integer({ min: -3_000, max: 3_000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: -600_000, max: 600_000 }), fc.array(trip), async (aheadMs, trips) => {
      const { clock, machine, measure, errorMs } = world(aheadMs);
      for (const { onWayMs, backMs, driftMs } of trips) {
        machine.aheadMs += driftMs;
        await measure(onWayMs, backMs);
        if (onWayMs + backMs >= 500) continue;
        assert(clock.aheadMs !== null);
        assert(Math.abs(errorMs()) <= onWayMs + backMs + 1, String(errorMs()));
      }
    }),
  );
});

test('a clock that goes wrong by more than a second is told of once, and once when it is right again', async () => {
  const { clock, machine, measure } = world(0);
  const told: [boolean, number][] = [];
  clock.onDrift((drifted, aheadMs) => told.push([drifted, aheadMs]));
  for (const aheadMs of [0, 1_000, 1_001, 5_000, -2_000, -1_001, -1_000, 0]) {
    machine.aheadMs = aheadMs;
    await measure(0, 0);
  }
  assert.deepEqual(told, [
    [true, 1_001],
    [false, -1_000],
  ]);
  // Whoever begins to listen while it is wrong is told so.
  machine.aheadMs = 7_000;
  await measure(0, 0);
  const late: [boolean, number][] = [];
  clock.onDrift((drifted, aheadMs) => late.push([drifted, aheadMs]));
  assert.deepEqual(late, [[true, 7_000]]);
});
