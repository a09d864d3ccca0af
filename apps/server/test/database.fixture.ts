import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectDatabase, connectPools, type Pools } from '../src/db/connection.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate } from '../src/db/migrate.ts';

export interface TestDatabase extends Pools {
  /** The address of this database alone: a second replica, or a process of its own, may connect to it. */
  url: string;
  close(): Promise<void>;
}

/**
 * Opens an empty database of our schema. It lives on the server that `TEST_DATABASE_URL` names, which `npm test` sets;
 * a test that is run by itself brings a server of its own.
 */
export async function openTestDatabase(): Promise<TestDatabase> {
  const server = await findServer();
  const name = `farebox_test_${randomBytes(6).toString('hex')}`;
  const admin = connectDatabase(server.url, 1);
  await admin.unsafe(`create database ${name}`);
  const address = new URL(server.url);
  address.pathname = `/${name}`;
  const url = address.toString();
  const pools = connectPools(url, 8);
  await migrate(pools.sql);
  return {
    ...pools,
    url,
    async close() {
      await Promise.all([pools.sql.end({ timeout: 1 }), pools.commits.end({ timeout: 1 })]);
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
      await server.stop();
    },
  };
}

async function findServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const given = process.env.TEST_DATABASE_URL;
  if (given !== undefined) return { url: given, stop: async () => {} };
  const folder = mkdtempSync(join(tmpdir(), 'farebox-test-'));
  const embedded = await startEmbeddedPostgres(folder);
  return {
    url: embedded.url,
    async stop() {
      await embedded.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
