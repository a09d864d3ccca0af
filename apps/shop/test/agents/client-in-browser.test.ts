/** The packed client in a page of a browser, at another address than the server. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { pack } from '../../../../scripts/pack.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'farebox-browser-'));
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let browser: Browser;
before(async () => {
  const [archive = ''] = pack(['client'], folder);
  const done = spawnSync('tar', ['-xzf', archive, '--strip-components=1', '-C', folder], {
    encoding: 'utf8',
  });
  assert.equal(done.status, 0, done.stderr);
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.close();
  await Promise.all([database?.close(), upstreams?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

test('a page that is not secure is told so before anything is paid, and reads prices all the same', async () => {
  const page = await browser.newPage();
  // As an operator would serve it without TLS: nothing of it leaves this process.
  await page.route('http://shop.example/**', (route) => {
    const { pathname } = new URL(route.request().url());
    return pathname.startsWith('/dist/')
      ? route.fulfill({ contentType: 'text/javascript', body: readFileSync(join(folder, pathname), 'utf8') })
      : route.fulfill({ contentType: 'application/json', body: '{"services":[{"id":"ping"}]}' });
  });
  await page.route('http://shop.example/', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>a</title>' }),
  );
  await page.goto('http://shop.example/');
  const told = await page.evaluate(`(async () => {
    const { createFarebox } = await import('/dist/index.js');
    const [service] = await createFarebox({ url: 'http://shop.example' }).search();
    try { createFarebox({ url: 'https://shop.example', apiKey: 'fbx_live_0123456789' }); } catch (error) {
      return [isSecureContext, typeof crypto.subtle, service.id, error.name, error.message];
    }
  })()`);
  const words = 'a browser buys from a secure page alone: one of https, or of this machine';
  assert.deepEqual(told, [false, 'undefined', 'ping', 'TypeError', words]);
  await page.close();
});

test('buys, keeps its purchases in the storage of the browser, and reads every header of a receipt', async (t) => {
  // A server of its own: a page that only pretends to be of this machine may not ask another one on it.
  const pages = createServer(({ url = '/' }, response) => {
    const isPage = url === '/' || url === '/favicon.ico';
    response.setHeader('content-type', isPage ? 'text/html' : 'text/javascript');
    response.end(isPage ? '<!doctype html><title>a</title>' : readFileSync(join(folder, url)));
  }).listen(0, '127.0.0.1');
  await once(pages, 'listening');
  t.after(() => {
    pages.closeAllConnections();
    pages.close();
  });
  const page = await browser.newPage();
  await page.goto(`http://localhost:${(pages.address() as AddressInfo).port}/`);
  const given = JSON.stringify({ url: server.url, apiKey: await server.key('1') });
  const bought = await page.evaluate(`(async () => {
    const { createFarebox } = await import('/dist/index.js');
    const store = {
      get: (name) => localStorage.getItem(name),
      set: (name, value) => localStorage.setItem(name, value),
      delete: (name) => localStorage.removeItem(name),
    };
    const farebox = createFarebox({ ...${given}, store });
    const { output, receipt } = await farebox.buy('ping', { message: 'from a page' });
    const error = await farebox.call('token-price', { symbol: 5 }).catch((error) => error);
    return { echo: output.echo, usd: receipt.amountUsd, left: receipt.creditLeftUsd, id: error.requestId !== null, field: error.field };
  })()`);
  assert.deepEqual(bought, { echo: 'from a page', usd: '0.2500', left: '0.7500', id: true, field: 'symbol' });
});
