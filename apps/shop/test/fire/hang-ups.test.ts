/** Callers who hang up on a paid model: the work is aborted at once, and it is free only so many times a day. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { z } from 'zod';
import inference from '../../../../packages/catalogue/src/services/ai-services/ai-inference.ts';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { FREE_HANG_UPS_A_DAY } from '../../../../packages/core/src/paid-call/free-hang-ups.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { rpc } from '../agents/a2a-agents.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, openCalls } from './money.fixture.ts';
import { type SlowModel, startSlowModel } from './slow-model.fixture.ts';
import { until } from './until.fixture.ts';

const GRANTED = 5_000_000n;
const PRICE = 50_000n;
const DAY_MS = 86_400_000;

let waiting: { abort(): void; isAborted(): boolean }[] = [];
/** Waits for its caller to leave, and lets the test end it. */
const patient = defineService({
  path: 'patient',
  name: 'Patient',
  tag: 'Discovery',
  priceUsd: '0.05',
  summary: 'For tests.',
  input: z.object({}),
  output: z.object({}),
  example: {},
  async run(_input, { signal }) {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push({ abort: resolve, isAborted: () => signal.aborted });
    await promise;
    return answer({}, { method: 'Waited.' });
  },
});

let database: TestDatabase;
let elsewhere: Pools;
let model: SlowModel;
let here: TestServer;
let there: TestServer;
let nowMs = Date.parse('2026-11-21T10:00:00Z');
let key: string;

before(async () => {
  [database, model] = await Promise.all([openTestDatabase(), startSlowModel()]);
  elsewhere = connectPools(database.url, 6);
  const options = { services: [inference, patient], environment: model.environment, nowMs: () => nowMs };
  [here, there] = await Promise.all([
    startTestServer({ pools: database, ...options }),
    startTestServer({ pools: elsewhere, ...options }),
  ]);
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await Promise.all([elsewhere && endPools(elsewhere, 1), database?.close(), model?.close()]);
});
beforeEach(async () => {
  waiting = [];
  model.isSlow = true;
  key = await here.key('5');
});

const idle = () =>
  until('no call to run', () => here.app.paidCall.running + there.app.paidCall.running === 0);
const prompt = { prompt: 'Hello' };
const balance = async () => balanceOf(database.sql, await accountOf(database.sql, key));

/** Asks the model, and hangs up when the question has reached it. */
async function hangUp(on: TestServer, headers: Record<string, string> = {}, body: object = prompt) {
  const asked = model.asked;
  const leave = new AbortController();
  const call = post(on, headers, body, leave.signal);
  await until('the model to be asked', () => model.asked > asked);
  leave.abort();
  await call;
}

/** The status of an answer; null for a caller that left. */
function post(on: TestServer, headers: Record<string, string>, body: object, signal: AbortSignal) {
  return fetch(`${on.url}/x402/ai-inference`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
    body: JSON.stringify(body),
    signal,
  }).then(
    (response) => response.status,
    () => null,
  );
}

