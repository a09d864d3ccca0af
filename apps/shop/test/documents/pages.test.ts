/**
 * How the pages look and behave in a real Chromium, on a phone and on a desk, in light and dark: nothing is too wide, too
 * pale, covered or moved, and the list of services serves ninety of them.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { TAGS } from '../../../../packages/catalogue/src/services/tags.ts';
import {
  defineContentService,
  defineService,
  type Service,
} from '../../../../packages/core/src/service/define.ts';
import { fittingBest } from '../../../../packages/core/src/service/fitting.ts';
import { answer, content } from '../../../../packages/core/src/words/answer.ts';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { drawnUpTo, openSlowDocuments } from '../chains/slow-documents.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

const SERVICES_OF_A_FULL_SHOP = 90;

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let browser: Browser;
let services: readonly Service[];
before(async () => {
  database = await openTestDatabase();
  upstreams = await startUpstreams();
  const real = await loadServices();
  services = [
    ...real,
    picture,
    ...Array.from({ length: SERVICES_OF_A_FULL_SHOP - real.length - 1 }, (_, at) => further(at)),
  ];
  // A sandbox, so that its ribbon is looked at on every page.
  const environment = { FAREBOX_SANDBOX_PARTS: `upstreams=${upstreams.url}` };
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url, services, environment });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await server.close();
  await upstreams.stop();
  await database.close();
});

const picture = defineContentService({
  path: 'picture',
  name: 'Picture',
  tag: 'Satellite Intelligence',
  priceUsd: '0.10',
  summary: 'Answers with bytes.',
  contentType: 'image/png',
  input: z.object({}),
  example: {},
  run: async () => content(new Uint8Array(7), { method: 'none' }),
});

function further(at: number): Service {
  return defineService({
    path: `further-${at}`,
    name: `Further Service ${at}`,
    tag: 'Satellite Intelligence',
    priceUsd: '0.10',
    summary: 'Stands for a service that this shop may sell one day.',
    input: z.object({}),
    output: z.object({ number: z.int().describe('A number') }),
    example: {},
    run: async () => answer({ number: at }, { method: 'none' }),
  });
}

const COUNT_SHIFTS = `
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
`;

async function open(
  path: string,
  options: { width?: number; scheme?: 'light' | 'dark' } = {},
): Promise<Page> {
  const { width = 1280, scheme = 'light' } = options;
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
  await page.addInitScript(COUNT_SHIFTS);
  await page.goto(server.url + path, { waitUntil: 'networkidle' });
  return page;
}

const PAGES = [
  '/',
  '/services',
  '/pricing',
  '/docs',
  '/docs/token-price',
  '/docs/nothing',
  '/Keys',
  '/keys',
  '/devices',
  '/credits/return',
  '/credits/cancel',
];

for (const scheme of ['light', 'dark'] as const)
  test(`every page can be read in ${scheme}: no text is too pale, covered or cut, and nothing moves while it loads`, async () => {
    for (const path of PAGES)
      for (const width of [390, 1280]) {
        const page = await open(path, { width, scheme });
        const warning = width === 390 ? 'Never pay with real money' : 'Never pay here with a wallet';
        assert(await page.getByText(warning).isVisible(), path);
        await assertReadable(page, `${path} at ${width}`);
        const shifted = Number(await page.evaluate('window.shifted'));
        assert(shifted < 0.02, `${path} at ${width} moves by ${shifted} while it loads`);
        await page.close();
      }
  });

test('a page that arrives piece by piece, and what it asks for after that, moves nothing that can be read already', async () => {
  const slow = await openSlowDocuments(server.url);
  try {
    for (const path of PAGES)
      for (const width of [390, 1280]) {
        const page = await browser.newPage({ viewport: { width, height: 900 } });
        await page.addInitScript(COUNT_SHIFTS);
        let tell = () => {};
        const drawn = new Promise<void>((resolve) => {
          tell = resolve;
        });
        await page.route(/\/(x402|api)\//, async (route) => {
          await drawn;
          await route.continue();
        });
        const asked = slow.next();
        const opening = page.goto(slow.url + path, { waitUntil: 'networkidle' });
        const { pieces, send } = await asked;
        for (const index of pieces.keys()) {
          send(index);
          // The first is the head and the bar. The page is there once it came.
          if (index === 0) await page.waitForURL(slow.url + path, { waitUntil: 'commit' });
          await page.evaluate(drawnUpTo(index));
        }
        tell();
        await opening;
        const shifted = Number(await page.evaluate('window.shifted'));
        assert(shifted < 0.02, `${path} at ${width} moves by ${shifted} while it arrives`);
        await page.close();
      }
  } finally {
    await slow.close();
  }
});

test('a page that does nothing without scripts says so, and where a program asks for the same', async () => {
  const plain = await browser.newContext({ javaScriptEnabled: false });
  for (const [path, asked] of [
    ['/keys', 'GET /api/keys/me'],
    ['/devices', 'GET /api/devices'],
  ] as const) {
    const page = await plain.newPage();
    await page.goto(server.url + path);
    const notice = page.locator('main noscript .notice');
    assert(await notice.isVisible(), path);
    assert.match((await notice.textContent()) ?? '', new RegExp(`needs JavaScript.*${asked}`), path);
    await page.close();
  }
  await plain.close();
});

test('a key that is shown once is shown whole, until its owner has it', async () => {
  for (const width of [320, 390, 1280]) {
    const page = await open('/keys', { width });
    await page.getByLabel('Key', { exact: true }).fill(await server.key('1'));
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('heading', { name: 'Rotate or revoke' }).click();
    await page.getByRole('button', { name: 'Rotate …' }).click();
    await page.getByRole('button', { name: 'Rotate', exact: true }).click();
    const box = page.locator('.fresh-key pre');
    await box.waitFor();
    assert.match(String(await box.textContent()), /^fbx_live_[0-9a-f]{64}$/);
    await assertReadable(page, `a fresh key at ${width}`);
    await page.getByRole('button', { name: 'I have it' }).click();
    assert.equal(await box.count(), 0);
    await page.close();
  }
});

test('what is wrong with a form stands at its field, which is marked and has the focus', async () => {
  const page = await open('/keys', { width: 390 });
  const focused = () => page.evaluate('document.activeElement.id');
  const box = page.getByLabel('Key', { exact: true });
  await box.fill('fbx_live_a1');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.locator('#key-problem').getByText('A whole one has 73 characters; this has 11.').waitFor();
  assert.deepEqual([await box.getAttribute('aria-invalid'), await focused()], ['true', 'key']);
  await box.fill(await server.key('1'));
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('heading', { name: 'Caps' }).click();
  await page.getByLabel('Most for one call, USD').fill('1.5');
  await page.getByLabel('Most in one day (UTC), USD').fill('a lot');
  assert.equal(await box.getAttribute('aria-invalid'), null);
  await page.getByRole('button', { name: 'Save caps' }).click();
  await page.locator('#per-day-problem').getByText('“a lot” is not an amount in USD.').waitFor();
  assert.deepEqual([await page.locator('#per-call-problem').count(), await focused()], [0, 'per-day']);
  await page.close();

  const service = await open('/docs/fire-alerts');
  await service.getByLabel('Key', { exact: true }).fill(await server.key('1'));
  await service.getByLabel(/^lat /).fill('91');
  await service.getByRole('button', { name: /Send this call/ }).click();
  await service.locator('#try-lat-problem').getByText('Must be at most 90.').waitFor();
  assert.equal(await service.evaluate('document.activeElement.id'), 'try-lat');
  await service.close();
});

test('the list shows the service that is read, says how many lie below, and moves nothing else', async () => {
  // The list is by tags, in their order.
  const last = services.filter(({ tag }) => tag === TAGS.at(-1)).at(-1)?.path;
  for (const service of ['first-call', 'token-price', last]) {
    const page = await open(`/docs/${service}`);
    const current = page.locator('#services [aria-current="page"]');
    assert.equal(await current.getAttribute('href'), `/docs/${service}`);
    const [entry, list] = [await current.boundingBox(), await page.locator('#services').boundingBox()];
    assert(entry !== null && list !== null);
    // Scrolled to its end, a list stands at whole pixels.
    assert(entry.y >= list.y && entry.y + entry.height <= list.y + list.height + 1, `${service} is in view`);
    assert(list.y + list.height <= 900, 'the list ends in the window');
    assert.equal(await page.evaluate('scrollY'), 0);
    const below = await page.locator('#more').textContent();
    assert[service === last ? 'doesNotMatch' : 'match'](String(below), /\d+ more/);
    await page.close();
  }
});

test('choosing from the list keeps its place, and going back on a phone leads to what was read', async () => {
  const page = await open('/docs/first-call');
  const scrolled = 'document.querySelector("#services").scrollTop';
  const chosen = page.locator('#services a', { hasText: 'Further Service 7' });
  await chosen.scrollIntoViewIfNeeded();
  const before = await page.evaluate(scrolled);
  await chosen.click();
  await page.getByRole('heading', { level: 1, name: 'Further Service 7' }).waitFor();
  assert.equal(await page.evaluate(scrolled), before);
  assert.match(String(await page.evaluate('document.activeElement.textContent')), /Further Service 7/);
  await page.close();

  const phone = await open('/docs', { width: 390 });
  assert.equal(await phone.getByText('Loading the service').isVisible(), false);
  await phone.locator('#services a', { hasText: 'Further Service 7' }).click();
  await phone.getByRole('heading', { level: 1, name: 'Further Service 7' }).waitFor();
  assert.equal(await phone.evaluate('scrollY'), 0);
  await phone.getByRole('link', { name: '← All services' }).click();
  const entry = await phone.locator('#services a', { hasText: 'Further Service 7' }).boundingBox();
  assert(entry !== null && entry.y > 0 && entry.y < 900, 'it is on the screen');
  assert.match(String(await phone.evaluate('document.activeElement.textContent')), /Further Service 7/);
  await phone.close();
});

test('a filter hides services, keeps the focus and its own place on the screen, and says what it found', async () => {
  for (const width of [390, 1280]) {
    const page = await open('/docs?all=1', { width });
    const filter = page.getByLabel('Find a service');
    await filter.scrollIntoViewIfNeeded();
    if (width === 390) {
      await page.mouse.wheel(0, 2_000);
      await until('the page to be scrolled', async () => Number(await page.evaluate('scrollY')) > 500);
    }
    const before = await filter.boundingBox();
    await filter.focus();
    await page.keyboard.type('solana yield');
    const best = fittingBest('solana yield', services, 20).map(({ path }) => path);
    const found = page.locator('#services a:visible');
    const paths = () =>
      found.evaluateAll((links: { pathname: string }[]) => links.map(({ pathname }) => pathname.slice(6)));
    await until('what was searched for', async () => (await found.count()) === best.length);
    assert.deepEqual((await paths()).toSorted(), best.toSorted());
    assert.equal((await paths())[0], best[0], 'the best is not the first');
    await page.getByText(`${best.length} of ${SERVICES_OF_A_FULL_SHOP} services`).waitFor();
    const after = await filter.boundingBox();
    assert(before !== null && after !== null);
    assert(Math.abs(after.y - before.y) < 1, `the filter moved from ${before.y} to ${after.y}`);
    const first = await found.first().boundingBox();
    assert(first !== null && first.y > after.y && first.y < 500, 'the first one found is below it');
    assert.equal(await page.evaluate('document.activeElement.id'), 'filter');
    await filter.fill('xqzzyv');
    await page.getByText('No service matches “xqzzyv”.').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByText(`${SERVICES_OF_A_FULL_SHOP} services`, { exact: true }).waitFor();
    await page.getByLabel('Group').selectOption('Discovery');
    const tags = await page.locator('#services section:visible').evaluateAll((all: unknown[]) => all.length);
    assert.equal(tags, 1);
    await filter.fill('ping');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Ping/Echo Service' }).waitFor();
    await page.close();
  }
});

test('the list holds what is for sale until all of it is asked for, and keeps what was chosen in its address', async () => {
  const page = await open('/docs', { width: 1280 });
  const catalog = await jsonOf(fetch(`${server.url}/x402/catalog`));
  const all: { id: string; available: boolean }[] = catalog.services;
  const resting = all.filter(({ available }) => !available);
  assert.ok(resting.length > 0, 'everything is for sale here');
  await page.getByText(`${all.length - resting.length} services`, { exact: true }).waitFor();
  const shown = (id: string) => page.locator(`#services a[href="/docs/${id}"]`).isVisible();
  assert.equal(await shown(resting[0]?.id ?? ''), false);
  await page.getByLabel('for sale now').uncheck();
  await page.getByText(`${all.length} services`, { exact: true }).waitFor();
  assert.equal(await shown(resting[0]?.id ?? ''), true);
  await page.getByLabel('Find a service').fill('kal');
  await page.waitForURL('**/docs?q=kal&all=1');
  const said = await page.locator('#count').textContent();
  await page.reload();
  await page.getByText(String(said), { exact: true }).waitFor();
  assert.equal(await page.getByLabel('Find a service').inputValue(), 'kal');
  await page.getByLabel('Find a service').fill('xqzzyv');
  await page.getByRole('button', { name: 'weather' }).click();
  await page.waitForURL('**/docs?q=weather&all=1');
  await page.goto(`${server.url}/docs/${resting[0]?.id}`);
  await until('the service of the address in the list', () => shown(resting[0]?.id ?? ''));
  await page.close();
});

