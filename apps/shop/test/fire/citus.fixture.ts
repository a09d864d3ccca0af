/** A database of its own on a cluster of Citus that is there: `CITUS_URL` leads to any database of its coordinator. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import {
  connectDatabase,
  connectPools,
  type Database,
  endPools,
  type Pools,
} from '../../../../packages/core/src/db/connection.ts';
import { learnDistribution } from '../../../../packages/core/src/db/distribution.ts';
import { openGrants } from '../../../../packages/core/src/keys/grant.ts';
import { programOf } from '../programs.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { until } from './until.fixture.ts';

const { CITUS_URL } = process.env;
export const withoutCitus: string | false =
  CITUS_URL === undefined ? 'CITUS_URL names no coordinator of Citus' : false;

/** The advisory lock of whoever has the cluster: a test that kills a worker would break off another one's. */
const CLUSTER_LOCK = 8_499;
const BOOKS = programOf('commands/books');
const COMMAND = join(import.meta.dirname, '../../src/commands/distribute.ts');

export interface Worker {
  /** Kills its PostgreSQL at once, with all its sessions. */
  kill(): void;
  start(): Promise<void>;
}

export interface SpreadDatabase {
  url: string;
  sql: Database;
  /** All workers, with commas between them. */
  hotHosts: string;
  workers: readonly Worker[];
  /**
   * Runs the command.
   *
   * @param killAt ends it with SIGKILL once it has said a line that begins so
   * @returns what it said
   */
  distribute(killAt?: string): Promise<string>;
  /** Runs the command, and opens pools that know of it. They end with the database. */
  spread(connections: number): Promise<Pools>;
  close(): Promise<void>;
}

interface Node {
  nodename: string;
  nodeport: number;
  groupid: number;
}

/** Opens it once nobody else has the cluster, which is then the caller's until it is closed. */
export async function openSpreadDatabase(): Promise<SpreadDatabase> {
  const turn = postgres(CITUS_URL ?? '', { max: 1, onnotice: () => {} });
  await turn`select pg_advisory_lock(${CLUSTER_LOCK})`;
  const name = `farebox_${randomUUID().slice(0, 8)}`;
  const given = new URL(CITUS_URL ?? '');
  const at = ({ nodename, nodeport }: Node, database: string) => {
    const url = new URL(given);
    [url.hostname, url.port, url.pathname] = [nodename, String(nodeport), `/${database}`];
    return String(url);
  };
  const on = async <T>(url: string, ask: (sql: Database) => Promise<T>) => {
    const sql = connectDatabase(url, 1);
    return ask(sql).finally(() => sql.end({ timeout: 1 }));
  };
  const nodes = await on(
    String(given),
    (sql) =>
      sql<
        Node[]
      >`select nodename, nodeport, groupid from pg_dist_node where noderole = 'primary' order by groupid`,
  );
  const own = given.pathname.slice(1);
  for (const node of nodes) {
    await on(at(node, own), (sql) => sql.unsafe(`create database ${name}`));
    await on(at(node, name), (sql) => sql`create extension citus`);
  }
  const [coordinator, ...others] = nodes;
  if (coordinator === undefined || others.length < 2)
    throw new Error('CITUS_URL names no coordinator with two workers');
  const url = at(coordinator, name);
  const sql = connectDatabase(url, 4);
  await sql`select citus_set_coordinator_host(${coordinator.nodename}, ${coordinator.nodeport})`;
  for (const { nodename, nodeport } of others) await sql`select citus_add_node(${nodename}, ${nodeport})`;
  const workers = await Promise.all(others.map((node) => workerAt(at(node, name), on)));
  const opened: Pools[] = [];
  return {
    url,
    sql,
    hotHosts: others.map(({ nodename, nodeport }) => `${nodename}:${nodeport}`).join(','),
    workers,
    distribute: (killAt) => runCommand(url, killAt),
    async spread(connections) {
      await runCommand(url);
      const pools = connectPools(url, connections);
      opened.push(pools);
      await learnDistribution(pools);
      return pools;
    },
    async close() {
      await Promise.all(opened.map((pools) => endPools(pools, 1)));
      await sql.end({ timeout: 1 });
      for (const node of nodes) {
        await on(at(node, name), rollBackPrepared);
        // Citus looks into it from the other servers meanwhile.
        await until('the database to be dropped', () =>
          on(at(node, own), (session) => session.unsafe(`drop database if exists ${name} with (force)`)).then(
            () => true,
            (error: unknown) => {
              if (error instanceof Error && /is being accessed by other users/.test(error.message))
                return false;
              throw error;
            },
          ),
        );
      }
      await turn.end();
    },
  };
}

