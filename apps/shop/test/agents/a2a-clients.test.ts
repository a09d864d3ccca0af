/**
 * Unmodified clients of A2A 0.3 and 1.0 find the skills, are told the price, pay by key and by x402, and find their tasks
 * again: after a restart, and on another replica. What they would not send is sent as it stands.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { ExactEvmScheme } from '@x402/evm';
import { x402Client } from '@x402/fetch';
import { z } from 'zod';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { noAnswer } from '../../../../packages/core/src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { countingServices } from '../fire/counting-services.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';
import { AGENTS, type Agent, type Json, rpc, rpcText, seen, type Way } from './a2a-agents.fixture.ts';

const EXTENSION = 'https://github.com/google-a2a/a2a-x402/v0.1';
const STATUS = 'x402.payment.status';
const script = { runs: 0, during: async (_run: number): Promise<void> => {} };
const real = (await loadServices()).filter(({ path }) =>
  ['ping', 'first-call', 'instant-agent-wallet', 'token-metadata'].includes(path),
);
/** Texts of several lines, by characters that end none in JSON. */
const TALE = ['Once\u2028upon', 'a\u2029time'];
const teller = defineService({
  path: 'tale',
  name: 'Tale',
  tag: 'AI Services',
  priceUsd: '0.04',
  mpp: true,
  summary: 'A tale, word by word.',
  input: z.object({ stream: z.boolean().default(false) }),
  output: z.object({ text: z.string() }),
  example: {},
  run: async () => answer({ text: TALE.join(' ') }, { method: 'At once.' }),
  stream: {
    field: 'stream',
    async *run() {
      for (const word of TALE) yield { event: 'word', data: { word } };
      return answer({ text: TALE.join(' ') }, { method: 'Word by word.' });
    },
  },
});
const services = [...real, teller, ...countingServices(script, { nickel: '0.05', deed: '0.05' }, 20_000)];

let world: PaymentWorld;
let database: TestDatabase;
let elsewhere: Pools;
let here: TestServer;
let there: TestServer;
let setClockMs = 0;

function open(pools: Pools, more: Record<string, string> = {}): Promise<TestServer> {
  const environment = { ...world.environment, ...world.made, ...more };
  return startTestServer({ pools, environment, services, nowMs: () => Date.now() + setClockMs });
}

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld(), openTestDatabase()]);
  elsewhere = connectPools(database.url, 6);
  [here, there] = await Promise.all([open(database), open(elsewhere)]);
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  if (elsewhere !== undefined) await endPools(elsewhere, 1);
  await Promise.all([world?.stop(), database?.close()]);
});
beforeEach(() => {
  script.runs = 0;
  script.during = async () => {};
});

async function balanceOf(key: string): Promise<number> {
  const response = await fetch(`${here.url}/api/keys/me`, { headers: { 'x-api-key': key } });
  return Number(((await response.json()) as Json).balanceUsd);
}

/** Signs for these terms with a wallet. */
async function sign(terms: Json, usd = 5): Promise<Json> {
  const payer = new x402Client();
  payer.register('eip155:*', new ExactEvmScheme(await world.wallet(usd)));
  return (await payer.createPaymentPayload(terms as never)) as unknown as Json;
}

const submitted = (payment: Json) => ({
  [STATUS]: 'payment-submitted',
  'x402.payment.payload': payment,
});

/** A message in the words of 1.0. */
function message(parts: Json[], more: Json = {}): Json {
  return { message: { messageId: randomUUID(), role: 'ROLE_USER', parts, ...more } };
}
const asking = (skill: unknown, input: unknown = {}) => [{ data: { skill, input } }];

async function sent(params: Json, headers: Record<string, string> = {}, on = here) {
  const { result, error } = await rpc(on.url, 'SendMessage', params, headers);
  return seen(result?.task ?? assert.fail(JSON.stringify(error)));
}

