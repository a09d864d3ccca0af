/** A shop of its own: what an operator sells, what it is called, and what waits until terms are agreed to. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { SOURCES_TO_AGREE_WITH } from '../../../../packages/catalogue/src/upstreams/declared.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

const NAME = "Ada's Calls";
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><script>alert(1)</script></svg>';
const folder = mkdtempSync(join(tmpdir(), 'farebox-shop-'));

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let shop: TestServer;
let key: string;
before(async () => {
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  const logo = join(folder, 'logo.svg');
  writeFileSync(logo, SVG);
  shop = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: {
      ...EVERYTHING_ON,
      SHOP_NAME: NAME,
      SHOP_LOGO: logo,
      CONTACT_EMAIL: 'ada@calls.test',
      SERVICES: '!first-call, !ai-services',
      SOURCE_TERMS_ACCEPTED: '',
      UPSTREAM_FIRMS_API_KEY: '',
    },
  });
  key = await shop.key('1000');
});
after(async () => {
  await shop.close();
  await Promise.all([database.close(), upstreams.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${shop.url}${path}`, { headers });

test('its name, contact and logo stand in every document and on every page', async () => {
  const logo = 'http://farebox.test/assets/shop-logo';
  for (const path of ['/x402/catalog', '/', '/.well-known/agent-instructions.json']) {
    const { name, contact, logo: shown } = await jsonOf(get(path));
    assert.deepEqual([name, contact, shown], [NAME, 'ada@calls.test', logo], path);
  }
  assert.equal((await jsonOf(fetch(`${shop.url}/x402/ping`, { method: 'POST' }))).seller, NAME);
  const { info } = await jsonOf(get('/openapi.json'));
  assert.deepEqual([info.title, info.contact.email, info['x-logo'].url], [NAME, 'ada@calls.test', logo]);
  assert.equal((await jsonOf(get('/mpp/catalog'))).provider, NAME);
  assert.match(await (await get('/llms.txt')).text(), /^# Ada's Calls\n[\s\S]*Contact: ada@calls\.test/);
  for (const path of ['/', '/docs', '/keys']) {
    const page = await (await get(path, { accept: 'text/html' })).text();
    assert.match(page, /<img src="\/assets\/shop-logo"[^>]*>Ada&#39;s Calls<\/a>/, path);
    assert.doesNotMatch(page, /<title>[^<]*Farebox/, path);
  }
});

test('whoever is lost on a page of it finds the way home, and no markup of theirs', async () => {
  const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const known = await get('/docs', { accept });
  for (const [path, meant] of [
    ['/Keys', '/keys'],
    ['//docs//ping', '/docs/ping'],
    ['/DOCS/a"<b>&\'', '/docs/a&#34;&#60;b&#62;&#38;&#39;'],
    ['/nothing/<b>{{shop}}', null],
    [`/DOCS/${'a'.repeat(2_000)}`, null],
  ] as const) {
    const { status, headers, text } = await asIs(path, accept);
    assert.deepEqual(
      [status, headers['content-type'], headers.vary],
      [404, 'text/html; charset=utf-8', 'Accept'],
      path,
    );
    for (const name of [
      'content-security-policy',
      'x-frame-options',
      'referrer-policy',
      'x-content-type-options',
    ])
      assert.equal(headers[name], known.headers.get(name) ?? 'none', `${name} of ${path}`);
    assert.equal(headers['cache-control'], 'no-store');
    assert.match(text, /<title>No such page · Ada&#39;s Calls<\/title>/);
    assert.match(text, /<a class="button" href="\/">/);
    const suggested = /Did you mean <a href="([^"]*)">\1<\/a>\?/.exec(text)?.[1] ?? null;
    assert.equal(suggested, meant, path);
    assert.doesNotMatch(text, /<b>|Farebox|\{\{|<!--/, path);
    assert(text.length < 5_000, path);
    const program = await asIs(path, '*/*');
    assert.deepEqual(
      [program.status, JSON.parse(program.text).code, program.headers.vary],
      [404, 'NOT_FOUND', 'Accept'],
    );
  }
});

/** By the bare client of HTTP: others write an address anew before they send it. */
async function asIs(path: string, accept: string) {
  const { hostname, port } = new URL(shop.url);
  const asked = request({ hostname, port, path, headers: { accept } });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) text += chunk;
  return { status: answer.statusCode, headers: answer.headers, text };
}

test('its logo runs nothing, even when it is opened by itself', async () => {
  const picture = await get('/assets/shop-logo');
  assert.deepEqual([picture.headers.get('content-type'), await picture.text()], ['image/svg+xml', SVG]);
  assert.match(picture.headers.get('content-security-policy') ?? '', /default-src 'none';.* sandbox/);
});

