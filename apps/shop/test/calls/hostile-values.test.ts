/**
 * Hostile JSON in every field of whatever takes JSON: services, free routes, the owner's and the operator's, tools of MCP,
 * messages of A2A. Nothing is answered with an inner error, and nothing is charged but for answers.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import type { Service } from '../../../../packages/core/src/service/define.ts';
import {
  inputSchemaOf,
  type JsonSchema,
  propertiesOf,
} from '../../../../packages/core/src/service/json-schema.ts';
import { toolNameOf } from '../../../../packages/core/src/service/tool-name.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import {
  eachOf,
  fewHostileFor,
  hostileFor,
  type Path,
  pathsOf,
  spoiled,
  withPath,
} from '../hostile-values.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const services = await loadServices();
const CREDIT_USD = '100000';
/** What runs a compiler for each body that it takes. */
const COMPILES = 'smart-contract-audit';

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let world: PaymentWorld;
let server: TestServer;
before(async () => {
  [database, upstreams, world] = await Promise.all([
    openTestDatabase(),
    startUpstreams(),
    startPaymentWorld({ solana: true }),
  ]);
  server = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: {
      ...EVERYTHING_ON,
      ...world.environment,
      MPP_METHODS: 'evm',
      A2A_MAX_UNPAID_TASKS: '100000',
    },
  });
});
after(async () => {
  await server?.close();
  await Promise.all([database?.close(), upstreams?.stop(), world?.stop()]);
});

interface Told {
  what: string;
  status: number;
  body: string;
  /** What the answer says was charged, in micro-USD. */
  usedMicros: bigint;
}

async function ask(what: string, path: string, init: RequestInit): Promise<Told> {
  const answer = await fetch(server.url + path, init);
  const used = answer.headers.get('x-credits-used') ?? answer.headers.get('x-credits-reserved');
  return {
    what,
    status: answer.status,
    body: await answer.text(),
    usedMicros: used === null ? 0n : usdToMicros(used.replace('$', '')),
  };
}

/** No inner error: what was refused says why, and a source or a chain that is away is a 503 of its own. */
function assertTold({ what, status, body, usedMicros }: Told): void {
  assert(status < 500 || status === 503, `${status} to ${what}: ${body}`);
  assert(!/INTERNAL_ERROR|SERVICE_ERROR/.test(body), `${status} to ${what}: ${body}`);
  if (status >= 400) assert.equal(usedMicros, 0n, `${status} to ${what} is charged: ${body}`);
}

const json = (value: unknown, headers: Record<string, string> = {}, method = 'POST'): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
});

async function assertSpent(key: string, spentMicros: bigint): Promise<void> {
  const me = await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
  assert.deepEqual(
    [usdToMicros(CREDIT_USD) - usdToMicros(me.balanceUsd), me.reservedUsd],
    [spentMicros, '0.000000'],
  );
}

/** The places that a body may have, also those that its example leaves out. */
function placesOf(schema: JsonSchema, example: unknown): Path[] {
  const all = [...namedIn(schema), ...pathsOf(example)];
  return [...new Map(all.map((path) => [path.join('.'), path])).values()];
}

function namedIn(schema: JsonSchema, path: Path = []): Path[] {
  const branches = [schema, ...[schema.anyOf, schema.oneOf, schema.allOf].flat()].filter(
    (each): each is JsonSchema => typeof each === 'object' && each !== null,
  );
  return branches.flatMap((each) => [
    ...(typeof each.items === 'object' ? namedIn(each.items as JsonSchema, [...path, '0']) : []),
    ...Object.entries(propertiesOf(each)).flatMap(([name, field]) => [
      [...path, name],
      ...namedIn(field, [...path, name]),
    ]),
    ...(each === schema ? [] : namedIn({ ...each, anyOf: undefined, oneOf: undefined }, path)),
  ]);
}

/** Other spellings that a service takes: its aliases, and what it looks for before its schema does. */
function otherNamesOf({ aliases, adapt }: Service): string[] {
  const looked = new Set(Object.keys(aliases));
  const body = new Proxy<Record<string, unknown>>(
    {},
    { get: (_, name) => void (typeof name === 'string' && looked.add(name)) },
  );
  adapt?.(body);
  return [...looked];
}

