/**
 * Price, availability and MPP of the services that the shop ships with, as an operator sets them: every view tells the price in force,
 * an operator's word wins over the file's until it is taken back, and each change leaves its trace.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type ServerProcess, startServerProcess } from '../fire/server-process.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const SERVICE = 'token-price';

let world: MppWorld;
let database: TestDatabase;
const servers: TestServer[] = [];
before(async () => {
  world = await startMppWorld({});
});
after(() => world?.stop());
beforeEach(async () => {
  database = await openTestDatabase();
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  await database.close();
});

async function start(nowMs: () => number = Date.now): Promise<TestServer> {
  const server = await startTestServer({
    pools: database,
    nowMs,
    environment: {
      ...world.environment,
      ADMIN_TOKENS: `desk:${TOKEN}`,
      SERVICES: 'ping,first-call,token-price',
      SERVICE_COSTS_USD: 'token-price=0.10',
    },
  });
  servers.push(server);
  return server;
}

// biome-ignore lint/suspicious/noExplicitAny: whatever came, as in `jsonOf`
type Json = any;

async function ask(url: string, path: string, body?: object, key: string = randomUUID()) {
  const answer = await fetch(`${url}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(body === undefined ? {} : { 'idempotency-key': key, 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Json };
}
const set = async (url: string, service: string, rule: object, key?: string) =>
  ask(url, `services/${service}`, { reason: 'the price of a test', ...rule }, key);
const shownOf = async (url: string, service = SERVICE) =>
  (await ask(url, 'services')).body.services.find((each: Json) => each.service === service);

/** What each view says that a service costs, in micro-USD; null: it is not there, or not for sale. */
async function pricesOf(url: string): Promise<Record<string, number | null>> {
  const json = async (path: string, init?: RequestInit): Promise<Json> =>
    (await fetch(url + path, init)).json();
  const millionths = (usd: string | number | undefined) =>
    usd === undefined ? null : Math.round(Number(usd) * 1_000_000);
  const catalog = (await json('/x402/catalog')).services.find(({ id }: Json) => id === SERVICE);
  const openapi = (await json('/openapi.json')).paths;
  const card = await json('/.well-known/agent-card.json');
  const mcp = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
  const [, data = ''] = /^data: (.*)$/m.exec(await mcp.text()) ?? [];
  const tool = JSON.parse(data).result.tools.find(({ name }: Json) => name === 'token_price');
  const skill = card.skills.find(({ id }: Json) => id === SERVICE);
  return {
    'x402 402': Number((await json(`/x402/${SERVICE}`)).accepts?.[0]?.amount ?? Number.NaN) || null,
    'mpp 402': millionths((await json(`/mpp/${SERVICE}`)).price_usd),
    catalog: millionths(catalog?.priceUSD),
    openapi: millionths(openapi[`/x402/${SERVICE}`]?.post['x-price-usd']),
    'openapi of mpp': millionths(openapi[`/mpp/${SERVICE}`]?.post['x-price-usd']),
    recipe: millionths((await json(`/x402/recipes/${SERVICE}`)).priceUsd),
    'mpp catalog': millionths(
      (await json('/mpp/catalog')).services.find(({ id }: Json) => id === SERVICE)?.amount,
    ),
    mcp: millionths(tool?._meta['farebox/price'].amountUsd),
    a2a: skill === undefined ? null : millionths(card.pricesUsd?.[SERVICE] ?? priceIn(JSON.stringify(card))),
  };
}

function priceIn(card: string): string | undefined {
  return new RegExp(`"${SERVICE}":"(\\d+\\.\\d+)"`).exec(card)?.[1];
}

const all = (micros: number | null) => (said: Record<string, number | null>) =>
  assert.deepEqual(said, Object.fromEntries(Object.keys(said).map((view) => [view, micros])));

