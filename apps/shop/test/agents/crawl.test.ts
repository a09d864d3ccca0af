/**
 * Every address that the server prints answers, on the running server: whole ones and paths, in documents and pages, in headers,
 * in what is read and listed by MCP, in the cards of A2A, and in the terms of every service. What is found is read for more.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

/** The address that documents name; requests to it go to wherever the server listens. */
const PUBLIC_URL = 'http://farebox.test';
let database: TestDatabase;
let world: PaymentWorld;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startUpstreams(),
  ]);
  const environment = {
    ...EVERYTHING_ON,
    ...world.environment,
    PUBLIC_URL,
    CONTACT_EMAIL: 'operator@farebox.test',
    TRIAL_ALLOW_INTERNAL: 'true',
  };
  server = await startTestServer({ pools: database, environment, upstreamsUrl: upstreams.url });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), upstreams?.stop(), database?.close()]);
});

/** The addresses that can be read without a key: documents, pages and what they load. */
const READABLE =
  /\.(json|txt|xml|js|css|svg|ico)$|catalog$|^\/\.well-known|^\/$|services$|docs$|capabilities$/;
function firstAddresses(): string[] {
  const paths = server.app.routes
    .filter(({ method, path }) => method === 'GET' && !/[:*]/.test(path))
    .map(({ path }) => path);
  return paths.filter((path) => READABLE.test(path));
}

