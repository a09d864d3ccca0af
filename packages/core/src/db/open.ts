import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startEmbeddedPostgres, stopEmbeddedPostgres } from '@farebox/process/embedded-postgres';
import { isAlive } from '@farebox/process/is-alive';
import { StartError } from '@farebox/process/start-error';
import { connectPools, databaseMs, endPools, type Pools } from './connection.ts';
import { learnDistribution } from './distribution.ts';
import { type KeeperReport, keepEmbeddedPostgres } from './embedded-keeper.ts';
import { migrate } from './migrate.ts';
import { assertSettingsPass } from './session-settings.ts';
import type { StartPatience } from './start-patience.ts';

/** At the end, for what is still under way. */
const STATEMENTS_END_WITHIN_S = 3;

/** The process was told to stop before the database was open. */
export class OpeningStopped extends Error {
  constructor(why: string) {
    super(`told to stop before the database was open: ${why}`);
  }
}

export interface OpenDatabase extends Pools {
  /** Settles when the embedded server has ended and cannot be started again: with why, in a line. Else never. */
  lost: Promise<string>;
  /** Ends our connections, and the embedded server if this process started it or, being the server, took it over. */
  close(): Promise<void>;
}

/**
 * Opens the configured database, or the embedded one, and brings its schema up to date.
 *
 * @param options.exclusive for the server: refuses a data folder on which another server runs. A command that only
 *   looks leaves it out, and then uses an embedded server that is already running.
 * @param options.report told when the embedded server has ended, and when it is back. Who gives it has the server kept
 *   running for as long as this is open.
 * @param options.patience for whoever can wait for a database that is not there yet
 * @param options.stopped settles with a reason when the process is told to stop
 * @throws OpeningStopped when that came first: nothing of ours is left behind then
 * @throws StartError when the data folder is another server's, and when what stands before PostgreSQL shares its sessions
 */
export async function openDatabase(
  config: {
    databaseUrl: string | null;
    databaseMaxConnections: number;
    dataDir: string;
    /** The password of the configured database, whenever a connection opens; the one of its address unless given. */
    passwordNow?: () => string | null;
    /** Servers of a spread database that begin and end calls. */
    databaseHotHosts?: string | null;
  },
  options: {
    exclusive: boolean;
    report?: (report: KeeperReport) => void;
    patience?: StartPatience;
    stopped?: Promise<string>;
  },
): Promise<OpenDatabase> {
  const unlock = options.exclusive && config.databaseUrl === null ? lock(config.dataDir) : () => {};
  if (
    !options.exclusive &&
    config.databaseUrl === null &&
    !existsSync(join(config.dataDir, 'postgres', 'password'))
  ) {
    throw new StartError(
      `there is no database below ${config.dataDir}. Set FAREBOX_DATA_DIR or DATABASE_URL, or start once.`,
    );
  }
  const embedded = config.databaseUrl === null ? await startEmbeddedPostgres(config.dataDir) : null;
  // One that a killed server has left behind is ours now, and ends with us.
  if (options.exclusive && embedded?.started === false)
    embedded.stop = () => stopEmbeddedPostgres(config.dataDir);
  const keeper =
    embedded === null || options.report === undefined
      ? null
      : keepEmbeddedPostgres(config.dataDir, embedded, options.report);
  const pools = connectPools(config.databaseUrl ?? embedded?.localUrl ?? '', config.databaseMaxConnections, {
    passwordNow: config.databaseUrl === null ? undefined : config.passwordNow,
    hotHosts: config.databaseHotHosts ?? null,
  });
  const close = async () => {
    await endPools(pools, STATEMENTS_END_WITHIN_S);
    await (keeper ?? embedded)?.stop();
    unlock();
  };
  try {
    const bringUpToDate = async () => {
      // Migrations wait for a quarter of an hour: only a database that answers is asked for them.
      await assertSettingsPass(pools.sql);
      await pools.clock.measure(() => databaseMs(pools.sql));
      await migrate(pools.patient);
      await learnDistribution(pools);
      // A command may be the one that spreads it.
      if (options.exclusive && pools.hot !== null && !pools.distribution.isDistributed)
        throw new StartError(
          'DATABASE_HOT_HOSTS names servers of a database that is spread, and this one is not: take it away, or run `npm run database:distribute` first.',
        );
    };
    const stopped = options.stopped?.then((why) => Promise.reject(new OpeningStopped(why)));
    const upToDate = options.patience === undefined ? bringUpToDate() : options.patience.take(bringUpToDate);
    await Promise.race(stopped === undefined ? [upToDate] : [stopped, upToDate]);
    return { ...pools, lost: keeper?.lost ?? new Promise<never>(() => {}), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The id of another server that runs on a folder; null when there is none. A mark of a dead process counts for nothing. */
export function serverOn(dataDir: string): number | null {
  const file = markIn(dataDir);
  if (!existsSync(file)) return null;
  const pid = Number(readFileSync(file, 'utf8'));
  return pid !== process.pid && isAlive(pid) ? pid : null;
}

function markIn(dataDir: string): string {
  return join(dataDir, 'server.pid');
}

/** Marks the folder as ours for as long as this process lives. */
function lock(dataDir: string): () => void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const other = serverOn(dataDir);
  if (other !== null) {
    throw new StartError(
      `another server (pid ${other}) runs on ${dataDir}; set FAREBOX_DATA_DIR, or DATABASE_URL for replicas`,
    );
  }
  const file = markIn(dataDir);
  writeFileSync(file, String(process.pid));
  return () => rmSync(file, { force: true });
}
