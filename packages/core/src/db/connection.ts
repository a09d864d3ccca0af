import postgres from 'postgres';
import { ARRAY_TYPES } from './array-types.ts';
import { createDatabaseClock, type DatabaseClock } from './clock.ts';
import { withDeadline } from './deadline.ts';
import type { DistributionNote } from './distribution-note.ts';
import { createLiveReplicas, type LiveReplicasNote } from './live-replicas.ts';
import { anyHost, createPrimaryFinder, type Endpoint, type Host, onlyHost, type Target } from './primary.ts';
import { createSilence, type Silence } from './silence.ts';
import { createSocketPool, STARTUP_FILLING } from './socket.ts';
import { createWriting, type Writing } from './writing.ts';

export type Database = postgres.Sql<{ bigint: bigint }>;
/** A transaction that somebody else commits. */
export type Transaction = postgres.TransactionSql<{ bigint: bigint }>;

/**
 * Group commits have a connection of their own: a warm one, which nobody else keeps busy. One, because the next batch
 * grows while the last is away: a second flight halves the batches, and measured slower (see docs/performance-notes.md).
 */
export const COMMIT_CONNECTIONS = 1;
const PATIENT_CONNECTIONS = 2;
/** Patient connections are closed after this much idleness: proofs of the books are rare. */
const PATIENT_IDLE_S = 10;

/** By which our sessions are told from those of other programs. */
export const APPLICATION_NAME = 'farebox';

/** How long a connection may take to open, TLS included. */
const CONNECT_TIMEOUT_MS = 3_000;
/** The driver's own bound for that, in seconds. Sockets have ended by then (`socket.ts`). */
const DRIVER_TIMEOUT_S = 60;
/** A server ends a session that holds its locks and does nothing, whatever became of the process behind it. */
const IDLE_IN_TRANSACTION_MS = 5_000;

/** For how long a pool's user waits. The database gives up first where it can, so that its reason is heard. */
interface Patience {
  /** On our side. */
  deadlineMs: number;
  /** PostgreSQL's `statement_timeout`. */
  statementMs: number;
  /** PostgreSQL's `lock_timeout`. */
  lockMs: number;
  /** Seconds after which an idle connection is closed; absent: never. */
  idleS?: number;
}

/** A caller learns within five seconds that the database does not answer. */
const REQUEST: Patience = { deadlineMs: 4_000, statementMs: 3_500, lockMs: 2_000 };
/** A batch is sent again on a new connection while its callers still wait; its statement waits for no lock. */
const COMMIT: Patience = { deadlineMs: 3_000, statementMs: 2_800, lockMs: 500 };
/**
 * How batches are planned: once, because planning anew takes longer than running, and by keys alone, because a plan that is
 * made while the tables are empty is kept for when they are not. Set here, it costs a batch nothing.
 */
const COMMIT_PLANS = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
};
/** Which server a statement is for is known when its bucket is: a plan for any bucket cannot be made. */
const SPREAD_PLANS = { ...COMMIT_PLANS, plan_cache_mode: 'force_custom_plan' };
/** PostgreSQL counts a question about open calls as one about every week, and would compile it for longer than it takes to answer. */
const REQUEST_PLANS = { jit: 'off' };
/** Proofs of the books and migrations. */
const PATIENT: Patience = {
  deadlineMs: 900_000,
  statementMs: 890_000,
  lockMs: 5_000,
  idleS: PATIENT_IDLE_S,
};

/** A server among several is asked three times a second what it is. */
const ASKING: Patience = { deadlineMs: 900, statementMs: 800, lockMs: 500 };

/** The ways to the database. */
export interface Pools {
  /** For requests and jobs: a query has four seconds. */
  sql: Database;
  /** For group commits alone. */
  commits: Database;
  /**
   * For begins and ends of calls that credits pay, on any server of a database that is spread: each leads it to the one that has the
   * bucket. Null: they go over `commits`.
   */
  hot: Database | null;
  /** For what reads all there is, such as a proof of the books. Opened when it is needed, and given back. */
  patient: Database;
  /** Whether the database answers. */
  silence: Silence;
  /** Whether the database takes writes. */
  writing: Writing;
  /** The time by the database's clock, kept right by the heartbeats of `replicas.ts`. */
  clock: DatabaseClock;
  /** The processes that serve on it, as the heartbeats see them. */
  replicas: LiveReplicasNote;
  /** Whether the database is spread over servers: known once it was opened (`open.ts`). */
  distribution: DistributionNote;
}

/**
 * Opens the pools. Where the address names several hosts, all of them lead to the one that takes writes.
 *
 * @param url `postgres://…`; several hosts may be given, separated by commas
 * @param maxConnections of those for requests and commits together
 * @param given.machineMs the clock of a machine, in milliseconds since 1970; of this one unless given
 * @param given.passwordNow asked whenever a connection opens; null, or not given: the one in the address
 * @param given.hotHosts servers of a spread database with commas between them, of which any is asked to begin and end calls
 */
