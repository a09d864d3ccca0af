import { setTimeout as sleep } from 'node:timers/promises';
import { agrees, type DatabaseClock } from './clock.ts';
import { APPLICATION_NAME, type Database, type Transaction } from './connection.ts';
import type { LiveReplicasNote } from './live-replicas.ts';

const BEAT_MS = 1_000;
/** A process that gives no sign of life for so long has ended, for all who serve with it. */
const SILENT_FOR_MS = 6_000;
/** Who has not looked for so long cannot say whether others were silent. */
const BLIND_AFTER_MS = 3_000;
const FORGOTTEN_AFTER = '1 hour';
/** A little less than that. */
const FORGOTTEN_AFTER_MS = 55 * 60_000;
/** A process whose clock is some seconds off still counts. */
const COUNTED_WITHIN = '1 minute';
/** PostgreSQL ends a session that idles in a transaction by then (connection.ts). */
const STUCK_AFTER = '5 seconds';
/** From this offset to the database's clock on a process leaves the calls to others whose clocks are right. */
const OUT_OF_TIME_MS = 5_000;

export interface Replica {
  /** This process's row in `replicas`; null before the first sign of life. */
  id(): bigint | null;
  /** Why calls are better sent to another process: null, or that the clock here is wrong and one elsewhere is right. */
  notReady(): string | null;
  /** Gives signs of life from now on, and looks for those of others. Rejects when the first one cannot be given. */
  start(): Promise<void>;
  /** Frees the leases of this process at once. */
  stop(): Promise<void>;
}

interface Seen {
  beats: bigint;
  sinceMs: number;
}

/**
 * Tells the processes that share a database of each other, so that what one holds is free soon after it has died. A process
 * is believed dead by what others saw of it, not by clocks: its count of beats did not change for six seconds in which they
 * themselves could ask. One that was believed dead and is not finds out at its next beat and takes a new row; that it ended
 * nothing twice is for each state's own transition to see to. What sessions of lost processes hold is given free as well.
 *
 * @param parts.free frees the leases of a process, in the commit that notes its end
 * @param parts.beaten called after each sign of life that the database has taken
 * @param parts.ended called after others were found to have ended; what they held can be taken
 */
export function createReplica(parts: {
  sql: Database;
  /** Kept right by the heartbeats. */
  clock: DatabaseClock;
  /** Told how many there are. */
  live?: LiveReplicasNote;
  nowMs(): number;
  free(transaction: Transaction, replica: bigint): Promise<void>;
  ended(): Promise<void>;
  beaten?(): void;
  /** Called when the database has forgotten signs of life that it had confirmed: it was replaced by an older one. */
  rewound?(): void;
}): Replica {
  const { sql, clock, nowMs } = parts;
  const seen = new Map<bigint, Seen>();
  const stopping = new AbortController();
  let own: bigint | null = null;
  const rewound = createRewindWatch(sql, () => parts.rewound?.());
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether a process other than this one agrees with the database about the time. */
  let othersAgree = false;
  let loop: Promise<void> = Promise.resolve();
  const now = () => new Date(nowMs()).toISOString();

  /** @returns the database's time, in milliseconds since 1970 */
  async function beat(): Promise<number | null> {
    if (own !== null) {
      const alive = await beatOnce(sql, own, now(), clock.aheadMs);
      await rewound.beaten(own, alive?.beats ?? null);
      if (alive !== undefined) return alive.at.getTime();
    }
    const row = await addReplica(sql, now(), clock.aheadMs);
    own = row?.id ?? null;
    rewound.begun();
    return row?.at.getTime() ?? null;
  }

  /** @returns whether somebody was found to have ended */
  async function look(): Promise<boolean> {
    const others = await sql<{ id: bigint; beats: bigint; ahead_ms: bigint | null }[]>`
      select id, beats, clock_ahead_ms as ahead_ms from replicas where ended_at is null and id <> ${String(own)}`;
    const atMs = performance.now();
    othersAgree = others.some(({ ahead_ms: aheadMs }) => aheadMs !== null && agrees(Number(aheadMs)));
    if (atMs - lookedAtMs > BLIND_AFTER_MS) seen.clear();
    lookedAtMs = atMs;
    let anyEnded = false;
    for (const { id, beats } of others) {
      const before = seen.get(id);
      if (before === undefined || before.beats !== beats) seen.set(id, { beats, sinceMs: atMs });
      else if (atMs - before.sinceMs >= SILENT_FOR_MS && (await endOf(parts, id, beats))) anyEnded = true;
    }
    const alive = new Set(others.map(({ id }) => id));
    for (const id of seen.keys()) if (!alive.has(id)) seen.delete(id);
    parts.live?.counted(alive.size + 1);
    return anyEnded;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sleep(BEAT_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {});
      if (stopping.signal.aborted) return;
      try {
        await clock.measure(beat);
        parts.beaten?.();
        await endStuckSessions(sql);
        if (await look()) await parts.ended();
      } catch {
        // The database is away, so heartbeats of others were not seen. Other queries report the outage.
        seen.clear();
        othersAgree = false;
      }
    }
  }

  return {
    id: () => own,
    notReady: () => (othersAgree ? outOfTime(clock.aheadMs) : null),
    async start() {
      await clock.measure(beat);
      await look();
      loop = run();
    },
    async stop() {
      stopping.abort();
      await loop;
      if (own !== null) await endOf(parts, own, null).catch(() => {});
    },
  };
}

