/** Sees whether the database is the one that a server saw last, and remembers that it was not. */
import type { Database, Transaction } from '../db/connection.ts';

/** Why selling was shut, as it is stored. */
type ShutReason = 'restored' | 'cluster' | 'timeline' | 'rewound';

/** A recovery that is not over: nothing is sold. */
export interface OpenRecovery {
  id: bigint;
  reason: ShutReason;
  /** The newest time of which the database knows anything, in milliseconds since 1970. */
  knownUntilMs: number;
  /** When a server first saw it, in milliseconds since 1970. */
  foundAtMs: number;
}

/** Accounts that were opened in the forgotten time had numbers, and nobody may get one of them. */
const SKIPPED_ACCOUNTS = 1_000_000;

interface Ran {
  cluster: string;
  timeline: number;
}

/** Where the database runs; null: its user may not ask. */
async function whereItRuns(on: Database | Transaction): Promise<Ran | null> {
  // The first eight digits of a log file's name are the timeline.
  const [row] = await on<{ cluster: string | null; file: string | null }[]>`
    select case when has_function_privilege('pg_control_system()', 'execute')
        then (select system_identifier::text from pg_control_system()) end as cluster,
      pg_walfile_name(pg_current_wal_lsn()) as file`;
  if (row === undefined || row.cluster === null || row.file === null) return null;
  return { cluster: row.cluster, timeline: Number.parseInt(row.file.slice(0, 8), 16) };
}

/** The recovery that is not over; null: the database is as new as the world. */
export async function openRecoveryIn(on: Database | Transaction): Promise<OpenRecovery | null> {
  const [row] = await on<{ id: bigint; reason: ShutReason; known_until: Date; found_at: Date }[]>`
    select id, reason, known_until, found_at from recoveries where opened_at is null`;
  if (row === undefined) return null;
  const { id, reason, known_until: knownUntil, found_at: foundAt } = row;
  return { id, reason, knownUntilMs: knownUntil.getTime(), foundAtMs: foundAt.getTime() };
}

/**
 * Shuts, unless it is shut already. What the database knows until then is read before this process writes anything else, by
 * indexes: a request's time is too short to read a year of transfers.
 *
 * @param options.ownReplica this process's row, which says nothing of the time before; null: it has none
 */
export async function shutIn(
  transaction: Transaction,
  reason: ShutReason,
  { ownReplica, nowMs }: { ownReplica: bigint | null; nowMs: number },
): Promise<void> {
  const now = new Date(nowMs).toISOString();
  const shut = await transaction`
    insert into recoveries (found_at, reason, known_until)
    select ${now}, ${reason}, least(${now}::timestamptz, coalesce(greatest(
      (select max(seen_at) from replicas where id is distinct from ${ownReplica === null ? null : String(ownReplica)}::bigint),
      (select max(begun_at) from calls where begun_at is not null),
      (select max(created_at) from ledger_transfers where code <> 'call')), ${now}::timestamptz))
    on conflict do nothing returning id`;
  if (shut.count === 0) return;
  await transaction`select setval('ledger_account_ids', nextval('ledger_account_ids') + ${SKIPPED_ACCOUNTS})`;
}

/**
 * Compares where the database runs with where a server saw it last, and shuts if that is another place.
 *
 * @param options.hasMark whether `npm run restore` has made it
 * @param options.lives whether this process has served on it all the time: then another server was promoted, and nothing is lost
 */
export async function seeWhereItRuns(
  sql: Database,
  options: { hasMark: boolean; lives: boolean; ownReplica: bigint | null; nowMs: number },
): Promise<void> {
  const [known] = await sql<Ran[]>`select cluster, timeline from database_lineage`;
  const runs = await whereItRuns(sql);
  const isSame = runs === null || (known?.cluster === runs.cluster && known.timeline === runs.timeline);
  if (isSame && !options.hasMark) return;
  await sql.begin(async (transaction) => {
    const now = await whereItRuns(transaction);
    const [before] = await transaction<Ran[]>`
      select cluster, timeline from database_lineage for update`;
    if (options.hasMark) await shutIn(transaction, 'restored', options);
    if (now === null) return;
    if (before === undefined) {
      await transaction`
        insert into database_lineage (cluster, timeline) values (${now.cluster}, ${now.timeline})
        on conflict (one) do nothing`;
      return;
    }
    const moved =
      before.cluster !== now.cluster ? 'cluster' : before.timeline !== now.timeline ? 'timeline' : null;
    if (moved === null) return;
    if (!options.lives) await shutIn(transaction, moved, options);
    await transaction`update database_lineage set cluster = ${now.cluster}, timeline = ${now.timeline}`;
  });
}

const WHY: Readonly<Record<ShutReason, string>> = {
  restored: 'The database was restored from a backup',
  cluster: 'The database runs in another PostgreSQL cluster than before, as after a restore',
  timeline: 'The database was restored to a point in time, or another server was promoted while nobody sold',
  rewound:
    'The database has forgotten what it had confirmed, as after a restore or a promotion that lost commits',
};

/** The state in one sentence for people. */
export function inWords({ reason, knownUntilMs }: Pick<OpenRecovery, 'reason' | 'knownUntilMs'>): string {
  const until = new Date(knownUntilMs).toISOString();
  return `${WHY[reason]}, and knows nothing after ${until}: nothing is sold and no job runs until npm run recover has put right what was sold since.`;
}
