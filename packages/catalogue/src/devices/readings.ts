/** Readings that devices have reported: a time series, written by many reports at once and read by device and time. */
import { arrayLiteral } from '@farebox/core/db/array-literal';
import { type Database, isNoPartition, isRefusal } from '@farebox/core/db/connection';
import { sqlFunction } from '@farebox/core/db/functions';
import { GroupCommit, QueueFull } from '@farebox/core/ledger/group-commit';
import type { DeviceReading } from '../services/reported-devices.ts';
import type { Days } from './partitions.ts';
import type { Reading } from './report.ts';

export interface Readings {
  /**
   * Stores the readings of a report, all or none, in one commit with those of other devices. When it returns they are there
   * for good. The same again is known by its time and key, and is stored once.
   *
   * @throws DayNotKept; QueueFull, NotBegun, NoAnswerInTime or the database's error: then the device has to send it again
   */
  take(
    deviceNo: bigint,
    readings: readonly Reading[],
  ): Promise<{ stored: number; known: number } | 'revoked'>;
  last(deviceNo: bigint, sensors: readonly string[]): Promise<DeviceReading | null>;
  lastPosition(deviceNo: bigint): Promise<DeviceReading | null>;
  range(
    deviceNo: bigint,
    span: { fromMs: number; toMs: number; sensor: string | null; positions?: true; limit: number },
  ): Promise<DeviceReading[]>;
  after(deviceNo: bigint, seq: number, limit: number): Promise<DeviceReading[]>;
  lastSeq(deviceNo: bigint): Promise<number>;
  /** How many reports wait for the database. */
  readonly depth: number;
}

/** A reading is of a day that readings can no longer go to. */
export class DayNotKept extends Error {
  constructor() {
    super('a reading is of a day that is not kept');
    this.name = 'DayNotKept';
  }
}

interface Work {
  deviceNo: bigint;
  readings: readonly Reading[];
}
type Taken = readonly number[];

/** Reports that wait, whatever for. */
const MAX_WAITING = 20_000;

/** The statement's status for a device that is revoked, or not there. */
const REVOKED = 2;
/** The same while somebody else holds it. */
const LOCKED = 3;

interface Row {
  at: Date;
  received_at: Date;
  seq: bigint;
  measured: Record<string, number>;
  lat: number | null;
  lon: number | null;
}

export function createReadings(sql: Database, nowMs: () => number, days: Days): Readings {
  let waitingForDays = 0;
  const commits = new GroupCommit<Work, Taken>({
    flush: (batch) => flush(sql, batch, { nowMs, days }),
    // Those of one device stand in line, so that their numbers follow the order in which they came.
    keysOf: ({ deviceNo }) => [String(deviceNo)],
    lockOf: ({ deviceNo }) => String(deviceNo),
    isLocked: (taken) => taken.includes(LOCKED),
    isRefusal,
    maxBatch: 500,
    maxFlights: 2,
    maxWaiting: MAX_WAITING,
    maxAttempts: 3,
    deadlineMs: 4_000,
    firstBackoffMs: 50,
  });

  /** Makes the partitions of the readings' days. Only readings without one wait. */
  async function dayFor(readings: readonly Reading[]): Promise<void> {
    if (waitingForDays >= MAX_WAITING) throw new QueueFull();
    waitingForDays += 1;
    try {
      await days.make();
    } finally {
      waitingForDays -= 1;
    }
    if (!days.areThere(readings)) throw new DayNotKept();
  }

  return {
    ...reads(sql),

    async take(deviceNo, readings) {
      if (!days.areThere(readings)) await dayFor(readings);
      const status = await commits.submit({ deviceNo, readings });
      if (status.includes(REVOKED)) return 'revoked';
      const stored = status.filter((each) => each === 0).length;
      return { stored, known: status.length - stored };
    },

    get depth() {
      return commits.depth + waitingForDays;
    },
  };
}

async function flush(
  sql: Database,
  batch: readonly Work[],
  { nowMs, days }: { nowMs(): number; days: Days },
): Promise<readonly Taken[]> {
  const rows = batch.flatMap(({ deviceNo, readings }) =>
    readings.map((reading) => ({ deviceNo, ...reading })),
  );
  const [answered] = await sql<{ status: number[] }[]>`
      select status from ${sql(sqlFunction('device_readings_take'))}(
        ${arrayLiteral(rows.map((row) => row.deviceNo))}::text::bigint[],
        ${arrayLiteral(rows.map((row) => iso(row.atMs)))}::text::timestamptz[],
        ${arrayLiteral(rows.map((row) => row.key))}::text::text[],
        ${arrayLiteral(rows.map((row) => JSON.stringify(row.measured)))}::text::text[],
        ${arrayLiteral(rows.map((row) => row.lat))}::text::double precision[],
        ${arrayLiteral(rows.map((row) => row.lon))}::text::double precision[],
        ${iso(nowMs())}::timestamptz)`.catch((error: unknown) => {
    // A day that is gone is made before its readings come again; those of other days are stored without it.
    if (isNoPartition(error)) days.forget();
    throw error;
  });
  const status = answered?.status ?? [];
  let at = 0;
  return batch.map(({ readings }) => {
    const own = status.slice(at, at + readings.length);
    at += readings.length;
    if (own.length !== readings.length)
      throw new Error('the database answered not as many readings as were sent');
    return own;
  });
}

function reads(sql: Database): Pick<Readings, 'last' | 'lastPosition' | 'range' | 'after' | 'lastSeq'> {
  return {
    async last(deviceNo, sensors) {
      const [row] = await sql<Row[]>`
        select at, received_at, seq, measured, lat, lon from device_readings
        where device = ${String(deviceNo)}
          and (${sensors.length === 0} or measured ?| ${arrayLiteral(sensors)}::text::text[])
        order by at desc, seq desc limit 1`;
      return row === undefined ? null : readingOf(row);
    },

    async lastPosition(deviceNo) {
      const [row] = await sql<Row[]>`
        select at, received_at, seq, measured, lat, lon from device_readings
        where device = ${String(deviceNo)} and lat is not null order by at desc, seq desc limit 1`;
      return row === undefined ? null : readingOf(row);
    },

    async range(deviceNo, { fromMs, toMs, sensor, positions = false, limit }) {
      const rows = await sql<Row[]>`
        select at, received_at, seq, measured, lat, lon from device_readings
        where device = ${String(deviceNo)} and at >= ${iso(fromMs)} and at <= ${iso(toMs)}
          and (${sensor}::text is null or measured ? ${sensor}::text) and (not ${positions} or lat is not null)
        order by at, seq limit ${limit}`;
      return rows.map(readingOf);
    },

    async lastSeq(deviceNo) {
      const [row] = await sql<{ seq: bigint }[]>`select seq from devices where no = ${String(deviceNo)}`;
      return Number(row?.seq ?? 0n);
    },

    async after(deviceNo, seq, limit) {
      const rows = await sql<Row[]>`
        select at, received_at, seq, measured, lat, lon from device_readings
        where device = ${String(deviceNo)} and seq > ${String(seq)} order by seq limit ${limit}`;
      return rows.map(readingOf);
    },
  };
}

const iso = (atMs: number) => new Date(atMs).toISOString();

function readingOf({ at, received_at, seq, measured, lat, lon }: Row): DeviceReading {
  return {
    atMs: at.getTime(),
    receivedAtMs: received_at.getTime(),
    seq: Number(seq),
    values: measured,
    position: lat === null || lon === null ? null : { lat, lon },
  };
}
