/** A null for a field that may be left out is no field, at every door: strict function calling makes models write it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { type Json, rpc, seen } from '../agents/a2a-agents.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

let runs = 0;
const echo = defineService({
  path: 'echo',
  name: 'Echo',
  tag: 'Discovery',
  priceUsd: '0.10',
  mpp: true,
  summary: 'For tests.',
  input: z.object({
    word: z.string(),
    times: z.int().default(1),
    loud: z.boolean().optional(),
    only: z.object({ from: z.string(), to: z.string().optional() }).optional(),
    unit: z.enum(['m', 'km']).nullable().default('m'),
  }),
  aliases: { count: 'times' },
  output: z.object({ run: z.int(), asked: z.string() }),
  example: { word: 'a' },
  async run(input) {
    runs += 1;
    return answer({ run: runs, asked: JSON.stringify(input) }, { method: 'Counted.' });
  },
});

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, services: [echo], environment: EVERYTHING_ON });
});
after(async () => {
  await server?.close();
  await database?.close();
});

const PLAIN = { word: 'a', only: { from: 'b' } };
const WRITTEN = { word: 'a', times: null, loud: null, only: { from: 'b', to: null }, count: null };
const JSON_TYPE = { 'content-type': 'application/json' };

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, answer: (await response.json()) as Json };
}

/** One call by each door, under a name. */
const DOORS: Readonly<Record<string, (input: Json, name: string, key: string) => Promise<Json>>> = {
  'HTTP, below /x402/': (input, name, key) => overHttp('/x402/echo', input, name, key),
  'HTTP, below /mpp/': (input, name, key) => overHttp('/mpp/echo', input, name, key),
  'a tool of MCP': (input, name, key) => overMcp({ name: 'echo', arguments: input }, name, key),
  call_service: (input, name, key) =>
    overMcp({ name: 'call_service', arguments: { service: 'echo', input } }, name, key),
  async A2A(input, name, key) {
    const parts = [{ data: { skill: 'echo', input } }];
    const headers = { 'a2a-version': '1.0', 'x-api-key': key };
    const message = { messageId: name, role: 'ROLE_USER', parts };
    const { result, error } = await rpc(server.url, 'SendMessage', { message }, headers);
    return (
      seen(result?.task ?? assert.fail(JSON.stringify(error))).answer ?? assert.fail(JSON.stringify(result))
    );
  },
};

async function overHttp(path: string, input: Json, name: string, key: string): Promise<Json> {
  const { status, answer: body } = await post(path, input, { 'x-api-key': key, 'idempotency-key': name });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

async function overMcp(call: Json, name: string, key: string): Promise<Json> {
  const params = { ...call, _meta: { 'farebox/idempotencyKey': name } };
  const response = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { ...JSON_TYPE, accept: 'application/json, text/event-stream', 'x-api-key': key },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  const text = await response.text();
  const { result } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  assert.equal(result?.isError, undefined, text);
  return result.structuredContent;
}

for (const [door, buy] of Object.entries(DOORS)) {
  test(`${door}: it is the same purchase with nulls, at the same price`, async () => {
    const key = await server.key('1');
    const name = randomUUID();
    const before = runs;
    const first = await buy(PLAIN, name, key);
    const again = await buy(WRITTEN, name, key);
    assert.equal(first.asked, JSON.stringify({ word: 'a', times: 1, only: { from: 'b' }, unit: 'm' }));
    assert.deepEqual([again.run, runs], [first.run, before + 1], 'a second time it was run');
    const other = await buy({ ...WRITTEN, unit: null }, randomUUID(), key);
    assert.equal(JSON.parse(other.asked).unit, null, 'a field that takes null was given one');
    const { balanceUsd } = (await (
      await fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } })
    ).json()) as Json;
    assert.equal(Number(balanceUsd), 0.8);
  });
}

test('what is asked of wallets is the same with nulls, and so is what a dry run says', async () => {
  const accepts = async (input: Json) => {
    const { status, answer: terms } = await post('/x402/echo', input);
    assert.equal(status, 402);
    return terms.accepts;
  };
  assert.deepEqual(await accepts(WRITTEN), await accepts(PLAIN));
  const dry = async (input: Json) => {
    const { status, answer: told } = await post('/x402/echo?dryRun=1', input);
    return [status, told.price];
  };
  assert.deepEqual(await dry(WRITTEN), await dry(PLAIN));
  assert.equal((await dry({ ...WRITTEN, word: null }))[0], 400);
});
