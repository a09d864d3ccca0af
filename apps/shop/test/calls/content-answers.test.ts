/**
 * Tests that content other than JSON is sold with the same promises: a table and a picture, bought with a key, by x402 and by MPP, come back
 * byte for byte, on another replica too and after a death between any two steps, and are paid once.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { z } from 'zod';
import { defineContentService } from '../../../../packages/core/src/service/define.ts';
import { content } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from '../fire/money.fixture.ts';
import { type Blow, startMortalReplica } from '../fire/mortal-replica.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';

/** The answers that were made, in order: an answer that is given twice and made once stands here once. */
const made: Buffer[] = [];
const sources = [
  {
    name: 'the test’s own',
    url: 'urn:source:test',
    asOf: null,
    retrievedAt: '2026-01-02T03:04:05.000Z',
    cached: false,
    sandbox: false,
  },
];

const table = defineContentService({
  path: 'rates-table',
  name: 'Rates Table',
  tag: 'Market Intelligence',
  priceUsd: '0.02',
  mpp: true,
  summary: 'Rates as a table.',
  contentType: 'text/csv',
  input: z.object({ day: z.string().optional() }),
  example: { day: '2026-01-02' },
  async run() {
    // What a text column of a database, a header or a careless copy would spoil.
    const text = `pair,rate\r\n"EUR/USD","1,1"\r\nσ,\u0000,sealed:2:,${randomBytes(8).toString('hex')}\r\n`;
    made.push(Buffer.from(text));
    return content(text, { method: 'As they are.', sources, notes: ['σ is a letter'] });
  },
});
const picture = defineContentService({
  path: 'dot-picture',
  name: 'Dot Picture',
  tag: 'Satellite Intelligence',
  priceUsd: '0.03',
  mpp: true,
  summary: 'A picture of a dot.',
  contentType: 'image/png',
  input: z.object({}),
  example: {},
  // It runs after its money has come.
  effect: 'write',
  async run() {
    const bytes = Buffer.concat([Buffer.from('89504e470d0a1a0a00ff', 'hex'), randomBytes(500)]);
    made.push(bytes);
    // A view in the middle of something larger.
    return content(new Uint8Array(Buffer.concat([Buffer.alloc(7), bytes, Buffer.alloc(9)])).subarray(7, -9), {
      method: 'Drawn.',
    });
  },
});
const endless = defineContentService({
  path: 'endless-table',
  name: 'Endless Table',
  tag: 'Market Intelligence',
  priceUsd: '0.02',
  summary: 'More than is sold.',
  contentType: 'text/csv',
  input: z.object({}),
  example: {},
  run: async () => content('x'.repeat(20_001), { method: 'Repeated.' }),
});
const services = [table, picture, endless];
const SOLD = [
  { path: 'rates-table', type: 'text/csv; charset=utf-8', micros: 20_000n },
  { path: 'dot-picture', type: 'image/png', micros: 30_000n },
];

let world: MppWorld;
let database: TestDatabase;
let shop: Storefront;
let there: TestServer;

before(async () => {
  [world, database] = await Promise.all([startMppWorld(), openTestDatabase()]);
  const options = { pools: database, services };
  const environment = { ...world.environment, MAX_ANSWER_BYTES: '20000' };
  shop = await openStorefront({ ...options, environment });
  there = await startTestServer({ ...options, environment: { ...environment, PUBLIC_URL: shop.url } });
});
after(async () => {
  await Promise.all([shop?.stop(), there?.close()]);
  await Promise.all([world?.stop(), database?.close()]);
});

const post = (url: string, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: '{}' });
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

/** It is the answer that was made last, untouched, and says what it is and where it comes from. */
async function assertNewest(response: Response, type: string): Promise<Buffer> {
  const body = await bytesOf(response);
  assert.equal(response.status, 200, body.toString());
  assert.deepEqual(body, made.at(-1));
  assert.equal(response.headers.get('content-type'), type);
  assert.equal(response.headers.get('content-length'), String(body.length));
  assert.match(response.headers.get('cache-control') ?? '', /no-transform/);
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  const provenance = JSON.parse(response.headers.get('x-provenance') ?? 'null');
  assert.equal(provenance.mode, type === 'image/png' ? 'computed' : 'live');
  if (type !== 'image/png') {
    assert.deepEqual(provenance.sources, sources);
    assert.deepEqual(provenance.notes, ['σ is a letter']);
  }
  return body;
}

