/** Reports that were acknowledged and could not be taken: kept as they came, and taken once that can be. */
import type { Database } from '@farebox/core/db/connection';
import { sqlFunction } from '@farebox/core/db/functions';
import { untilNoneIsDue } from '@farebox/core/jobs/schedule';
import { DayNotKept, type Readings } from './readings.ts';
import { ReportRefused, readReport } from './report.ts';

/** The refusals of one device that are kept; the oldest goes for the next. */
const MAX_KEPT = 10_000;
const KEPT_MS = 30 * 86_400_000;
const BATCH = 100;
/** The time after which refusals that the database did not take are tried again. */
const AGAIN_MS = 60_000;
/** The same for a device that was revoked: its owner may register it again. */
const REVOKED_AGAIN_MS = 3_600_000;
const DROPPED_AT_ONCE = 1_000;

export interface Refusal {
  nth: number;
  code: string;
  reason: string;
  /** How often the same came. */
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  report: Buffer;
  /** When it is tried again; null where nothing that is known now could change it. */
  dueAtMs: number | null;
  /** The sensor that it waits for. */
  sensor: string | null;
}

export interface Refusals {
  /** Keeps a report, and tells its owner why. When it returns, it is committed. */
  keep(device: { no: bigint }, report: Buffer, why: ReportRefused): Promise<void>;
  /** The newest first. @param before those that came before the one of this number */
  page(device: { no: bigint }, page: { before: number | null; limit: number }): Promise<Refusal[]>;
  /**
   * Takes what can be taken by now. What stands in front of it and cannot be taken delays nothing. Of several who ask at once
   * one does it; safe on several replicas.
   *
   * @throws the database's error, after it has tried each
   */
  takeDue(stopping?: AbortSignal): Promise<void>;
  dropOld(): Promise<void>;
}

interface Row {
  nth: bigint;
  code: string;
  reason: string;
  count: bigint;
  first_at: Date;
  last_at: Date;
  report: Buffer;
  due_at: Date | null;
  sensor: string | null;
}
interface DueRow extends Row {
  device: bigint;
  sensors: Record<string, string>;
}

interface RefusalParts {
  nowMs(): number;
  backfillMs: number;
  readings: Pick<Readings, 'take'>;
  report(outcome: 'stored' | 'known', count: number): void;
}

export function createRefusals(sql: Database, parts: RefusalParts): Refusals {
  const { nowMs } = parts;
  let taking: Promise<void> | null = null;
  return {
    async keep({ no }, report, { code, message, sensor, dueAtMs }) {
      await sql`
        select ${sql(sqlFunction('device_refusal_keep'))}(
          ${String(no)}::bigint, ${report}::bytea, ${code}, ${message}, ${sensor},
          ${isoOrNull(whileKept(dueAtMs, nowMs()))}::timestamptz, ${iso(nowMs())}::timestamptz, ${MAX_KEPT}::bigint)`;
    },

    async page({ no }, { before, limit }) {
      const rows = await sql<Row[]>`
        select * from device_refusals
        where device = ${String(no)} and (${before}::bigint is null or nth < ${before}::bigint)
        order by nth desc limit ${limit}`;
      return rows.map(refusalOf);
    },

    takeDue(stopping) {
      taking ??= takeDue(sql, parts, stopping).finally(() => {
        taking = null;
      });
      return taking;
    },

    async dropOld() {
      await untilNoneIsDue(DROPPED_AT_ONCE, async () => {
        const { count } = await sql`
          delete from device_refusals where (device, nth) in (
            select device, nth from device_refusals where last_at < ${iso(nowMs() - KEPT_MS)}
            order by last_at limit ${DROPPED_AT_ONCE})`;
        return count;
      });
    },
  };
}

async function takeDue(sql: Database, parts: RefusalParts, stopping?: AbortSignal): Promise<void> {
  const failures: unknown[] = [];
  await untilNoneIsDue(
    BATCH,
    async () => {
      const due = await sql<DueRow[]>`
        select r.*, d.sensors from device_refusals r join devices d on d.no = r.device
        where r.due_at <= ${iso(parts.nowMs())} order by r.due_at limit ${BATCH}`;
      for (const row of due) await takeOne(sql, parts, row).catch((error: unknown) => failures.push(error));
      // What could not even be put off would come again at once.
      return failures.length > 0 ? 0 : due.length;
    },
    stopping,
  );
  if (failures.length > 0) throw failures[0];
}

/** Takes one, or notes why that cannot be; a failure of the database puts it off. */
async function takeOne(sql: Database, parts: RefusalParts, row: DueRow): Promise<void> {
  const { nowMs, backfillMs, readings } = parts;
  const { device, nth, sensors, first_at } = row;
  const putOff = (dueAtMs: number | null) => sql`
    update device_refusals set due_at = ${isoOrNull(dueAtMs)}::timestamptz
    where device = ${String(device)} and nth = ${String(nth)}`;
  try {
    // It is as old as it was when it came.
    const report = readReport(row.report, {
      sensors,
      backfillMs,
      nowMs: nowMs(),
      cameAtMs: first_at.getTime(),
    });
    const outcome = await readings.take(device, report);
    if (outcome === 'revoked') {
      await putOff(nowMs() + REVOKED_AGAIN_MS);
      return;
    }
    // Again after a kill in between, it is known.
    await sql`delete from device_refusals where device = ${String(device)} and nth = ${String(nth)}`;
    parts.report('stored', outcome.stored);
    parts.report('known', outcome.known);
  } catch (error) {
    if (error instanceof ReportRefused) await refuseAgain(sql, row, error, nowMs());
    else if (error instanceof DayNotKept) await putOff(null);
    else {
      await putOff(nowMs() + AGAIN_MS);
      throw error;
    }
  }
}

/** Notes another reason. A sensor that is added meanwhile is there already, or finds it. */
async function refuseAgain(sql: Database, { device, nth }: DueRow, why: ReportRefused, nowMs: number) {
  await sql.begin(async (transaction) => {
    const [held] = await transaction<{ sensors: Record<string, string> }[]>`
      select sensors from devices where no = ${String(device)} for no key update`;
    const isThere = why.sensor !== null && Object.hasOwn(held?.sensors ?? {}, why.sensor);
    await transaction`
      update device_refusals
      set code = ${why.code}, reason = ${why.message}, sensor = ${why.sensor},
          due_at = ${isoOrNull(isThere ? nowMs : whileKept(why.dueAtMs, nowMs))}::timestamptz
      where device = ${String(device)} and nth = ${String(nth)}`;
  });
}

/** A time that comes once the report is dropped is none; a device may name years that no database knows. */
function whileKept(dueAtMs: number | null, nowMs: number): number | null {
  return dueAtMs === null || dueAtMs > nowMs + KEPT_MS ? null : dueAtMs;
}

const iso = (atMs: number) => new Date(atMs).toISOString();
const isoOrNull = (atMs: number | null) => (atMs === null ? null : iso(atMs));

function refusalOf(row: Row): Refusal {
  return {
    nth: Number(row.nth),
    code: row.code,
    reason: row.reason,
    count: Number(row.count),
    firstAtMs: row.first_at.getTime(),
    lastAtMs: row.last_at.getTime(),
    report: row.report,
    dueAtMs: row.due_at?.getTime() ?? null,
    sensor: row.sensor,
  };
}