for (const [name, meet] of Object.entries(AGENTS)) {
  describe(name, () => {
    let on: TestServer;
    let headers: Record<string, string>;
    const way: Way = () => ({ url: on.url, headers });
    let agent: Agent;
    before(async () => {
      [on, headers] = [here, {}];
      agent = await meet(way);
    });
    beforeEach(() => {
      [on, headers] = [here, {}];
    });

    test('finds a skill for each service, with its price', () => {
      const { skills, capabilities } = agent.card;
      assert.deepEqual(
        skills.map(({ id }: Json) => id),
        services.map(({ path }) => path),
      );
      for (const { id, description, examples } of skills) {
        const service = services.find(({ path }) => path === id) ?? assert.fail(id);
        assert.ok(description.includes(`Costs ${service.priceUsd} USD`), description);
        assert.deepEqual(JSON.parse(examples[0]), { skill: id, input: service.example });
      }
      assert.equal(capabilities.streaming, true);
      assert.ok(capabilities.extensions.some(({ uri }: Json) => uri === EXTENSION));
    });

    test('is told the price, pays by x402 in the same task, and gets no second charge for a repeat', async () => {
      const first = await agent.send({
        messageId: randomUUID(),
        data: { skill: 'nickel', input: { name } },
      });
      assert.deepEqual([first.state, first.metadata[STATUS]], ['input-required', 'payment-required']);
      const terms = first.metadata['x402.payment.required'];
      assert.deepEqual([terms.x402Version, terms.accepts[0].amount], [2, '50000']);
      assert.equal(script.runs, 0);

      const paying = {
        messageId: randomUUID(),
        taskId: first.id,
        contextId: first.contextId,
        text: 'Here is the payment.',
        metadata: submitted(await sign(terms)),
      };
      const before = await world.received();
      const paid = await agent.send(paying);
      assert.deepEqual([paid.id, paid.state, paid.answer?.name], [first.id, 'completed', name]);
      assert.equal(paid.metadata[STATUS], 'payment-completed');
      const [receipt] = paid.metadata['x402.payment.receipts'];
      assert.equal(receipt.success, true);
      assert.match(receipt.transaction, /^0x[0-9a-f]{64}$/);

      const again = await agent.send(paying);
      assert.deepEqual([again.id, again.answer], [first.id, paid.answer]);
      assert.equal((await world.received()) - before, 50_000n);
      await assert.rejects(
        agent.send({ ...paying, metadata: submitted(await sign(terms)) }),
        /ended|not supported|-32004/,
      );
      assert.equal(script.runs, 1);
    });

    test('pays with a key; its task is there after a restart and elsewhere, and not for others', async () => {
      const key = await here.key('1');
      headers = { 'x-api-key': key };
      const asked = { messageId: randomUUID(), data: { skill: 'nickel', input: { name } } };
      const paid = await agent.send(asked);
      assert.equal(paid.state, 'completed', paid.text);
      assert.equal(paid.metadata['farebox/call'].creditsUsedUsd, '0.0500');
      on = there;
      assert.deepEqual((await agent.send(asked)).answer, paid.answer);
      assert.deepEqual((await agent.get(paid.id)).answer, paid.answer);
      await here.close();
      here = await open(database);
      on = here;
      assert.deepEqual((await agent.get(paid.id)).answer, paid.answer);
      if (agent.list !== undefined) assert.deepEqual(await agent.list(), [paid.id]);
      assert.deepEqual([await balanceOf(key), script.runs], [0.95, 1]);
      for (const other of [{}, { 'x-api-key': await here.key('1') }]) {
        headers = other as Record<string, string>;
        await assert.rejects(agent.get(paid.id), /not found|-32001|no such task/i);
        await assert.rejects(agent.cancel(paid.id), /not found|-32001|no such task/i);
      }
    });

    test('buys by the example of the card as its only text, with a key and from a wallet', async () => {
      const { examples } = agent.card.skills.find(({ id }: Json) => id === 'nickel') ?? assert.fail();
      const text: string = examples[0];
      const key = await here.key('1');
      headers = { 'x-api-key': key };
      const asked = { messageId: randomUUID(), text };
      const paid = await agent.send(asked);
      assert.deepEqual([paid.state, paid.answer?.run, await balanceOf(key)], ['completed', 1, 0.95]);
      // The same wish as data is the same message.
      const again = await agent.send({ ...asked, text: undefined, data: JSON.parse(text) } as never);
      assert.deepEqual([again.id, await balanceOf(key)], [paid.id, 0.95]);

      headers = {};
      const { id: taskId, metadata } = await agent.send({ messageId: randomUUID(), text });
      const paying = submitted(await sign(metadata['x402.payment.required']));
      const byWallet = await agent.send({ messageId: randomUUID(), taskId, text, metadata: paying });
      assert.deepEqual([byWallet.id, byWallet.state, byWallet.answer?.run], [taskId, 'completed', 2]);
    });

    test('is told the terms of the one skill that its words are about, in words that no wallet pays', async () => {
      const words = { messageId: randomUUID(), text: 'nickel' };
      for (const key of [null, await here.key('1')]) {
        headers = key === null ? {} : { 'x-api-key': key };
        const told = await agent.send({ ...words, messageId: randomUUID() });
        assert.equal(told.state, 'input-required');
        assert.match(
          told.text,
          /Words alone buy nothing.*skill nickel .*costs 0.05 USD.*Nothing was charged/s,
        );
        assert.deepEqual([told.metadata, (await agent.get(told.id)).metadata], [{}, {}]);
        assert.equal(told.data?.send.data.skill, 'nickel');
        const yes = await agent.send({ messageId: randomUUID(), taskId: told.id, text: 'Yes, do it.' });
        assert.deepEqual([yes.state, yes.metadata, script.runs], ['input-required', {}, 0]);
        const named = {
          messageId: randomUUID(),
          taskId: told.id,
          text: JSON.stringify(told.data?.send.data),
        };
        const bought = await agent.send(named);
        assert.equal(bought.state, key === null ? 'input-required' : 'completed');
        assert.equal(bought.metadata[STATUS], key === null ? 'payment-required' : undefined);
      }
      headers = {};
      assert.deepEqual((await agent.stream({ ...words, messageId: randomUUID() })).events, [
        'task input-required',
      ]);
    });

    test('follows the call in a stream, whichever way it is paid', async () => {
      headers = { 'x-api-key': await here.key('1') };
      const data = { skill: 'nickel', input: { name } };
      const byKey = await agent.stream({ messageId: randomUUID(), data });
      assert.deepEqual(byKey.events, ['task working', 'artifact answer', 'status completed']);
      assert.equal(byKey.last?.name, name);

      headers = {};
      const { events, statuses } = await agent.stream({ messageId: randomUUID(), data });
      assert.deepEqual(events, ['task input-required']);
      const metadata = submitted(await sign(statuses[0]?.['x402.payment.required']));
      const byWallet = await agent.stream({ messageId: randomUUID(), data, metadata });
      assert.deepEqual(
        byWallet.statuses.map((status) => status[STATUS]),
        ['payment-submitted', 'payment-verified', 'payment-completed'],
      );
      assert.equal(byWallet.last?.name, name);
    });

    test('hears an answer in pieces, and finds the whole of it later', async () => {
      headers = { 'x-api-key': await here.key('1') };
      const asked = { messageId: randomUUID(), data: { skill: 'tale', input: { stream: true } } };
      const heard = await agent.stream(asked);
      assert.deepEqual(heard.events, [
        'task working',
        'artifact pieces',
        'artifact pieces',
        'artifact answer',
        'status completed',
      ]);
      assert.equal(heard.last?.text, TALE.join(' '));
      const again = await agent.send(asked);
      assert.deepEqual([again.state, again.answer?.text], ['completed', TALE.join(' ')]);
      assert.deepEqual((await agent.get(again.id)).answer, heard.last);
    });

    test('is told how to choose when its words name no skill, and goes on in the same task', async () => {
      headers = { 'x-api-key': await here.key('1') };
      const first = await agent.send({
        messageId: randomUUID(),
        text: 'nickel or deed',
      });
      assert.equal(first.state, 'input-required');
      assert.match(first.text, /names no skill.*data part.*Nothing was charged/s);
      const about: string[] = first.data?.skills.map(({ skill }: Json) => skill);
      assert.deepEqual(about.slice(0, 2).sort(), ['deed', 'nickel']);
      const { id: taskId } = first;
      const unknown = await agent.send({ messageId: randomUUID(), taskId, data: { skill: 'pimg' } });
      assert.deepEqual(
        [unknown.id, unknown.state, unknown.data?.code],
        [taskId, 'input-required', 'UNKNOWN_SERVICE'],
      );
      const done = await agent.send({ messageId: randomUUID(), taskId, data: { skill: 'ping' } });
      assert.deepEqual([done.id, done.state], [taskId, 'completed']);
    });

    test('is told what is wrong with its input, uncharged, and puts it right', async () => {
      const key = await here.key('1');
      headers = { 'x-api-key': key };
      const wrong = await agent.send({
        messageId: randomUUID(),
        data: { skill: 'nickel', input: { name: 7 } },
      });
      assert.deepEqual(
        [wrong.state, wrong.data?.code, wrong.data?.charged],
        ['input-required', 'INVALID_REQUEST', false],
      );
      assert.equal(wrong.data?.fields[0].field, 'name');
      const right = await agent.send({
        messageId: randomUUID(),
        taskId: wrong.id,
        data: { skill: 'nickel', input: { name } },
      });
      assert.deepEqual([right.state, right.answer?.name, await balanceOf(key)], ['completed', name, 0.95]);
    });

    test('ends a task by declining its price, or by canceling it', async () => {
      const data = { skill: 'nickel' };
      const [declined, canceled] = [
        await agent.send({ messageId: randomUUID(), data }),
        await agent.send({ messageId: randomUUID(), data }),
      ];
      const { id: taskId } = declined;
      const metadata = { [STATUS]: 'payment-rejected' };
      const left = await agent.send({ messageId: randomUUID(), taskId, text: 'Too dear.', metadata });
      assert.deepEqual([left.state, left.metadata[STATUS]], ['failed', 'payment-rejected']);
      assert.equal((await agent.cancel(canceled.id)).state, 'canceled');
      await assert.rejects(agent.cancel(canceled.id), /cancel|-32002/i);
    });
  });
}