describe('a service', { concurrency: false }, () => {
  let key: string;
  /** Who can pay for nothing asks what leaves something behind or takes long: its body is read before its credit. */
  let poor: string;
  let spentMicros = 0n;
  before(async () => {
    [key, poor] = [await server.key(CREDIT_USD), await server.key('0.000001')];
  });

  for (const service of services) {
    test(`${service.path}: whatever stands in any field, nothing fails within and nothing is charged but an answer`, async () => {
      const payer = service.effect === 'write' || service.path === COMPILES ? poor : key;
      const places = placesOf(inputSchemaOf(service), service.example);
      const bodies = [...spoiled(service.example, places, fewHostileFor)];
      for (const name of otherNamesOf(service))
        for (const put of fewHostileFor(undefined))
          bodies.push(
            { path: [name], put, value: withPath(service.example, [name], put) },
            { path: [name], put, value: withPath({}, [name], put) },
          );
      assert(bodies.length > 0 || Object.keys(service.input.shape).length === 0);
      await eachOf(bodies, async ({ path, put, value }) => {
        const what = `${service.path} with ${path.join('.')}: ${JSON.stringify(put)}`;
        const told = await ask(what, `/x402/${service.path}`, json(value, { 'x-api-key': payer }));
        assertTold(told);
        if (told.status >= 400) assert.equal(JSON.parse(told.body).charged ?? false, false, what);
        spentMicros += told.usedMicros;
      });
    });
  }

  test('all of it together cost what the answers say', () => assertSpent(key, spentMicros));
});

// biome-ignore lint/suspicious/noExplicitAny: a document is read as whoever reads it would
type Document = any;

test('every other operation of the OpenAPI document, in its body and in its query', async () => {
  const key = await server.key(CREDIT_USD);
  const { paths }: Document = await jsonOf(fetch(`${server.url}/openapi.json`));
  const sold = new Set(
    services.flatMap(({ path }) => [`/x402/${path}`, `/mpp/${path}`, `/api/x402/${path}`]),
  );
  const { webhookId } = await jsonOf(
    fetch(
      `${server.url}/api/webhooks`,
      json({ url: 'https://a.example/', events: ['answer.ready'] }, { 'x-api-key': key }),
    ),
  );
  const device = { deviceId: 'hostile-1', sensors: { temperature: 'C' } };
  await fetch(`${server.url}/api/devices`, json(device, { 'x-api-key': key }));
  const known: Record<string, string> = { webhookId, deviceId: device.deviceId };
  const asked: { what: string; path: string; init: RequestInit }[] = [];
  let operations = 0;
  for (const [template, item] of Object.entries<Document>(paths)) {
    if (sold.has(template)) continue;
    const path = template.replace(/\{(\w+)\}/g, (_, name) => known[name] ?? randomUUID());
    for (const [method, { requestBody, parameters = [] }] of Object.entries<Document>(item)) {
      const name = `${method} ${template}`;
      const headers = { 'x-api-key': key };
      const { schema, example } = requestBody?.content?.['application/json'] ?? {};
      if (schema !== undefined) {
        operations += 1;
        for (const put of hostileFor(undefined))
          asked.push({
            what: `${name}: ${JSON.stringify(put)}`,
            path,
            init: json(put, headers, method.toUpperCase()),
          });
        for (const { path: place, put, value } of spoiled(example ?? {}, placesOf(schema, example)))
          asked.push({
            what: `${name} with ${place.join('.')}: ${JSON.stringify(put)}`,
            path,
            init: json(value, headers, method.toUpperCase()),
          });
      }
      for (const { name: parameter, in: where } of parameters)
        for (const query of [
          `${parameter}=`,
          `${parameter}=__proto__`,
          `${parameter}=a&${parameter}=b`,
          `${parameter}[toString]=`,
        ])
          if (where === 'query')
            asked.push({
              what: `${name}?${query}`,
              path: `${path}?${query}`,
              init: { method: method.toUpperCase(), headers },
            });
    }
  }
  assert(operations > 15, `${operations} operations have a body`);
  let spentMicros = 0n;
  await eachOf(asked, async ({ what, path, init }) => {
    const told = await ask(what, path, init);
    assertTold(told);
    spentMicros += told.usedMicros;
  });
  await assertSpent(key, spentMicros);
});

