/**
 * MCP calls that their clients cancel, time out or lose: by the unmodified clients and by bare requests, on two replicas.
 */
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { z } from 'zod';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { LOST_ANSWER_MS } from '../../../../packages/core/src/paid-call/followed-calls.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { lockAccounts } from './account-lock.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, openCalls } from './money.fixture.ts';
import { until } from './until.fixture.ts';

const GRANTED = 1_000_000n;
const PRICE = 50_000n;

interface Run {
  signal: AbortSignal;
  end(): void;
}
let runs: Run[] = [];
let isSlow = true;

const service = (path: string, effect: 'read' | 'write') =>
  defineService({
    path,
    name: path,
    tag: 'Discovery',
    priceUsd: '0.05',
    summary: 'For tests.',
    effect,
    input: z.object({ name: z.string().default('a') }),
    output: z.object({ run: z.number().int() }),
    example: {},
    async run(_input, { signal }) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const run = runs.push({ signal, end: resolve });
      if (isSlow) await promise;
      return answer({ run }, { method: 'Waited.' });
    },
  });

let database: TestDatabase;
let elsewhere: Pools;
let here: TestServer;
let there: TestServer;
let nowMs = Date.parse('2026-11-21T10:00:00Z');
let key: string;

before(async () => {
  database = await openTestDatabase();
  elsewhere = connectPools(database.url, 6);
  const options = { services: [service('wait', 'read'), service('deed', 'write')], nowMs: () => nowMs };
  [here, there] = await Promise.all([
    startTestServer({ pools: database, ...options }),
    startTestServer({ pools: elsewhere, ...options }),
  ]);
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await Promise.all([elsewhere && endPools(elsewhere, 1), database?.close()]);
});
beforeEach(async () => {
  runs = [];
  isSlow = true;
  key = await here.key('1');
});

const spent = async () => GRANTED - (await balanceOf(database.sql, await accountOf(database.sql, key)));
const idle = () => until('no call to be open', async () => (await openCalls(database.sql)) === 0);
const states = async () => {
  const rows = await database.sql<{ state: number }[]>`
    select state from followed_calls where account_id = ${String(await accountOf(database.sql, key))} order by state`;
  return rows.map(({ state }) => state);
};
const isState = (state: number) =>
  until(`a followed call in state ${state}`, async () => (await states()).includes(state));

interface Told {
  structuredContent?: { run?: number; code?: string };
  _meta?: { 'farebox/call'?: { replayed?: string; answeredAt?: string; creditsUsedUsd?: string } };
}
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const callOf = (id: number | string, name = 'wait', args: object = {}, meta: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: meta },
});
const cancelOf = (requestId: number | string) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId, reason: 'test' },
});

/** A bare POST. @param as the key that it presents */
function post(on: TestServer, message: object, headers: Record<string, string> = {}, as = key) {
  return fetch(`${on.url}/mcp`, {
    method: 'POST',
    headers: { ...HEADERS, 'x-api-key': as, ...headers },
    body: JSON.stringify(message),
  });
}

/** The result in the stream of a call; null when it ended without one. */
async function toldBy(response: Response): Promise<Told | null> {
  const line = (await response.text()).split('\n').find((each) => each.startsWith('data: '));
  return line === undefined ? null : JSON.parse(line.slice(6)).result;
}

/** Buys without waiting, in a fresh session of its own. */
async function buy(on: TestServer, name = 'wait', args: object = {}): Promise<Told> {
  isSlow = false;
  return (await toldBy(await post(on, callOf(77, name, args)))) ?? assert.fail('no answer');
}

async function sessionOf(on: TestServer): Promise<string> {
  const response = await post(on, {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
  });
  await response.text();
  return response.headers.get('mcp-session-id') ?? assert.fail('no session');
}

/** Sends what is posted after the call to the other replica. */
const cancelsElsewhere: typeof fetch = (input, init) => {
  const url = new URL(String(input));
  const isCancel = typeof init?.body === 'string' && init.body.includes('notifications/cancelled');
  return fetch(isCancel ? new URL(`${there.url}${url.pathname}`) : url, init);
};

async function sdk1(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(`${here.url}/mcp`), {
    requestInit: { headers: { 'x-api-key': key } },
    fetch: cancelsElsewhere,
  });
  await client.connect(transport as never);
  return client;
}

async function sdk2(): Promise<ModernClient> {
  const client = new ModernClient({ name: 'test', version: '1' });
  const requestInit = { headers: { 'x-api-key': key } };
  await client.connect(
    new ModernTransport(new URL(`${here.url}/mcp`), { requestInit, fetch: cancelsElsewhere }),
  );
  return client;
}