describe('who pays', () => {
  test('a payment that does not pay ends its task, and says why in the words of the extension', async () => {
    const first = await sent(message(asking('nickel')));
    const poor = await sign(first.metadata['x402.payment.required'], 0.01);
    const failed = await sent(message([{ text: 'paid' }], { taskId: first.id, metadata: submitted(poor) }));
    assert.equal(failed.state, 'failed');
    assert.equal(failed.metadata[STATUS], 'payment-failed');
    assert.equal(failed.metadata['x402.payment.error'], 'INSUFFICIENT_FUNDS');
    assert.deepEqual(failed.metadata['x402.payment.receipts'][0], {
      success: false,
      errorReason: 'PAYMENT_INSUFFICIENT_FUNDS',
      network: 'eip155:8453',
      transaction: '',
    });
    assert.equal(script.runs, 0);
  });

  test('a key without credit is told so with the price, and a wallet pays in its place', async () => {
    const headers = { 'x-api-key': await here.key('0.01') };
    const refused = await sent(message(asking('nickel')), headers);
    const terms = refused.metadata['x402.payment.required'];
    assert.deepEqual(
      [refused.state, terms.last_error_reason.code],
      ['input-required', 'INSUFFICIENT_CREDITS'],
    );
    // A list asks nobody for prices.
    const { result } = await rpc(here.url, 'ListTasks', {}, headers);
    assert.match(seen(result?.tasks[0]).text, /Ask for the task to be told its price/);
    const metadata = submitted(await sign(terms));
    const paid = await sent(message([{ text: 'paid' }], { taskId: refused.id, metadata }), headers);
    assert.deepEqual([paid.state, paid.metadata[STATUS]], ['completed', 'payment-completed']);
  });

  test('an answer with a secret is sold by x402, and no secret stands in the task', async () => {
    const first = await sent(message(asking('instant-agent-wallet', { chain: 'base' })));
    const payment = await sign(first.metadata['x402.payment.required']);
    const paid = await sent(message([{ text: 'paid' }], { taskId: first.id, metadata: submitted(payment) }));
    assert.equal(paid.state, 'completed', paid.text);
    const { privateKey } = (paid.answer ?? {}) as { privateKey?: string };
    const secret = privateKey ?? /"(0x[0-9a-f]{64})"/.exec(JSON.stringify(paid.answer))?.[1] ?? assert.fail();
    const [row] = await database.sql`select t::text as kept from a2a_tasks t where id = ${paid.id}`;
    assert.ok(row?.kept.includes('instant-agent-wallet') && !row.kept.includes(secret));
    // The id of the task opens nothing; the payment does.
    const byId = seen((await rpc(there.url, 'GetTask', { id: paid.id })).result ?? {});
    assert.deepEqual([byId.state, byId.answer], ['completed', undefined]);
    assert.match(byId.text, /same message again/);
    const before = await world.received();
    for (const configuration of [{}, { returnImmediately: true }]) {
      const again = await sent({
        ...message([{ text: 'paid' }], { taskId: first.id, metadata: submitted(payment) }),
        configuration,
      });
      assert.deepEqual([again.id, again.answer], [paid.id, paid.answer]);
    }
    assert.equal(await world.received(), before);
  });

  test('no claimSecret is kept, and the input of a task only until it ends', async () => {
    const claimSecret = `secret-${randomUUID()}`;
    const open = await sent(message(asking('instant-agent-wallet', { chain: 'base', claimSecret })));
    const done = await sent(message(asking('nickel', { name: 'Kept for a while' })), {
      'x-api-key': await here.key('1'),
    });
    const rows = await database.sql`
      select t::text as kept from a2a_tasks t where id in (${open.id}, ${done.id})`;
    assert.equal(rows.length, 2);
    for (const { kept } of rows)
      assert.ok(!kept.includes(claimSecret) && !kept.includes('Kept for a while'), kept);
  });

  test('a key buys nothing by words alone', async () => {
    const headers = { 'x-api-key': await here.key('1') };
    const { id: taskId } = await sent(message(asking('nickel')));
    const left = await sent(message([{ text: 'No, leave it.' }], { taskId }), headers);
    assert.deepEqual([left.state, left.data?.code, script.runs], ['input-required', 'INPUT_REQUIRED', 0]);
    const bought = await sent(message(asking('nickel', { name: 'y' }), { taskId }), headers);
    assert.deepEqual([bought.id, bought.answer?.name], [taskId, 'y']);
  });

  test('a payment that was taken before the service failed is not lost to its task', async () => {
    const { id: taskId, metadata } = await sent(message(asking('deed')));
    const paying = message([{ text: 'paid' }], {
      taskId,
      metadata: submitted(await sign(metadata['x402.payment.required'])),
    });
    const before = await world.received();
    script.during = async (run) => {
      if (run === 1) throw noAnswer('NO_DEED', 'There is none yet.');
    };
    const failed = await sent(paying);
    assert.deepEqual([failed.state, failed.data?.charged], ['input-required', true]);
    assert.equal((await rpc(here.url, 'CancelTask', { id: taskId })).error?.code, -32002);
    const done = await sent(paying);
    assert.deepEqual([done.state, done.answer?.run], ['completed', 2]);
    assert.equal((await world.received()) - before, 50_000n);
  });

  test('the extension is named in the answer when the caller activates it', async () => {
    for (const name of ['a2a-extensions', 'x-a2a-extensions']) {
      const headers = { [name]: `https://example.org/other, ${EXTENSION}` };
      const answered = await rpc(here.url, 'SendMessage', message(asking('nickel')), headers);
      assert.equal(answered.headers.get(name), EXTENSION);
    }
  });

  test('the same message at once on two replicas buys once', async () => {
    const key = await here.key('1');
    const headers = { 'x-api-key': key };
    const params = message(asking('nickel'));
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, i) => sent(params, headers, i % 2 === 0 ? here : there)),
    );
    assert.equal(new Set(all.map(({ id }) => id)).size, 1);
    assert.equal(new Set(all.map(({ answer }) => JSON.stringify(answer))).size, 1);
    assert.deepEqual([await balanceOf(key), script.runs], [0.95, 1]);
  });

  test('two payments at once for one task: one of them is taken', async () => {
    const { id: taskId, metadata } = await sent(message(asking('nickel')));
    const terms = metadata['x402.payment.required'];
    const before = await world.received();
    const payments = [await sign(terms), await sign(terms)];
    const hold = Promise.withResolvers<void>();
    script.during = () => hold.promise;
    const both = payments.map((payment, i) =>
      rpc(
        (i === 0 ? here : there).url,
        'SendMessage',
        message([{ text: 'paid' }], { taskId, metadata: submitted(payment) }),
      ),
    );
    const refused = await Promise.race(both);
    hold.resolve();
    assert.equal(refused.error?.data.code, 'TASK_BUSY');
    const answers = await Promise.all(both);
    assert.equal(answers.filter(({ result }) => result !== undefined).length, 1);
    assert.equal((await world.received()) - before, 50_000n);
  });
});