test('the beginning of a word, and words while the server is silent, are looked for in the list itself', async () => {
  const page = await open('/docs?all=1', { width: 1280 });
  const filter = page.getByLabel('Find a service');
  const having = (...words: string[]) =>
    services.filter(({ path, name, tag, summary }) =>
      words.every((word) => `${path} ${name} ${tag} ${summary}`.toLowerCase().includes(word)),
    ).length;
  assert.deepEqual(fittingBest('kal', services, 20), []);
  await filter.fill('kal');
  await page.getByText(`${having('kal')} of ${SERVICES_OF_A_FULL_SHOP} services`, { exact: true }).waitFor();
  await page.route('**/x402/catalog?*', (route) => route.abort());
  await filter.fill('kalshi odds');
  const both = having('kalshi', 'odds');
  assert.ok(both > 0 && both < having('kal'));
  await page.getByText(`${both} of ${SERVICES_OF_A_FULL_SHOP} services`, { exact: true }).waitFor();
  await filter.fill('');
  await page.getByText(`${SERVICES_OF_A_FULL_SHOP} services`, { exact: true }).waitFor();
  const first = await page.locator('#services a:visible').first().getAttribute('href');
  assert.equal(first, `/docs/${services[0]?.path}`, 'the list is in the order of the catalog again');
  await page.close();
});

