/** The pages in a real Chromium: they show what is for sale, buy a call, and keep to this server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let browser: Browser;
before(async () => {
  database = await openTestDatabase();
  upstreams = await startUpstreams();
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await server.close();
  await upstreams.stop();
  await database.close();
});

/** Opens a page and fails the test if it complains, or asks anybody but this server. */
async function open(path: string, width = 1280): Promise<{ page: Page; troubles: string[] }> {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  const troubles: string[] = [];
  page.on('pageerror', (error) => troubles.push(`page error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url) && !request.url().startsWith('data:')) {
      troubles.push(`asked ${request.url()}`);
    }
  });
  await page.goto(server.url + path, { waitUntil: 'networkidle' });
  return { page, troubles };
}

test('every page loads without a complaint, a foreign request or sideways scrolling, on a phone too', async () => {
  const paths = ['/', '/docs', '/docs/token-price', '/docs/ai-inference', '/keys', '/devices'];
  for (const path of [...paths, '/credits/return', '/credits/cancel']) {
    for (const width of [390, 1280]) {
      const { page, troubles } = await open(path, width);
      assert.deepEqual(troubles, [], path);
      assert(await page.locator('h1:visible').first().isVisible(), path);
      const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
      assert(Number(overflow) <= 0, `${path} is ${overflow} px too wide at ${width}`);
      await page.close();
    }
  }
});

test('a person pastes a key, sends a call from the docs, and sees its answer and what is left', async () => {
  const key = await server.key('1');
  const { page, troubles } = await open('/docs/ping');
  await page.getByLabel('Key', { exact: true }).fill(key);
  await page.getByRole('button', { name: /Send this call/ }).click();
  await page.getByText('$0.75 left').waitFor();
  assert.match((await page.textContent('body')) ?? '', /"success": true/);
  assert(!page.url().includes(key), 'no secret in an address');
  assert.deepEqual(troubles, []);

  await page.goto(`${server.url}/keys`, { waitUntil: 'networkidle' });
  await page.getByText('$0.75').first().waitFor();
  assert.match((await page.textContent('body')) ?? '', /ping/);
  await page.close();
});

test('an answer about a place is looked at: its map stands above it, on a phone too', async () => {
  const key = await server.key('1');
  for (const width of [390, 1280]) {
    const { page, troubles } = await open('/docs/vegetation', width);
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.getByRole('button', { name: /Send this call/ }).click();
    const map = page.getByRole('img', { name: /NDVI/ });
    await map.waitFor();
    const image = 'document.querySelector(".map img")';
    assert.equal(await page.evaluate(`${image}.decode().then(() => ${image}.naturalWidth)`), 512);
    assert.match((await page.locator('figcaption').textContent()) ?? '', /NASA GIBS/);
    const shown = await map.boundingBox();
    assert(shown !== null && shown.x >= 0 && shown.x + shown.width <= width, JSON.stringify(shown));
    const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
    assert(Number(overflow) <= 0, `${overflow} px too wide at ${width}`);
    assert.deepEqual(troubles, []);
    await page.close();
  }
});

test('nothing is offered by card where no card can be charged', async () => {
  const { page, troubles } = await open('/keys');
  await page.getByLabel('Key', { exact: true }).fill(await server.key('1'));
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Caps' }).waitFor();
  for (const name of ['Auto-recharge', 'Buy credit'])
    assert.equal(await page.getByRole('heading', { name }).isVisible(), false, name);
  await page.goto(server.url, { waitUntil: 'networkidle' });
  assert.equal(await page.getByRole('heading', { name: 'Credit by card' }).isVisible(), false);
  assert.deepEqual(troubles, []);
  await page.close();
});
