/** The services as tools of the page, in a real Chromium that is given what browsers with WebMCP have. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import ping from '../../../../packages/catalogue/src/services/discovery/ping.ts';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const PATIENCE_MS = 60_000;
let database: TestDatabase;
let server: TestServer;
let browser: Browser;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, services: [ping] });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await server.close();
  await database.close();
});

/** What such a browser has, as far as a page sees it: at its place of today, or at the older one. */
const modelContext = (place: 'document' | 'navigator') => `
  const tools = new Map();
  globalThis.pageTools = tools;
  const given = {
    registerTool(tool) {
      if (tools.has(tool.name)) throw new Error('there is a tool of this name');
      tools.set(tool.name, tool);
      return Promise.resolve();
    },
  };
  Object.defineProperty(${place === 'document' ? 'Document' : 'Navigator'}.prototype, 'modelContext', { get: () => given });`;

async function open(path: string, place: 'document' | 'navigator' | null, key: string | null = null) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const troubles: string[] = [];
  const asked: string[] = [];
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('request', (request) => asked.push(request.url().slice(server.url.length)));
  if (place !== null) await page.addInitScript(modelContext(place));
  if (key !== null) await page.addInitScript(`sessionStorage.setItem('farebox-key', '${key}')`);
  await page.goto(server.url + path, { waitUntil: 'networkidle' });
  return { page, troubles, asked };
}

const toolsOf = (page: Page): Promise<{ name: string; inputSchema: object; description: string }[]> =>
  page.evaluate(
    '[...pageTools.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))',
  );

/** Calls a tool as the browser does. @param client what the browser gives beside the input, as text */
// biome-ignore lint/suspicious/noExplicitAny: what a tool answers is for the test to look at
const callTool = (page: Page, name: string, input: object, client = 'undefined'): Promise<any> =>
  page.evaluate(`pageTools.get(${JSON.stringify(name)}).execute(${JSON.stringify(input)}, ${client})`);

async function calls(): Promise<number> {
  const [row] = await database.sql`select count(*)::int as n from calls`;
  return row?.n;
}

test('every page with services registers them under the names and schemas that MCP has', async () => {
  const { tools } = await jsonOf(fetch(`${server.url}/.well-known/webmcp.json`));
  for (const [path, place] of [
    ['/', 'document'],
    ['/docs', 'navigator'],
    ['/keys', 'document'],
  ] as const) {
    const { page, troubles } = await open(path, place);
    await page.waitForFunction('pageTools.size === 5');
    const registered = await toolsOf(page);
    assert.deepEqual(
      registered.map(({ name }) => name).sort(),
      [
        'catalog',
        'credit_balance',
        'search_services',
        'service_recipe',
        ...tools.map(({ name }: { name: string }) => name),
      ].sort(),
    );
    const paid = registered.find(({ name }) => name === 'ping');
    assert.deepEqual(paid?.inputSchema, tools[0].inputSchema);
    assert.match(paid?.description ?? '', /0\.25 USD/);
    assert.deepEqual(troubles, []);
    await page.close();
  }
});

test('a browser without tools is asked nothing and given nothing', async () => {
  const { page, troubles, asked } = await open('/', null);
  assert.deepEqual(
    asked.filter((path) => path.includes('webmcp')),
    [],
  );
  assert.deepEqual(troubles, []);
  await page.close();
});

test('without a key a tool tells the price and how to pay, and what is wrong with its input', async () => {
  const { page } = await open('/', 'document');
  await page.waitForFunction('pageTools.size === 5');
  const before = await calls();
  const told = await callTool(page, 'ping', { message: 'hello' });
  assert.equal(told.isError, undefined);
  assert.equal(told.structuredContent.price.amountUsd, '0.250000');
  assert.equal(told.structuredContent.charged, false);
  assert.match(told.structuredContent.howToPay, /\/keys/);
  assert.deepEqual(JSON.parse(told.content[0].text), told.structuredContent);
  const wrong = await callTool(page, 'ping', { message: 5 });
  assert.deepEqual([wrong.isError, wrong.structuredContent.fields[0].field], [true, 'message']);
  const catalog = await callTool(page, 'catalog', {});
  assert.equal(catalog.structuredContent.totalServices, 1);
  const found = await callTool(page, 'search_services', { query: 'ping & echo' });
  assert.deepEqual([found.structuredContent.query, found.structuredContent.found], ['ping & echo', 1]);
  const recipe = await callTool(page, 'service_recipe', { service: 'ping' });
  assert.equal(recipe.structuredContent.priceUsd, '0.25');
  assert.equal((await callTool(page, 'service_recipe', { service: '../keys' })).isError, true);
  assert.equal((await callTool(page, 'credit_balance', {})).isError, true);
  assert.equal(await calls(), before);
  await page.close();
});

