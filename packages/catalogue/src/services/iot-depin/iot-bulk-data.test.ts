import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeviceReading, ReportingDevice, ReportingDevices } from '../reported-devices.ts';
import { NOW_MS, runContext } from '../run-context.fixture.ts';
import iotBulkData from './iot-bulk-data.ts';

const MOST = 50_000;
const DEVICE: ReportingDevice = {
  deviceId: 'meter-1',
  name: null,
  fleetId: null,
  sensors: { temperature: 'celsius' },
  place: null,
  simulated: false,
};

/** A device with so many readings, a second apart. */
function devices(count: number) {
  const limits: number[] = [];
  const exported: number[] = [];
  const reporting: Partial<ReportingDevices> = {
    retentionDays: 30,
    forCall: async () => DEVICE,
    range: async (_id, { limit }) => {
      limits.push(limit);
      return Array.from({ length: Math.min(count, limit) }, (_, seq): DeviceReading => {
        const atMs = NOW_MS - (count - seq) * 1_000;
        return { atMs, receivedAtMs: atMs, seq, values: { temperature: 20 }, position: null };
      });
    },
    exportAs: async (_format, _device, readings) => {
      exported.push(readings.length);
      const sha256 = '0'.repeat(64);
      return { exportId: 'e', downloadUrl: 'http://localhost/e', sizeBytes: 1, sha256, expiresAtMs: NOW_MS };
    },
  };
  return { limits, exported, reporting: reporting as ReportingDevices };
}
const run = ({ reporting }: ReturnType<typeof devices>) =>
  iotBulkData.run(iotBulkData.input.parse({ deviceId: 'meter-1' }), {
    ...runContext({}),
    devices: reporting,
  });

test('a span with more readings than a file may have is refused before a file is made', async () => {
  const many = devices(MOST + 1);
  await assert.rejects(run(many), {
    status: 422,
    code: 'RANGE_TOO_LARGE',
    field: 'endDate',
    // Where the caller may cut the span: when the last of the first 50,000 was measured.
    message: new RegExp(`end at ${new Date(NOW_MS - 2_000).toISOString()}`),
  });
  // No more is read than tells that there is more.
  assert.deepEqual([many.limits, many.exported], [[MOST + 1], []]);
  const full = devices(MOST);
  await run(full);
  assert.deepEqual(full.exported, [MOST]);
});