/** Makes keys whose accounts lie on both workers, one on each. */
export async function keysOnBothWorkers(
  url: string,
  of: { buckets: number; amountMicros: bigint },
): Promise<string[]> {
  const pools = connectPools(url, 3);
  const make = openGrants(pools, Date.now, { accountBuckets: of.buckets });
  const keys = new Map<number, string>();
  try {
    await until('accounts on both workers', async () => {
      const { apiKey } = await make({ amountMicros: of.amountMicros, label: 'test', note: 'test' });
      const [row] = await pools.sql<{ groupid: number }[]>`
        select p.groupid from pg_dist_placement p
        where p.shardid = get_shard_id_for_distribution_column('ledger_accounts', (
          select bucket from api_keys where digest = sha256(convert_to(${apiKey}, 'UTF8'))))`;
      assert(row !== undefined);
      if (row.groupid !== 0) keys.set(row.groupid, apiKey);
      return keys.size === 2;
    });
  } finally {
    await endPools(pools, 1);
  }
  return [...keys.values()];
}

/** Runs `npm run books` on a database. @returns what it said; its exit code is 0 */
export function runBooks(environment: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', BOOKS], {
    env: { ...SURROUNDINGS, FAREBOX_SECRET: 'a-secret-of-the-tests-and-of-nothing-else', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += bytes));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(said);
      else reject(new Error(`the proof ended with ${code}: ${said}`));
    });
  });
}

/** Rolls back what a worker that was killed had prepared for a commit of several servers: a database is not dropped with it. */
async function rollBackPrepared(session: Database): Promise<void> {
  const prepared = await session<{ gid: string }[]>`
    select gid from pg_prepared_xacts where database = current_database()`;
  for (const { gid } of prepared) await session.unsafe(`rollback prepared '${gid}'`);
}

/** A PostgreSQL of this machine, by the files of its own. */
async function workerAt(
  url: string,
  on: <T>(url: string, ask: (sql: Database) => Promise<T>) => Promise<T>,
): Promise<Worker> {
  const folder = await on(url, async (sql) => {
    const [row] = await sql<{ folder: string }[]>`select current_setting('data_directory') as folder`;
    return row?.folder ?? '';
  });
  const { uid, gid } = statSync(folder);
  const program = /^(\S+)/.exec(readFileSync(join(folder, 'postmaster.opts'), 'utf8'))?.[1] ?? '';
  return {
    kill() {
      const [pid = ''] = readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n');
      process.kill(Number(pid), 'SIGKILL');
    },
    async start() {
      // Sessions of the one that was killed hold its memory until they have heard of it.
      await until('the worker to start', () => {
        const { status } = spawnSync(
          join(program, '../pg_ctl'),
          ['-D', folder, '-l', join(folder, 'again.log'), '-w', 'start'],
          { uid, gid, cwd: folder, stdio: 'ignore' },
        );
        return status === 0;
      });
    },
  };
}

function runCommand(url: string, killAt?: string): Promise<string> {
  const args = ['--disable-warning=ExperimentalWarning', COMMAND, '--preview', '--shards', '4'];
  const child = spawn(process.execPath, args, {
    env: { ...SURROUNDINGS, DATABASE_URL: url, FAREBOX_SECRET: 'a secret of the tests of Citus' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => {
      said += bytes;
      if (killAt !== undefined && said.includes(killAt)) child.kill('SIGKILL');
    });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0 || killAt !== undefined) resolve(said);
      else reject(new Error(`the command ended with ${code}: ${said}`));
    });
  });
}
