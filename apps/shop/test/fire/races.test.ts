/** Races with names. Two replicas serve one database; their clock is the test's. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { z } from 'zod';
import { defineService } from '../../../../packages/catalogue/src/services/define.ts';
import { connectPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import type { Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { notFound } from '../../../../packages/core/src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf, openCalls } from './money.fixture.ts';
import { until } from './until.fixture.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** How often a service ran for a name. */
const runs = new Map<string, number>();
const gates = new Map<string, PromiseWithResolvers<void>>();
function gate(name: string): PromiseWithResolvers<void> {
  const known = gates.get(name) ?? Promise.withResolvers<void>();
  gates.set(name, known);
  return known;
}

function service(path: string, priceUsd: string, needs: 'ai'[] = []): Service {
  return defineService({
    path,
    name: path,
    tag: 'Discovery',
    priceUsd,
    summary: 'For tests.',
    input: z.object({
      name: z.string(),
      /** Whether to wait until the test opens the gate of that name. */
      held: z.boolean().default(false),
      /** Which run of that name fails. */
      failingRun: z.number().int().default(0),
    }),
    output: z.object({ name: z.string(), run: z.number().int() }),
    example: { name: 'x' },
    needs,
    async run({ name, held, failingRun }) {
      const run = (runs.get(name) ?? 0) + 1;
      runs.set(name, run);
      if (held) await gate(name).promise;
      if (run === failingRun) throw notFound('name', 'not this time');
      return answer({ name, run }, { method: 'Counted.' });
    },
  });
}

let database: TestDatabase;
let here: TestServer;
let there: TestServer;
const elsewhere: Pools[] = [];
let nowMs = Date.parse('2026-11-21T10:00:00Z');

before(async () => {
  database = await openTestDatabase();
  elsewhere.push(connectPools(database.url, 6));
  const options = {
    services: [
      service('nickel', '0.05'),
      service('dime', '0.10'),
      service('dear', '10'),
      service('with-source', '0.10', ['ai']),
    ],
    nowMs: () => nowMs,
    environment: { TRUSTED_PROXIES: 'loopback', ACCOUNT_BUCKETS: '4' },
  };
  here = await startTestServer({
    pools: database,
    ...options,
    environment: { ...options.environment, AI_BASE_URL: 'http://127.0.0.1:9/v1', AI_MODEL: 'any' },
  });
  there = await startTestServer({ pools: elsewhere[0] ?? database, ...options });
});
afterEach(async () => {
  await until('no call to run', () => here.app.paidCall.running + there.app.paidCall.running === 0);
  await assertBooksClosed(database.patient);
});
after(async () => {
  await Promise.all([here.close(), there.close()]);
  for (const { sql, commits } of elsewhere) await Promise.all([sql.end(), commits.end()]);
  await database.close();
});

interface Told {
  status: number;
  code: string;
  body: string;
  headers: Headers;
}

async function told(response: Promise<Response>): Promise<Told> {
  const { status, headers, ...rest } = await response.then(async (r) => ({
    status: r.status,
    headers: r.headers,
    body: await r.text(),
  }));
  const parsed: { code?: string; last_error_reason?: { code?: string } } = JSON.parse(rest.body);
  return { status, headers, code: parsed.last_error_reason?.code ?? parsed.code ?? 'OK', ...rest };
}

/** So many calls at once, in turn on both replicas. */
function crowd(
  count: number,
  ask: (server: TestServer, index: number) => Promise<Response>,
): Promise<Told[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => told(ask(i % 2 === 0 ? here : there, i))));
}