describe('while it runs', () => {
  /** A task whose service waits to be let go. */
  async function running(key: string, skill = 'nickel') {
    const hold = Promise.withResolvers<void>();
    script.during = () => hold.promise;
    const params: Json = { ...message(asking(skill)), configuration: { returnImmediately: true } };
    const task = await sent(params, { 'x-api-key': key });
    assert.equal(task.state, 'working');
    await until('the service to run', () => script.runs === 1);
    return { task, params, letGo: () => hold.resolve() };
  }

  test('a caller that does not wait is answered at once, and a subscriber elsewhere sees the end', async () => {
    const key = await here.key('1');
    const { task, letGo } = await running(key);
    const response = await fetch(`${there.url}/a2a`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: task.id } }),
    });
    letGo();
    const events = (await response.text())
      .split('\n')
      .flatMap((line): Json[] => (line.startsWith('data: ') ? [JSON.parse(line.slice(6)).result] : []));
    assert.equal(events[0]?.task.status.state, 'TASK_STATE_WORKING');
    assert.equal(events.at(-1)?.statusUpdate.status.state, 'TASK_STATE_COMPLETED');
    const { error } = await rpc(there.url, 'SubscribeToTask', { id: task.id }, { 'x-api-key': key });
    assert.equal(error?.code, -32004);
  });

  test('one caller may subscribe to so much that others still can', async () => {
    const key = await here.key('1');
    const { task, letGo } = await running(key);
    const subscribe = (id: string, apiKey: string) =>
      fetch(`${there.url}/a2a`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': apiKey },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id } }),
      });
    const all: Response[] = [];
    for (let i = 0; i < 20; i++) all.push(await subscribe(task.id, key));
    const refused = await subscribe(task.id, key);
    assert.equal(refused.status, 503);
    await refused.text();
    const other = await here.key('1');
    const open = await sent(message(asking('no-such')), { 'x-api-key': other });
    const second = await subscribe(open.id, other);
    assert.equal(second.status, 200);
    await second.text();
    letGo();
    for (const each of all) assert.match(await each.text(), /TASK_STATE_COMPLETED/);
  });

  test('it can be canceled elsewhere, and then costs nothing', async () => {
    const key = await here.key('1');
    const { task, params, letGo } = await running(key);
    const { result } = await rpc(there.url, 'CancelTask', { id: task.id }, { 'x-api-key': key });
    assert.equal(result?.status.state, 'TASK_STATE_CANCELED');
    letGo();
    await until('the price to come back', async () => (await balanceOf(key)) === 1);
    const after = await rpc(here.url, 'GetTask', { id: task.id }, { 'x-api-key': key });
    assert.equal(after.result?.status.state, 'TASK_STATE_CANCELED');
    assert.match(seen(after.result ?? {}).text, /Nothing was charged/);
    // The same message begins anew.
    const again = await sent({ message: params.message }, { 'x-api-key': key });
    assert.notEqual(again.id, task.id);
    assert.deepEqual([again.state, await balanceOf(key)], ['completed', 0.95]);
  });

  test('once it is charged it cannot be canceled; what leaves something behind is so from its beginning', async () => {
    const key = await here.key('1');
    const headers = { 'x-api-key': key };
    const { task, letGo } = await running(key, 'deed');
    const { error } = await rpc(there.url, 'CancelTask', { id: task.id }, headers);
    assert.equal(error?.code, -32002);
    letGo();
    await until('the end', async () => {
      const { result } = await rpc(here.url, 'GetTask', { id: task.id }, headers);
      return result?.status.state === 'TASK_STATE_COMPLETED';
    });
    assert.equal((await rpc(there.url, 'CancelTask', { id: task.id }, headers)).error?.code, -32002);
    assert.equal(await balanceOf(key), 0.95);
  });

  test('the message that comes again beside it, with input that does not fit, ends nothing', async () => {
    const key = await here.key('1');
    const headers = { 'x-api-key': key };
    const { task, params, letGo } = await running(key, 'deed');
    const { messageId } = params.message;
    const beside = await rpc(
      there.url,
      'SendMessage',
      message(asking('deed', { name: 7 }), { messageId, taskId: task.id }),
      headers,
    );
    assert.equal(seen(beside.result?.task).state, 'working');
    assert.equal((await rpc(there.url, 'CancelTask', { id: task.id }, headers)).error?.code, -32002);
    letGo();
    await until('the end', async () => {
      const { result } = await rpc(here.url, 'GetTask', { id: task.id }, headers);
      return result?.status.state === 'TASK_STATE_COMPLETED';
    });
    assert.equal((await sent({ message: params.message }, headers)).answer?.run, 1);
    assert.deepEqual([await balanceOf(key), script.runs], [0.95, 1]);
  });

  test('a wallet that cancels keeps its money, and its payment', async () => {
    const { id: taskId, metadata } = await sent(message(asking('nickel')));
    const payment = await sign(metadata['x402.payment.required']);
    const before = await world.received();
    const hold = Promise.withResolvers<void>();
    script.during = () => hold.promise;
    const waiting = sent(message([{ text: 'paid' }], { taskId, metadata: submitted(payment) }));
    await until('the service to run', () => script.runs === 1);
    assert.equal(
      (await rpc(there.url, 'CancelTask', { id: taskId })).result?.status.state,
      'TASK_STATE_CANCELED',
    );
    hold.resolve();
    assert.equal((await waiting).state, 'canceled');
    assert.equal(await world.received(), before);
    const again = await sent(message(asking('nickel'), { metadata: submitted(payment) }));
    assert.equal(again.state, 'completed', again.text);
    assert.equal((await world.received()) - before, 50_000n);
  });

  test('a payment that another task goes on with cannot be canceled there while it does', async () => {
    const { metadata } = await sent(message(asking('deed')));
    const paying = submitted(await sign(metadata['x402.payment.required']));
    const hold = Promise.withResolvers<void>();
    script.during = async (run) => {
      if (run === 1) throw noAnswer('NO_DEED', 'There is none yet.');
      await hold.promise;
    };
    const first = await sent(message(asking('deed'), { metadata: paying }));
    assert.equal(first.data?.charged, true);
    const second: Json = message(asking('deed'), { metadata: paying });
    const { id } = await sent({ ...second, configuration: { returnImmediately: true } });
    assert.notEqual(id, first.id);
    await until('the service to run again', () => script.runs === 2);
    const { error } = await rpc(there.url, 'CancelTask', { id });
    hold.resolve();
    assert.equal(error?.code, -32002);
    await until('the end', async () => {
      const { result } = await rpc(here.url, 'GetTask', { id });
      return result?.status.state === 'TASK_STATE_COMPLETED';
    });
  });

  test('a task whose worker is gone says that nobody knows, and the same message finds out', async () => {
    const key = await here.key('1');
    const headers = { 'x-api-key': key };
    const params = message(asking('nickel'));
    const paid = await sent(params, headers);
    // As a process leaves it that dies between the charge and the writing of the task's end.
    await database.sql`
      update a2a_tasks set state = 'charging', told = null, call_id = null, call_account_id = null,
        working_until = now() - interval '1 second' where id = ${paid.id}`;
    const left = seen((await rpc(there.url, 'GetTask', { id: paid.id }, headers)).result ?? {});
    assert.equal(left.state, 'input-required');
    assert.match(left.text, /not known yet.*same message again/s);
    assert.equal(left.data?.charged, null);
    assert.equal((await rpc(there.url, 'CancelTask', { id: paid.id }, headers)).error?.code, -32002);
    const found = await sent(params, headers, there);
    assert.deepEqual([found.id, found.state, found.answer], [paid.id, 'completed', paid.answer]);
    assert.deepEqual([await balanceOf(key), script.runs], [0.95, 1]);
  });
});