test('an operator’s price, availability and MPP are what every view and every payment tells, until they are taken back', async () => {
  const { url, key, call } = await start();
  const before = await shownOf(url);
  assert.deepEqual([before.byFile, before.byOperator], [null, null]);
  assert.deepEqual(before.inForce, { available: true, ...before.byDefault });
  assert.deepEqual(before.margin, {
    costUsd: '0.10',
    costFrom: 'declared',
    marginUsd: '0.15',
    marginPercent: 60,
  });
  assert(before.supply.answersPerHour > 0, JSON.stringify(before.supply));
  const usual = await pricesOf(url);
  const byMpp = ['mpp 402', 'openapi of mpp', 'mpp catalog'];
  for (const [view, price] of Object.entries(usual))
    assert.equal(price, byMpp.includes(view) ? null : 250_000, view);

  const done = await set(url, SERVICE, { price: '0.123456', mpp: true });
  assert.deepEqual(
    [done.status, done.body.act.act, done.body.service.inForce.price],
    [200, 'set_service', '0.123456'],
  );
  all(123_456)(await pricesOf(url));
  assert.equal((await shownOf(url)).margin.marginUsd, '0.023456', 'of the price in force');

  assert.equal((await set(url, SERVICE, { price: '0.2' })).status, 200);
  all(200_000)(await pricesOf(url));
  assert.equal((await set(url, SERVICE, { price: '0.123456' })).status, 200);
  assert.equal((await set(url, SERVICE, { mpp: false })).status, 200);
  const withoutMpp = await pricesOf(url);
  assert.deepEqual(
    byMpp.map((view) => withoutMpp[view]),
    [null, null, null],
  );
  assert.equal(withoutMpp.catalog, 123_456, 'the price stays as it was set');

  assert.equal((await set(url, SERVICE, { available: false })).status, 200);
  all(null)(await pricesOf(url));
  assert.equal((await set(url, SERVICE, { price: '0.2' })).status, 200);
  all(null)(await pricesOf(url));
  const refused = await call(SERVICE, await key('1'), { token: 'ETH' });
  assert.deepEqual([refused.status, ((await refused.json()) as Json).code], [404, 'NOT_SOLD_HERE']);

  assert.equal((await set(url, SERVICE, { price: null, available: null, mpp: null })).status, 200);
  assert.deepEqual(await pricesOf(url), usual);
  assert.equal((await shownOf(url)).byOperator, null);
  assert.equal((await proveBooks(database.patient)).balanced, true);
});

test('each change is an act with its reason, done once, and a version with who made it', async () => {
  const { url, log } = await start();
  const first = await set(url, SERVICE, { price: '0.5' }, 'the-very-same-key');
  const again = await set(url, SERVICE, { price: '0.5' }, 'the-very-same-key');
  assert.deepEqual([first.body.repeated, again.body.repeated], [false, true]);
  const other = await set(url, SERVICE, { price: '0.6' }, 'the-very-same-key');
  assert.deepEqual([other.status, other.body.code], [409, 'IDEMPOTENCY_KEY_REUSED']);
  await Promise.all([set(url, 'ping', { price: '0.7' }), set(url, 'first-call', { available: false })]);
  const { versions } = (await ask(url, 'stock/versions')).body;
  assert.deepEqual(
    versions.map(({ version, kind, by, reason }: Json) => [version, kind, by, reason]),
    ['3', '2', '1'].map((version) => [version, 'rules', 'desk', 'the price of a test']),
  );
  const { content } = (await ask(url, 'stock/versions/3')).body;
  assert.deepEqual(content, {
    'first-call': { available: false },
    ping: { price: '0.70' },
    'token-price': { price: '0.50' },
  });
  const { acts } = (await ask(url, 'acts')).body;
  assert.deepEqual(
    acts.map(({ act, actor, amountUsd }: Json) => [act, actor, amountUsd]),
    Array.from({ length: 3 }, () => ['set_service', 'desk', null]),
  );
  assert.equal(versions[2].actId, first.body.act.actId);
  assert.equal(log.filter((line) => line.includes('operator acted')).length, 3);
  await assert.rejects(database.sql`update stock_versions set content = '{}'`, /only ever added/);
  await assert.rejects(database.sql`delete from stock_versions`, /only ever added/);
});

test('what cannot be sold so is refused, and nothing of it stays', async () => {
  const { url } = await start();
  for (const [service, rule, status, code] of [
    ['no-such-service', { price: '1' }, 404, 'NO_SUCH_SERVICE'],
    [SERVICE, { price: '0' }, 400, 'INVALID_REQUEST'],
    [SERVICE, { price: '0.0000001' }, 400, 'INVALID_REQUEST'],
    [SERVICE, { price: '-1' }, 400, 'INVALID_REQUEST'],
    [SERVICE, { price: '1e3' }, 400, 'INVALID_REQUEST'],
    [SERVICE, { price: 0.5 }, 400, 'INVALID_REQUEST'],
    [SERVICE, { price: '1000000' }, 400, 'INVALID_REQUEST'],
    [SERVICE, {}, 400, 'INVALID_REQUEST'],
    [SERVICE, { price: '1', prize: '2' }, 400, 'INVALID_REQUEST'],
    ['__proto__', { price: '1' }, 400, 'INVALID_REQUEST'],
  ] as const) {
    const answer = await set(url, service, rule);
    assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(rule));
  }
  assert.equal((await set(url, 'ping', { available: false })).status, 200);
  assert.equal((await set(url, 'first-call', { available: false })).status, 200);
  const nothing = await set(url, SERVICE, { available: false });
  assert.deepEqual([nothing.status, nothing.body.code], [409, 'CANNOT_BE_SOLD_SO']);
  assert.match(nothing.body.message, /leaves nothing to sell/);
  assert.equal((await ask(url, 'stock/versions')).body.versions.length, 2);
  const unknown = await ask(url, 'stock/versions/99');
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'NO_SUCH_VERSION']);
});