describe('before it is charged', () => {
  for (const [name, open] of [
    ['SDK 1', sdk1],
    ['SDK 2', sdk2],
  ] as const) {
    test(`${name}: an aborted call ends its work and costs nothing, though the cancellation reached another replica`, async () => {
      const client = await open();
      const leave = new AbortController();
      const signal = leave.signal;
      const ended = (
        client instanceof Client
          ? client.callTool({ name: 'wait' }, undefined, { signal })
          : client.callTool({ name: 'wait' }, { signal })
      ).catch((error: unknown) => error);
      await until('the service to run', () => runs.length === 1);
      leave.abort();
      await ended;
      await until('the work to be aborted', () => runs[0]?.signal.aborted === true);
      await client.close();
      await idle();
      assert.equal(await spent(), 0n);
      const buyer = `account:${await accountOf(database.sql, key)}`;
      await until('it to be one of the free hang-ups of the day', async () => {
        const hungUp = await database.sql`
          select 1 from free_hang_ups where buyer = ${buyer} and held_until is null`;
        return hungUp.length === 1;
      });
    });
  }

  test('SDK 1: a call that times out ends its work and costs nothing, and the repeat is one charge', async () => {
    const client = await sdk1();
    const timedOut = client.callTool({ name: 'wait' }, undefined, { timeout: 300 });
    await assert.rejects(timedOut, /timed out/);
    await until('the work to be aborted', () => runs[0]?.signal.aborted === true);
    await idle();
    assert.equal(await spent(), 0n);
    isSlow = false;
    const again = (await client.callTool({ name: 'wait' })) as Told;
    assert.equal(again.structuredContent?.run, 2);
    assert.equal(await spent(), PRICE);
    await client.close();
  });

  test('the stream of a cancelled call ends without an answer', async () => {
    const session = await sessionOf(here);
    const call = post(here, callOf(1), { 'mcp-session-id': session });
    await until('the service to run', () => runs.length === 1);
    assert.equal((await post(there, cancelOf(1), { 'mcp-session-id': session })).status, 202);
    assert.equal(await toldBy(await call), null);
    assert.equal(runs[0]?.signal.aborted, true);
    await idle();
    await until('the call to be followed no more', async () => (await states()).length === 0);
    assert.equal(await spent(), 0n);
  });

  test('a cancellation that overtakes its call finds it', async () => {
    const session = await sessionOf(here);
    const cancelled = post(there, cancelOf(5), { 'mcp-session-id': session });
    const call = post(here, callOf(5), { 'mcp-session-id': session });
    await until('the service to run', () => runs.length === 1);
    await cancelled;
    assert.equal(await toldBy(await call), null);
    await idle();
    assert.equal(await spent(), 0n);
  });
});

describe('whose cancellation it is', () => {
  test('another key ends nothing, although it names the session', async () => {
    const session = await sessionOf(here);
    const call = post(here, callOf(1), { 'mcp-session-id': session });
    await until('the service to run', () => runs.length === 1);
    const thief = await here.key('1');
    await post(here, cancelOf(1), { 'mcp-session-id': session }, thief);
    await post(there, cancelOf(1), {}, thief);
    await fetch(`${here.url}/mcp`, { method: 'POST', headers: HEADERS, body: JSON.stringify(cancelOf(1)) });
    assert.equal(runs[0]?.signal.aborted, false);
    runs[0]?.end();
    assert.equal((await toldBy(await call))?.structuredContent?.run, 1);
    assert.equal(await spent(), PRICE);
  });

  test('with a session the call of that session, without one only a call that alone has the id', async () => {
    const [one, two] = [await sessionOf(here), await sessionOf(there)];
    assert.notEqual(one, two);
    const first = post(here, callOf(1), { 'mcp-session-id': one });
    await until('the first to run', () => runs.length === 1);
    const second = post(there, callOf(1), { 'mcp-session-id': two });
    await until('the second to run', () => runs.length === 2);
    const text = post(here, callOf('1', 'wait', { name: 'b' }), { 'mcp-session-id': one });
    await until('the third to run', () => runs.length === 3);

    await post(here, cancelOf(1));
    await post(here, cancelOf(9));
    await post(here, cancelOf(1), { 'mcp-session-id': 'somebody' });
    assert.deepEqual(
      runs.map(({ signal }) => signal.aborted),
      [false, false, false],
    );
    await post(there, cancelOf(1), { 'mcp-session-id': one });
    assert.equal(await toldBy(await first), null);
    assert.deepEqual(
      runs.map(({ signal }) => signal.aborted),
      [true, false, false],
    );
    await post(there, cancelOf('1'));
    assert.equal(await toldBy(await text), null);
    await post(here, cancelOf(1));
    assert.equal(await toldBy(await second), null);
    await idle();
    assert.equal(await spent(), 0n);
  });

  test('one call of a batch is cancelled, and the others are answered', async () => {
    const session = await sessionOf(here);
    const batch = post(here, [callOf(1), callOf(2, 'wait', { name: 'b' })], { 'mcp-session-id': session });
    await until('both to run', () => runs.length === 2);
    await post(there, cancelOf(1), { 'mcp-session-id': session });
    await until('one to be aborted', () => runs.filter(({ signal }) => signal.aborted).length === 1);
    for (const run of runs) run.end();
    assert.match(await (await batch).text(), /"creditsUsedUsd":"0.0500"/);
    assert.equal(await spent(), PRICE);
  });
});