const asText = (aheadMs: number | null) => (aheadMs === null ? null : String(Math.round(aheadMs)));

/** Adds a process to those that live. */
async function addReplica(sql: Database, now: string, aheadMs: number | null) {
  const [row] = await sql<{ id: bigint; at: Date }[]>`
    insert into replicas (started_at, seen_at, clock_ahead_ms, looks_again)
    values (${now}, ${now}, ${asText(aheadMs)}::bigint, true)
    returning id, clock_timestamp() as at`;
  return row;
}

/** Gives one sign of life. @returns undefined when the row is missing, or its end was noted */
async function beatOnce(sql: Database, id: bigint, now: string, aheadMs: number | null) {
  const [row] = await sql<{ at: Date; beats: bigint }[]>`
    update replicas set beats = beats + 1, seen_at = ${now}, clock_ahead_ms = ${asText(aheadMs)}::bigint
    where id = ${String(id)} and ended_at is null returning clock_timestamp() as at, beats`;
  return row;
}

/** Remembers the signs of life that the database has confirmed, and tells when it has forgotten some of them. */
function createRewindWatch(sql: Database, onRewound: () => void) {
  let confirmed = { beats: -1n, atMs: 0 };
  return {
    begun(): void {
      confirmed = { beats: 0n, atMs: performance.now() };
    },
    /** @param beats how many the row has now; null: it is missing, or its end was noted */
    async beaten(id: bigint, beats: bigint | null): Promise<void> {
      if (beats === null ? await isRewound(sql, id, confirmed) : beats <= confirmed.beats) onRewound();
      if (beats !== null) confirmed = { beats, atMs: performance.now() };
    },
  };
}

/** Whether a row that had beaten so often is missing, or has beaten less: others note its end, and forget it later. */
async function isRewound(
  sql: Database,
  id: bigint,
  confirmed: { beats: bigint; atMs: number },
): Promise<boolean> {
  if (performance.now() - confirmed.atMs >= FORGOTTEN_AFTER_MS) return false;
  const [row] = await sql<{ beats: bigint }[]>`select beats from replicas where id = ${String(id)}`;
  return row === undefined || row.beats < confirmed.beats;
}

/** Notes the end of a process whose last beat is this one, and frees its leases, in one commit. */
async function endOf(
  { sql, nowMs, free }: Pick<Parameters<typeof createReplica>[0], 'sql' | 'nowMs' | 'free'>,
  id: bigint,
  beats: bigint | null,
): Promise<boolean> {
  const now = new Date(nowMs()).toISOString();
  return sql.begin(async (transaction) => {
    const ended = await transaction`
      update replicas set ended_at = ${now}
      where id = ${String(id)} and ended_at is null and (${beats === null} or beats = ${String(beats ?? 0n)})`;
    if (ended.count === 0) return false;
    await free(transaction, id);
    await transaction`delete from replicas where ended_at < ${now}::timestamptz - ${FORGOTTEN_AFTER}::interval`;
    return true;
  });
}

/** Counts the processes that serve on this database now, as far as their signs of life tell. */
export async function countReplicas(sql: Database): Promise<number> {
  const [row] = await sql<{ alive: number }[]>`
    select count(*)::int as alive from replicas
    where ended_at is null and seen_at > clock_timestamp() - ${COUNTED_WITHIN}::interval`;
  return row?.alive ?? 0;
}

/**
 * Ends sessions of ours whose process was lost between describing a statement and running it. PostgreSQL waits for its
 * next message as within a statement, so that neither `idle_in_transaction_session_timeout` nor `statement_timeout` ends
 * it, and the locks of its transaction are held until TCP gives up, which takes hours.
 */
async function endStuckSessions(sql: Database): Promise<void> {
  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and usename = current_user and application_name = ${APPLICATION_NAME}
      and state = 'active' and wait_event = 'ClientRead'
      and state_change < clock_timestamp() - ${STUCK_AFTER}::interval`;
}

/** How wrong the clock of this machine is, in a sentence; null: not by as much as matters. */
function outOfTime(aheadMs: number | null): string | null {
  if (aheadMs === null || Math.abs(aheadMs) <= OUT_OF_TIME_MS) return null;
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  return `The clock of this machine is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the database's.`;
}
