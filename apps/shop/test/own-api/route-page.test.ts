/** The page of a seller's route: it shows the route's own address, has a field for each value, and its examples buy there. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

let database: TestDatabase;
let api: OwnApi;
let server: TestServer;
let browser: Browser;
before(async () => {
  [database, api, browser] = await Promise.all([
    openTestDatabase(),
    startOwnApi((got, reply) => {
      reply.setHeader('content-type', 'application/json');
      reply.end(JSON.stringify({ at: got.url, sent: got.body }));
    }),
    launchBrowser(),
  ]);
  server = await startTestServer({
    pools: database,
    services: [],
    routes: () =>
      routesOf(`
        upstreams:
          weather: { url: "${api.url}", prefix: "/" }
        routes:
          "GET /v1/stations/:id/:sensor":
            upstream: weather
            price: "0.01"
            requestHeaders: [x-variant]
            request:
              path: { type: object, properties: { id: { type: integer, description: The station's number } } }
              query: { type: object, properties: { unit: { enum: [c, f] }, name: { type: string } }, required: [unit] }
            example: { params: { id: "7", sensor: "it's" }, query: { unit: c } }
          "PUT /v1/forecasts/:id":
            upstream: weather
            priceBy: { field: model, prices: { fast: "0.02", exact: "0.30" } }
            request:
              body: { type: object, properties: { model: { enum: [fast, exact] }, id: { type: string } }, required: [model] }
            example: { params: { id: "7" }, body: { model: fast } }
          "POST /v1/words": { upstream: weather, price: "0.03" }
          "GET /v1/flow": { upstream: weather, price: "0.03", answer: streamed }
      `),
  });
});
after(async () => {
  await browser?.close();
  await server?.close();
  await Promise.all([database?.close(), api?.stop()]);
});

const STATION = 'get-v1-stations-id-sensor';
const FORECAST = 'put-v1-forecasts-id';

async function open(id: string, width = 1280): Promise<Page> {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  await page.goto(`${server.url}/docs/${id}`, { waitUntil: 'networkidle' });
  return page;
}

/** Sends what stands in the form, and says how the API was asked. */
async function sent(page: Page) {
  const asked = api.got.length;
  await page.getByLabel('Key', { exact: true }).fill(await server.key('1'));
  await page.getByRole('button', { name: /Send this call/ }).click();
  await page.getByText('Answered and charged.').waitFor();
  assert.equal(api.got.length, asked + 1);
  const { method, url, headers, body } = api.got.at(-1) ?? {};
  return { method, url, body, type: headers?.['content-type'], variant: headers?.['x-variant'] };
}

test('the page shows method, address and price, and sends what stands in its fields', async () => {
  const page = await open(STATION, 390);
  await assertReadable(page, STATION);
  const text = (await page.textContent('#detail')) ?? '';
  assert.match(text, /\$0\.01.*GET \/v1\/stations\/:id\/:sensor/s);
  assert.match(text, /POST \/x402\/get-v1-stations-id-sensor too/);
  assert.equal(await page.locator('#detail textarea').count(), 0);
  assert.equal(await page.getByLabel('id', { exact: true }).inputValue(), '7');
  await page.getByLabel('unit', { exact: true }).selectOption('f');
  await page.getByText('2 more options').click();
  await page.getByLabel('name optional').fill('x=1&y');
  await page.getByLabel('x-variant optional').fill('b');
  await page.getByLabel('sensor', { exact: true }).fill('..');
  await page.getByRole('button', { name: /Send this call/ }).click();
  await page.getByText('This cannot be a part of an address.').waitFor();
  await page.getByLabel('sensor', { exact: true }).fill('a & ü');
  assert.deepEqual(await sent(page), {
    method: 'GET',
    url: '/v1/stations/7/a%20%26%20%C3%BC?unit=f&name=x%3D1%26y',
    body: '',
    type: undefined,
    variant: 'b',
  });
  await page.close();
});

test('each field of a body has its own control, though a part of the path has the same name', async () => {
  const page = await open(FORECAST);
  const text = (await page.textContent('#detail')) ?? '';
  assert.match(text, /\$0\.02 to 0\.30.*PUT \/v1\/forecasts\/:id.*decided by the field model of the body/s);
  assert.equal(await page.locator('#detail textarea').count(), 0);
  await page.getByLabel('id', { exact: true }).fill('8');
  await page.getByText(/\d more options/).click();
  await page.getByLabel('id optional').fill('mine');
  await page.getByLabel('model', { exact: true }).selectOption('exact');
  const { method, url, body } = await sent(page);
  assert.deepEqual([method, url, body], ['PUT', '/v1/forecasts/8', '{"model":"exact","id":"mine"}']);
  assert.match((await page.textContent('.answer')) ?? '', /Answered and charged\. \$0\.30/);
  await page.close();
});

test('a body without a schema is typed as it is sent', async () => {
  const page = await open('post-v1-words');
  await page.getByLabel('query optional').fill('?day=1');
  await page.getByLabel('body optional').fill('plain words');
  assert.deepEqual(await sent(page), {
    method: 'POST',
    url: '/v1/words?day=1',
    body: 'plain words',
    type: 'text/plain',
    variant: undefined,
  });
  await page.getByLabel('body optional').fill('{"a" : 1}');
  const { type, body } = await sent(page);
  assert.deepEqual([type, body], ['application/json', '{"a" : 1}']);
  await page.close();
});

test('a stream has no example that asks for pieces, and the list shows what a call may cost', async () => {
  const page = await open('get-v1-flow');
  await page.getByRole('button', { name: 'curl', exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Stream' }).count(), 0);
  const entry = page.locator(`#services a[href="/docs/${FORECAST}"]`);
  assert.equal(await entry.locator('.price').textContent(), '$0.02 to 0.30');
  await page.close();
});

test('the examples of curl and JavaScript buy at the own address, and the page without scripts names it', async () => {
  const env = { ...process.env, FAREBOX_API_KEY: await server.key('1') };
  const here = (text: string) => text.replaceAll('http://farebox.test', server.url);
  for (const [id, method, url, body] of [
    [STATION, 'GET', "/v1/stations/7/it's?unit=c", ''],
    [FORECAST, 'PUT', '/v1/forecasts/7', '{"model":"fast"}'],
  ] as const) {
    const recipe = await jsonOf(fetch(`${server.url}/x402/recipes/${id}`));
    for (const run of [
      () => promisify(execFile)('sh', ['-c', here(recipe.curl)], { env }),
      () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', here(recipe.fetch)], { env }),
    ]) {
      await run();
      const last = api.got.at(-1);
      assert.deepEqual([last?.method, last?.url, last?.body], [method, url, body]);
    }
    assert.ok(recipe.python.includes(`http://farebox.test${url}`), recipe.python);
    const page = await (await fetch(`${server.url}/docs/${id}`, { headers: { accept: 'text/html' } })).text();
    assert.ok(page.includes(`${method} http://farebox.test/v1/`), 'the page names the address');
    assert.match(page, /curl -sS .*http:\/\/farebox\.test\/v1\//);
  }
});