describe('what is kept', () => {
  test('tasks are listed to their key, page by page, answers only where they are wanted', async () => {
    const headers = { 'x-api-key': await here.key('1') };
    const ids: string[] = [];
    for (const skill of ['nickel', 'nickel', 'no-such']) {
      const { id } = await sent(message(asking(skill, { name: String(ids.length) })), headers);
      ids.unshift(id);
    }
    const list = async (params: Json) =>
      (await rpc(there.url, 'ListTasks', params, headers)).result ?? assert.fail();
    const first = await list({ pageSize: 2 });
    assert.deepEqual([first.tasks.length, first.totalSize, first.pageSize], [2, 3, 2]);
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
    assert.equal(second.nextPageToken, '');
    assert.deepEqual(
      [...first.tasks, ...second.tasks].map(({ id }: Json) => id),
      ids,
    );
    assert.ok(first.tasks.every(({ artifacts }: Json) => artifacts === undefined));
    const done = await list({ status: 'TASK_STATE_COMPLETED', includeArtifacts: true });
    assert.deepEqual(
      done.tasks.map(({ artifacts }: Json) => artifacts[0].parts[0].data.name),
      ['1', '0'],
    );
    for (const statusTimestampAfter of ['0000-01-01T00:00:00Z', '9999-12-31T23:59:59-23:00'])
      assert.equal((await list({ statusTimestampAfter })).totalSize, statusTimestampAfter < '1' ? 3 : 0);
    assert.equal((await rpc(here.url, 'ListTasks', {})).error?.code, -32600);
    const { result } = await rpc(here.url, 'ListTasks', {}, { 'x-api-key': await here.key('1') });
    assert.deepEqual(result?.tasks, []);
  });

  test('an unpaid task is forgotten after an hour, a paid one with its answer', async () => {
    const headers = { 'x-api-key': await here.key('1') };
    const [unpaid, paid] = [
      await sent(message(asking('nickel'))),
      await sent(message(asking('nickel')), headers),
    ];
    try {
      setClockMs = 3_601_000;
      assert.equal((await rpc(here.url, 'GetTask', { id: unpaid.id })).error?.code, -32001);
      assert.ok((await rpc(here.url, 'GetTask', { id: paid.id }, headers)).result);
      setClockMs = 49 * 3_600_000;
      assert.equal((await rpc(here.url, 'GetTask', { id: paid.id }, headers)).error?.code, -32001);
      const job = here.app.jobs.find(({ name }) => name === 'drop-expired-tasks') ?? assert.fail();
      await job.run();
      const left = await database.sql`select id from a2a_tasks where id in (${unpaid.id}, ${paid.id})`;
      assert.equal(left.length, 0);
    } finally {
      setClockMs = 0;
    }
  });

  test('unpaid tasks are bounded in number, and who brings a key has room beyond', async () => {
    await database.sql`delete from a2a_tasks`;
    const small = await open(elsewhere, { A2A_MAX_UNPAID_TASKS: '4' });
    try {
      for (let i = 0; i < 2; i++) await sent(message(asking('nickel')), {}, small);
      const { error, status } = await rpc(small.url, 'SendMessage', message(asking('nickel')));
      assert.deepEqual([status, error?.data.code, error?.data.charged], [503, 'TOO_MANY_TASKS', false]);
      const paid = await sent(message(asking('nickel')), { 'x-api-key': await here.key('1') }, small);
      assert.equal(paid.state, 'completed');
    } finally {
      await small.close();
    }
  });

  test('who has a key has more room than whoever sends what looks like a payment; what came before needs none', async () => {
    await database.sql`delete from a2a_tasks`;
    const headers = { 'x-api-key': await here.key('1') };
    const bought = message(asking('nickel'));
    const paid = await sent(bought, headers);
    for (let i = 0; i < 3; i++) await sent(message(asking('nickel')));
    const junk = message(asking('nickel'), { metadata: submitted({ any: 'thing' }) });
    const small = await open(elsewhere, { A2A_MAX_UNPAID_TASKS: '4' });
    const full = await open(elsewhere, { A2A_MAX_UNPAID_TASKS: '1' });
    try {
      for (const [params, charged] of [
        [message(asking('nickel')), false],
        [junk, null],
      ] as const) {
        const { error } = await rpc(small.url, 'SendMessage', params);
        assert.deepEqual([error?.data.code, error?.data.charged], ['TOO_MANY_TASKS', charged]);
      }
      assert.equal((await sent(message(asking('nickel')), headers, small)).state, 'completed');
      const refused = await rpc(full.url, 'SendMessage', message(asking('nickel')), headers);
      assert.deepEqual([refused.error?.data.code, refused.error?.data.charged], ['TOO_MANY_TASKS', null]);
      assert.deepEqual((await sent(bought, headers, full)).answer, paid.answer);
      const failed = await sent(junk);
      assert.equal(failed.state, 'failed');
      setClockMs = 301_000;
      assert.equal((await rpc(here.url, 'GetTask', { id: failed.id })).error?.code, -32001);
    } finally {
      setClockMs = 0;
      await Promise.all([small.close(), full.close()]);
    }
  });

  test('input that is too long to be kept has to come with the payment', async () => {
    const name = 'n'.repeat(17_000);
    const first = await sent(message(asking('nickel', { name })));
    const metadata = submitted(await sign(first.metadata['x402.payment.required']));
    const again = await sent(message([{ text: 'paid' }], { taskId: first.id, metadata }));
    assert.deepEqual([again.state, again.data?.code], ['input-required', 'INPUT_REQUIRED']);
    assert.equal(script.runs, 0);
    const done = await sent(message(asking('nickel', { name }), { taskId: first.id, metadata }));
    assert.deepEqual([done.state, done.answer?.name], ['completed', name]);
  });
});

