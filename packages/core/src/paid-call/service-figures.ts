/**
 * How fast and how surely each service has answered in the last day. A job computes it from the calls, with a bound on how
 * many it looks at, and every process keeps the result in memory: no request reads calls for it.
 */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database } from '../db/connection.ts';
import { weekOf } from '../db/weeks.ts';
import type { Job } from '../jobs/schedule.ts';
import type { BucketTurns } from '../ledger/bucket-turns.ts';
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

/** @param turns says whether the buckets lie on several servers; not given: they do not */
export function measureServices(sql: Database, nowMs: () => number, turns?: BucketTurns): MeasuredServices {
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
        await (turns?.isSpread === true ? measureSpread(sql, nowMs(), turns) : measure());
        await read();
      },
    },
  };
}

/** Calls of a service that took the same time to their end. */
interface Took {
  service: string;
  answered: number;
  failed: number;
  ms: number;
}

/**
 * Measures on a database that is spread: each bucket's calls by the server that has them, and the middle from all of them. A server that is
 * away leaves the others' calls, from which the figures are made all the same.
 *
 * @throws the first failure, once that is done
 */
async function measureSpread(sql: Database, now: number, turns: BucketTurns): Promise<void> {
  const took: Took[] = [];
  const failures: unknown[] = [];
  let asked = 0;
  const look = async (bucket: number | null) => {
    asked += 1;
    took.push(...(await tookIn(sql, bucket ?? 0, now)));
    // No bucket is asked again: each is bounded by itself.
    return 0;
  };
  await turns.each(1, look).catch((error: unknown) => void failures.push(error));
  const at = new Date(now).toISOString();
  const rows = [...Map.groupBy(took, ({ service }) => service)].map(([service, of]) => ({
    service,
    answered: of.reduce((sum, { answered }) => sum + answered, 0),
    failed: of.reduce((sum, { failed }) => sum + failed, 0),
    median_ms: middleOf(of),
  }));
  if (asked > 0)
    await sql.begin(async (transaction) => {
      await transaction`
        insert into service_figures (service, answered, failed, median_ms, measured_at)
        select service, answered, failed, median_ms, ${at}
        from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as f (service text, answered integer, failed integer, median_ms integer)
        order by service
        on conflict (service) do update set answered = excluded.answered, failed = excluded.failed,
          median_ms = excluded.median_ms, measured_at = excluded.measured_at`;
      await transaction`delete from service_figures where measured_at < ${at}`;
    });
  if (failures.length > 0) throw failures[0];
}

/** The last day's calls of a bucket, of each hour a bounded number of them. */
function tookIn(sql: Database, bucket: number, now: number): Promise<Took[]> {
  const hours = Array.from({ length: HOURS }, (_, hour) =>
    new Date(now - (HOURS - hour) * HOUR_MS).toISOString(),
  );
  return sql.begin(async (transaction) => {
    await transaction.unsafe(
      `set local citus.propagate_set_commands = 'local'; set local enable_seqscan = off`,
    );
    const first = weekOf(now - HOURS * HOUR_MS - ID_WITHIN_MS).from;
    const behind = weekOf(now + ID_WITHIN_MS).to;
    return transaction<Took[]>`
      select service, ms, (count(*) filter (where state = 1))::integer as answered, (count(*) filter (where state = 2))::integer as failed
      from unnest(${arrayLiteral(hours)}::text::timestamptz[]) as hour (begins) cross join lateral (
        select service, state, outcome, (extract(epoch from finished_at - created_at) * 1000)::integer as ms from calls
        where bucket = ${bucket} and created_at > begins and created_at <= begins + interval '1 hour'
          and state in (1, 2) and id >= ${first}::uuid and id < ${behind}::uuid
        limit ${CALLS_OF_AN_HOUR}
      ) of_hour
      where state = 1 or outcome = any (${FAULTS}::text[])
      group by service, ms`;
  }) as Promise<Took[]>;
}

/** The time that half of the answered calls took at most; null: none was answered. */
function middleOf(took: readonly Took[]): number | null {
  const half = took.reduce((sum, { answered }) => sum + answered, 0) / 2;
  let passed = 0;
  for (const { ms, answered } of took.toSorted((a, b) => a.ms - b.ms)) {
    passed += answered;
    if (answered > 0 && passed >= half) return ms;
  }
  return null;
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