for (const { path, type, micros } of SOLD) {
  test(`${type} is bought with a key, and repeated byte for byte by another replica`, async () => {
    const key = await there.key('1');
    const headers = { 'x-api-key': key, 'idempotency-key': 'one' };
    const first = await post(`${shop.url}/x402/${path}`, headers);
    const body = await assertNewest(first, type);
    const runs = made.length;
    const again = await post(`${there.url}/x402/${path}`, headers);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(await assertNewest(again, type), body);
    assert.equal(again.headers.get('x-provenance'), first.headers.get('x-provenance'));
    assert.equal(made.length, runs);
    const account = await accountOf(database.sql, key);
    assert.equal(await balanceOf(database.sql, account), 1_000_000n - micros);
    const [stored] = await database.sql<{ body: string }[]>`
      select body from call_answers where account_id = ${String(account)}`;
    assert.match(stored?.body ?? '', /^sealed:2:/);
  });

  test(`${type} is bought by the x402 client, and the same payment brings the same bytes elsewhere`, async () => {
    const account = await world.base.wallet();
    const pay = wrapFetchWithPayment(
      fetch,
      new x402Client().register('eip155:*', new ExactEvmScheme(account)),
    );
    const received = await world.received('evm');
    const body = await assertNewest(await pay(`${shop.url}/x402/${path}`, { method: 'POST' }), type);
    const { headers } = shop.payments.at(-1) ?? assert.fail('nothing was presented');
    const signature = headers['payment-signature'] ?? assert.fail('nothing was signed');
    const again = await fetch(`${there.url}/x402/${path}`, {
      method: 'POST',
      headers: { 'payment-signature': signature },
    });
    assert.deepEqual(await assertNewest(again, type), body);
    assert.notEqual(again.headers.get('payment-response'), null);
    assert.equal((await world.received('evm')) - received, micros);
  });

  for (const method of METHODS) {
    test(`${type} is bought by the MPP client by ${method}, and the same credential brings the same bytes elsewhere`, async () => {
      const account = await world.wallet();
      const received = await world.received(method);
      const unpaid = await post(`${shop.url}/mpp/${path}`);
      const authorization = await world.credential(account, method, unpaid);
      const body = await assertNewest(await post(`${shop.url}/mpp/${path}`, { authorization }), type);
      const again = await post(`${there.url}/mpp/${path}`, { authorization });
      assert.deepEqual(await assertNewest(again, type), body);
      assert.notEqual(again.headers.get('payment-receipt'), null);
      assert.equal((await world.received(method)) - received, micros);
    });
  }

  const DEATHS: readonly Blow[] = [
    { falls: 'dies before', on: 'capture' },
    { falls: 'dies after', on: 'capture' },
  ];
  for (const blow of DEATHS) {
    test(`a process that ${blow.falls} taking the price of ${type} costs it once, and no byte of it`, async () => {
      let laterMs = 0;
      const replica = await startMortalReplica({
        databaseUrl: database.url,
        services,
        environment: world.environment,
        nowMs: () => Date.now() + laterMs,
      });
      try {
        const { url } = await replica.server();
        const key = await there.key('1');
        const headers = { 'x-api-key': key, 'idempotency-key': 'one' };
        replica.strike([blow]);
        const { deaths } = replica;
        const unanswered = post(`${url}/x402/${path}`, headers).catch(() => null);
        await until('the process has died', () => replica.deaths > deaths);
        await replica.server();
        await unanswered;
        // Until nobody believes any more that the dead process is still at it.
        laterMs = 60_000;
        await replica.reconcile();
        const runs = made.length;
        await assertNewest(await post(`${there.url}/x402/${path}`, headers), type);
        assert.equal(made.length - runs, blow.falls === 'dies after' ? 0 : 1);
        const account = await accountOf(database.sql, key);
        assert.equal(await balanceOf(database.sql, account), 1_000_000n - micros);
        assert.equal((await callsOf(database.sql, account)).filter(({ state }) => state === 1).length, 1);
      } finally {
        await replica.close();
      }
    });
  }
}

test('what is larger than is kept is not sold, and costs nothing', async () => {
  const key = await there.key('1');
  const response = await post(`${there.url}/x402/endless-table`, { 'x-api-key': key });
  assert.equal(response.status, 500);
  assert.equal((await jsonOf(response)).charged, false);
  assert.equal(await balanceOf(database.sql, await accountOf(database.sql, key)), 1_000_000n);
});

test('terms and documents name what is answered, and a GET or HEAD with a credential buys nothing', async () => {
  const terms = await jsonOf(post(`${there.url}/x402/rates-table`));
  assert.ok(terms.accepts.every(({ mimeType }: { mimeType: string }) => mimeType === 'text/csv'));
  const { services: sold } = await jsonOf(fetch(`${there.url}/x402/catalog`));
  assert.deepEqual(
    SOLD.map(({ path }) => sold.find(({ id }: { id: string }) => id === path).answers),
    ['text/csv', 'image/png'],
  );
  const { paths, components } = await jsonOf(fetch(`${there.url}/openapi.json`));
  assert.deepEqual(Object.keys(components.responses.dotPictureAnswer.content), ['image/png']);
  assert.deepEqual(Object.keys(paths['/x402/endless-table'].post.responses[200].content), ['text/csv']);
  const recipe = await jsonOf(fetch(`${there.url}/x402/recipes/dot-picture`));
  assert.equal(recipe.answer.mediaType, 'image/png');
  assert.match(recipe.fetch, /arrayBuffer/);
  const runs = made.length;
  for (const method of ['GET', 'HEAD']) {
    const headers = { 'x-api-key': await there.key('1') };
    const response = await fetch(`${there.url}/x402/rates-table`, { method, headers });
    assert.equal(response.status, 405);
    assert.equal(response.headers.get('allow'), 'POST');
  }
  assert.equal(made.length, runs);
});

test('the books balance', () => assertBooksClosed(database.patient));
