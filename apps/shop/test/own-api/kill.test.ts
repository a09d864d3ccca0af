/**
 * Real processes, ended in the middle of a call of a route: the shop between begin and capture, and the API within its answer.
 * Nothing is charged twice, the same order comes to one answer, and an answer that did not leave whole is not lost.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf, openCalls } from '../fire/money.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { startTestServer } from '../server.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

const GRANT_MICROS = 1_000_000n;
const PRICE_MICROS = 20_000n;
const LARGE = 'x'.repeat(900_000);

/** An API that sends half of each answer, tells its parent, and waits. */
const HALF_AN_API = `
  const { createServer } = require('node:http');
  const server = createServer((request, reply) => {
    request.resume();
    reply.writeHead(200, { 'content-type': 'text/plain', 'content-length': '10' });
    reply.write('half.', () => process.send({ asked: true }));
  });
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
`;

let database: TestDatabase;
let api: OwnApi;
let folder: string;
let half: ChildProcess;
let halfUrl: string;
const held: ServerResponse[] = [];
let holds = true;

before(async () => {
  [database, api, folder] = await Promise.all([
    openTestDatabase(),
    startOwnApi(({ url }, reply) => {
      if (url === '/large') return reply.end(LARGE);
      if (url === '/found') return reply.end('nothing yet');
      if (holds) return held.push(reply);
      reply.end(`order ${api.got.length}`);
    }),
    mkdtemp(join(tmpdir(), 'own-api-')),
  ]);
  half = spawn(process.execPath, ['-e', HALF_AN_API], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [{ port }]: [{ port: number }] = (await once(half, 'message')) as never;
  halfUrl = `http://127.0.0.1:${port}`;
  await writeFile(join(folder, 'farebox.config.yaml'), config());
});
after(async () => {
  half?.kill('SIGKILL');
  await Promise.all([database?.close(), api?.stop(), rm(folder, { recursive: true, force: true })]);
});

const config = () => `
upstreams:
  orders: { url: "${api.url}", prefix: "/", breaker: false }
  mortal: { url: "${halfUrl}", breaker: false }
routes:
  "POST /orders": { upstream: orders, price: "0.02" }
  "POST /found": { upstream: orders, price: "0.02", effect: read }
  "GET /large": { upstream: orders, price: "0.02" }
  "GET /mortal/half": { upstream: mortal, price: "0.02" }
`;

const start = () =>
  startServerProcess({
    DATABASE_URL: database.url,
    FAREBOX_CONFIG: join(folder, 'farebox.config.yaml'),
    RECONCILE_INTERVAL_MS: '100',
  });

async function newKey(): Promise<string> {
  const nowMs = Date.now;
  const keys = createKeys(database.sql, nowMs);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, nowMs), nowMs };
  return (await grantKey(parts, { amountMicros: GRANT_MICROS, label: 'test', note: 'test' })).apiKey;
}

function order(url: string, key: string): Promise<Response> {
  return fetch(`${url}/orders`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'idempotency-key': 'the-order', 'content-type': 'text/plain' },
    body: 'one chair',
  });
}

test('kill -9 of the shop while the API is at work: the same order is one answer, one price, and one key for the API', async () => {
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  let server: ServerProcess = await start();
  try {
    const cut = order(server.url, key).then(
      () => assert.fail('it was answered by the dead'),
      () => {},
    );
    await until('the API to be asked', () => held.length === 1);
    await server.end('SIGKILL');
    await cut;
    for (const reply of held) reply.end('for nobody');
    holds = false;
    await database.sql`update calls set expires_at = now() - interval '1 second' where state = 0`;
    server = await start();
    await until('the open call to be released', async () => (await openCalls(database.sql)) === 0);
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS, 'what was reserved is given back');

    const first = await order(server.url, key);
    assert.deepEqual([first.status, await first.text()], [200, 'order 2']);
    const again = await order(server.url, key);
    assert.deepEqual(
      [again.status, await again.text(), again.headers.get('idempotent-replayed')],
      [200, 'order 2', 'true'],
    );
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS - PRICE_MICROS);
    const names = api.got.map(({ headers }) => headers['idempotency-key']);
    assert.equal(names.length, 2, 'the API was asked by the dead, and once more');
    assert.match(names[0] ?? '', /^[\w-]{32}$/);
    assert.equal(names[0], names[1], 'an API that knows the key does nothing twice');
    await assertBooksClosed(database.patient);
  } finally {
    await server.end('SIGKILL');
  }
});

