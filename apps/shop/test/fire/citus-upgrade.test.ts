/**
 * A version after the other on a database that Citus spreads, while it sells: the functions of the next one are on every server before it
 * serves, beside those of the one before. Its start is killed in between, and waits for a worker that is away.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { connectDatabase } from '../../../../packages/core/src/db/connection.ts';
import { sqlFunction } from '../../../../packages/core/src/db/functions.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { programOf } from '../programs.fixture.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { assertBooksClosed } from './money.fixture.ts';
import { assertChargedOnce, endOpenCalls, type NamedCallers, namedCallers } from './named-callers.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const BUCKETS = 16;
const CALLERS = 3;
const GRANT = usdToMicros('1000');
/** The functions that run where a bucket lies; the others are the coordinator's. */
const MOVED = ['calls_begin', 'calls_finish_apart'];
const WHERE = 'packages/core/src/paid-call/functions';

const isBundled = process.env.TEST_SERVER_PROGRAM !== undefined;
const left = withoutCitus !== false ? withoutCitus : isBundled ? false : 'the server is not bundled';

let database: SpreadDatabase;
let folder: string;
let keys: string[];
const servers: ServerProcess[] = [];
/** The callers of each key. */
const sellers = new Map<string, NamedCallers[]>();
before(async () => {
  if (left !== false) return;
  folder = mkdtempSync(join(tmpdir(), 'farebox-upgrade-'));
  database = await openSpreadDatabase();
  await database.distribute();
  keys = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await database?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

/** Another version: this one, but for the text of its functions, which are others for the database. @returns its program */
function versionAfter(word: string): string {
  const root = join(folder, word);
  const main = programOf('main');
  cpSync(join(main, '../../../..'), root, { recursive: true, verbatimSymlinks: true });
  for (const name of MOVED) {
    const file = join(root, WHERE, `${name}.sql`);
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('AS $$', (begin) => `${begin} -- ${word}`),
    );
  }
  return join(root, 'apps/shop/src', basename(main));
}

async function start(
  program?: string,
  spawned?: (child: ChildProcess) => void,
  level = 'error',
): Promise<ServerProcess> {
  const server = await startServerProcess(
    {
      DATABASE_URL: database.url,
      ACCOUNT_BUCKETS: String(BUCKETS),
      RECONCILE_INTERVAL_MS: '1000',
      SERVICES: 'ping',
      LOG_LEVEL: level,
    },
    spawned,
    program,
  );
  servers.push(server);
  return server;
}

/** The names of functions that the text of a version has, on each server. */
async function functionsOf(word: string | null): Promise<string[][]> {
  const having = word === null ? `prosrc not like ' -- %'` : `prosrc like ' -- ${word}%'`;
  const rows = await database.sql<{ result: string }[]>`
    select result from run_command_on_all_nodes(${`
      select coalesce(string_agg(proname, ' ' order by proname), '') from pg_proc
      where proname ~ '^(${MOVED.join('|')})_[0-9a-f]{12}(_w[0-9]{8})?$' and ${having}`})`;
  return rows.map(({ result }) => result.split(' ').filter((name) => name !== ''));
}

async function assertEverywhere(word: string | null): Promise<void> {
  const [first = [], ...others] = await functionsOf(word);
  // One of all weeks, and one of each of six weeks.
  assert(first.length >= MOVED.length * 7, first.join(' '));
  for (const other of others) assert.deepEqual(other, first);
}

function sellAt(url: string): NamedCallers[] {
  return keys.map((key) => {
    const callers = namedCallers(url, key);
    sellers.set(key, [...(sellers.get(key) ?? []), callers]);
    return callers;
  });
}

/** Sells until it is told to stop. */
function keepSelling(callers: readonly NamedCallers[]): {
  all: readonly NamedCallers[];
  stop(): Promise<void>;
} {
  let isOver = false;
  const buying = Promise.all(callers.map((each) => each.buyAtOnce(CALLERS, 1, () => isOver)));
  return {
    all: callers,
    async stop() {
      isOver = true;
      await buying;
    },
  };
}

async function sellMore(callers: readonly NamedCallers[]): Promise<void> {
  const before = callers.map(({ sold }) => sold.length);
  await until('each to sell more', () =>
    callers.every(({ sold }, index) => sold.length >= (before[index] ?? 0) + CALLERS),
  );
}

/** Holds that what was answered was charged, once, by whichever version. */
async function assertCharged(): Promise<void> {
  await endOpenCalls(database.sql);
  for (const [key, callers] of sellers)
    await assertChargedOnce(database.sql, {
      key,
      sold: callers.flatMap((each) => each.sold),
      grantedMicros: GRANT,
    });
  await assertBooksClosed(database.sql);
}

test('a start that is killed while it brings functions to workers leaves none behind, and the next one brings all', {
  skip: left,
}, async () => {
  const old = await start();
  await assertEverywhere(null);
  const selling = keepSelling(sellAt(old.url));
  await sellMore(selling.all);
  const next = versionAfter('next');
  const [, last] = await workerUrls();
  const worker = connectDatabase(last ?? '', 2);
  try {
    // The start has brought a function to one worker, and waits at the other.
    await worker.begin(async (holding) => {
      await holding.unsafe(
        'set local idle_in_transaction_session_timeout = 0; lock table pg_catalog.pg_dist_object in share mode',
      );
      let child: ChildProcess | undefined;
      const starting = start(next, (spawned) => {
        child = spawned;
      });
      starting.catch(() => {});
      await until('the start to wait at the worker', async () => {
        assert.equal(child?.exitCode ?? null, null, 'the start has ended');
        const waiting = await worker`
          select 1 from pg_locks where relation = 'pg_dist_object'::regclass and not granted`;
        return waiting.length > 0;
      });
      child?.kill('SIGKILL');
      await assert.rejects(starting);
    });
  } finally {
    await worker.end({ timeout: 1 });
  }
  await until('what it had prepared to be gone', async () => (await functionsOf('next')).flat().length === 0);
  await sellMore(selling.all);
  const after = await start(next);
  await assertEverywhere('next');
  await assertEverywhere(null);
  const beside = keepSelling(sellAt(after.url));
  await sellMore(beside.all);
  await selling.stop();
  await beside.stop();
  await assertCharged();
});

test('a call that one version has answered is answered the same by the other, for one price; and what the old one called is not needed once it has ended', {
  skip: left,
}, async () => {
  const [old, after] = servers;
  assert(old !== undefined && after !== undefined);
  const [olds, afters] = [sellAt(old.url), sellAt(after.url)];
  for (const [index, first] of [...olds, ...afters].entries()) {
    const other = [...afters, ...olds][index];
    const name = randomUUID();
    const told: [string, string | null][] = [];
    for (const callers of [first, other]) {
      const answer = await callers?.ask(name);
      assert.equal(answer?.status, 200);
      told.push([(await answer?.text()) ?? '', answer?.headers.get('x-call-id') ?? null]);
    }
    assert.deepEqual(told[1], told[0]);
    (first.sold as string[]).push(told[0]?.[1] ?? '');
  }
  const selling = keepSelling(afters);
  assert.equal(await old.end('SIGTERM'), 0);
  const [olden] = await database.sql<{ drops: string }[]>`
    select string_agg(format('drop function %s', oid::regprocedure), '; ') as drops from pg_proc
    where proname ~ ${`^(${MOVED.map(sqlFunction).join('|')})(_w[0-9]{8})?$`}`;
  await database.sql.unsafe(olden?.drops ?? '');
  assert.deepEqual((await functionsOf(null)).flat(), []);
  await sellMore(selling.all);
  await selling.stop();
  await assertCharged();
});

test('a start waits for a worker that is away, says so, and serves once it is back; the version before sells on where it can', {
  skip: left,
}, async () => {
  const [, running] = servers;
  assert(running !== undefined);
  const selling = keepSelling(sellAt(running.url));
  await sellMore(selling.all);
  const later = versionAfter('later');
  const [worker] = database.workers;
  assert(worker !== undefined);
  worker.kill();
  let said = '';
  let child: ChildProcess | undefined;
  const starting = start(
    later,
    (spawned) => {
      child = spawned;
      spawned.stderr?.on('data', (bytes) => (said += bytes));
    },
    'warn',
  );
  starting.catch(() => {});
  try {
    await until('the start to say that it waits', () => said.includes('the start waits for the database'));
    assert.equal(child?.exitCode, null);
  } finally {
    await worker.start();
  }
  const server = await starting;
  await assertEverywhere('later');
  const beside = keepSelling(sellAt(server.url));
  await sellMore([...selling.all, ...beside.all]);
  await selling.stop();
  await beside.stop();
  await assertCharged();
});

async function workerUrls(): Promise<string[]> {
  const nodes = await database.sql<{ nodename: string; nodeport: number }[]>`
    select nodename, nodeport from pg_dist_node where groupid > 0 order by groupid`;
  return nodes.map(({ nodename, nodeport }) => {
    const url = new URL(database.url);
    [url.hostname, url.port] = [nodename, String(nodeport)];
    return String(url);
  });
}
