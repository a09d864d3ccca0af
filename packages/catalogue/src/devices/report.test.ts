import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileFor, spoiled } from '../../../../apps/shop/test/hostile-values.fixture.ts';
import { CLOCK_SKEW_MS, MAX_REPORT_BYTES, ReportRefused, readReport } from './report.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const DEVICE = { sensors: { temperature: 'C' }, backfillMs: 3_600_000, nowMs: NOW_MS };
const READING = {
  at: '2026-01-01T00:00:00Z',
  key: 'a',
  values: { temperature: 20.5 },
  position: { lat: 48, lon: 11 },
};
const read = (report: unknown) => readReport(Buffer.from(JSON.stringify(report)), DEVICE);

test('whatever stands in a report is read or refused, and only numbers of its own sensors are measured', () => {
  assert.equal(read(READING)[0]?.measured.temperature, 20.5);
  const reports = [READING, [READING, READING]].flatMap((report) => [
    ...hostileFor(report),
    ...[...spoiled(report)].map(({ value }) => value),
  ]);
  for (const report of reports) {
    try {
      for (const { measured, lat, lon } of read(report)) {
        assert.deepEqual(
          Object.keys(measured).filter((name) => name !== 'temperature'),
          [],
        );
        for (const number of [...Object.values(measured), lat ?? 0, lon ?? 0])
          assert.equal(typeof number, 'number');
      }
    } catch (error) {
      assert(error instanceof ReportRefused, `${error} to ${JSON.stringify(report)}`);
    }
  }
});

const refused = (code: string) => (error: unknown) => error instanceof ReportRefused && error.code === code;
const at = (ms: number) => new Date(NOW_MS + ms).toISOString();

test('a report is bounded in bytes', () => {
  const padded = (bytes: number) => Buffer.from(JSON.stringify(READING).padEnd(bytes));
  assert.equal(readReport(padded(MAX_REPORT_BYTES), DEVICE).length, 1);
  assert.throws(() => readReport(padded(MAX_REPORT_BYTES + 1), DEVICE), refused('REPORT_TOO_LARGE'));
});

test('a time may be ahead by the skew of clocks, and behind by what the device may bring later', () => {
  const when = (ms: number) => read({ ...READING, at: at(ms) })[0]?.atMs;
  assert.equal(when(CLOCK_SKEW_MS), NOW_MS + CLOCK_SKEW_MS);
  assert.throws(() => when(CLOCK_SKEW_MS + 1), refused('CLOCK_AHEAD'));
  assert.equal(when(-DEVICE.backfillMs), NOW_MS - DEVICE.backfillMs);
  assert.throws(() => when(-DEVICE.backfillMs - 1), refused('READING_TOO_OLD'));
});

test('a sensor that the device does not have is refused, whatever objects have by nature', () => {
  assert.throws(() => read({ ...READING, values: { pressure: 1 } }), refused('SENSOR_UNKNOWN'));
  assert.throws(() => read({ ...READING, values: { toString: 1 } }), refused('SENSOR_UNKNOWN'));
});

test('a place is on the globe', () => {
  const placed = (lat: number, lon: number) => read({ ...READING, position: { lat, lon } })[0];
  assert.deepEqual([placed(-90, 180)?.lat, placed(90, -180)?.lon], [-90, -180]);
  for (const [lat, lon] of [
    [90.1, 0],
    [-90.1, 0],
    [0, 180.1],
    [0, -180.1],
  ] as const)
    assert.throws(() => placed(lat, lon), refused('REPORT_INVALID'));
});

test('a reading keeps the key that its device gave, and without one is told by all that it holds', () => {
  const both = { ...DEVICE, sensors: { temperature: 'C', humidity: '%' } };
  const keyOf = (reading: object) => readReport(Buffer.from(JSON.stringify(reading)), both)[0]?.key;
  assert.equal(keyOf(READING), 'a');
  const plain = { at: '2026-01-01T00:00:00.0001Z', values: { temperature: 20, humidity: 50 } };
  assert.match(keyOf(plain) ?? '', /^ /);
  assert.equal(keyOf({ ...plain, values: { humidity: 50, temperature: 20 } }), keyOf(plain));
  for (const other of [
    { ...plain, at: '2026-01-01T00:00:00.0002Z' },
    { ...plain, values: { temperature: 20.5, humidity: 50 } },
    { ...plain, position: { lat: 1, lon: 2 } },
  ])
    assert.notEqual(keyOf(other), keyOf(plain));
});
