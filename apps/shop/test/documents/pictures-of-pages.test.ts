/** The pictures of the pages in `docs/images/`: ten pages with something on them, drawn by a real Chromium. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf } from '../server.fixture.ts';

const IMAGES = join(import.meta.dirname, '../../../../docs/images');
const TOKEN = 'an-operators-token-of-the-tests';
const SIZE = { width: 1280, height: 800 };
const MOST_BYTES = 200_000;
const CALLS = 24;
/** Sold once each, so that what is listed by service is as long as it gets. */
const SOLD_ONCE = [
  ['ping', {}],
  ['solana-yield-finder', { token: 'USDC', minApy: 3 }],
  ['token-sentiment', { tokenSymbol: 'ETH' }],
  ['kalshi-markets', { limit: 10 }],
  ['air-quality', { lat: 28.61, lon: 77.21 }],
  ['flood-detection', { lat: 48.2, lon: 15.6 }],
  ['trending-tokens', { chain: 'base', limit: 10 }],
  ['forex-sentiment', { pair: 'EUR/USD' }],
  ['trade-signals', { token: 'ETH/USDT', timeframe: '4h' }],
] as const;
/** The height of the operator's overview on a quiet day, by the width of the window; in pixels. */
const MOST_OVERVIEW = { 390: 2_600, 1280: 1_400 };
const USDC = { tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', chain: 'base' };

let world: CardWorld;
let browser: Browser;
let key: string;
before(async () => {
  world = await startCardWorld({ environment: { ADMIN_TOKENS: `desk:${TOKEN}` } });
  const { server } = world;
  key = await server.key('40');
  for (let made = 0; made < CALLS; made += 1)
    for (const [service, body] of [
      ['first-call', {}],
      ['token-price', USDC],
      ['fire-alerts', { lat: -11.2, lon: 22.4 }],
    ] as const)
      assert.equal((await server.call(service, key, body)).status, 200, service);
  for (const [service, body] of SOLD_ONCE)
    assert.equal((await server.call(service, key, body)).status, 200, service);
  await server.app.jobs.find(({ name }) => name === 'measure-services')?.run();
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await world.stop();
});

/** What is kept in a tab that has signed in here. */
const SIGNED_IN = () =>
  `sessionStorage.setItem('farebox-key', '${key}'); sessionStorage.setItem('farebox-operator', '${TOKEN}');`;

async function sendCall(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Send this call/ }).click();
  await page.getByText('Answered and charged.').waitFor();
  await page.locator('.outcome').scrollIntoViewIfNeeded();
}

/** Where each picture is taken, and what is done there first. */
const PICTURES: readonly {
  name: string;
  path: () => Promise<string> | string;
  first?: (page: Page) => Promise<void>;
}[] = [
  { name: 'home', path: () => '/' },
  { name: 'catalog', path: () => '/services' },
  { name: 'pricing', path: () => '/pricing' },
  { name: 'docs', path: () => '/docs' },
  { name: 'service', path: () => '/docs/fire-alerts' },
  { name: 'answer', path: () => '/docs/token-price', first: sendCall },
  { name: 'payment-required', path: () => '/x402/token-price' },
  { name: 'key', path: () => '/keys', first: (page) => page.getByText('By service').waitFor() },
  { name: 'receipt', path: receipt, first: (page) => page.getByText('Receipt').first().waitFor() },
  { name: 'operator', path: () => '/admin', first: (page) => page.getByText('Needs you').waitFor() },
];

/** The address of the page after a payment. */
async function receipt(): Promise<string> {
  const opened = await jsonOf(world.post('/api/m2m/credits/checkout/session', { amountUsd: 10 }));
  const paid = await world.pay(opened.checkoutUrl);
  const { pathname, search, hash } = new URL(String(paid.headers.get('location')));
  return pathname + search + hash;
}

const VIOLATIONS =
  'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes[0].html.slice(0, 120)))';

test('the pages of buyers and operators fit on the smallest and the widest window', async () => {
  for (const width of [320, 1920]) {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: 'dark' });
    await page.addInitScript(SIGNED_IN());
    for (const path of ['/', '/services', '/pricing', '/docs/fire-alerts', '/keys', '/admin']) {
      await page.goto(world.server.url + path, { waitUntil: 'networkidle' });
      await assertReadable(page, `${path} at ${width}`);
    }
    await page.close();
  }
});

test('an operator sees the whole overview of a quiet day in a screen and a half, on a phone in three', async () => {
  for (const [width, most] of Object.entries(MOST_OVERVIEW)) {
    const page = await browser.newPage({ viewport: { width: Number(width), height: 900 } });
    await page.addInitScript(SIGNED_IN());
    await page.goto(`${world.server.url}/admin`, { waitUntil: 'networkidle' });
    await page.getByRole('button', { name: `Show all ${SOLD_ONCE.length + 3}` }).waitFor();
    await page.getByText('Nothing needs doing.').waitFor();
    const height = Number(await page.evaluate('document.documentElement.scrollHeight'));
    assert(height <= most, `${height} px at ${width}`);
    for (const heading of ['Needs you', 'Today', 'Sales', 'Money', 'System'])
      assert(await page.getByRole('heading', { name: heading, exact: true }).isVisible(), heading);
    await page.close();
  }
});

test('the pictures of ten pages are drawn here, readable, and stand in the folder of pictures', async () => {
  // Set `PAGE_PICTURES` to draw them anew into that folder.
  const folder = process.env.PAGE_PICTURES;
  for (const { name, path, first } of PICTURES) {
    const page = await browser.newPage({ viewport: SIZE, colorScheme: 'light' });
    await page.addInitScript(SIGNED_IN());
    await page.goto(world.server.url + (await path()), { waitUntil: 'networkidle' });
    await first?.(page);
    await assertReadable(page, name);
    await page.evaluate(axe.source);
    assert.deepEqual(await page.evaluate(VIOLATIONS), [], name);
    const drawn = await page.screenshot();
    await page.close();
    if (folder !== undefined) writeFileSync(join(folder, `${name}.png`), drawn);
    for (const [which, bytes] of [
      ['drawn', drawn],
      ['kept', readFileSync(join(IMAGES, `${name}.png`))],
    ] as const) {
      assert.deepEqual(sizeOf(bytes), SIZE, `${name}, ${which}`);
      assert(bytes.length < MOST_BYTES, `${name}, ${which}, has ${bytes.length} bytes`);
    }
  }
});

/** The width and the height of a PNG, from its first chunk. */
function sizeOf(png: Buffer): { width: number; height: number } {
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  return { width: png.readUInt32BE(16), height: png.readUInt32BE(20) };
}
