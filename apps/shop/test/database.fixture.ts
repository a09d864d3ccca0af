import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  connectDatabase,
  connectPools,
  endPools,
  type Pools,
} from '../../../packages/core/src/db/connection.ts';
import { migrate } from '../../../packages/core/src/db/migrate.ts';
import { startEmbeddedPostgres } from '../../../packages/process/src/embedded-postgres.ts';

export interface TestDatabase extends Pools {
  /** The address of this database alone: a second replica, or a process of its own, may connect to it. */
  url: string;
  close(): Promise<void>;
}

/**
 * Opens an empty database of our schema. It lives on the server that `TEST_DATABASE_URL` names, which `npm test` sets,
 * and is a copy of `TEST_DATABASE_TEMPLATE`; a test that is run by itself brings a server of its own.
 */
export async function openTestDatabase(): Promise<TestDatabase> {
  const server = await findServer();
  const template = process.env.TEST_DATABASE_TEMPLATE;
  const name = randomName();
  const admin = connectDatabase(server.url, 1);
  await admin.unsafe(
    `create database ${name}${template === undefined ? '' : ` template ${template} strategy file_copy`}`,
  );
  const url = addressOf(server.url, name);
  const pools = connectPools(url, 8);
  if (template === undefined) await migrate(pools.patient);
  return {
    ...pools,
    url,
    async close() {
      await endPools(pools, 1);
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
      await server.stop();
    },
  };
}

/**
 * Makes a database that others are copied from, so that the migrations run once and not for every test.
 *
 * @param serverUrl the address of any database on the server
 * @param options.lastsNoLonger the server is thrown away with its last test: nobody pulls its plug, so it need not wait
 *   for the disk
 */
export async function makeTemplate(
  serverUrl: string,
  options: { lastsNoLonger: boolean },
): Promise<{ name: string; drop(): Promise<void> }> {
  const admin = connectDatabase(serverUrl, 1);
  const name = randomName();
  if (options.lastsNoLonger) {
    await admin.unsafe('alter system set fsync = off');
    await admin.unsafe('select pg_reload_conf()');
  }
  await admin.unsafe(`create database ${name}`);
  const template = connectDatabase(addressOf(serverUrl, name), 1);
  await migrate(template);
  await template.end();
  return {
    name,
    async drop() {
      await admin.unsafe(`drop database if exists ${name} with (force)`);
      await admin.end();
    },
  };
}

function randomName(): string {
  return `farebox_test_${randomBytes(6).toString('hex')}`;
}

function addressOf(serverUrl: string, database: string): string {
  const address = new URL(serverUrl);
  address.pathname = `/${database}`;
  return address.toString();
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