/** A tool call of MCP with the key: its result, or the error. */
async function tool(name: string, input: object = {}) {
  const response = await fetch(`${shop.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-api-key': key,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } }),
  });
  const [, data = assert.fail()] = /^data: (.*)$/m.exec(await response.text()) ?? [];
  return JSON.parse(data);
}

test('what it does not sell stands nowhere, and whoever asks for it is told so', async () => {
  const listed: { services: { id: string }[] } = await jsonOf(get('/x402/catalog'));
  assert(listed.services.length > 20);
  for (const id of ['first-call', 'ai-inference']) assert(!listed.services.some((each) => each.id === id));
  for (const response of [
    shop.call('first-call', key),
    fetch(`${shop.url}/mpp/first-call`, { method: 'POST' }),
    get('/x402/recipes/first-call'),
  ]) {
    const problem = await jsonOf(response);
    assert.deepEqual([problem.status ?? (await response).status, problem.code], [404, 'NOT_SOLD_HERE']);
  }
  const { requestId: _http, ...overHttp } = await jsonOf(shop.call('first-call', key));
  const { result } = await tool('first_call');
  const { requestId, ...asTool } = result.structuredContent;
  assert.deepEqual([result.isError, asTool, typeof requestId], [true, overHttp, 'string']);
  assert.match((await tool('second_call')).error.message, /There is no tool second_call/);
  const { result: list } = await tool('catalog');
  assert(!JSON.stringify(list).includes('first-call'));
  assert.equal((await get('/docs/first-call')).status, 404);
  const { firstCall } = await jsonOf(get('/'));
  assert.notEqual(firstCall.service, 'first-call');
});

test('nothing is sold from a source that nobody has agreed with, and all of it says why in the same words', async () => {
  const listed: { services: Record<string, never>[] } = await jsonOf(get('/x402/catalog'));
  const lineOf = (id: string) => listed.services.find((each) => each.id === id);
  const line = lineOf('kalshi-markets');
  const refused = await jsonOf(shop.call('kalshi-markets', key));
  const recipe = await jsonOf(get('/x402/recipes/kalshi-markets'));
  assert.match(
    refused.message,
    /kalshi is not used, because the operator has not agreed to its terms \(SOURCE_TERMS_ACCEPTED=kalshi\)/,
  );
  assert.deepEqual([line?.available, line?.unavailableReason], [false, 'not_configured']);
  for (const message of [line?.unavailableMessage, recipe.unavailableMessage])
    assert.equal(refused.message, `${message} Nothing was charged.`);
  assert.deepEqual([refused.charged, refused.reason], [false, 'not_configured']);

  let sold = 0;
  for (const { id, available } of listed.services) {
    if (!available) continue;
    const { example } = await jsonOf(get(`/x402/recipes/${id}`));
    const answer = await shop.call(String(id), key, example);
    if (answer.status !== 200) continue;
    sold += 1;
    const { provenance } = await jsonOf(answer);
    const names: string[] = provenance.sources.map(({ name }: { name: string }) => name);
    assert.deepEqual(
      names.filter((name) => SOURCES_TO_AGREE_WITH.some((each) => each === name)),
      [],
      `${id} asked a source that nobody has agreed with`,
    );
  }
  assert(sold >= 10, `${sold} services can be bought without any agreement`);
});

test('without the key that its source wants a service is not sold, and every door says so and leaves the operator’s variables out', async () => {
  const listed: { services: Record<string, never>[] } = await jsonOf(get('/x402/catalog'));
  const line = listed.services.find(({ id }) => id === 'fire-alerts');
  const { example } = await jsonOf(get('/x402/recipes/fire-alerts'));
  const response = await shop.call('fire-alerts', key, example);
  const { requestId: _http, ...overHttp } = await jsonOf(response);
  assert.equal(response.status, 503);
  assert.match(overHttp.message, /firms is not connected in this shop\. Nothing was charged/);
  assert.deepEqual([line?.available, overHttp.charged], [false, false]);
  assert.equal(
    line?.unavailableMessage,
    'Fire Alerts is not for sale now: firms is not connected in this shop.',
  );

  const { result } = await tool('fire_alerts', example);
  const { requestId: _mcp, ...asTool } = result.structuredContent;
  assert.deepEqual([result.isError, asTool], [true, overHttp], 'as a tool it says what HTTP says');
  const { status, retryAfterSeconds } = result._meta['farebox/call'];
  assert.deepEqual([status, retryAfterSeconds], [503, response.headers.get('retry-after')]);
});

test('a source is sold from once it is named', async () => {
  const agreed = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: { SOURCE_TERMS_ACCEPTED: 'kalshi' },
  });
  try {
    assert.equal((await agreed.call('kalshi-markets', key)).status, 200);
    assert.equal((await agreed.call('polymarket-events', key)).status, 503);
  } finally {
    await agreed.close();
  }
});