export function connectPools(
  url: string,
  maxConnections: number,
  {
    machineMs,
    passwordNow,
    hotHosts = null,
  }: {
    machineMs?: () => number;
    passwordNow?: (() => string | null) | undefined;
    hotHosts?: string | null;
  } = {},
): Pools {
  const silence = createSilence();
  const writing = createWriting();
  const { address, endpoints } = readUrl(url, passwordNow);
  const led = { ...address, target: primaryOf(address, endpoints) };
  const open = (max: number, patience: Patience, settings = {}, to: Address = led) => {
    // Whoever only reads says nothing about writes that work, nor does another server about the one that takes all the rest.
    const ended = (error: unknown) => {
      if (error !== null) writing.failed(error);
      else if (patience === COMMIT && to === led) writing.worked();
    };
    return openPool(to, Math.max(1, max), patience, { silence, ended, settings });
  };
  const any = hotHosts === null ? null : readUrl(atHosts(url, hotHosts), passwordNow);
  return {
    sql: open(maxConnections - COMMIT_CONNECTIONS, REQUEST, REQUEST_PLANS),
    commits: open(COMMIT_CONNECTIONS, COMMIT, COMMIT_PLANS),
    hot:
      any === null
        ? null
        : open(COMMIT_CONNECTIONS, COMMIT, SPREAD_PLANS, { ...any.address, target: anyHost(any.endpoints) }),
    patient: open(PATIENT_CONNECTIONS, PATIENT),
    silence,
    writing,
    clock: createDatabaseClock(machineMs),
    replicas: createLiveReplicas(),
    distribution: { isDistributed: false },
  };
}

/** The database's time, in milliseconds since 1970. @throws the database's error */
export async function databaseMs(sql: Database): Promise<number | null> {
  const [row] = await sql<{ at: Date }[]>`select clock_timestamp() as at`;
  return row?.at.getTime() ?? null;
}

/** Ends all connections; what is under way has so many seconds. */
export async function endPools({ sql, commits, hot, patient }: Pools, timeoutSeconds: number): Promise<void> {
  await Promise.all([sql, commits, hot, patient].map((pool) => pool?.end({ timeout: timeoutSeconds })));
}

/**
 * Whether PostgreSQL answered and would not do it: not that it was gone, going (57P), cut off (08), full (53), or too slow
 * for its `statement_timeout` (57014), when asking for half of it would only ask more often.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !/^(57|08|53)/.test(error.code);
}

/** Whether a row with the same key was there already. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '23505';
}

/** Whether a row has no partition to go to: PostgreSQL tells it as a check that failed, of a constraint without a name. */
export function isNoPartition(error: unknown): boolean {
  return (
    error instanceof postgres.PostgresError && error.code === '23514' && error.constraint_name === undefined
  );
}

/** Whether a function was called that is not there. */
export function isNoFunction(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '42883';
}

/** Whether the database's user may not do what was asked. */
export function isNotAllowed(error: unknown): error is postgres.PostgresError {
  return error instanceof postgres.PostgresError && error.code === '42501';
}

/** Whether a transaction of one snapshot found a row changed by another one since. */
export function isSerializationFailure(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '40001';
}

/** Whether a lock was not to be had within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '55P03';
}

/** Whether two transactions waited for each other, and this one was ended. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '40P01';
}

/**
 * Opens a separate pool with long time-outs, for programs without a waiting caller. `bigint` columns come as JavaScript `bigint`.
 *
 * @param url `postgres://…`; several hosts may be given, separated by commas
 * @param maxConnections the size of the pool
 */
export function connectDatabase(url: string, maxConnections: number): Database {
  const { address, endpoints } = readUrl(url);
  return openPool({ ...address, target: primaryOf(address, endpoints) }, maxConnections, PATIENT, UNHEARD);
}

/** The settings of pools of whose state nobody asks. */
const UNHEARD = { silence: createSilence(), ended: () => {}, settings: {} };

/** The address of the database, taken apart. */
interface Address {
  /** The form that the driver reads. */
  plainUrl: string;
  target: Target;
  tls: Parameters<typeof createSocketPool>[0]['tls'];
  /** In place of the password that stands in the address. */
  passwordNow?: (() => string | null) | undefined;
}