/** A call whose connection closes between its charge and its answer: another session holds up the charge until it has. */
async function lostOnItsWay(on: TestServer): Promise<void> {
  const asked = httpRequest(`${on.url}/mcp`, { method: 'POST', headers: { ...HEADERS, 'x-api-key': key } });
  asked.on('error', () => {});
  asked.end(JSON.stringify(callOf(1)));
  await until('the service to run', () => runs.length > 0);
  const release = await lockAccounts(database.url, [await accountOf(database.sql, key)]);
  runs.at(-1)?.end();
  await until('the charge to wait', () => on.app.calls.depth > 0);
  asked.destroy();
  await allHaveLeft(on);
  await release();
  await isState(1);
}

/** Waits until no connection is open. */
async function allHaveLeft(on: TestServer): Promise<void> {
  on.app.http.server.closeIdleConnections();
  await until('the server to see that its callers have left', async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    on.app.http.server.getConnections((_error, count) => resolve(count));
    return (await promise) === 0;
  });
}

describe('after it was charged', () => {
  test('a cancellation keeps the answer for the next same call, free and once', async () => {
    const session = await sessionOf(here);
    isSlow = false;
    const first = await toldBy(await post(here, callOf(1), { 'mcp-session-id': session }));
    assert.equal(first?.structuredContent?.run, 1);
    await post(there, cancelOf(1), { 'mcp-session-id': session });
    assert.deepEqual([await spent(), await states()], [PRICE, [1]]);

    assert.equal((await buy(there, 'wait', { name: 'other' })).structuredContent?.run, 2);
    const otherKey = await here.key('1');
    const other = await toldBy(await post(there, callOf(1), {}, otherKey));
    assert.equal(other?.structuredContent?.run, 3, 'another key');
    assert.equal(await spent(), 2n * PRICE);

    const again = await buy(there);
    assert.equal(again.structuredContent?.run, 1);
    const { replayed, answeredAt, creditsUsedUsd } = again._meta?.['farebox/call'] ?? {};
    assert.deepEqual(
      [replayed, answeredAt, creditsUsedUsd],
      ['true', new Date(nowMs).toISOString(), '0.0000'],
    );
    assert.equal(await spent(), 2n * PRICE);
    await isState(2);
    assert.equal((await buy(here)).structuredContent?.run, 4);
    assert.equal(await spent(), 3n * PRICE);
  });

  test('a broken stream keeps it, and of two takers one gets it', async () => {
    await lostOnItsWay(here);
    assert.equal(await spent(), PRICE);
    const [one, two] = await Promise.all([buy(here), buy(there)]);
    assert.deepEqual([one.structuredContent?.run, two.structuredContent?.run].sort(), [1, 2]);
    assert.equal(await spent(), 2n * PRICE);

    await until('both to have arrived', async () => (await states()).join() === '2,2');
  });

  test('an answer that is lost again on its second way is kept again', async () => {
    await lostOnItsWay(here);
    isSlow = false;
    const session = await sessionOf(here);
    const again = await toldBy(await post(here, callOf(3), { 'mcp-session-id': session }));
    assert.equal(again?.structuredContent?.run, 1);
    await post(there, cancelOf(3), { 'mcp-session-id': session });
    assert.equal((await buy(there)).structuredContent?.run, 1);
    assert.equal(await spent(), PRICE);
  });

  test('a call that ended normally is never merged with the next', async () => {
    const answers = [await buy(here), await buy(here), await buy(there)];
    assert.deepEqual(
      answers.map(({ structuredContent }) => structuredContent?.run),
      [1, 2, 3],
    );
    assert.equal(await spent(), 3n * PRICE);
  });

  test('ten minutes later it is forgotten, and so is its copy', async () => {
    await lostOnItsWay(here);
    nowMs += LOST_ANSWER_MS;
    for (const job of here.app.jobs)
      if (job.name === 'drop-followed-calls') await job.run(new AbortController().signal);
    assert.deepEqual(await states(), []);
    const account = String(await accountOf(database.sql, key));
    const kept = await database.sql`select 1 from call_answers where account_id = ${account}`;
    assert.equal(kept.length, 0);
    assert.equal((await buy(here)).structuredContent?.run, 2);
  });

  for (const [when, afterMs, run] of [
    ['a moment before ten minutes have passed it is still given', 599_999, 1],
    ['when ten minutes have passed it is not, though no job has run', 600_000, 2],
  ] as const)
    test(when, async () => {
      await lostOnItsWay(here);
      nowMs += afterMs;
      assert.equal((await buy(there)).structuredContent?.run, run);
    });

  for (const [when, afterMs, state] of [
    ['a cancellation shortly after the answer says that it was lost', 14_999, 1],
    ['a cancellation long after the answer says nothing', 15_000, 2],
  ] as const)
    test(when, async () => {
      const session = await sessionOf(here);
      isSlow = false;
      await toldBy(await post(here, callOf(1), { 'mcp-session-id': session }));
      await isState(2);
      nowMs += afterMs;
      await post(there, cancelOf(1), { 'mcp-session-id': session });
      assert.deepEqual(await states(), [state]);
    });

  test('while it is on its way to one caller no other gets it', async () => {
    await buy(here);
    await isState(2);
    const account = String(await accountOf(database.sql, key));
    const [living] = await database.sql<{ id: bigint }[]>`
      insert into replicas (started_at, seen_at) values (now(), now()) returning id`;
    await database.sql`
      update followed_calls set state = 0, holder = ${String(living?.id)} where account_id = ${account}`;
    assert.equal((await buy(there)).structuredContent?.run, 2);
    await database.sql`update replicas set ended_at = now() where id = ${String(living?.id)}`;
  });

  test('a key that was revoked gets nothing of it', async () => {
    await lostOnItsWay(here);
    await database.sql`
      update api_keys set status = 'revoked' where account_id = ${String(await accountOf(database.sql, key))}`;
    const refused = await buy(here);
    assert.equal(refused.structuredContent?.run, undefined);
  });

  test('a process that died between the charge and the end of the delivery has lost it', async () => {
    await buy(here);
    await isState(2);
    const account = String(await accountOf(database.sql, key));
    await database.sql`
      with dead as (insert into replicas (started_at, seen_at, ended_at) values (now(), now(), now()) returning id)
      update followed_calls f set state = 0, holder = dead.id from dead where f.account_id = ${account}`;
    assert.equal((await buy(there)).structuredContent?.run, 1);
    assert.equal(await spent(), PRICE);
  });
});