describe('what is no message', () => {
  test('is told so in JSON-RPC, uncharged', async () => {
    const key = await here.key('1');
    const headers = { 'x-api-key': key };
    const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    const withParams = (params: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${params}}`;
    const texts: readonly (readonly [string, number])[] = [
      ['', -32600],
      ['{', -32700],
      ['[]', -32600],
      ['{"jsonrpc":"1.0","id":1,"method":"SendMessage"}', -32600],
      ['{"jsonrpc":"2.0","id":{},"method":"SendMessage"}', -32600],
      ['{"jsonrpc":"2.0","id":1,"method":"constructor"}', -32601],
      ['{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32601],
      [withParams('{}'), -32602],
      [withParams('null'), -32602],
      [withParams('{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[{"text":"a"}]}}'), -32602],
      [withParams('{"message":{"messageId":"a","role":"user","parts":[]}}'), -32602],
      [withParams('{"message":{"messageId":"a\\u0000","role":"user","parts":[{"text":"a"}]}}'), -32700],
      [withParams(`{"message":{"messageId":"a","role":"user","parts":[{"data":${deep}}]}}`), -32602],
      [withParams('{"message":{"messageId":"a","role":"user","parts":[{"raw":"AAAA"}]}}'), -32005],
      [
        withParams(`{"message":{"messageId":"${'a'.repeat(256)}","role":"user","parts":[{"text":"a"}]}}`),
        -32602,
      ],
      [
        withParams('{"message":{"messageId":"a","taskId":"none","role":"user","parts":[{"text":"a"}]}}'),
        -32001,
      ],
      ...[
        ...[{ pageToken: 'nowhere' }, { status: 'NONSENSE' }, { status: 'completed' }, { status: 4 }],
        ...[{ pageSize: 0 }, { pageSize: -1 }, { pageSize: 101 }, { pageSize: '5' }, { pageSize: 1.5 }],
        ...[{ historyLength: -1 }, { historyLength: 'all' }, { statusTimestampAfter: -1 }],
        ...[{ statusTimestampAfter: 'yesterday' }, { includeArtifacts: 1 }, { contextId: 7 }],
      ].map(
        (params) => [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params }), -32602] as const,
      ),
      ...['GetTask', 'tasks/get'].map(
        (method) =>
          [
            JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { id: 'a', historyLength: -1 } }),
            -32602,
          ] as const,
      ),
      ...['SendMessage', 'message/send', 'SendStreamingMessage', 'message/stream'].map(
        (method) =>
          [
            JSON.stringify({
              jsonrpc: '2.0',
              id: 1,
              method,
              params: { ...message(asking('nickel')), configuration: { historyLength: -1 } },
            }),
            -32602,
          ] as const,
      ),
      ['{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{}}', -32003],
      ['{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}', -32004],
      ['{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}', -32007],
    ];
    for (const [body, code] of texts) {
      const { error } = await rpcText(here.url, body, headers);
      assert.equal(error?.code, code, body.slice(0, 120));
      assert.equal(error?.data.charged, false, body.slice(0, 120));
    }
    const { error } = await rpc(here.url, 'SendMessage', {}, { 'a2a-version': '2.0' });
    assert.equal(error?.code, -32009);
    const huge = await fetch(`${here.url}/a2a`, { method: 'POST', body: 'a'.repeat(3_000_000) });
    assert.equal(huge.status, 413);
    await huge.text();
    assert.deepEqual([await balanceOf(key), script.runs], [1, 0]);
  });

  test('odd ways to name a skill are answered by what may be sent', async () => {
    const headers = { 'x-api-key': await here.key('1') };
    const odd: readonly (readonly [Json[], Json, string])[] = [
      [[{ data: { skill: 7 } }], {}, 'SKILL_REQUIRED'],
      [[{ data: null }, { text: '{"skill":"nickel"}' }], {}, 'SKILL_REQUIRED'],
      [[{ data: ['nickel'] }], {}, 'SKILL_REQUIRED'],
      [[{ data: { skill: '__proto__' } }], {}, 'UNKNOWN_SERVICE'],
      [[...asking('nickel'), ...asking('ping')], {}, 'ONE_SKILL_A_MESSAGE'],
      [[{ data: { skill: 'nickel', input: [1] } }], {}, 'INVALID_REQUEST'],
    ];
    for (const [parts, more, code] of odd) {
      const task = await sent(message(parts, more), headers);
      assert.deepEqual([task.state, task.data?.code], ['input-required', code], JSON.stringify(parts));
    }
    assert.equal(script.runs, 0);
    const metadata = { skill: 'nickel' };
    const byMetadata = await sent(message([{ data: { name: 'm' } }], { metadata }), headers);
    assert.deepEqual([byMetadata.state, byMetadata.answer?.name], ['completed', 'm']);
  });

  test('a text that as a whole is a data part counts as one, and no other text does', async () => {
    const key = await here.key('1');
    const headers = { 'x-api-key': key };
    const send = (texts: readonly string[]) =>
      rpc(here.url, 'SendMessage', message(texts.map((text) => ({ text }))), headers);
    const nickel = '{"skill":"nickel","input":{}}';
    const words: readonly (readonly string[])[] = [
      [nickel, 'please'],
      [nickel, nickel],
      [`Buy this: ${nickel}`],
      [`${nickel} please`],
      [`[${nickel}]`],
      [JSON.stringify(nickel)],
      ['{"skill":"nickel",}'],
      ['{"__proto__":{"skill":"nickel"}}'],
      ['{"input":{"skill":"nickel"}}'],
      ['{"constructor":{"prototype":{"skill":"nickel"}}}'],
      ['{"skill":7,"input":{}}'],
      ['{"skill":null}'],
      ['{"skill":["nickel"]}'],
      ['{"skill":{"skill":"nickel"}}'],
      ['{'.repeat(10_000)],
      [`{"skill":"nickel","input":${'['.repeat(100_000)}}`],
    ];
    for (const texts of words) {
      const { result } = await send(texts);
      const task = seen(result?.task ?? assert.fail(texts.join().slice(0, 80)));
      assert.deepEqual(
        [task.state, task.data?.code],
        ['input-required', 'SKILL_REQUIRED'],
        texts.join().slice(0, 80),
      );
    }
    const named: readonly (readonly [string, string])[] = [
      ['{"skill":"__proto__"}', 'UNKNOWN_SERVICE'],
      ['{"skill":"constructor"}', 'UNKNOWN_SERVICE'],
      ['{"skill":"nickel","input":[1]}', 'INVALID_REQUEST'],
      ['{"skill":"nickel","input":"{}"}', 'INVALID_REQUEST'],
      [`{"skill":"nickel","input":{"name":7,"__proto__":{"name":"x"}}}`, 'INVALID_REQUEST'],
    ];
    for (const [text, code] of named)
      assert.equal(seen((await send([text])).result?.task).data?.code, code, text);
    const refused: readonly string[] = [
      '{"skill":"ping","skill":"nickel"}',
      '{"skill":"nickel","skill":"nickel"}',
      '{"skill":"ping","\\u0073kill" : "nickel"}'.replaceAll('\\\\', '\\'),
      '{"skill":7,"input":{"skill":1},"skill":"nickel"}',
      `{"skill":"nickel","input":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`,
      `{"skill":"nickel","input":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
      '{"skill":"nickel","input":{"name":"\\u0000"}}',
      '{"skill":"nickel","input":{"name":"\\ud800"}}',
    ];
    for (const text of refused) {
      const { error } = await send([text]);
      assert.deepEqual([error?.code, error?.data.charged], [-32602, false], text.slice(0, 80));
      assert.equal(error?.data.fields[0].field, 'message.parts.0.text');
    }
    assert.deepEqual([await balanceOf(key), script.runs], [1, 0]);
    const [huge, long] = [1_000_000, 200_000].map((length) =>
      JSON.stringify({ skill: 'nickel', input: { name: 'n'.repeat(length) } }),
    );
    assert.equal((await send([huge ?? ''])).status, 413);
    assert.equal(seen((await send([long ?? ''])).result?.task).answer?.name.length, 200_000);
    const within = await send([' \n{"input":{"name":"{\\"skill\\":1}","skill":[]},"skill":"nickel"}\t']);
    assert.equal(seen(within.result?.task).answer?.name, '{"skill":1}');
    assert.deepEqual([await balanceOf(key), script.runs], [0.9, 2]);
  });

  test('foreign hosts and pages are refused, those of this machine are not', async () => {
    const ask = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'none' } });
    for (const origin of ['https://evil.test', 'null', 'https://localhost.evil.test', 'garbage'])
      assert.equal((await rpcText(here.url, ask, { origin })).status, 403, origin);
    for (const origin of ['http://localhost:6274', new URL(here.url).origin])
      assert.equal((await rpcText(here.url, ask, { origin })).status, 200, origin);
    for (const [host, status] of [
      ['evil.test', 403],
      ['farebox.test', 200],
    ] as const)
      assert.equal(await statusForHost(host, ask), status);
  });

  test('the card is said in the version that is asked for, and caches are told', async () => {
    for (const [version, spoken] of [
      ['1.0', undefined],
      ['1.0.0', undefined],
      ['0.3', '0.3.0'],
      ['', '0.3.0'],
    ] as const) {
      const response = await fetch(`${here.url}/.well-known/agent-card.json`, {
        headers: version === '' ? {} : { 'a2a-version': version },
      });
      const card = (await response.json()) as Json;
      assert.equal(card.protocolVersion, spoken, version);
      assert.match(response.headers.get('vary') ?? '', /A2A-Version/);
      assert.match(response.headers.get('etag') ?? '', /^"/);
      assert.deepEqual(
        card.supportedInterfaces.map(({ url, protocolVersion }: Json) => [url, protocolVersion]),
        [
          ['http://farebox.test/a2a', '1.0'],
          ['http://farebox.test/a2a/v1', '1.0'],
          ['http://farebox.test/a2a', '0.3'],
          ['http://farebox.test/a2a', '0.3'],
        ],
      );
    }
    const got = await fetch(`${here.url}/a2a`);
    assert.deepEqual([got.status, got.headers.get('allow')], [405, 'POST']);
    await got.text();
  });
});

