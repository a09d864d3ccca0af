/** `POST /api/call` buys any service by its name, as the call at the service's own address would; core.json is enough to use it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { z } from 'zod';
import { defineService } from '../../../../packages/catalogue/src/services/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { openStorefront, type SeenRequest, type Storefront } from '../storefront.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

let runs = 0;
const count = defineService({
  path: 'count-up',
  name: 'Count',
  tag: 'Discovery',
  priceUsd: '0.10',
  summary: 'Counts how often it ran.',
  input: z.object({ upTo: z.int().min(1).max(9), words: z.unknown().optional() }),
  output: z.object({ run: z.int() }),
  example: { upTo: 3 },
  async run() {
    runs += 1;
    return answer({ run: runs }, { method: 'Counted.' });
  },
});

let database: TestDatabase;
let world: PaymentWorld;
let shop: Storefront;
let server: TestServer;
before(async () => {
  [world, database] = await Promise.all([startPaymentWorld(), openTestDatabase()]);
  const environment = { ...world.environment, ...world.made, TRIAL_ALLOW_INTERNAL: 'true' };
  shop = await openStorefront({ pools: database, services: [count], environment });
  server = await startTestServer({
    pools: database,
    environment: { ...EVERYTHING_ON, SERVICES: '!ping' },
  });
});
after(async () => {
  await Promise.all([shop?.stop(), server?.close()]);
  await Promise.all([world?.stop(), database?.close()]);
});

type Json = Record<string, unknown>;

async function send(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(shop.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: await jsonOf(response) };
}

const byName = (input: unknown, headers: Record<string, string> = {}) =>
  send('/api/call', { service: 'count-up', input }, headers);

async function balanceOf(key: string): Promise<string> {
  return (await jsonOf(fetch(`${shop.url}/api/keys/me`, { headers: { 'x-api-key': key } }))).balanceUsd;
}

test('a key buys by name at the price of the service, and the same call at either address is bought once', async () => {
  const key = await shop.key('1');
  const headers = { 'x-api-key': key, 'idempotency-key': 'counted-once' };
  const first = await byName({ upTo: 3 }, headers);
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assert.deepEqual([first.body.service, first.body.run], ['count-up', runs]);
  assert.equal(await balanceOf(key), '0.900000');
  const again = await byName({ upTo: 3 }, headers);
  const atItsAddress = await send('/x402/count-up', { upTo: 3 }, headers);
  // Some models write the input as text, and name the service as its tool is named.
  const asText = await send('/api/call', { service: 'count_up', input: '{"upTo":3}' }, headers);
  for (const replayed of [again, atItsAddress, asText]) assert.deepEqual(replayed.body, first.body);
  const other = await byName({ upTo: 4 }, headers);
  assert.deepEqual([other.status, other.body.charged], [409, false], JSON.stringify(other.body));
  assert.equal(await balanceOf(key), '0.900000');
});

test('many at once under one name buy one answer', async () => {
  const key = await shop.key('1');
  const headers = { 'x-api-key': key, 'idempotency-key': 'at-once' };
  const before = runs;
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      n % 2 === 0 ? byName({ upTo: 2 }, headers) : send('/x402/count-up', { upTo: 2 }, headers),
    ),
  );
  for (const { status } of answers) assert.ok([200, 409].includes(status), String(status));
  assert.equal(runs, before + 1);
  assert.equal(await balanceOf(key), '0.900000');
});

test('what names no call is refused with what would be right, and costs nothing', async () => {
  const key = await shop.key('1');
  const before = runs;
  const refused: [unknown, number, string][] = [
    ['', 400, 'INVALID_REQUEST'],
    ['[]', 400, 'INVALID_REQUEST'],
    ['{"service":"count-up","input":{"upTo":1}', 400, 'INVALID_REQUEST'],
    [{ input: { upTo: 1 } }, 400, 'INVALID_REQUEST'],
    [{ service: 7, input: { upTo: 1 } }, 400, 'INVALID_REQUEST'],
    [{ service: 'count-up', input: [] }, 400, 'INVALID_REQUEST'],
    [{ service: 'count-up', input: 'upTo' }, 400, 'INVALID_REQUEST'],
    [{ service: 'count-up', input: { upTo: 10 } }, 400, 'INVALID_REQUEST'],
    [`{"service":"count-up","input":{"upTo":1,"words":"\\u0000"}}`, 400, 'INVALID_REQUEST'],
    [`{"service":"count-up","input":"{\\"upTo\\":1,\\"words\\":\\"\\\\u0000\\"}"}`, 400, 'INVALID_REQUEST'],
    [
      `{"service":"count-up","input":{"upTo":1,"words":${'['.repeat(40_000)}${']'.repeat(40_000)}}}`,
      400,
      'INVALID_REQUEST',
    ],
    [{ service: '__proto__', input: {} }, 404, 'UNKNOWN_SERVICE'],
    [{ service: '../x402/count-up', input: {} }, 404, 'UNKNOWN_SERVICE'],
  ];
  for (const [body, status, code] of refused) {
    const told = await send('/api/call', body, { 'x-api-key': key });
    const seen = [told.status, told.body.code, told.body.charged];
    assert.deepEqual(seen, [status, code, false], JSON.stringify(body).slice(0, 100));
  }
  // A field beside the two is what was meant to be in the input: the call without it would be another.
  const beside = await send('/api/call', { service: 'count-up', upTo: 3 }, { 'x-api-key': key });
  assert.deepEqual(beside.body.fields, [{ field: 'upTo', message: 'belongs into input' }]);
  const near = await send('/api/call', { service: 'cuont-up', input: {} }, { 'x-api-key': key });
  assert.deepEqual([near.status, near.body.services], [404, ['count-up']]);
  assert.deepEqual([runs, await balanceOf(key)], [before, '1.000000']);
  const byGet = await fetch(`${shop.url}/api/call`);
  assert.deepEqual([byGet.status, byGet.headers.get('allow')], [405, 'POST']);
});

test('a service that the operator has left out is told so', async () => {
  const told = await fetch(`${server.url}/api/call`, {
    method: 'POST',
    body: '{"service":"ping","input":{}}',
  });
  const { code, charged } = await jsonOf(told);
  assert.deepEqual([told.status, code, charged], [404, 'NOT_SOLD_HERE', false]);
});

test('a dry run by name is that of the service, and runs nothing', async () => {
  const before = runs;
  const call = { service: 'count-up', input: { upTo: 3 } };
  const told = await send('/api/call?dryRun=1', call);
  const itsOwn = await send('/x402/count-up?dryRun=1', call.input);
  assert.deepEqual([told.status, told.body.dryRun, told.body.price.amountUsd], [200, true, '0.100000']);
  const plain = ({ body }: { body: Json }) => ({ ...body, timestamp: '' });
  assert.deepEqual(plain(told), plain(itsOwn));
  const unfit = await send('/api/call?dryRun=1', { ...call, input: {} });
  assert.equal(unfit.status, 400);
  const withKey = await send('/api/call?dryRun=1', call, { 'x-api-key': await shop.key('1') });
  assert.equal(withKey.status, 400);
  assert.equal(runs, before);
});

test('the terms of a 402 name the service’s own address, and a wallet’s payment by name is good there too', async () => {
  const terms = await send('/api/call', { service: 'count-up' });
  const itsOwn = await send('/x402/count-up', {});
  assert.equal(terms.status, 402);
  const inHeader = ({ headers }: { headers: Headers }) =>
    decodePaymentRequiredHeader(headers.get('payment-required') ?? '');
  assert.equal(inHeader(terms).resource.url, `${shop.url}/x402/count-up`);
  assert.deepEqual(inHeader(terms).accepts, inHeader(itsOwn).accepts);
  assert.deepEqual(terms.body.accepts, itsOwn.body.accepts);
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(await world.wallet()));
  const pay = wrapFetchWithPayment(fetch, client);
  const before = [runs, await world.received()] as const;
  const bought = await pay(`${shop.url}/api/call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ service: 'count-up', input: { upTo: 5 } }),
  });
  const body = await jsonOf(bought);
  assert.deepEqual([bought.status, body.run], [200, runs], JSON.stringify(body));
  const sent: SeenRequest = shop.payments.at(-1) ?? assert.fail('no payment was seen');
  assert.equal(sent.path, '/api/call');
  const again = await shop.present(sent);
  const atItsAddress = await shop.present({
    ...sent,
    path: '/x402/count-up',
    body: Buffer.from('{"upTo":5}'),
  });
  for (const replayed of [again, atItsAddress]) assert.deepEqual(await jsonOf(replayed), body);
  assert.deepEqual([runs, await world.received()], [before[0] + 1, before[1] + 100_000n]);
});

/** Every schema that stands in a document, with its place. */
function schemasIn(node: unknown, place = ''): { place: string; schema: Json }[] {
  if (typeof node !== 'object' || node === null) return [];
  const here = node as Json;
  const own = typeof here.type === 'string' ? [{ place, schema: here }] : [];
  // What an example holds is no schema.
  const below = Object.entries(here).filter(([name]) => name !== 'example' && name !== 'securitySchemes');
  return [...own, ...below.flatMap(([name, each]) => schemasIn(each, `${place}/${name}`))];
}