function tally(answers: readonly Told[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, code } of answers) {
    const name = status === 200 ? '200' : `${status} ${code}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Reads what a key has left, by the transfers alone. */
async function left(key: string): Promise<string> {
  return String(await balanceOf(database.sql, await accountOf(database.sql, key)));
}

const once = (name: string) => ({ 'idempotency-key': name });
const micros = (usd: string) => String(usdToMicros(usd));

describe('credit', () => {
  test('50 at once on a key that can pay 20: 20 answers, 30 refusals, nothing left', async () => {
    const key = await here.key('2');
    const answers = await crowd(50, (server, i) => server.call('dime', key, { name: `fifty ${i}` }));
    assert.deepEqual(tally(answers), { '200': 20, '402 INSUFFICIENT_CREDITS': 30 });
    assert.equal(await left(key), '0');
  });

  test('a call that is too dear does not hold back those that can be paid, in the same batch', async () => {
    const key = await here.key('1');
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        told(here.call(i % 3 === 0 ? 'dear' : 'nickel', key, { name: `mixed ${i}` })),
      ),
    );
    assert.deepEqual(tally(answers), { '200': 20, '402 INSUFFICIENT_CREDITS': 10 });
    assert.equal(await left(key), '0');
  });

  test('what a failing call gives back can be spent at once', async () => {
    const key = await here.key('0.10');
    const first = here.call('dime', key, { name: 'giver', held: true, failingRun: 1 });
    await until('the first to run', () => runs.get('giver') === 1);
    assert.equal((await told(there.call('dime', key, { name: 'taker' }))).code, 'INSUFFICIENT_CREDITS');
    gate('giver').resolve();
    assert.equal((await first).status, 404);
    assert.equal((await told(there.call('dime', key, { name: 'taker' }))).status, 200);
    assert.equal(await left(key), '0');
  });

  test('a cap for a day holds against 50 at once, and over midnight', async () => {
    const key = await here.key('100');
    await fetch(`${here.url}/api/keys/me`, {
      method: 'PATCH',
      headers: { 'x-api-key': key },
      body: JSON.stringify({ caps: { perDayUsd: '1' } }),
    });
    const today = await crowd(50, (server, i) => server.call('dime', key, { name: `day ${i}` }));
    assert.deepEqual(tally(today), { '200': 10, '402 SPEND_CAP_PER_DAY': 40 });

    nowMs = Math.ceil(nowMs / DAY_MS) * DAY_MS + DAY_MS - 1_000;
    const late = there.call('dime', key, { name: 'midnight', held: true });
    await until('the late call to run', () => runs.get('midnight') === 1);
    nowMs += 2_000;
    const tomorrow = await crowd(20, (server, i) => server.call('dime', key, { name: `tomorrow ${i}` }));
    gate('midnight').resolve();
    assert.equal((await late).status, 200, 'taken from the day on which it ended');
    assert.deepEqual(tally(tomorrow), { '200': 9, '402 SPEND_CAP_PER_DAY': 11 });
    assert.equal(await left(key), micros('98'));
  });
});

describe('one payment, one answer', () => {
  test('50 copies at once over two replicas: one run, 50 identical answers, one charge', async () => {
    const key = await here.key('1');
    const copies = crowd(50, (server) => server.call('dime', key, { name: 'copies', held: true }, once('c')));
    await until('a copy to run', () => runs.get('copies') === 1);
    await until('the others to wait', () => here.app.paidCall.running + there.app.paidCall.running === 50);
    gate('copies').resolve();
    const answers = await copies;
    assert.deepEqual(tally(answers), { '200': 50 });
    assert.equal(new Set(answers.map(({ body }) => body)).size, 1);
    assert.equal(new Set(answers.map(({ headers }) => headers.get('x-call-id'))).size, 1);
    assert.equal(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1);
    assert.equal(runs.get('copies'), 1);
    assert.equal(await left(key), micros('0.90'));
  });

  test('other questions under the same key at once: one is answered, the others are a 409', async () => {
    const key = await here.key('10');
    const answers = await crowd(20, (server, i) =>
      server.call('dime', key, { name: `question ${i % 10}` }, once('q')),
    );
    const bought = answers.filter(({ status }) => status === 200);
    assert.equal(bought.length, 2, 'the answered question came twice');
    assert.equal(new Set(bought.map(({ body }) => body)).size, 1);
    assert.deepEqual(tally(answers), { '200': 2, '409 IDEMPOTENCY_KEY_REUSED': 18 });
    assert.equal(await left(key), micros('9.90'));
  });

  test('the first copy fails: the one that waits elsewhere runs, and is charged once', async () => {
    const key = await here.key('1');
    const question = { name: 'second chance', held: true, failingRun: 1 };
    const first = here.call('dime', key, question, once('s'));
    await until('the first to run', () => runs.get('second chance') === 1);
    const second = there.call('dime', key, question, once('s'));
    await until('the second to wait', () => there.app.paidCall.running === 1);
    gate('second chance').resolve();
    assert.equal((await first).status, 404);
    assert.equal((await jsonOf(second)).run, 2);
    assert.equal(await left(key), micros('0.90'));
  });

  test('too slow: what the reconciler released is not charged, and the next copy buys anew', async () => {
    const key = await here.key('1');
    const slow = [undefined, once('late')].map((headers, i) =>
      told(here.call('dime', key, { name: `late ${i}`, held: true }, headers)),
    );
    await until('both to run', () => runs.get('late 0') === 1 && runs.get('late 1') === 1);
    nowMs += MINUTE_MS;
    assert.equal(await there.app.reconciler.run(), 2);
    assert.equal(await openCalls(database.sql), 0);
    gate('late 0').resolve();
    gate('late 1').resolve();
    assert.deepEqual(tally(await Promise.all(slow)), { '503 TOOK_TOO_LONG': 2 });
    assert.equal(await left(key), micros('1'));
    const again = there.call('dime', key, { name: 'late 1', held: true }, once('late'));
    assert.equal((await jsonOf(again)).run, 2);
    assert.equal(await left(key), micros('0.90'));
  });

  test('released and bought anew while the first still runs: one of the two is charged, and only one', async () => {
    const key = await here.key('1');
    const question = { name: 'overtaken', held: true };
    const slow = told(here.call('dime', key, question, once('o')));
    await until('the first to run', () => runs.get('overtaken') === 1);
    nowMs += MINUTE_MS;
    await there.app.reconciler.run();
    const next = told(there.call('dime', key, question, once('o')));
    await until('the second to run', () => runs.get('overtaken') === 2);
    gate('overtaken').resolve();
    assert.deepEqual(tally(await Promise.all([slow, next])), { '200': 1, '503 TOOK_TOO_LONG': 1 });
    const replay = await told(here.call('dime', key, question, once('o')));
    assert.equal(replay.body, (await next).body);
    assert.equal(await left(key), micros('0.90'));
  });

  test('two reconcilers at once give a reservation back once', async () => {
    const key = await here.key('1');
    const slow = Array.from({ length: 10 }, (_, i) =>
      told(here.call('dime', key, { name: `twice ${i}`, held: true })),
    );
    await until('all to run', () => slow.every((_, i) => runs.get(`twice ${i}`) === 1));
    nowMs += MINUTE_MS;
    await Promise.all([here.app.reconciler.run(), there.app.reconciler.run()]);
    for (let i = 0; i < slow.length; i++) gate(`twice ${i}`).resolve();
    assert.deepEqual(tally(await Promise.all(slow)), { '503 TOOK_TOO_LONG': 10 });
    const answers = await crowd(12, (server, i) => server.call('dime', key, { name: `after ${i}` }));
    assert.deepEqual(tally(answers), { '200': 10, '402 INSUFFICIENT_CREDITS': 2 });
  });
});

describe('a client that hangs up before the answer', () => {
  /** Calls, hangs up while the service runs, and lets it end once the server knows. */
  async function hangUp(key: string, name: string, headers: Record<string, string>): Promise<void> {
    const arrived = new Promise<Socket>((resolve) => here.app.http.server.once('connection', resolve));
    const client = request(`${here.url}/x402/dime`, {
      method: 'POST',
      agent: false,
      headers: { 'x-api-key': key, ...headers },
    });
    client.on('error', () => {});
    client.end(JSON.stringify({ name, held: true }));
    const socket = await arrived;
    await until('the service to run', () => runs.get(name) === 1);
    client.destroy();
    await until('the server to notice', () => socket.destroyed);
    gate(name).resolve();
    await until('the call to end', () => here.app.paidCall.running === 0);
  }

  test('is not charged without an Idempotency-Key', async () => {
    const key = await here.key('1');
    await hangUp(key, 'gone', {});
    assert.equal(await left(key), micros('1'));
  });

  test('with one, the answer waits to be asked for', async () => {
    const key = await here.key('1');
    await hangUp(key, 'gone but not for good', once('g'));
    assert.equal(await left(key), micros('0.90'));
    const question = { name: 'gone but not for good', held: true };
    const replay = await told(there.call('dime', key, question, once('g')));
    assert.equal(replay.headers.get('idempotent-replayed'), 'true');
    assert.equal(JSON.parse(replay.body).run, 1);
    assert.equal(await left(key), micros('0.90'));
  });
});

describe('keys', () => {
  const change = (server: TestServer, key: string, method: string, path = '') =>
    told(fetch(`${server.url}/api/keys/me${path}`, { method, headers: { 'x-api-key': key } }));

  test('a revocation holds on the other replica at once; a call that runs is still delivered', async () => {
    const key = await here.key('1');
    assert.equal((await there.call('dime', key, { name: 'known there' }, once('r'))).status, 200);
    const running = told(there.call('dime', key, { name: 'running', held: true }));
    await until('the call to run', () => runs.get('running') === 1);
    assert.equal((await change(here, key, 'DELETE')).status, 200);
    for (const headers of [{}, once('r'), once('new')]) {
      const refused = await told(there.call('dime', key, { name: 'known there' }, headers));
      assert.deepEqual([refused.status, refused.code], [402, 'API_KEY_REVOKED']);
    }
    gate('running').resolve();
    assert.equal((await running).status, 200);
    assert.equal(await left(key), micros('0.80'));
  });

  test('a revoked key gets nothing, not even while the service is not for sale', async () => {
    const key = await here.key('1');
    const question = { name: 'not for sale' };
    assert.equal((await here.call('with-source', key, question, once('n'))).status, 200);
    // There the source is not configured; what was bought is delivered all the same, but not to a revoked key.
    assert.equal((await there.call('with-source', key, question, once('n'))).status, 200);
    await change(here, key, 'DELETE');
    const refused = await told(there.call('with-source', key, question, once('n')));
    assert.notEqual(refused.status, 200, 'a revoked key was handed an answer');
  });

  test('ten rotations at once: one wins, and exactly one key pays', async () => {
    const key = await here.key('1');
    const answers = await crowd(10, (server) =>
      fetch(`${server.url}/api/keys/me/rotate`, { method: 'POST', headers: { 'x-api-key': key } }),
    );
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1, JSON.stringify(tally(answers)));
    for (const { status } of answers) assert([200, 401, 409].includes(status));
    const active = await database.sql`
      select 1 from api_keys where account_id = ${String(await accountOf(database.sql, key))} and status = 'active'`;
    assert.equal(active.count, 1);
    assert.equal((await told(there.call('dime', key, { name: 'old' }))).code, 'API_KEY_REVOKED');
    const fresh: string = JSON.parse(won[0]?.body ?? '').apiKey;
    assert.equal((await there.call('dime', fresh, { name: 'fresh' })).status, 200);
    assert.equal(await left(fresh), micros('0.90'));
  });

  test('trial claims at once from one address, through both doors: one grant', async () => {
    const headers = { 'x-forwarded-for': '8.8.8.8', 'content-type': 'application/json' };
    const answers = await crowd(16, (server, i) =>
      i % 4 < 2
        ? fetch(`${server.url}/api/m2m/credits/trial`, { headers })
        : fetch(`${server.url}/api/sdk/demo-key`, {
            method: 'POST',
            headers,
            body: JSON.stringify({ installId: `install-${i}`, sdkType: 'python-mcp' }),
          }),
    );
    assert.deepEqual(tally(answers), { '200': 1, '429 TRIAL_ALREADY_CLAIMED': 15 });
    const [grants] = await database.sql<{ count: number; micros: bigint }[]>`
      select count(*)::integer as count, sum(amount_micros)::bigint as micros
      from ledger_transfers where code = 'trial_grant'`;
    assert.deepEqual(grants, { count: 1, micros: usdToMicros('5') });
  });

  test('a trial that expires under a running call: the call is paid, the rest is taken back once', async () => {
    const trial = await fetch(`${here.url}/api/m2m/credits/trial`, {
      headers: { 'x-forwarded-for': '8.8.8.9' },
    });
    const { apiKey: key } = await jsonOf(trial);
    nowMs += 7 * DAY_MS - 10_000;
    const running = told(here.call('dime', key, { name: 'last call', held: true }, once('l')));
    await until('the last call to run', () => runs.get('last call') === 1);
    nowMs += 11_000;
    await Promise.all([here.app.trials.expire(100), there.app.trials.expire(100)]);
    assert.equal(await left(key), micros('5'), 'not while a call runs');
    gate('last call').resolve();
    const answered = await running;
    assert.equal(answered.status, 200);
    await Promise.all([here.app.trials.expire(100), there.app.trials.expire(100)]);
    assert.equal(await left(key), '0');
    const [expired] = await database.sql<{ micros: bigint }[]>`
      select amount_micros as micros from ledger_transfers
      where code = 'trial_expiry' and account_id = ${String(await accountOf(database.sql, key))}`;
    assert.equal(expired?.micros, usdToMicros('4.90'));
    assert.equal((await told(there.call('dime', key, { name: 'too late' }))).code, 'API_KEY_EXPIRED');
    const replay = await told(there.call('dime', key, { name: 'last call', held: true }, once('l')));
    assert.equal(replay.body, answered.body, 'what was bought in time can still be asked for');
  });

  test('the answers of an account stay its own, whoever guesses its idempotency keys', async () => {
    const [owner, stranger] = [await here.key('1'), await here.key('1')];
    const question = { name: 'private' };
    const bought = await told(here.call('dime', owner, question, once('p')));
    const other = await told(there.call('dime', stranger, question, once('p')));
    assert.equal(other.headers.get('idempotent-replayed'), null);
    assert.notEqual(other.body, bought.body);
    for (const key of [owner, stranger]) {
      const rows = await callsOf(database.sql, await accountOf(database.sql, key));
      assert.deepEqual(
        rows.map(({ state }) => state),
        [1],
      );
    }
  });
});
