/** Readings as a file: the same rows in each format, the same bytes for the same rows. */
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { DeviceReading } from '../services/reported-devices.ts';
import type { FileTask } from './readings-format.ts';

const iso = (atMs: number) => new Date(atMs).toISOString();

/** Columns: when it was measured and received, the position, and one for each sensor, empty where it did not report. */
export function writeFile(task: FileTask): Uint8Array {
  switch (task.format) {
    case 'json':
      return Buffer.from(JSON.stringify(asJson(task)));
    case 'csv':
      return Buffer.from(asCsv(task));
    case 'parquet':
      return asParquet(task);
  }
}

function asJson({ deviceId, simulated, sensors, readings }: FileTask) {
  return {
    deviceId,
    ...(simulated ? { simulated } : {}),
    units: Object.fromEntries(sensors.map(({ name, unit }) => [name, unit])),
    readings: readings.map(({ atMs, receivedAtMs, values, position }) => ({
      at: iso(atMs),
      receivedAt: iso(receivedAtMs),
      position,
      values: Object.fromEntries(sensors.map(({ name }) => [name, values[name] ?? null])),
    })),
  };
}

/** RFC 4180. Names of sensors are plain words and all else is numbers and times: nothing has to be quoted. */
function asCsv({ sensors, readings }: FileTask): string {
  const head = ['at', 'receivedAt', 'lat', 'lon', ...sensors.map(({ name }) => name)];
  const rows = readings.map(({ atMs, receivedAtMs, values, position }) => [
    ...[iso(atMs), iso(receivedAtMs), position?.lat ?? '', position?.lon ?? ''],
    ...sensors.map(({ name }) => values[name] ?? ''),
  ]);
  return `${[head, ...rows].map((row) => row.join(',')).join('\r\n')}\r\n`;
}

function asParquet({ deviceId, simulated, sensors, readings }: FileTask): Uint8Array {
  const at = (of: (reading: DeviceReading) => number) => readings.map((reading) => new Date(of(reading)));
  const numbers = (name: string, of: (reading: DeviceReading) => number | null | undefined) => ({
    name,
    data: readings.map((reading) => of(reading) ?? null),
    type: 'DOUBLE' as const,
    nullable: true,
  });
  const bytes = parquetWriteBuffer({
    columnData: [
      { name: 'at', data: at(({ atMs }) => atMs), type: 'TIMESTAMP', nullable: false },
      {
        name: 'receivedAt',
        data: at(({ receivedAtMs }) => receivedAtMs),
        type: 'TIMESTAMP',
        nullable: false,
      },
      numbers('lat', ({ position }) => position?.lat),
      numbers('lon', ({ position }) => position?.lon),
      ...sensors.map(({ name }) => numbers(`sensor.${name}`, ({ values }) => values[name])),
    ],
    kvMetadata: [
      { key: 'deviceId', value: deviceId },
      { key: 'simulated', value: String(simulated) },
      ...sensors.map(({ name, unit }) => ({ key: `unit.${name}`, value: unit })),
    ],
  });
  return new Uint8Array(bytes);
}