test('core.json has what a host of few operations needs: search, keys and the call of any service', async () => {
  const text = await (await fetch(`${server.url}/openapi/core.json`)).text();
  assert.ok(Buffer.byteLength(text) < 16_000, `${Buffer.byteLength(text)} bytes`);
  const document = JSON.parse(text);
  const operations = Object.values<Record<string, Json>>(document.paths).flatMap((item) =>
    Object.entries(item).map(([method, operation]) => ({ method, operation })),
  );
  assert.deepEqual(operations.map(({ operation }) => operation.operationId).toSorted(), [
    'callService',
    'getCatalog',
    'getKey',
    'getRecipe',
    'getTrialKey',
  ]);
  for (const { method, operation } of operations) {
    // GPT actions: what spends asks the person each time, and no description is longer than 300 characters.
    const spends = method === 'post' ? true : undefined;
    assert.equal(operation['x-openai-isConsequential'], spends, String(operation.operationId));
    for (const words of [operation.summary, operation.description ?? ''])
      assert.ok(String(words).length <= 300, String(words));
    assert.ok(String(operation.operationId).length <= 64);
  }
  const call = document.paths['/api/call'].post;
  assert.deepEqual(call.security, [{ ApiKeyHeader: [] }, { BearerKey: [] }]);
  const { schema } = call.requestBody.content['application/json'];
  for (const keyword of ['anyOf', 'oneOf', 'allOf']) assert.ok(!(keyword in schema), keyword);
  for (const { place, schema } of schemasIn(document)) {
    if (schema.type === 'object') assert.ok('properties' in schema, `${place} lists no properties`);
    if (schema.type === 'array') assert.ok('items' in schema, `${place} does not say what it lists`);
  }
  const { service, input } = call.requestBody.content['application/json'].example;
  assert.deepEqual([service, typeof input], ['first-call', 'object']);
});

