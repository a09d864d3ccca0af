/** Reads a whole server without a script, and opens the address of a call in a browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import axe from 'axe-core';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';

let database: TestDatabase;
let server: TestServer;
let browser: Browser;
before(async () => {
  database = await openTestDatabase();
  const environment = { FAREBOX_SANDBOX_PARTS: 'upstreams=http://127.0.0.1:9' };
  server = await startTestServer({ pools: database, environment });
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await server.close();
  await database.close();
});

test('a 402 in a browser says the price and the ways to pay, with what a program gets folded', async () => {
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  const response = await page.goto(`${server.url}/x402/token-price`);
  assert.equal(response?.status(), 402);
  await page.getByRole('heading', { level: 1, name: 'Token Price Feed costs $0.25' }).waitFor();
  await page.getByRole('link', { name: /^Try it/ }).waitFor();
  assert.equal(await page.getByText('"x402Version"').isVisible(), false);
  await page.getByText('For programs:').click();
  assert(await page.getByText('"x402Version"').isVisible());
  await assertReadable(page, 'a 402 at 390');
  await page.close();
});

test('a 402 has the same status and headers for a browser as for a program, which gets JSON', async () => {
  const url = `${server.url}/x402/token-price`;
  const page = await fetch(url, { headers: { accept: BROWSER } });
  const program = await fetch(url, { headers: { accept: '*/*' } });
  assert.deepEqual([page.status, program.status], [402, 402]);
  const body = await jsonOf(program);
  assert.equal(body.code, 'PAYMENT_REQUIRED');
  assert.match(await page.text(), /^<!doctype html>/);
  assert.match(String(page.headers.get('content-security-policy')), /default-src 'self'/);
  assert.match(String(page.headers.get('vary')), /Accept/);
  const ofForm =
    /^(content-(type|length|security-policy)|vary|date|x-(request-id|frame-options|content-type-options)|referrer-policy|cross-origin-opener-policy|ratelimit.*)$/;
  const others = ({ headers }: Response) => [...headers].filter(([name]) => !ofForm.test(name));
  assert.deepEqual(others(page), others(program));
});

test('an error leads to a page about its code', async () => {
  const key = await server.key('1');
  for (const [path, init, code] of [
    ['/x402/nothing', { method: 'POST' }, 'UNKNOWN_SERVICE'],
    ['/x402/token-price', { method: 'POST', headers: { 'x-api-key': key }, body: '{}' }, 'INVALID_REQUEST'],
    ['/x402/token-price', { method: 'POST' }, 'PAYMENT_REQUIRED'],
    ['/api/keys/me', {}, 'API_KEY_MISSING'],
  ] as const) {
    const body = await jsonOf(await fetch(server.url + path, init));
    assert.equal(body.code, code);
    assert.match(String(body.docUrl), new RegExp(`/docs/errors/${code}$`));
    const told = await fetch(server.url + new URL(String(body.docUrl)).pathname, {
      headers: { accept: BROWSER },
    });
    assert.equal(told.status, 200, code);
    assert.match(await told.text(), new RegExp(`<h1[^>]*>${code}</h1>`));
  }
});

test('every guide, service and code can be read without a script, and every link in them leads somewhere', async () => {
  const plain = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
  const page = await plain.newPage();
  await page.goto(`${server.url}/docs/token-price`);
  assert(await page.getByRole('heading', { level: 1, name: 'Token Price Feed' }).isVisible());
  assert(await page.getByText('tokenAddress', { exact: true }).first().isVisible());
  await page.goto(`${server.url}/docs`);
  assert(
    await page
      .getByRole('link', { name: /Token Price/ })
      .first()
      .isVisible(),
  );
  await page.goto(`${server.url}/services?all=1`);
  assert(await page.getByRole('link', { name: 'Token Price Feed', exact: true }).isVisible());
  await plain.close();

  const seen = new Set<string>();
  const open = ['/services?all=1', '/docs/guides', '/docs/errors'];
  for (const path of open) {
    const text = await (await fetch(server.url + path, { headers: { accept: BROWSER } })).text();
    const [main = ''] = /<main.*<\/main>/s.exec(text) ?? [];
    for (const [, href = ''] of main.matchAll(/href="(\/[^"#]*)/g)) {
      if (seen.has(href)) continue;
      seen.add(href);
      const { status } = await fetch(server.url + href.replaceAll('&#38;', '&'), {
        headers: { accept: BROWSER },
      });
      assert.equal(status, 200, `${path} leads to ${href}`);
      if (/^\/docs\/guides\/[\w-]+$/.test(href)) open.push(href);
    }
  }
  assert(seen.size > 80, `${seen.size} links`);
});

test('guides, codes and the catalog can be read on a phone and a desk, in light and dark', async () => {
  for (const scheme of ['light', 'dark'] as const)
    for (const width of [320, 390, 1280]) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
      for (const path of [
        '/services?all=1',
        '/docs/guides',
        '/docs/guides/x402',
        '/docs/errors/BUSY',
        '/docs/errors',
      ]) {
        await page.goto(server.url + path);
        if (process.env.SHOTS)
          await page.screenshot({
            path: `${process.env.SHOTS}/${path.replaceAll(/\W/g, '-')}-${width}-${scheme}.png`,
          });
        await assertReadable(page, `${path} at ${width}`);
      }
      await page.close();
    }
});

test('axe finds nothing wrong with any page, on a phone and on a desk', async () => {
  for (const width of [390, 1280]) {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    for (const path of [
      ...[
        '/',
        '/services',
        '/docs',
        '/docs/token-price',
        '/docs/guides/x402',
        '/docs/errors/BUSY',
        '/keys',
        '/devices',
      ],
      ...['/x402/token-price', '/credits/return', '/credits/cancel', '/nothing'],
    ]) {
      await page.goto(server.url + path, { waitUntil: 'networkidle' });
      await page.evaluate(axe.source);
      const found = await page.evaluate(
        'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 120)).slice(0, 3).join(" | ")))',
      );
      assert.deepEqual(found, [], `${path} at ${width}`);
    }
    await page.close();
  }
});