describe('a caller who hangs up', () => {
  for (const stream of [false, true])
    test(`ends the work of the upstream at once, and pays nothing${stream ? ' (a stream)' : ''}`, async () => {
      const aborted = model.aborted;
      await hangUp(here, {}, { ...prompt, stream });
      await until('the model to be left alone', () => model.aborted === aborted + 1);
      await idle();
      assert.equal(await balance(), GRANTED);
      assert.equal(await openCalls(database.sql), 0);
    });

  test('ends the work of a service that has a signal, at the older address and as a tool too', async () => {
    for (const [path, body] of [
      ['/api/x402/patient', {}],
      ['/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'patient', arguments: {} } }],
    ] as const) {
      waiting = [];
      const asked = httpRequest(`${here.url}${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'x-api-key': key,
        },
      });
      asked.on('error', () => {});
      asked.end(JSON.stringify(body));
      await until('the service to run', () => waiting.length === 1);
      asked.destroy();
      await until(`the service to be aborted (${path})`, () => waiting[0]?.isAborted() === true);
      await idle();
      waiting[0]?.abort();
    }
    assert.equal(await balance(), GRANTED);
  });

  test('with an Idempotency-Key is charged, and the repeat has the answer', async () => {
    const headers = { 'idempotency-key': 'one' };
    const aborted = model.aborted;
    await hangUp(here, headers);
    model.answer();
    await idle();
    assert.equal(model.aborted, aborted);
    assert.equal(await balance(), GRANTED - PRICE);
    const again = await here.call('ai-inference', key, prompt, headers);
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
    assert.equal(await balance(), GRANTED - PRICE);
  });

  test('does not count against the upstream, however often it happens', async () => {
    for (let n = 0; n < 8; n += 1) await hangUp(here);
    await idle();
    model.isSlow = false;
    assert.equal((await here.call('ai-inference', key, prompt)).status, 200);
  });
});

describe('free hang-ups', () => {
  test('end for the day on every replica, before work is done, and a name buys on', async () => {
    for (let n = 0; n < FREE_HANG_UPS_A_DAY; n += 1) await hangUp(n % 2 === 0 ? here : there);
    await idle();
    const asked = model.asked;
    for (const on of [here, there]) {
      const refused = await on.call('ai-inference', key, prompt);
      const { code, charged, hint } = await jsonOf(refused);
      assert.deepEqual([refused.status, code, charged], [428, 'IDEMPOTENCY_KEY_REQUIRED', false]);
      assert.match(hint, /Idempotency-Key/);
    }
    assert.equal(model.asked, asked);
    assert.equal(await openCalls(database.sql), 0);

    model.isSlow = false;
    const named = await here.call('ai-inference', key, prompt, { 'idempotency-key': 'two' });
    assert.equal(named.status, 200);
    assert.equal(await balance(), GRANTED - PRICE);
    const other = await here.key('1');
    assert.equal((await here.call('ai-inference', other, prompt)).status, 200);

    const bought = await here.key('1');
    await database.sql`
      insert into root_buyers (account_id, root_buyer)
      values (${String(await accountOf(database.sql, bought))}, ${`account:${await accountOf(database.sql, key)}`})`;
    assert.equal((await here.call('ai-inference', bought, prompt)).status, 428, 'a key of the same buyer');

    nowMs += DAY_MS;
    assert.equal((await there.call('ai-inference', key, prompt)).status, 200);
    for (const job of here.app.jobs)
      if (job.name === 'forget-hang-ups') await job.run(new AbortController().signal);
    // What was held for the call of this day is given back once its answer has left.
    await until('no row to be left', async () => {
      const [left] = await database.sql`select count(*)::integer as count from free_hang_ups`;
      return left?.count === 0;
    });
    await assertBooksClosed(database.patient);
  });

  test('are exactly so many for any number of callers at once', async () => {
    const asked = model.asked;
    const leave = new AbortController();
    const calls = Array.from({ length: 3 * FREE_HANG_UPS_A_DAY }, (_, n) =>
      post(n % 2 === 0 ? here : there, {}, prompt, leave.signal),
    );
    const statuses: (number | null)[] = [];
    for (const call of calls) void call.then((status) => statuses.push(status));
    await until('the others to be refused', () => statuses.length === 2 * FREE_HANG_UPS_A_DAY);
    assert.deepEqual(new Set(statuses), new Set([428]));
    leave.abort();
    await Promise.all(calls);
    await idle();
    assert.ok(model.asked - asked <= FREE_HANG_UPS_A_DAY);
    const [used] = await database.sql`
      select count(*)::integer as count from free_hang_ups
      where held_until is null and buyer = ${`account:${await accountOf(database.sql, key)}`}`;
    assert.equal(used?.count, FREE_HANG_UPS_A_DAY);
    assert.equal(await balance(), GRANTED);
  });

  test('are not used by calls that are answered, refused or fail', async () => {
    model.isSlow = false;
    const poor = await here.key('0.01');
    const statuses = new Set<number>();
    for (let n = 0; n < FREE_HANG_UPS_A_DAY + 5; n += 1) {
      statuses.add((await here.call('ai-inference', key, prompt)).status);
      statuses.add((await here.call('ai-inference', poor, prompt)).status);
      statuses.add(
        (await here.call('ai-inference', key, { ...prompt, model: 'none', strictModel: true })).status,
      );
    }
    assert.deepEqual(statuses, new Set([200, 402, 400]));
  });

  test('of calls whose process is gone are free again after their time', async () => {
    const account = await accountOf(database.sql, key);
    await database.sql`
      insert into free_hang_ups (buyer, day, slot, call_id, held_until)
      select ${`account:${account}`}, ${new Date(nowMs).toISOString()}::timestamptz::date, slot, gen_random_uuid(),
             ${new Date(nowMs + 60_000).toISOString()}
      from generate_series(1, ${FREE_HANG_UPS_A_DAY}) slot`;
    model.isSlow = false;
    assert.equal((await here.call('ai-inference', key, prompt)).status, 428);
    nowMs += 60_000;
    assert.equal((await here.call('ai-inference', key, prompt)).status, 200);
  });

  test('are those of canceled tasks of A2A too: after the last a task of a paid model goes on and is charged', async () => {
    const headers = { 'a2a-version': '1.0', 'x-api-key': key };
    const begin = async () => {
      const asked = model.asked;
      const parts = [{ data: { skill: 'ai-inference', input: prompt } }];
      const message = { messageId: randomUUID(), role: 'ROLE_USER', parts };
      const sent = { message, configuration: { returnImmediately: true } };
      const { result } = await rpc(here.url, 'SendMessage', sent, headers);
      await until('the model to be asked', () => model.asked > asked);
      return String(result?.task.id);
    };
    const cancel = (id: string, on = there) => rpc(on.url, 'CancelTask', { id }, headers);
    for (let n = 1; n < FREE_HANG_UPS_A_DAY; n += 1) {
      const { result } = await cancel(await begin());
      assert.equal(result?.status.state, 'TASK_STATE_CANCELED');
      model.answer();
    }
    const twice = await begin();
    const both = await Promise.all([cancel(twice, here), cancel(twice)]);
    assert.ok(both.some(({ result }) => result?.status.state === 'TASK_STATE_CANCELED'));
    const last = await begin();
    const { error } = await cancel(last);
    assert.equal(error?.code, -32002, JSON.stringify(error));
    model.answer();
    await until('the task to end', async () => {
      const { result } = await rpc(here.url, 'GetTask', { id: last }, headers);
      return result?.status.state === 'TASK_STATE_COMPLETED';
    });
    await until('no call to be open', async () => (await openCalls(database.sql)) === 0);
    assert.equal(await balance(), GRANTED - PRICE);
    assert.equal((await here.call('ai-inference', key, prompt)).status, 428);
  });

  test('end the work of a canceled task of A2A at once, wherever it runs and wherever it was canceled', async () => {
    const headers = { 'a2a-version': '1.0', 'x-api-key': key };
    for (const [n, cancelAt] of [here, there].entries()) {
      const parts = [{ data: { skill: 'patient', input: {} } }];
      const message = { messageId: randomUUID(), role: 'ROLE_USER', parts };
      const sent = { message, configuration: { returnImmediately: true } };
      const { result } = await rpc(here.url, 'SendMessage', sent, headers);
      await until('the service to run', () => waiting.length === n + 1);
      const canceled = await rpc(cancelAt.url, 'CancelTask', { id: String(result?.task.id) }, headers);
      assert.equal(canceled.result?.status.state, 'TASK_STATE_CANCELED');
      await until('the service to be aborted', () => waiting[n]?.isAborted() === true);
      await idle();
      const again = await rpc(there.url, 'GetTask', { id: String(result?.task.id) }, headers);
      assert.equal(again.result?.status.state, 'TASK_STATE_CANCELED');
    }
    await until('no call to be open', async () => (await openCalls(database.sql)) === 0);
    assert.equal(await balance(), GRANTED);
  });

  test('count calls of any service, whose own use they do not end', async () => {
    for (let n = 0; n < FREE_HANG_UPS_A_DAY + 2; n += 1) {
      const leave = new AbortController();
      const left = fetch(`${here.url}/x402/patient`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key },
        body: '{}',
        signal: leave.signal,
      }).catch(() => null);
      await until('the service to run', () => waiting.length === n + 1);
      leave.abort();
      await left;
      await until('the service to be aborted', () => waiting[n]?.isAborted() === true);
      waiting[n]?.abort();
    }
    await idle();
    assert.equal((await here.call('ai-inference', key, prompt)).status, 428);
  });
});
