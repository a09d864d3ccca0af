/**
 * The embedded PostgreSQL ends under a server that sells: it is started again where it was, or the server leaves and says
 * why. Real processes, ended with `kill -9`.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { inspect } from 'node:util';
import { connectPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import {
  startEmbeddedPostgres,
  stopEmbeddedPostgres,
} from '../../../../packages/process/src/embedded-postgres.ts';
import { isAlive } from '../../../../packages/process/src/is-alive.mjs';
import { accountOf, assertBooksClosed, balanceOf, callsOf, refundsOf } from './money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

/** More than callers without a pause can spend, on whatever machine. */
const GRANT = usdToMicros('10000000');
const PRICE = usdToMicros('0.25');
const CALLERS = 8;
/** A server whose database is gone must leave long before it would give up a database that recovers. */
const LEAVES_WITHIN_MS = 60_000;

let folder: string;
let server: ServerProcess;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-keeper-'));
});
beforeEach(async () => {
  if (server === undefined || server.process.exitCode !== null || server.process.signalCode !== null)
    server = await start();
});
after(async () => {
  await server?.end('SIGKILL');
  await stopEmbeddedPostgres(folder);
  rmSync(folder, { recursive: true, force: true });
});

const start = () =>
  startServerProcess({ FAREBOX_DATA_DIR: folder, RECONCILE_INTERVAL_MS: '100', LOG_LEVEL: 'warn' });

/** Where PostgreSQL runs now, by its own file. */
function postmaster(): { pid: number; port: number } {
  const lines = readFileSync(join(folder, 'postgres/data/postmaster.pid'), 'utf8').split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]) };
}

function connect(): Pools {
  const password = readFileSync(join(folder, 'postgres/password'), 'utf8').trim();
  return connectPools(`postgres://farebox:${password}@127.0.0.1:${postmaster().port}/farebox`, 3);
}

async function withDatabase<Result>(work: (pools: Pools) => Promise<Result>): Promise<Result> {
  const pools = connect();
  try {
    return await work(pools);
  } finally {
    await Promise.all([pools.sql.end({ timeout: 1 }), pools.commits.end({ timeout: 1 })]);
  }
}

const newKey = () =>
  withDatabase(async (pools) => {
    const parts = {
      sql: pools.sql,
      keys: createKeys(pools.sql, Date.now),
      ledger: createLedger(pools, Date.now),
      nowMs: Date.now,
    };
    return (await grantKey(parts, { amountMicros: GRANT, label: 'test', note: 'test' })).apiKey;
  });

async function buy(key: string): Promise<{ status: number; callId: string | null }> {
  const response = await fetch(`${server.url}/x402/ping`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: '{}',
  });
  await response.arrayBuffer();
  return { status: response.status, callId: response.headers.get('x-call-id') };
}

/** Callers that buy without a pause, before, while and after something happens. @returns how often each status came */
async function whileSelling(happens: (key: string) => Promise<void>): Promise<Map<number, number>> {
  const key = await newKey();
  const statuses = new Map<number, number>();
  const sold: string[] = [];
  let over = false;
  const callers = Array.from({ length: CALLERS }, async () => {
    while (!over) {
      const { status, callId } = await buy(key);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 200) sold.push(callId ?? 'no id');
    }
  });
  try {
    await until('calls to be sold', () => sold.length > 50);
    await happens(key);
    const soldBefore = sold.length;
    await until('calls to be sold again', () => sold.length > soldBefore + 50);
  } finally {
    over = true;
    await Promise.all(callers);
  }
  await withDatabase(async ({ sql }) => {
    // What was reserved in the moment of the end is given back: its time need not be waited for.
    await until('no call to be open', async () => {
      await sql`update calls set expires_at = now() where state = 0`;
      return (await sql`select 1 from calls where state = 0 limit 1`).length === 0;
    });
    const account = await accountOf(sql, key);
    let calls = await callsOf(sql, account);
    let charged: string[] = [];
    await until('what was charged unheard to be given back', async () => {
      const refunds = await refundsOf(sql, account);
      calls = await callsOf(sql, account);
      charged = odd(
        calls.flatMap(({ id, state }) => (state === 1 ? [id] : [])),
        refunds,
      );
      return charged.length <= sold.length;
    });
    const unequal = [...odd(sold, charged), ...odd(charged, sold)];
    const transfers = await sql`
      select id, phase, code, amount_micros::text, created_at from ledger_transfers
      where account_id = ${String(account)} and (id = any(${unequal}::uuid[]) or code = 'call_refund')`;
    assert.deepEqual(
      unequal,
      [],
      `what was delivered was charged, and nothing else: ${inspect({
        sold: sold.length,
        charged: charged.length,
        transfers: [...transfers],
        calls: calls.filter(({ id }) => unequal.includes(id)),
        words: server.words().slice(-3_000),
      })}`,
    );
    assert.equal(new Set(sold).size, sold.length, 'no call was delivered twice');
    assert.equal(await balanceOf(sql, account), GRANT - BigInt(charged.length) * PRICE);
    await assertBooksClosed(sql);
  });
  return statuses;
}

/** The entries that are in the first list alone. */
function odd(these: readonly string[], those: readonly string[]): string[] {
  const known = new Set(those);
  return these.filter((id) => !known.has(id));
}