test('what the operator sends', async () => {
  const account = (await server.app.keys.find(await server.key('5')))?.accountId ?? assert.fail();
  const token = EVERYTHING_ON.ADMIN_TOKENS?.split(':')[1];
  const id = randomUUID();
  const acts: Record<string, object> = {
    freeze: { reason: 'a reason' },
    unfreeze: { reason: 'a reason' },
    grant: { reason: 'a reason', amountUsd: '1' },
    'refund-call': { reason: 'a reason', callId: id },
    'refund-order': { reason: 'a reason', orderId: id, amountUsd: '1' },
    'mail-key': { reason: 'a reason', orderId: id },
  };
  const asked = Object.entries(acts).flatMap(([act, good]) =>
    [...spoiled(good), ...hostileFor(undefined).map((value) => ({ path: [], put: value, value }))].map(
      (each) => ({ act, ...each }),
    ),
  );
  await eachOf(asked, async ({ act, path, put, value }) => {
    const headers = { authorization: `Bearer ${token}`, 'idempotency-key': randomUUID() };
    const what = `${act} with ${path.join('.')}: ${JSON.stringify(put)}`;
    const told = await ask(what, `/admin/api/accounts/${account}/${act}`, json(value, headers));
    assertTold(told);
    assert(told.status !== 401 && told.status !== 503, `${what}: ${told.status} ${told.body}`);
  });
});

/** Messages of JSON-RPC, of which each part is spoiled. */
async function assertMessages(
  path: string,
  messages: readonly object[],
  headers: (key: string) => Record<string, string>,
): Promise<void> {
  const key = await server.key(CREDIT_USD);
  const asked = messages.flatMap((message) => [...spoiled(message)]);
  assert(asked.length > 100);
  await eachOf(asked, async ({ path: place, put, value }) => {
    const what = `${path} with ${place.join('.')}: ${JSON.stringify(put)}`;
    const told = await ask(what, path, json(value, headers(key)));
    assertTold(told);
    assert(path !== '/mcp' || !told.body.includes('-32603'), `${what}: ${told.body}`);
  });
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  const [sold] = await database.sql<{ micros: bigint; open: bigint }[]>`
    select coalesce(sum(price_micros) filter (where state = 1 and outcome = 'answered'), 0)::bigint as micros,
      count(*) filter (where state = 0) as open
    from calls where account_id = ${String(accountId)}`;
  assert(sold !== undefined && sold.open === 0n);
  await assertSpent(key, sold.micros);
}

test('tool calls of MCP, in their arguments, their _meta and everything around', async () => {
  const ping = services.find((service) => service.path === 'ping') ?? assert.fail();
  const price = services.find((service) => service.path === 'token-price') ?? assert.fail();
  const payment = { x402Version: 2, accepted: { scheme: 'exact', network: 'eip155:8453' }, payload: {} };
  const credential = {
    challenge: { id: 'a', realm: 'a', method: 'evm', intent: 'charge', request: 'e30' },
    payload: {},
  };
  const call = (name: string, input: unknown, meta: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: input, _meta: meta },
  });
  const messages = [
    call(toolNameOf(price), price.example, { 'farebox/idempotencyKey': 'a-name', progressToken: 1 }),
    call(toolNameOf(ping), {}, { 'x402/payment': payment }),
    call(toolNameOf(ping), {}, { 'org.paymentauth/credential': credential }),
    call('service_recipe', { service: 'ping' }, {}),
    call('search_services', { query: 'price', maxPriceUsd: 1, limit: 3 }, {}),
  ];
  await assertMessages('/mcp', messages, (key) => ({
    accept: 'application/json, text/event-stream',
    'x-api-key': key,
  }));
});

test('messages of A2A, in their parts, their metadata and everything around', async () => {
  const message = (parts: object[], metadata: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: {
      message: { messageId: 'm-1', role: 'ROLE_USER', parts, metadata },
      configuration: { returnImmediately: false },
    },
  });
  const payment = { x402Version: 2, accepted: { scheme: 'exact', network: 'eip155:8453' }, payload: {} };
  const messages = [
    message([{ data: { skill: 'ping', input: {} } }, { text: 'hello' }], {}),
    message([{ data: { a: 1 } }], { skill: 'token-price', input: { symbol: 'ETH' } }),
    message([{ data: { skill: 'ping' } }], {
      'x402.payment.status': 'payment-submitted',
      'x402.payment.payload': payment,
    }),
    { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'a-task' } },
    { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { pageSize: 5, contextId: 'c' } },
  ];
  await assertMessages('/a2a', messages, (key) => ({ 'a2a-version': '1.0', 'x-api-key': key }));
});