/** Finds addresses in a text, whichever way they are written: `http://farebox.test/docs`, `"/docs"`, `</docs>`, `(/docs)`. */
function addressesIn(text: string): string[] {
  const segments = new Set(server.app.routes.map(({ path }) => path.split('/')[1] ?? ''));
  const whole = [...text.matchAll(/http:\/\/farebox\.test([^\s"'`<>()\\,;]*)/g)];
  const paths = [...text.matchAll(/(?:^|[\s"'`(<=])(\/([\w.-]+)[^\s"'`<>()\\,;]*)/g)].filter(
    ([, , segment]) => segments.has(segment ?? ''),
  );
  return [...whole, ...paths].map(
    ([, address = '']) => address.replace(/#.*$/, '').replace(/[.:]+$/, '') || '/',
  );
}

/** The place that printed each address first. */
const printed = new Map<string, string>();
/** All who printed an address. */
const printers = new Set<string>();
const open: string[] = [];
function note(text: string, by: string): void {
  for (const address of addressesIn(text)) {
    printers.add(by);
    if (printed.has(address)) continue;
    printed.set(address, by);
    open.push(address);
  }
}

async function mcp(method: string, params: object): Promise<Record<string, Record<string, string>[]>> {
  const answer = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await answer.text();
  const [, data = text] = /^data: (.*)$/m.exec(text) ?? [];
  return JSON.parse(data).result ?? assert.fail(`${method}: ${data}`);
}

/** All pages of a list. */
async function listed(kind: 'tools' | 'resources' | 'prompts'): Promise<Record<string, string>[]> {
  const all: Record<string, string>[] = [];
  let cursor: unknown;
  do {
    const page = await mcp(`${kind}/list`, cursor === undefined ? {} : { cursor });
    all.push(...(page[kind] ?? []));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.ok(all.length > 1, kind);
  return all;
}

const headersOf = ({ headers }: Response) => [headers.get('link'), headers.get('location')].join('\n');

/** Notes what the answer to a call without a payment prints, in its body, its terms for wallets and its headers. */
async function noteTerms(path: string): Promise<void> {
  const answer = await fetch(server.url + path, { method: 'POST' });
  const terms = Buffer.from(answer.headers.get('payment-required') ?? '', 'base64').toString();
  note(
    [await answer.text(), terms, headersOf(answer), answer.headers.get('x-recharge-url')].join('\n'),
    path,
  );
}

/** Tells whether an address is served, also one with a name in place of a part, such as `/x402/receipts/{id}`, or of a family, such as `/mpp/` and `/x402/*`. */
function isServed(address: string): boolean {
  const [path = ''] = address.replace(/\*$/, '').split('?');
  const pattern = path.replace(/[.+]/g, '\\$&').replace(/\{[^}]*\}/g, '[^/]+');
  const like = new RegExp(`^${pattern}${path.endsWith('/') ? '' : '$'}`);
  return server.app.routes.some((route) => like.test(route.path.replace(/:\w+/g, 'some.json')));
}

/** Follows an address. @returns what is wrong with it; null: nothing */
async function follow(address: string): Promise<string | null> {
  if (/\{|\*$|.\/$/.test(address)) return isServed(address) ? null : 'no route is like it';
  const answer = await fetch(server.url + address, { headers: { accept: 'application/json' } });
  const text = await answer.text();
  if (answer.status === 404 || answer.status === 405) {
    // What is only posted to is known there.
    const posted = await fetch(server.url + address, { method: 'POST' });
    await posted.arrayBuffer();
    if ([200, 201, 400, 401, 402, 406, 503].includes(posted.status)) return null;
    // The base of an interface says so itself: what it takes stands below it.
    if (answer.status === 405 && posted.status === 405 && isServed(`${address}/`)) return null;
    return `GET: ${answer.status}, POST: ${posted.status}`;
  }
  // A picture is shown by the whole of its address alone, which is signed.
  if (address === '/api/pictures/map.png' && answer.status === 403) return null;
  // Without a key, without parameters, or while nothing stands behind it.
  if (answer.status !== 200) return [400, 401, 402, 503].includes(answer.status) ? null : `${answer.status}`;
  if (READABLE.test(address)) {
    assert.match(answer.headers.get('etag') ?? '', /^"/, address);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*', address);
  }
  note(headersOf(answer), `the headers of ${address}`);
  if (/json|xml|text\/(plain|html)/.test(answer.headers.get('content-type') ?? '')) note(text, address);
  return null;
}

/** Each of these prints at least one address. */
const PRINTERS = [
  ...['/openapi.json', '/openapi/free.json', '/x402/catalog', '/x402/recipes/ping', '/mpp/catalog'],
  ...[
    '/x402/payment-manifest.json',
    '/x402/payment-docs',
    '/api/auth/capabilities',
    '/mcp/services',
    '/server.json',
  ],
  ...['agent-card.json', 'agent-instructions.json', 'agent-registration.json', 'agent.json', 'agents.json'],
  ...[
    'ai-plugin.json',
    'api-catalog',
    'awi.json',
    'mcp.json',
    'mpp.json',
    'security.txt',
    'x402',
    'x402.json',
  ],
  ...['/llms.txt', '/llms-full.txt', '/robots.txt', '/sitemap.xml', '/', '/docs', '/docs/ping', '/keys'],
  ...['the page at /', 'the headers of /', 'the card of A2A 0.3', 'the card of A2A 1.0'],
  ...['farebox://how-to-pay', 'farebox://services/ping', 'farebox://catalog'],
].map((name) => (/^[a-z0-9-]+(\.(json|txt))?$/.test(name) ? `/.well-known/${name}` : name));

test('no address that is printed leads nowhere', async () => {
  const first = firstAddresses();
  assert.ok(first.length > 40, first.join());
  for (const path of first) note(path, 'its route');
  const { services } = await jsonOf(fetch(`${server.url}/x402/catalog`));
  const sold: string[] = services.flatMap(({ path, mppEndpoint }: Record<string, string | null>) => [
    path,
    ...(mppEndpoint === null ? [] : [new URL(String(mppEndpoint)).pathname]),
  ]);
  for (const path of sold) await noteTerms(path);
  for (const kind of ['tools', 'prompts'] as const) note(JSON.stringify(await listed(kind)), `${kind}/list`);
  for (const { uri } of await listed('resources')) {
    const { contents } = await mcp('resources/read', { uri });
    note(contents?.map(({ text }) => text).join('\n') ?? assert.fail(uri), String(uri));
  }
  for (const version of ['0.3', '1.0']) {
    const card = await fetch(`${server.url}/.well-known/agent-card.json`, {
      headers: { 'a2a-version': version },
    });
    note(await card.text(), `the card of A2A ${version}`);
  }
  note(await (await fetch(server.url, { headers: { accept: 'text/html' } })).text(), 'the page at /');
  const wrong: string[] = [];
  for (let address = open.pop(); address !== undefined; address = open.pop()) {
    const found = await follow(address);
    if (found !== null) wrong.push(`${printed.get(address)} prints ${address}: ${found}`);
  }
  assert.deepEqual(wrong, []);
  const silent = [...PRINTERS, ...sold].filter((name) => !printers.has(name));
  assert.deepEqual(silent, []);
  assert.ok(printed.size > 300, String(printed.size));
});
