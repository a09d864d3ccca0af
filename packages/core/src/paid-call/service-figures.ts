/**
 * How fast and how surely each service has answered in the last day. A job computes it from the calls, with a bound on how
 * many it looks at, and every process keeps the result in memory: no request reads calls for it.
 */
import type { Database } from '../db/connection.ts';
import { weekOf } from '../db/weeks.ts';
import type { Job } from '../jobs/schedule.ts';
import type { DayFigures, ServiceFigures } from '../service/figures.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;
/** The id of a call begins with a time that is nearer than this to its beginning. */
const ID_WITHIN_MS = HOURS * HOUR_MS;
/** Of each hour so many calls are looked at, whatever was sold in it. */
const CALLS_OF_AN_HOUR = 4_000;
/** Fewer calls than this say nothing. */
export const LEAST_CALLS = 20;
const MEASURED_EVERY_MS = 10 * 60_000;
/** Several processes run the job; what another one has just measured is read, and not measured again. */
const FRESH_MS = MEASURED_EVERY_MS / 2;

/** Why a call was released that says something about the seller. Any other release was the buyer's, or the chain's. */
const FAULTS = [
  ...['FAILED', 'UPSTREAM_UNAVAILABLE', 'UPSTREAM_FAILED', 'BUSY', 'DEADLINE_EXCEEDED', 'PROCESS_ENDED'],
  ...['EXPIRED', 'UNDELIVERED'],
];

export interface MeasuredServices extends ServiceFigures {
  job: Job;
}

interface Row {
  service: string;
  answered: number;
  failed: number;
  median_ms: number | null;
  measured_at: Date;
}

export function measureServices(sql: Database, nowMs: () => number): MeasuredServices {
  let known: ReadonlyMap<string, Row> = new Map();
  let measured: number | null = null;

  async function measure(): Promise<void> {
    const now = nowMs();
    const at = new Date(now).toISOString();
    // No other week is asked: each would be for each hour.
    const first = weekOf(now - HOURS * HOUR_MS - ID_WITHIN_MS).from;
    const behind = weekOf(now + ID_WITHIN_MS).to;
    await sql.begin(async (transaction) => {
      // Each hour is found by its index: reading all calls to their end would cost more than all that is sold.
      await transaction`select set_config('enable_seqscan', 'off', true)`;
      await transaction`
        insert into service_figures (service, answered, failed, median_ms, measured_at)
        select service, count(*) filter (where state = 1), count(*) filter (where state = 2),
               percentile_disc(0.5) within group (order by ms) filter (where state = 1), ${at}
        from generate_series(0, ${HOURS - 1}) hour cross join lateral (
          select service, state, outcome, (extract(epoch from finished_at - created_at) * 1000)::integer as ms from calls
          where created_at > ${new Date(now - HOURS * HOUR_MS).toISOString()}::timestamptz + hour * interval '1 hour'
            and created_at <= ${new Date(now - (HOURS - 1) * HOUR_MS).toISOString()}::timestamptz + hour * interval '1 hour'
            and state in (1, 2) and id >= ${first}::uuid and id < ${behind}::uuid
          limit ${CALLS_OF_AN_HOUR}
        ) of_hour
        where state = 1 or outcome = any (${FAULTS}::text[])
        group by service
        on conflict (service) do update set answered = excluded.answered, failed = excluded.failed,
          median_ms = excluded.median_ms, measured_at = excluded.measured_at`;
      await transaction`delete from service_figures where measured_at < ${at}`;
    });
  }

  async function read(): Promise<void> {
    const rows = await sql<
      Row[]
    >`select service, answered, failed, median_ms, measured_at from service_figures`;
    known = new Map(rows.map((row) => [row.service, row]));
    measured = rows[0]?.measured_at.getTime() ?? measured;
  }

  return {
    of: (service) => figuresOf([known.get(service)].flatMap((row) => row ?? [])),
    ofAll: () => figuresOf([...known.values()]),
    measuredAtMs: () => measured,
    job: {
      name: 'measure-services',
      intervalMs: MEASURED_EVERY_MS,
      async run() {
        await read();
        if (measured !== null && nowMs() - measured < FRESH_MS) return;
        await measure();
        await read();
      },
    },
  };
}

/** The figures of some services together: the middle of the calls, taken from the middles of the services. */
function figuresOf(rows: readonly Row[]): DayFigures | null {
  const answered = rows.reduce((sum, row) => sum + row.answered, 0);
  const all = answered + rows.reduce((sum, { failed }) => sum + failed, 0);
  if (all < LEAST_CALLS || answered === 0) return null;
  const sorted = rows.toSorted((a, b) => (a.median_ms ?? 0) - (b.median_ms ?? 0));
  let passed = 0;
  const middle = sorted.find((row) => {
    passed += row.answered;
    return passed * 2 >= answered;
  });
  return {
    medianMs: middle?.median_ms ?? 0,
    // Rounded down: one failure of a million is no 100.
    answeredPercent: Math.floor((answered / all) * 1_000) / 10,
  };
}
