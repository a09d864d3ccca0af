/** A PostgreSQL whose log is archived to a folder, and that is restored to a point in time from a copy and that log. */
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../../packages/process/src/embedded-postgres.ts';
import { copyEmbeddedPostgres } from '../../../../packages/process/src/postgres-copy.ts';
import { until } from './until.fixture.ts';

const CONNECTIONS = 60;
const POOL = 8;
const POINT = 'yesterday';

export interface ArchivedDatabase {
  pools: Pools & { url: string };
  /** Copies the files of the database while it serves, as `pg_basebackup` does. */
  backUp(): Promise<void>;
  /** The point in time to which the database will be restored. */
  markPoint(): Promise<void>;
  /** Ends the database, and starts another one as it was at that point. */
  restore(): Promise<Pools & { url: string }>;
  close(): Promise<void>;
}

export async function startArchivedDatabase(): Promise<ArchivedDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-archived-'));
  const log = join(folder, 'log');
  mkdirSync(log);
  // PostgreSQL may run as another user than the test.
  chmodSync(folder, 0o755);
  chmodSync(log, 0o777);
  const [first, copy] = [join(folder, 'first'), join(folder, 'restored')];
  const servers: EmbeddedPostgres[] = [];
  const opened: Pools[] = [];
  async function start(directory: string, further: Record<string, string>): Promise<Pools & { url: string }> {
    const server = await startEmbeddedPostgres(directory, CONNECTIONS, further);
    servers.push(server);
    const pools = connectPools(server.url, POOL);
    opened.push(pools);
    return Object.assign(pools, { url: server.url });
  }
  const pools = await start(first, {
    archive_mode: 'on',
    archive_command: `test ! -f ${log}/%f && cp %p ${log}/%f`,
    autovacuum: 'off',
  });
  await migrate(pools.patient);
  return {
    pools,
    backUp: () => copyEmbeddedPostgres(first, copy, async () => {}),
    async markPoint() {
      await pools.sql`select pg_create_restore_point(${POINT})`;
    },
    async restore() {
      const [last] = await pools.sql<{ file: string }[]>`select pg_walfile_name(pg_switch_wal()) as file`;
      await until('the log to be archived', () => readdirSync(log).includes(last?.file ?? ''));
      await endPools(pools, 1);
      await servers.shift()?.stop();
      const data = join(copy, 'postgres', 'data');
      const settings = {
        restore_command: `cp ${log}/%f %p`,
        recovery_target_name: POINT,
        recovery_target_action: 'promote',
      };
      for (const [name, value] of Object.entries(settings))
        appendFileSync(join(data, 'postgresql.auto.conf'), `${name} = '${value}'\n`);
      writeFileSync(join(data, 'recovery.signal'), '');
      const restored = await start(copy, { archive_mode: 'off' });
      await until('the restored database to take writes', async () => {
        const [row] = await restored.sql<{ standby: boolean }[]>`select pg_is_in_recovery() as standby`;
        return row?.standby === false;
      });
      return restored;
    },
    async close() {
      for (const each of opened) await endPools(each, 1).catch(() => {});
      for (const server of servers) await server.stop();
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