describe('what is not released', () => {
  test('a service with an effect goes on, is charged, and its answer waits for the next same call', async () => {
    const session = await sessionOf(here);
    const call = post(here, callOf(1, 'deed'), { 'mcp-session-id': session });
    await until('the service to run', () => runs.length === 1);
    await post(there, cancelOf(1), { 'mcp-session-id': session });
    assert.equal(await toldBy(await call), null);
    assert.equal(runs[0]?.signal.aborted, false);
    runs[0]?.end();
    await idle();
    assert.equal(await spent(), PRICE);
    assert.equal((await buy(there, 'deed')).structuredContent?.run, 1);
    assert.equal(await spent(), PRICE);
  });

  test('and so over HTTP, when the connection closes', async () => {
    const leave = new AbortController();
    const send = (on: TestServer, signal: AbortSignal | null = null) =>
      fetch(`${on.url}/x402/deed`, {
        method: 'POST',
        headers: { ...HEADERS, 'x-api-key': key },
        body: '{}',
        signal,
      });
    const left = send(here, leave.signal).catch(() => null);
    await until('the service to run', () => runs.length === 1);
    leave.abort();
    await left;
    await allHaveLeft(here);
    runs[0]?.end();
    await idle();
    await isState(1);
    isSlow = false;
    const again = await send(there);
    assert.deepEqual(
      [again.headers.get('idempotent-replayed'), again.headers.get('x-credits-used')],
      ['true', '0.0000'],
    );
    assert.equal(await spent(), PRICE);
    await until('its arrival to be noted', async () => (await states()).length === 0);
    assert.equal((await send(there)).headers.get('idempotent-replayed'), null);
  });

  test('a named call goes on, is charged once, and is kept under its name', async () => {
    const session = await sessionOf(here);
    const named = callOf(1, 'wait', {}, { 'farebox/idempotencyKey': 'mine' });
    const call = post(here, named, { 'mcp-session-id': session });
    await until('the service to run', () => runs.length === 1);
    await post(there, cancelOf(1), { 'mcp-session-id': session });
    assert.equal(runs[0]?.signal.aborted, false);
    runs[0]?.end();
    await (await call).text();
    const again = await toldBy(await post(there, named));
    assert.equal(again?.structuredContent?.run, 1);
    assert.equal(await spent(), PRICE);
  });
});

test('the books balance', () => assertBooksClosed(database.patient));
