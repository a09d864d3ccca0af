/** For tests: a PostgreSQL of its own that is ended as a crash ends it, and another one that follows it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { findBinaries, prepareEmbeddedPostgres } from '../../../packages/process/src/embedded-postgres.ts';
import { freePort } from '../../../packages/process/src/free-port.ts';
import { makeDatabaseFolder } from '../../../scripts/database-folder.ts';

const DATABASE = 'farebox';
const READY_WITHIN_MS = 60_000;
/**
 * What is committed without waiting for the disk stays in memory until something else is committed. The system outlives every kill, and
 * so does what PostgreSQL has handed to it: waiting for the disk would only make a start slow, which has every file written.
 */
const SETTINGS = {
  fsync: 'off',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '32MB',
  max_connections: '40',
  wal_writer_delay: '10s',
  max_wal_senders: '4',
  wal_level: 'replica',
  autovacuum: 'off',
  jit: 'off',
  log_min_messages: 'fatal',
};

type Settings = Readonly<Record<string, string>>;

export class MortalPostgres {
  readonly url: string;
  readonly #home: string;
  readonly #port: number;
  readonly #binary: string;
  #process: ChildProcess | undefined;
  #hasDatabase = false;

  private constructor(home: string, { port, binary }: { port: number; binary: string }) {
    this.#home = home;
    this.#port = port;
    this.#binary = binary;
    this.url = `postgres://farebox:${readPassword(home)}@127.0.0.1:${port}/${DATABASE}`;
  }

  /** Makes a server with an empty database, and starts nothing. */
  static async make(): Promise<MortalPostgres> {
    const folder = makeDatabaseFolder(2);
    await prepareEmbeddedPostgres(folder);
    const { postgres: binary } = await findBinaries();
    return new MortalPostgres(join(folder, 'postgres'), { port: await freePort(), binary });
  }

  /** Starts it, after a crash too. Resolves when it takes connections. */
  async start(settings: Settings = {}): Promise<void> {
    const args = Object.entries({ ...SETTINGS, ...settings, port: String(this.#port) });
    const command = [
      '-D',
      join(this.#home, 'data'),
      ...args.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ];
    for (const sinceMs = performance.now(); ; ) {
      // Sessions of the one before may still be there: then this one ends at once.
      if (this.#process === undefined || this.#process.exitCode !== null)
        this.#process = this.#spawn(command);
      if (this.#isReady(this.#process)) break;
      if (performance.now() - sinceMs > READY_WITHIN_MS) throw new Error('PostgreSQL did not start');
      await sleep(5);
    }
    await this.#assertDatabase();
  }

  /** Ends it as a crash does, with all of its sessions in the middle of what they do: what it has only in memory is gone. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    const sessions = childrenOf(child);
    child.kill('SIGKILL');
    for (const session of sessions) {
      try {
        process.kill(session, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
    await gone;
  }

  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGINT');
    await gone;
  }

  /** Copies this one, which must be stopped: the copy will follow it under a name. */
  async follower(name: string): Promise<MortalPostgres> {
    const home = join(makeDatabaseFolder(2), 'postgres');
    mkdirSync(home, { mode: 0o700 });
    cpSync(this.#home, home, { recursive: true });
    const data = join(home, 'data');
    // A copy does not keep it.
    chmodSync(data, 0o700);
    writeFileSync(join(data, 'standby.signal'), '');
    const from = `host=127.0.0.1 port=${this.#port} user=farebox password=${readPassword(home)} application_name=${name}`;
    writeFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${from}'\n`);
    return new MortalPostgres(home, { port: await freePort(), binary: this.#binary });
  }

  /** Makes a follower the one that takes writes. */
  async promote(): Promise<void> {
    const sql = postgres(this.url, { max: 1, onnotice: () => {} });
    try {
      await sql`select pg_promote()`;
    } finally {
      await sql.end();
    }
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(join(this.#home, '..'), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  #spawn(args: readonly string[]): ChildProcess {
    const [command = '', ...rest] = mayUnshare()
      ? ['unshare', '--user', this.#binary, ...args]
      : [this.#binary, ...args];
    return spawn(command, rest, { stdio: 'ignore' });
  }

  /** Whether it takes connections, as it says in the file that PostgreSQL keeps for `pg_ctl`. */
  #isReady({ pid }: ChildProcess): boolean {
    try {
      const lines = readFileSync(join(this.#home, 'data/postmaster.pid'), 'utf8').split('\n');
      return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
    } catch {
      return false;
    }
  }

  async #assertDatabase(): Promise<void> {
    if (this.#hasDatabase) return;
    const address = new URL(this.url);
    address.pathname = '/postgres';
    const sql = postgres(address.toString(), { max: 1, connect_timeout: 60, onnotice: () => {} });
    const [found] = await sql`select 1 from pg_database where datname = ${DATABASE}`;
    if (found === undefined) await sql.unsafe(`create database ${DATABASE}`);
    await sql.end();
    this.#hasDatabase = true;
  }
}

let isRootOfItsOwn: boolean | null = null;
/** PostgreSQL refuses to run as root, but not as the root of a user namespace of its own. */
function mayUnshare(): boolean {
  isRootOfItsOwn ??= process.getuid?.() === 0 && spawnSync('unshare', ['--user', 'true']).status === 0;
  return isRootOfItsOwn;
}

/** The sessions and helpers of a server, where the system tells. */
function childrenOf({ pid }: ChildProcess): number[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').filter(Boolean).map(Number) : [];
}

function readPassword(home: string): string {
  return readFileSync(join(home, 'password'), 'utf8').trim();
}
