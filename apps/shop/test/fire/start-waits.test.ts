/** A server that starts while its database is away, silent or held for a moment waits for it, and says so once. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import postgres from 'postgres';
import { openDatabase } from '../../../../packages/core/src/db/open.ts';
import { createStartPatience } from '../../../../packages/core/src/db/start-patience.ts';
import {
  runningEmbeddedPostgres,
  stopEmbeddedPostgres,
} from '../../../../packages/process/src/embedded-postgres.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startWire, type Wire } from './proxy.fixture.ts';
import { startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

/** A process on a busy machine. */
const STARTS_WITHIN_MS = 60_000;

let database: TestDatabase;
let wire: Wire;

before(async () => {
  database = await openTestDatabase();
  wire = await startWire(database.url);
});
after(async () => {
  await wire?.close();
  await database?.close();
});

/** Opens the database by way of the wire; what is in the way goes once the start says that it waits. */
async function openPatiently(mend: () => void): Promise<number> {
  let waited = 0;
  const patience = createStartPatience({
    waits() {
      waited += 1;
      mend();
    },
  });
  const config = { databaseUrl: wire.url, databaseMaxConnections: 3, dataDir: 'never' };
  const opened = await openDatabase(config, { exclusive: true, patience });
  const [row] = await opened.sql<{ one: number }[]>`select 1 as one`;
  assert.equal(row?.one, 1);
  await opened.close();
  return waited;
}

test('nobody listens yet', async () => {
  wire.cut();
  assert.equal(await openPatiently(() => wire.mend()), 1);
});

test('connections are taken, and nothing is said on them', async () => {
  wire.freeze('new ones too');
  assert.equal(await openPatiently(() => wire.thaw()), 1);
});

/** Whether a start waits for what `holdWhatAStartNeeds` holds. */
async function waits(): Promise<boolean> {
  const rows = await database.sql`
    select 1 from pg_locks where relation = 'secret_versions'::regclass and not granted`;
  return rows.length > 0;
}

const SECRETS = 'lock table secret_versions in share row exclusive mode';
/** Takes the lock of whoever runs migrations. */
const MIGRATIONS = 'select pg_advisory_xact_lock(8402)';

/** @returns lets go of it */
async function holdWhatAStartNeeds(what = SECRETS): Promise<() => Promise<void>> {
  const other = postgres(database.url, { max: 1, onnotice: () => {} });
  const held = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  const holding = other.begin(async (transaction) => {
    await transaction.unsafe(what);
    held.resolve();
    await free.promise;
  });
  await held.promise;
  return async () => {
    free.resolve();
    await holding;
    await other.end();
  };
}

test('what the start needs is held for longer than anybody waits', async () => {
  const letGo = await holdWhatAStartNeeds();
  const starting = startServerProcess({ DATABASE_URL: database.url, LOG_LEVEL: 'warn' });
  starting.catch(() => {});
  try {
    // One that gave up would be gone by the second time.
    await Promise.race([starting, until('a start that waits for the lock', waits, STARTS_WITHIN_MS)]);
    await Promise.race([starting, until('that it is refused', async () => !(await waits()))]);
    await Promise.race([starting, until('that it tries again', waits)]);
  } finally {
    await letGo();
  }
  const server = await starting;
  const told = server.words().match(/the start waits for the database/g) ?? [];
  assert.equal(await server.end('SIGTERM'), 0);
  assert.equal(told.length, 1);
});

/** Starts a server, waits for a moment of its start, and tells it to stop. @returns its last words */
async function toldToStop(
  environment: Record<string, string>,
  moment: () => Promise<boolean>,
): Promise<string> {
  let child: ChildProcess | undefined;
  const starting = startServerProcess({ LOG_LEVEL: 'info', ...environment }, (each) => {
    child = each;
  });
  const ended = starting.then(
    () => assert.fail('it started'),
    (error: Error) => error.message,
  );
  await Promise.race([ended, until('that moment of its start', moment, STARTS_WITHIN_MS)]);
  child?.kill('SIGTERM');
  return ended;
}
const STOPPED = /ended with 0:[\s\S]*told to stop before it was ready/;

test('one that is told to stop while it waits stops, and has not failed', async () => {
  const letGo = await holdWhatAStartNeeds();
  try {
    assert.match(await toldToStop({ DATABASE_URL: database.url }, waits), STOPPED);
  } finally {
    await letGo();
  }
});

test('so does one whose migrations wait for those of another', async () => {
  const letGo = await holdWhatAStartNeeds(MIGRATIONS);
  const waitsItsTurn = async () =>
    (await database.sql`select 1 from pg_locks where locktype = 'advisory' and not granted`).length > 0;
  try {
    assert.match(await toldToStop({ DATABASE_URL: database.url }, waitsItsTurn), STOPPED);
  } finally {
    await letGo();
  }
});

test('and one whose database takes its connections and says nothing', async () => {
  wire.freeze('new ones too');
  try {
    assert.match(await toldToStop({ DATABASE_URL: wire.url }, async () => wire.open > 0), STOPPED);
  } finally {
    wire.thaw();
  }
});

test('and one that is making its embedded database, which ends with it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-stopped-'));
  try {
    const isMaking = async () => existsSync(join(folder, 'postgres'));
    assert.match(await toldToStop({ FAREBOX_DATA_DIR: folder }, isMaking), STOPPED);
    assert.equal(await runningEmbeddedPostgres(folder), null);
    assert(!existsSync(join(folder, 'server.pid')));
  } finally {
    await stopEmbeddedPostgres(folder);
    rmSync(folder, { recursive: true, force: true });
  }
});

test('what waiting does not mend ends the start at once', async () => {
  const wrong = new URL(database.url);
  wrong.pathname = '/no_such_database';
  await assert.rejects(
    startServerProcess({ DATABASE_URL: wrong.toString(), LOG_LEVEL: 'warn' }),
    (error: Error) =>
      /ended with 1:/.test(error.message) &&
      /does not exist/.test(error.message) &&
      !/the start waits/.test(error.message),
  );
});
