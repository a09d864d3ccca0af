/**
 * A change of the file at the doors beside HTTP: what was bought of a route that left is given again to agents of MCP and A2A, and what
 * a gate's 402 named is honoured.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { AGENTS } from '../agents/a2a-agents.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf } from '../fire/money.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import { beginOf, finishOf, say } from './gate/guest-by-hand.fixture.ts';
import { secretOf } from './gate/guests.fixture.ts';
import { type OwnApi, startOwnApi } from './own-api.fixture.ts';

let world: PaymentWorld;
let api: OwnApi;
let database: TestDatabase;
let folder: string;
let server: ServerProcess;
let version = 1;

const config = ({ gatePrice = '0.02', routes = '' } = {}) => `
upstreams:
  weather: { url: "${api.url}", prefix: "/" }
gates:
  fastify: { url: "https://fastify.example", secret: "\${SECRET_OF_FASTIFY}" }
routes:
  "GET /v1/stays": { upstream: weather, price: "0.01" }
  "POST /fastify/v1/forecast": { gate: fastify, price: "${gatePrice}" }
  ${routes}
`;
const LEAVES = '"GET /v1/leaves/:id": { upstream: weather, price: "0.05" }';

before(async () => {
  [world, api, database, folder] = await Promise.all([
    startPaymentWorld(),
    startOwnApi(({ url }, reply) => {
      reply.setHeader('content-type', 'application/json');
      reply.end(JSON.stringify({ url }));
    }),
    openTestDatabase(),
    mkdtemp(join(tmpdir(), 'reload-doors-')),
  ]);
  await writeFile(join(folder, 'farebox.config.yaml'), config({ routes: LEAVES }));
  server = await startServerProcess({
    ...world.environment,
    DATABASE_URL: database.url,
    FAREBOX_CONFIG: join(folder, 'farebox.config.yaml'),
    SECRET_OF_FASTIFY: secretOf('fastify'),
  });
});
after(async () => {
  await server?.end('SIGKILL');
  await Promise.all([world?.stop(), api?.stop(), database?.close()]);
  await rm(folder, { recursive: true, force: true });
});

async function reload(text: string): Promise<void> {
  await writeFile(join(folder, 'farebox.config.yaml'), text);
  server.process.kill('SIGHUP');
  version += 1;
  await until('the file to be in force', async () => {
    const { sells } = (await jsonOf(fetch(`${server.url}/health/ready`))) as { sells?: { file: string } };
    return sells?.file === String(version);
  });
}

async function newKey(): Promise<string> {
  const nowMs = Date.now;
  const keys = createKeys(database.sql, nowMs);
  const parts = { sql: database.sql, keys, ledger: createLedger(database, nowMs), nowMs };
  return (await grantKey(parts, { amountMicros: 1_000_000n, label: 'test', note: 'test' })).apiKey;
}

async function tool(name: string, args: object, headers: Record<string, string>) {
  const answer = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
  });
  const sent = await answer.text();
  // biome-ignore lint/suspicious/noExplicitAny: the boundary at which tests look at whatever came
  return JSON.parse(/^data: (.*)$/m.exec(sent)?.[1] ?? sent) as any;
}

test('a price that a gate’s 402 named before a change is honoured after it: of a wallet as it signed, and of a key the least', async () => {
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  const begin = (headers: readonly string[]) =>
    say(server.url, 'begin', beginOf('', { headers: ['content-type', 'application/json', ...headers] }));
  const payer = await world.wallet(1);
  const { said } = await begin([]);
  assert.deepEqual([said.do, said.status], ['answer', 402]);
  const challenge = new Response(null, { status: 402, headers: said.headers });
  const signed = await signPayment(payer, { to: world.recipient, valueUnits: 20_000n });
  const paid = await paymentHeader(challenge, signed);
  await reload(config({ gatePrice: '0.07', routes: LEAVES }));
  const dearer = await begin([]);
  assert.match(Buffer.from(dearer.said.body, 'base64').toString(), /"price_usd":0\.07/);
  const received = await world.received();
  const ran = await begin(['payment-signature', paid]);
  assert.deepEqual([ran.said.do, ran.said.price], ['run', '0.02'], JSON.stringify(ran.said));
  const done = await say(server.url, 'finish', finishOf(ran.said.call));
  assert.equal(done.said.status, 200);
  assert.equal((await world.received()) - received, 20_000n);
  const byKey = await begin(['x-api-key', key]);
  assert.equal(byKey.said.price, '0.02');
  await say(server.url, 'finish', finishOf(byKey.said.call));
  assert.equal(await balanceOf(database.sql, account), 980_000n);
});

test('what was bought of a route that left is given again by MCP and A2A, and nothing else of it is sold', async () => {
  const key = await newKey();
  const account = await accountOf(database.sql, key);
  const paying = { 'x-api-key': key, 'idempotency-key': 'bought-once' };
  const other = { 'x-api-key': key, 'idempotency-key': 'bought-as-a-named-call' };
  const call = { service: 'get-v1-leaves-id', input: { id: '7' } };
  const answers = [
    await tool('get_v1_leaves_id', { id: '7' }, paying),
    await tool('call_service', call, other),
  ];
  for (const { result } of answers)
    assert.deepEqual([result.isError ?? false, /v1\/leaves\/7/.test(JSON.stringify(result))], [false, true]);
  const agents = await Promise.all(
    Object.values(AGENTS).map((open) => open(() => ({ url: server.url, headers: { 'x-api-key': key } }))),
  );
  const messageIds = agents.map(() => randomUUID());
  const ask = (index: number, messageId = messageIds[index] ?? '') =>
    agents[index]?.send({ messageId, data: { skill: 'get-v1-leaves-id', input: { id: '7' } } });
  const tasks = await Promise.all(agents.map((_agent, index) => ask(index)));
  for (const task of tasks) assert.equal(task?.state, 'completed', JSON.stringify(task));
  await reload(config({ gatePrice: '0.07' }));
  const asked = api.got.length;
  const held = await balanceOf(database.sql, account);
  assert.equal(held, 1_000_000n - 50_000n * 6n);

  const again = [
    await tool('get_v1_leaves_id', { id: '7' }, paying),
    await tool('call_service', call, other),
  ];
  assert.deepEqual(
    again.map(({ result }) => result.content),
    answers.map(({ result }) => result.content),
  );
  for (const [index, task] of tasks.entries())
    assert.deepEqual([(await ask(index))?.id, (await ask(index))?.answer], [task?.id, task?.answer]);

  for (const { result } of [
    await tool('get_v1_leaves_id', { id: '8' }, { 'x-api-key': key }),
    await tool('get_v1_leaves_id', { id: '7' }, {}),
    await tool('call_service', call, { 'x-api-key': key }),
  ])
    assert.deepEqual([result.isError, /NOT_SOLD_HERE/.test(JSON.stringify(result))], [true, true]);
  for (const index of agents.keys()) {
    const refused = await ask(index, randomUUID());
    assert.match(JSON.stringify(refused), /NOT_SOLD_HERE/);
    assert.notEqual(refused?.state, 'completed');
  }
  const byName = (name: string) =>
    fetch(`${server.url}/api/call`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key, 'idempotency-key': name },
      body: JSON.stringify(call),
    });
  assert.equal((await byName('bought-as-a-named-call')).status, 200);
  assert.equal((await byName('bought-never')).status, 404);
  assert.equal(api.got.length, asked, 'the API is asked no more');
  assert.equal(await balanceOf(database.sql, account), held);
  await assertBooksClosed(database.patient);
});
