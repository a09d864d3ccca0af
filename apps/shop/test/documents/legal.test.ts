/** The operator's own documents: where they are shown, and that nothing is shown where there are none. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const services = (await loadServices()).filter(({ path }) => path === 'ping');
const TERMS = '# Our terms\n\nWe sell calls. <script>alert(1)</script> [Here](javascript:alert(1))\n';
const PRIVACY = 'https://about.test/privacy?a=1&b=2';

let folder: string;
let database: TestDatabase;
let withThem: TestServer;
let without: TestServer;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-legal-'));
  writeFileSync(join(folder, 'terms.md'), TERMS);
  database = await openTestDatabase();
  const environment = { TERMS: join(folder, 'terms.md'), PRIVACY };
  withThem = await startTestServer({ pools: database, services, environment });
  without = await startTestServer({ pools: database, services });
});
after(async () => {
  await withThem?.close();
  await without?.close();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

const textAt = async (server: TestServer, path: string) => {
  const answer = await fetch(server.url + path, { headers: { accept: 'text/html' } });
  return { status: answer.status, text: await answer.text() };
};

test('a file is shown as a page that can run nothing', async () => {
  const { status, text } = await textAt(withThem, '/legal/terms');
  assert.equal(status, 200);
  assert.match(text, /<h1 id="our-terms">Our terms<\/h1>/);
  assert.match(text, /&#60;script&#62;|&lt;script&gt;/);
  assert.doesNotMatch(text, /<script>alert|javascript:/);
  for (const path of ['/legal/privacy', '/legal/imprint'])
    assert.equal((await textAt(withThem, path)).status, 404, `${path} is no page here`);
});

test('every page leads to them, and the payment by card says so before its button', async () => {
  for (const path of ['/', '/keys', '/docs', '/legal/terms']) {
    const { text } = await textAt(withThem, path);
    assert.match(text, /<a href="\/legal\/terms">Terms<\/a>/, path);
    assert.match(text, /<a href="https:\/\/about\.test\/privacy\?a=1&#38;b=2">Privacy<\/a>/, path);
    assert.doesNotMatch((await textAt(without, path)).text, /Legal|By paying you accept/, path);
  }
  const { text } = await textAt(withThem, '/keys');
  assert(text.indexOf('By paying you accept') > text.indexOf('id="buy-title"'));
  assert(text.indexOf('By paying you accept') < text.indexOf('Go to the payment'));
});

test('programs find the terms where their standards have a field for them', async () => {
  const documentOf = (server: TestServer, path: string) => jsonOf(fetch(server.url + path));
  const openApi = await documentOf(withThem, '/openapi.json');
  assert.equal(openApi.info.termsOfService, 'http://farebox.test/legal/terms');
  assert.equal('termsOfService' in (await documentOf(without, '/openapi.json')).info, false);
  const plugin = await documentOf(withThem, '/.well-known/ai-plugin.json');
  assert.equal(plugin.legal_info_url, 'http://farebox.test/legal/terms');
  const other = await documentOf(without, '/.well-known/ai-plugin.json');
  assert.equal(other.legal_info_url, 'http://farebox.test/docs');
});