test('whoever finds the card verifies it by the keys of any replica, and all replicas publish the same', async () => {
  const published = await fetch(`${there.url}/.well-known/jwks.json`);
  assert.equal(published.headers.get('content-type'), 'application/jwk-set+json');
  const { keys } = (await published.json()) as { keys: { kid: string }[] };
  const verifier = verifyAgentCardSignature(async (kid, jku) => {
    assert.equal(jku, 'http://farebox.test/.well-known/jwks.json');
    return (keys.find((key) => key.kid === kid) ?? assert.fail('no such key')) as never;
  });
  for (const version of ['0.3', '1.0']) {
    const [one, other] = await Promise.all(
      [here, there].map(({ url }) =>
        fetch(`${url}/.well-known/agent-card.json`, { headers: { 'a2a-version': version } }),
      ),
    );
    assert.equal(one?.headers.get('etag'), other?.headers.get('etag'));
    const card = (await one?.json()) as never;
    assert.deepEqual(await other?.json(), card);
    await verifier(AgentCard.fromJSON(card));
    await verifier(card);
  }
});

/** Asks by the bare client of HTTP: others do not let their user say whom they ask. */
async function statusForHost(host: string, body: string): Promise<number | undefined> {
  const { port, hostname } = new URL(here.url);
  const headers = { 'content-type': 'application/json', host };
  const asked = request({ hostname, port, path: '/a2a', method: 'POST', headers });
  asked.end(body);
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}