/** Asks a server what it is, by a connection of its own. */
function hostOf(address: Omit<Address, 'target'>, endpoint: Endpoint): Host {
  let pool: Database | null = null;
  return {
    endpoint,
    async ask() {
      pool ??= openPool({ ...address, target: onlyHost(endpoint) }, 1, ASKING, UNHEARD);
      const [row] = await pool<{ standby: boolean; read_only: string; file: string | null }[]>`
        select pg_is_in_recovery() as standby, current_setting('default_transaction_read_only') as read_only,
          case when pg_is_in_recovery() then null else pg_walfile_name(pg_current_wal_lsn()) end as file`;
      // The first eight digits of a log file's name are the timeline.
      const takesWrites = row !== undefined && !row.standby && row.read_only === 'off' && row.file !== null;
      return { timeline: takesWrites ? Number.parseInt(row.file?.slice(0, 8) ?? '', 16) : null };
    },
    hangUp() {
      void pool?.end({ timeout: 0 });
      pool = null;
    },
  };
}

function openPool(
  address: Address,
  maxConnections: number,
  patience: Patience,
  {
    silence,
    ended,
    settings,
  }: {
    silence: Silence;
    ended(error: unknown): void;
    settings: Record<string, string>;
  },
): Database {
  const { plainUrl, target, tls, passwordNow } = address;
  const sockets = createSocketPool({
    target,
    tls,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    heard: silence.heard,
  });
  const options = {
    max: maxConnections,
    ...(passwordNow?.() == null ? {} : { password: () => passwordNow() ?? '' }),
    types: { bigint: postgres.BigInt, ...ARRAY_TYPES },
    fetch_types: false,
    onnotice: () => {},
    connect_timeout: DRIVER_TIMEOUT_S,
    ...(patience.idleS === undefined ? {} : { idle_timeout: patience.idleS }),
    // Whoever waits has a deadline of its own: half a second is the longest pause before the next try (in seconds).
    backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, 0.5),
    ssl: false,
    // Not in the driver's types.
    socket: sockets.open,
    connection: {
      application_name: APPLICATION_NAME,
      statement_timeout: patience.statementMs,
      lock_timeout: patience.lockMs,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      TimeZone: 'UTC',
      ...settings,
      ...STARTUP_FILLING,
    },
  };
  return withDeadline(postgres(plainUrl, options) as unknown as Database, {
    deadlineMs: patience.deadlineMs,
    late(sinceMs) {
      if (sockets.dropSilentSince(sinceMs) > 0) silence.fellSilent();
    },
    ended,
  });
}

/** The same address with other hosts. */
function atHosts(url: string, hosts: string): string {
  return url.replace(/^([^/]*\/\/(?:[^@/?]*@)?)[^/?]*/, (_, before: string) => `${before}${hosts}`);
}

/**
 * Takes from a URL what the sockets need to know. `sslmode` means what it means to libpq, but that `require` and weaker
 * ones do not look at the certificate.
 */
function readUrl(
  url: string,
  passwordNow?: Address['passwordNow'],
): { address: Omit<Address, 'target'>; endpoints: readonly Endpoint[] } {
  const match = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?]*)(.*)$/.exec(url);
  const [, before = '', hosts = '', after = ''] = match ?? [];
  if (hosts === '')
    throw new Error('the address of the database is not of the form postgres://user@host/name');
  const endpoints = hosts.split(',').map((each): Endpoint => {
    const { hostname, port } = new URL(`http://${each.includes('%2F') ? 'localhost' : each}`);
    if (each.includes('%2F')) {
      const [folder = '', suffix = '5432'] = decodeURIComponent(each).split(':');
      return { path: `${folder}/.s.PGSQL.${suffix}` };
    }
    return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port === '' ? 5_432 : port) };
  });
  const [path = '', query = ''] = after.split('?');
  const settings = new URLSearchParams(query);
  const mode = settings.get('sslmode') ?? settings.get('ssl') ?? 'disable';
  for (const name of ['sslmode', 'ssl', 'sslnegotiation', 'target_session_attrs']) settings.delete(name);
  const rest = settings.toString();
  const address: Omit<Address, 'target'> = {
    passwordNow,
    plainUrl: `${before}${hosts}${path}${rest === '' ? '' : `?${rest}`}`,
    tls: ['disable', 'false'].includes(mode)
      ? null
      : {
          optional: mode === 'prefer' || mode === 'allow',
          options: { rejectUnauthorized: !['prefer', 'allow', 'require'].includes(mode) },
        },
  };
  return { address, endpoints };
}

/** Leads to the only server, or to the one of several that takes writes. */
function primaryOf(address: Omit<Address, 'target'>, endpoints: readonly Endpoint[]): Target {
  const [first] = endpoints;
  if (first === undefined) throw new Error('the address of the database names no host');
  return endpoints.length === 1
    ? onlyHost(first)
    : createPrimaryFinder(
        endpoints.map((endpoint) => hostOf(address, endpoint)),
        CONNECT_TIMEOUT_MS,
      );
}