test('with a key it is paid once the person agrees, and not before', async () => {
  const key = await server.key('1');
  const { page, troubles } = await open('/docs', 'document', key);
  await page.waitForFunction('pageTools.size === 5');
  const before = await calls();
  const dialog = page.getByRole('dialog');

  const refused = callTool(page, 'ping', { message: '<b>bold</b>' });
  await dialog.getByText('Pay $0.25 for “Ping/Echo Service”?').waitFor();
  assert.match(String(await dialog.textContent()), /<b>bold<\/b>/, 'text stays text');
  await assertReadable(page, 'the question of a tool');
  if (process.env.SHOTS_DIR !== undefined)
    await page.screenshot({ path: `${process.env.SHOTS_DIR}/web-tool.png` });
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.deepEqual([(await refused).isError, (await refused).structuredContent.code], [true, 'NOT_AGREED']);
  const escaped = callTool(page, 'ping', {});
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  assert.equal((await escaped).structuredContent.code, 'NOT_AGREED');
  assert.equal(
    (await callTool(page, 'ping', { message: 5 })).isError,
    true,
    'nobody is asked about what does not fit',
  );
  assert.equal(await calls(), before);

  // Two at once are asked about one after the other.
  const both = Promise.all([
    callTool(page, 'ping', { message: 'one' }),
    callTool(page, 'ping', { message: 'two' }),
  ]);
  await dialog.getByRole('button', { name: 'Pay' }).click();
  await dialog.getByText('two').waitFor();
  assert.equal(await dialog.count(), 1);
  await dialog.getByRole('button', { name: 'Pay' }).click();
  const paid = await both;
  assert.deepEqual(
    paid.map(({ structuredContent }) => structuredContent.echo),
    ['one', 'two'],
  );
  assert.equal(await calls(), before + 2);

  const told = await callTool(page, 'credit_balance', {});
  assert.equal(told.structuredContent.balanceUsd, '0.500000');
  // A browser that asks by itself when it may be asked.
  const client = '{ requestUserInteraction: (ask) => { globalThis.browserAsked = true; return ask(); } }';
  const third = callTool(page, 'ping', { message: 'three' }, client);
  await dialog.getByRole('button', { name: 'Pay' }).click();
  assert.equal((await third).structuredContent.echo, 'three');
  assert.equal(await page.evaluate('globalThis.browserAsked'), true);
  assert(!page.url().includes(key));
  assert.deepEqual(troubles, []);
  await page.close();
});

test('the question has the price of now, a key that changed meanwhile pays nothing, and a lost answer is asked for again', async () => {
  const [key, other] = [await server.key('1'), await server.key('1')];
  const { page } = await open('/docs', 'document', key);
  await page.waitForFunction('pageTools.size === 5');
  const before = await calls();
  const dialog = page.getByRole('dialog');
  await page.route('**/x402/ping?dryRun=1', async (route) => {
    const response = await route.fetch();
    const told = await response.json();
    await route.fulfill({ response, json: { ...told, price: { ...told.price, amountUsd: '0.300000' } } });
  });
  const changed = callTool(page, 'ping', { message: 'one' });
  await dialog.getByText('Pay $0.30 for “Ping/Echo Service”?').waitFor();
  await page.evaluate(`sessionStorage.setItem('farebox-key', '${other}')`);
  await dialog.getByRole('button', { name: 'Pay' }).click();
  assert.deepEqual([(await changed).isError, (await changed).structuredContent.code], [true, 'KEY_CHANGED']);
  assert.equal(await calls(), before);

  let sent = 0;
  await page.route('**/x402/ping', async (route) => {
    sent += 1;
    if (sent > 1) return route.continue();
    await route.fetch();
    await route.abort('connectionreset');
  });
  const lost = callTool(page, 'ping', { message: 'two' });
  await dialog.getByRole('button', { name: 'Pay' }).click();
  assert.equal((await lost).structuredContent.echo, 'two');
  assert.deepEqual([sent, await calls()], [2, before + 1]);
  await page.close();
});
