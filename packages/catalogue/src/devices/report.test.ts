import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileFor, spoiled } from '../../../../apps/shop/test/hostile-values.fixture.ts';
import { ReportRefused, readReport } from './report.ts';

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