test('what could not be loaded is said, with a way to try again', async () => {
  for (const [path, failing, sign] of [
    ['/docs', '**/x402/catalog', 'First Paid Call'],
    ['/docs/ping', '**/x402/recipes/ping', 'What you send'],
  ] as const) {
    const page = await browser.newPage();
    await page.route(failing, (route) => route.abort());
    await page.goto(server.url + path);
    await page.getByRole('alert').getByText('could not be loaded').waitFor();
    await page.unroute(failing);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText(sign).first().waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
    await page.close();
  }
});

test('a service that answers with bytes says which, and a trial call how many', async () => {
  const page = await open('/docs/picture');
  await page.getByText('Media type image/png').waitFor();
  await page.getByLabel('Key', { exact: true }).fill(await server.key('1'));
  await page.getByRole('button', { name: /Send this call/ }).click();
  await page.getByText('7 bytes of image/png').waitFor();
  await page.close();
});

test('home has a call with its answer, prices and a way in for each who comes, without a script', async () => {
  const plain = await browser.newContext({
    javaScriptEnabled: false,
    viewport: { width: 1280, height: 800 },
  });
  const page = await plain.newPage();
  await page.goto(server.url);
  const bottomOf = async (text: string | RegExp) => {
    const box = await page.getByText(text).first().boundingBox();
    return (box?.y ?? Number.POSITIVE_INFINITY) + (box?.height ?? 0);
  };
  for (const seen of [/curl -sS -X POST/, '"success": true', /\$[\d.]+ to \$[\d.]+ a call/])
    assert(Number(await bottomOf(seen)) < 800, `${seen} is in the first screen`);
  const doors = await page.locator('.doors h2').allTextContents();
  assert.deepEqual(doors, ['Buy a call', 'Build an agent', 'Sell your API']);
  assert.equal(await page.locator('ul.entries li').count(), 6);
  await plain.close();
});

test('home tells of keys and wallets, and puts a trial key into the commands', async () => {
  const page = await open('/');
  const text = (await page.textContent('main')) ?? '';
  for (const word of [/x402/, /Machine Payments Protocol/, /wallet that signs/]) assert.match(text, word);
  const commands = String(await page.locator('#first-call pre').textContent());
  assert(commands.indexOf('export FAREBOX_API_KEY=') < commands.indexOf('$FAREBOX_API_KEY'));
  const key = `fbx_live_${'a1'.repeat(32)}`;
  await page.route('**/credits/trial', (route) =>
    route.fulfill({ json: { apiKey: key, expiresIn: '7 days' } }),
  );
  await page.getByRole('button', { name: 'Get a trial key' }).click();
  assert.equal(await page.locator('.fresh-key pre').textContent(), key);
  assert(String(await page.locator('#first-call pre').textContent()).includes(`_API_KEY=${key}`));
  await page.close();
});