/** Ends the server's first process, while a session of its own is busy with something long, and waits for the next. */
async function killAndWait(): Promise<void> {
  const killed = postmaster();
  const busy = connect();
  const query = busy.sql`select count(*) from generate_series(1, 2000000000)`.catch(() => {});
  await until('the session to be busy', async () => {
    const rows = await busy.commits`
      select 1 from pg_stat_activity where state = 'active' and query like '%generate_series%' and pid <> pg_backend_pid()`;
    return rows.length === 1;
  });
  process.kill(killed.pid, 'SIGKILL');
  await until('the server to have it back', () => server.words().includes('is back'));
  assert(isAlive(postmaster().pid));
  assert.equal(postmaster().port, killed.port);
  await query;
  await Promise.all([busy.sql.end({ timeout: 1 }), busy.commits.end({ timeout: 1 })]);
}

/** Ends the server's first process and takes its port, while ours cannot look. Who connects there is turned away. */
async function killAndTakePort(): Promise<Server> {
  const { pid, port } = postmaster();
  const thief = createServer((socket) => socket.destroy());
  server.process.kill('SIGSTOP');
  process.kill(pid, 'SIGKILL');
  await until('it to have ended', () => !isAlive(pid));
  thief.listen(port, '127.0.0.1');
  await once(thief, 'listening');
  server.process.kill('SIGCONT');
  return thief;
}

const unexpected = (statuses: Map<number, number>) =>
  [...statuses.keys()].filter((status) => status !== 200 && status !== 503);

test('killed under load it is started again where it was, and the books balance', async () => {
  const statuses = await whileSelling(() => killAndWait());
  assert.deepEqual(unexpected(statuses), []);
});

test('while it cannot start calls get 503; as soon as it can they work again', async () => {
  const statuses = await whileSelling(async (key) => {
    const thief = await killAndTakePort();
    await until('a call to be told', async () => (await buy(key)).status === 503);
    thief.close();
  });
  assert.deepEqual(unexpected(statuses), []);
});

test('one session of it killed: it mends itself, and so do we', async () => {
  const { pid } = postmaster();
  const statuses = await whileSelling(async () => {
    const [row] = await withDatabase(
      ({ sql }) => sql<{ pid: number }[]>`
        select pid from pg_stat_activity
        where application_name = 'farebox' and backend_type = 'client backend' and pid <> pg_backend_pid() limit 1`,
    );
    process.kill(row?.pid ?? Number.NaN, 'SIGKILL');
    await until('the server to be ready again', async () => {
      const response = await fetch(`${server.url}/health/ready`);
      return response.status === 200;
    });
  });
  assert.equal(postmaster().pid, pid);
  assert.deepEqual(unexpected(statuses), []);
});

test('one that an earlier process left behind is watched like our own, and ends with us once we have started it', async () => {
  const left = postmaster();
  await server.end('SIGKILL');
  assert(isAlive(left.pid), 'a killed server leaves its database running');
  server = await start();
  assert.equal(postmaster().pid, left.pid, 'it is used again');
  await whileSelling(() => killAndWait());
  const { pid } = postmaster();
  assert.equal(await server.end('SIGTERM'), 0);
  assert(!isAlive(pid));
});

/** How the server left by itself, and after how long. */
async function leaving(): Promise<{ code: number | null; afterMs: number; lines: string[] }> {
  const startedAtMs = performance.now();
  const [code]: (number | null)[] = await once(server.process, 'exit');
  const lines = server
    .words()
    .split('\n')
    .filter((line) => line.startsWith('farebox: '));
  return { code: code ?? null, afterMs: performance.now() - startedAtMs, lines };
}

test('its folder gone, the server leaves with one line, and makes no empty database in its place', async () => {
  const data = join(folder, 'postgres/data');
  const aside = join(folder, 'aside');
  const { pid } = postmaster();
  renameSync(data, aside);
  process.kill(pid, 'SIGKILL');
  const { code, afterMs, lines } = await leaving();
  renameSync(aside, data);
  assert.equal(code, 1);
  assert(afterMs < LEAVES_WITHIN_MS, `${afterMs} ms`);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /PostgreSQL has ended and could not be started again: its folder .* is gone/);
});

test('its port taken for good, the server leaves with one line', async () => {
  const thief = await killAndTakePort();
  try {
    const { code, afterMs, lines } = await leaving();
    assert.equal(code, 1);
    assert(afterMs < LEAVES_WITHIN_MS, `${afterMs} ms`);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /could not be started again: .*could not bind/);
  } finally {
    thief.close();
  }
});

test('the server reaches it by its Unix socket; where the path is too long for one, by TCP', async () => {
  const key = await newKey();
  assert.equal((await buy(key)).status, 200);
  // We come by TCP ourselves.
  const local = await withDatabase(
    ({ sql }) =>
      sql`select 1 from pg_stat_activity where application_name = 'farebox' and client_addr is null`,
  );
  assert(local.length > 0);

  const long = join(mkdtempSync(join(tmpdir(), 'farebox-long-')), 'l'.repeat(100));
  const embedded = await startEmbeddedPostgres(long);
  try {
    assert.equal(embedded.localUrl, embedded.url);
  } finally {
    await embedded.stop();
    rmSync(join(long, '..'), { recursive: true, force: true });
  }
});