test('the plug-in manifest leads to core.json, and each address that it has is served', async () => {
  const { api } = await jsonOf(fetch(`${server.url}/.well-known/ai-plugin.json`));
  assert.equal(new URL(api.url).pathname, '/openapi/core.json');
  const document = await jsonOf(fetch(server.url + new URL(api.url).pathname));
  const served = new Set(server.app.routes.map(({ path }) => path.replace(/:(\w+)/g, '{$1}')));
  for (const path of Object.keys(document.paths)) assert.ok(served.has(path), path);
});

/** What a model does that has nothing but core.json. */
test('a stranger with core.json alone searches, takes a trial key, buys and reads what is left', async () => {
  const found = await jsonOf(fetch(`${shop.url}/x402/catalog?q=count%20how%20often`));
  const [service] = found.services;
  assert.ok(service.inputSchema.properties.upTo);
  const trial = await jsonOf(fetch(`${shop.url}/api/m2m/credits/trial`));
  const { apiKey } = trial;
  assert.ok(apiKey, JSON.stringify(trial));
  const bought = await send(
    '/api/call',
    { service: service.id, input: service.example },
    { 'x-api-key': apiKey },
  );
  assert.equal(bought.status, 200, JSON.stringify(bought.body));
  assert.equal(Number(await balanceOf(apiKey)), 4.9);
});