test('kill -9 of the API within its answer: the call is free, and so is each after it', async () => {
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  const server = await start();
  try {
    const asked = once(half, 'message');
    const cut = fetch(`${server.url}/mortal/half`, { headers: { 'x-api-key': key } });
    await asked;
    half.kill('SIGKILL');
    for (const answer of [
      await cut,
      await fetch(`${server.url}/mortal/half`, { headers: { 'x-api-key': key } }),
    ]) {
      const told: { code: string; charged: boolean } = JSON.parse(await answer.text());
      assert.deepEqual([answer.status, told.code, told.charged], [502, 'UPSTREAM_FAILED', false]);
    }
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS);
    await assertBooksClosed(database.patient);
  } finally {
    await server.end('SIGKILL');
  }
});

test('the answer of a GET that did not leave whole is given again free, once, to the same key and address', async () => {
  const shop = await startTestServer({
    pools: database,
    services: [],
    routes: () => routesOf(config()),
  });
  try {
    const [key, other] = [await newKey(), await newKey()];
    const account = await accountOf(database.sql, key);
    const large = (of: string) => fetch(`${shop.url}/large`, { headers: { 'x-api-key': of } });
    const asked = () => api.got.filter(({ url }) => url === '/large').length;

    // At the moment at which the answer is written, so that it is charged and does not leave whole.
    shop.app.http.server.prependOnceListener('request', (_: unknown, reply: ServerResponse) => {
      const write = reply.writeHead.bind(reply);
      reply.writeHead = ((status: number, headers: string[]) => {
        write(status, headers);
        reply.socket?.resetAndDestroy();
        return reply;
      }) as typeof reply.writeHead;
    });
    await assert.rejects(large(key));
    await until('the answer to be noted as lost', async () => {
      const [row] = await database.sql<{ lost: number }[]>`
        select count(*)::integer as lost from followed_calls where state = 1`;
      return row?.lost === 1;
    });
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS - PRICE_MICROS);

    const strangers = await large(other);
    assert.equal((await strangers.text()).length, LARGE.length);
    assert.equal(strangers.headers.get('idempotent-replayed'), null, 'it is not for another key');
    assert.equal(asked(), 2);

    const again = await large(key);
    assert.equal(await again.text(), LARGE);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(again.headers.get('x-credits-used'), '0.0000');
    assert.equal(asked(), 2, 'the API is not asked again');
    assert.equal(
      await balanceOf(database.sql, account),
      GRANT_MICROS - PRICE_MICROS,
      'it is not charged again',
    );

    await until('its arrival to be noted', async () => {
      const rows = await database.sql`select 1 from followed_calls where state in (0, 1)`;
      return rows.length === 0;
    });
    const third = await large(key);
    await third.text();
    assert.equal(third.headers.get('idempotent-replayed'), null);
    assert.equal(await balanceOf(database.sql, account), GRANT_MICROS - 2n * PRICE_MICROS);
    const captured = (await callsOf(database.sql, account)).filter(({ state }) => state === 1);
    assert.equal(captured.length, 2);
    await assertBooksClosed(database.patient);
  } finally {
    await shop.close();
  }
});

test('an answer is kept for a caller that may lose it where a client repeats by itself, or something was done', async () => {
  const shop = await startTestServer({ pools: database, services: [], routes: () => routesOf(config()) });
  holds = false;
  try {
    const key = await newKey();
    for (const [method, path, isKept] of [
      ['GET', '/large', true],
      ['POST', '/orders', true],
      ['POST', '/found', false],
    ] as const) {
      let kept = 0;
      // Between its capture and its last byte.
      shop.app.http.server.prependOnceListener('request', (_: unknown, reply: ServerResponse) => {
        const end = reply.end.bind(reply);
        reply.end = ((...rest: Parameters<typeof end>) => {
          void database.sql<{ kept: number }[]>`
            select count(*)::integer as kept from followed_calls`.then(([row]) => {
            kept = row?.kept ?? 0;
            end(...rest);
          });
          return reply;
        }) as typeof reply.end;
      });
      const body = method === 'POST' ? { body: 'one chair' } : {};
      const headers = { 'x-api-key': key, 'content-type': 'text/plain' };
      const answer = await fetch(shop.url + path, { method, headers, ...body });
      assert.equal(answer.status, 200, await answer.text());
      assert.equal(kept, isKept ? 1 : 0, `${method} ${path}`);
      await until('its arrival to be noted', async () => {
        const rows = await database.sql`select 1 from followed_calls`;
        return rows.length === 0;
      });
    }
    await assertBooksClosed(database.patient);
  } finally {
    await shop.close();
  }
});