test('a dearer price is taken of a key only once what was named before it has passed', async () => {
  let nowMs = Date.now();
  const { url, key, call } = await start(() => nowMs);
  const bought = await key('9');
  const used = async () => (await call('first-call', bought)).headers.get('x-credits-used');
  const usual = await used();
  assert.equal((await set(url, 'first-call', { price: '0.9' })).status, 200);
  assert.equal(await used(), usual);
  nowMs += 359_000;
  assert.equal(await used(), usual);
  nowMs += 2_000;
  assert.equal(await used(), '0.9000');
});

test('a price that one replica named is taken by another that has not heard of it, dearer or cheaper, once', async () => {
  const account = await world.wallet();
  const wallet = await world.base.wallet();
  // No jobs run here, so that the second one hears of nothing by itself.
  const [first, second] = [await start(), await start()];
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const send = ({ url }: TestServer, headers = {}) =>
    fetch(`${url}/mpp/first-call`, { ...init, headers: { ...init.headers, ...headers } });
  for (const [price, micros] of [
    ['0.07', 70_000n],
    ['0.03', 30_000n],
  ] as const) {
    assert.equal((await set(first.url, 'first-call', { price })).status, 200);
    const received = await world.base.received();
    const client = new x402Client().register('eip155:8453', new ExactEvmScheme(wallet));
    const turns = [first, second];
    const answer = await wrapFetchWithPayment(async (input, options) => {
      const { url } = turns.shift() ?? second;
      return fetch(
        new Request(
          String(input instanceof Request ? input.url : input).replace(first.url, url),
          input instanceof Request ? input : options,
        ),
      );
    }, client)(`${first.url}/x402/first-call`, init);
    assert.deepEqual([answer.status, turns], [200, []], await answer.text());
    assert.equal((await world.base.received()) - received, micros);
  }
  assert.equal((await set(first.url, 'first-call', { price: '0.09' })).status, 200);
  const before = await world.received(METHODS[0]);
  const authorization = await world.client(account, METHODS[0]).createCredential(await send(first));
  const bought = await send(second, { authorization });
  assert.equal(bought.status, 200, await bought.text());
  assert.equal((await world.received(METHODS[0])) - before, 90_000n);
});

test('an operator’s word wins over the file’s until it is taken back, on all replicas and after a new start', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'stock-'));
  const file = join(folder, 'farebox.config.yaml');
  const write = (price: string) =>
    writeFile(
      file,
      `services: { first-call: { price: "${price}", mpp: false }, ping: { available: false } }\n`,
    );
  await write('0.11');
  const open = () =>
    startServerProcess({
      ...world.environment,
      DATABASE_URL: database.url,
      FAREBOX_CONFIG: file,
      ADMIN_TOKENS: `desk:${TOKEN}`,
    });
  const running: ServerProcess[] = [];
  const costs = async ({ url }: ServerProcess, service = 'first-call') =>
    ((await jsonOf(fetch(`${url}/x402/${service}`))) as Json).accepts?.[0]?.amount ?? null;
  const comesTo = (server: ServerProcess, amount: string | null, service?: string) =>
    until(`${service ?? 'it'} to cost ${amount}`, async () => (await costs(server, service)) === amount);
  try {
    running.push(await open(), await open());
    const [one, other] = running as [ServerProcess, ServerProcess];
    assert.deepEqual([await costs(one), await costs(other, 'ping')], ['110000', null]);
    assert.equal((await set(one.url, 'first-call', { price: '0.22' })).status, 200);
    assert.equal((await set(one.url, 'ping', { available: true })).status, 200);
    assert.equal(await costs(one), '220000');
    await Promise.all([comesTo(other, '220000'), comesTo(other, '250000', 'ping')]);
    const shown = await shownOf(other.url, 'first-call');
    assert.deepEqual(
      [shown.byFile, shown.byOperator, shown.inForce],
      [{ price: '0.11', mpp: false }, { price: '0.22' }, { price: '0.22', available: true, mpp: false }],
    );
    await write('0.33');
    other.process.kill('SIGHUP');
    await until(
      'the file to be read',
      async () => (await shownOf(other.url, 'first-call')).byFile.price === '0.33',
    );
    assert.equal(await costs(other), '220000', 'the file does not take back what an operator set');

    await one.end('SIGTERM');
    const again = await open();
    running.push(again);
    assert.equal(await costs(again), '220000');
    assert.equal((await set(again.url, 'first-call', { price: null })).status, 200);
    assert.equal(await costs(again), '330000');
    await comesTo(other, '330000');
  } finally {
    await Promise.all(running.map((server) => server.end('SIGKILL')));
    await rm(folder, { recursive: true, force: true });
  }
});
