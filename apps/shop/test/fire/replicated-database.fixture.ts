/** A PostgreSQL that another one follows, with nothing committed before both have it; the second can be promoted. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectDatabase, type Database } from '../../../../packages/core/src/db/connection.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../../packages/process/src/embedded-postgres.ts';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { copyEmbeddedPostgres } from '../../../../packages/process/src/postgres-copy.ts';
import { until } from './until.fixture.ts';

const CONNECTIONS = 60;
const SETTINGS = { max_wal_senders: '4', wal_keep_size: '256MB', hot_standby: 'on', autovacuum: 'off' };

export interface ReplicatedDatabase {
  /** An address with both hosts, the one that follows first. */
  url: string;
  /** Ends the first with `kill -9`, all of it. */
  killFirst(): void;
  killSecond(): void;
  /** Starts the first again, on its port, as it would come back by itself: it believes that it is still the primary. */
  restartFirst(): Promise<Database>;
  /** Makes the second the one that takes writes. */
  promoteSecond(): Promise<void>;
  /** A way to the second alone. */
  second: Database;
  close(): Promise<void>;
}

/** Starts both, with our schema, and waits until the second follows synchronously. */
export async function startReplicatedDatabase(): Promise<ReplicatedDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-replicated-'));
  const folders = { first: join(folder, 'first'), second: join(folder, 'second') };
  const ports = { first: await freePort(), second: await freePort() };
  const start = (which: 'first' | 'second') =>
    startEmbeddedPostgres(folders[which], CONNECTIONS, { ...SETTINGS, port: String(ports[which]) });
  const first = await start('first');
  const opened: { end(): Promise<void> }[] = [];
  const open = (server: EmbeddedPostgres): Database => {
    const sql = connectDatabase(server.url, 2);
    opened.push(sql);
    return sql;
  };
  const onFirst = open(first);
  await migrate(onFirst);
  await copyEmbeddedPostgres(folders.first, folders.second, async () => {});
  const data = join(folders.second, 'postgres', 'data');
  const { password, username } = new URL(first.url);
  const follow = `host=127.0.0.1 port=${ports.first} user=${username} password=${password} application_name=second`;
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${follow}'\n`);
  writeFileSync(join(data, 'standby.signal'), '');
  const second = open(await start('second'));
  await onFirst.unsafe(`alter system set synchronous_standby_names = 'second'`);
  await onFirst.unsafe('select pg_reload_conf()');
  await until('the second to follow synchronously', async () => {
    const rows = await onFirst`select 1 from pg_stat_replication where sync_state = 'sync'`;
    return rows.length === 1;
  });
  const hosts = `127.0.0.1:${ports.second},127.0.0.1:${ports.first}`;
  const pidOf = (which: 'first' | 'second') =>
    Number(readFileSync(join(folders[which], 'postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);
  return {
    url: first.url.replace(`127.0.0.1:${ports.first}`, hosts),
    killFirst: () => void process.kill(pidOf('first'), 'SIGKILL'),
    killSecond: () => void process.kill(pidOf('second'), 'SIGKILL'),
    async restartFirst() {
      const again = open(await start('first'));
      // Nobody follows it any more, and nobody has told it: what it takes would be lost.
      await again.unsafe(`alter system reset synchronous_standby_names`);
      await again.unsafe('select pg_reload_conf()');
      return again;
    },
    async promoteSecond() {
      await second`select pg_promote()`;
    },
    second,
    async close() {
      await Promise.all(opened.map((sql) => sql.end().catch(() => {})));
      for (const which of ['first', 'second'] as const) {
        try {
          process.kill(pidOf(which), 'SIGKILL');
        } catch {
          // It has ended, or never began.
        }
      }
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
