import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { pino } from 'pino';
import { createHttpServer } from '../http/server.ts';
import { catalogDocument } from './catalog.ts';
import type { DiscoveryContext, Route } from './context.ts';
import type { Guides } from './guides.ts';
import { assetRoutes, openPages } from './pages.ts';
import { discoveryRoutes } from './routes.ts';
import { sampleContext } from './sample.fixture.ts';

const WEB_FOLDER = join(import.meta.dirname, '../../web');

const GUIDES: Guides = {
  list: [
    {
      name: 'x402',
      title: 'Paying from a wallet',
      part: 'Buy',
      about: 'How a wallet pays.',
      markdown:
        '# Paying from a wallet\n\nSee [the codes](errors.md#paid-calls), [a file](../x.ts) and <script>alert(1)</script>: `BUSY`.\n',
    },
    {
      name: 'errors',
      title: 'Error codes',
      part: 'Buy',
      about: 'Every code.',
      markdown:
        '# Error codes\n\n## Paid calls\n\n| Code | Status | What happened |\n|---|---|---|\n| `BUSY` | 503 | Wait for `Retry-After`. |\n',
    },
  ],
  errors: new Map([
    ['BUSY', { code: 'BUSY', status: '503', meaning: 'Wait for `Retry-After`.', section: 'Paid calls' }],
  ]),
  pictures: new Map([['house.svg', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')]]),
};

function appOf(context: DiscoveryContext = sampleContext()) {
  const app = createHttpServer(pino({ level: 'silent' }));
  const shop = { name: 'Farebox', contactEmail: null, logo: null };
  const pages = openPages({ baseUrl: context.baseUrl, sandbox: context.sandbox, shop }, GUIDES);
  pages.routes.push(...context.routes);
  discoveryRoutes(app, pages, context);
  assetRoutes(app, pages, { '/keys': 'keys.html', '/devices': 'devices.html' });
  return app;
}

const DOCUMENTS = [
  '/',
  '/openapi.json',
  '/x402/catalog',
  '/api/x402/catalog',
  '/x402/recipes/ping',
  '/api/auth/capabilities',
  '/.well-known/agent-instructions.json',
  '/llms.txt',
  '/robots.txt',
  '/favicon.ico',
  '/favicon.svg',
];

for (const url of DOCUMENTS) {
  test(`${url} can be cached, asked for again, asked for by HEAD and read from any origin`, async () => {
    const app = appOf();
    const first = await app.inject({ url });
    assert.equal(first.statusCode, 200);
    assert.equal(first.headers['access-control-allow-origin'], '*');
    const maxAge = url.endsWith('/catalog') ? 300 : 60;
    assert.equal(first.headers['cache-control'], `public, max-age=${maxAge}`);

    const { etag } = first.headers;
    assert.match(String(etag), /^"[\w-]{22}"$/);
    for (const known of [String(etag), `W/${etag}`, `"other", ${etag}`]) {
      const again = await app.inject({ url, headers: { 'if-none-match': known } });
      assert.equal(again.statusCode, 304);
      assert.equal(again.body, '');
      assert.equal(again.headers.etag, etag);
    }
    assert.equal((await app.inject({ url, headers: { 'if-none-match': '"other"' } })).statusCode, 200);

    const head = await app.inject({ method: 'HEAD', url });
    assert.equal(head.statusCode, 200);
    assert.equal(head.body, '');
    assert.equal(head.headers.etag, etag);
    await app.close();
  });
}

test('the bar of a page links to the pages that this server serves, and to no others', async () => {
  const linksOf = async (routes: readonly Route[]) => {
    const app = appOf(sampleContext({ routes }));
    const { body } = await app.inject({ url: '/keys' });
    await app.close();
    const [bar = ''] = /<nav aria-label="Site">.*?<\/nav>/s.exec(body) ?? [];
    return [...bar.matchAll(/href="([^"]+)"/g)].map(([, href]) => href);
  };
  const page = (path: string) => ({ method: 'GET', path });
  assert.deepEqual(await linksOf([page('/docs'), page('/keys'), page('/yield'), page('/services')]), [
    ...['/services', '/docs', '/yield', '/keys'],
  ]);
  assert.deepEqual(await linksOf([page('/docs'), page('/keys'), { method: 'POST', path: '/yield' }]), [
    ...['/docs', '/keys'],
  ]);
});

test('compressed and plain are the same document under different strong tags', async () => {
  const app = appOf();
  const plain = await app.inject({ url: '/openapi.json' });
  const refused = await app.inject({
    url: '/openapi.json',
    headers: { 'accept-encoding': 'gzip;q=0, br; q=0.0' },
  });
  const tags = new Set([plain.headers.etag]);
  for (const [sent, name, unpack] of [
    ['gzip, zstd, br', 'br', brotliDecompressSync],
    ['gzip, zstd;q=0.1, br;q=0', 'zstd', zstdDecompressSync],
    ['brr, gzip;q=0.5', 'gzip', gunzipSync],
  ] as const) {
    const packed = await app.inject({ url: '/openapi.json', headers: { 'accept-encoding': sent } });
    assert.equal(packed.headers['content-encoding'], name);
    assert.equal(unpack(packed.rawPayload).toString(), plain.body);
    assert.match(String(packed.headers.vary), /Accept-Encoding/);
    tags.add(packed.headers.etag);
    const again = { 'accept-encoding': sent, 'if-none-match': String(packed.headers.etag) };
    assert.equal((await app.inject({ url: '/openapi.json', headers: again })).statusCode, 304);
  }
  assert.equal(tags.size, 4, 'each set of bytes has a tag of its own');
  assert.equal(refused.headers['content-encoding'], undefined);
  assert.match(String(plain.headers.vary), /Accept-Encoding/);
  await app.close();
});

test('a document follows the availability of what it lists', async () => {
  let down = false;
  const context = sampleContext({
    availability: () =>
      down
        ? { available: false, reason: 'upstream_down', message: 'down', retryAfterMs: 1, chains: [] }
        : { available: true, reason: null, message: null, retryAfterMs: 0, chains: [] },
  });
  const app = appOf(context);
  const before = await app.inject({ url: '/x402/catalog' });
  down = true;
  const during = await app.inject({ url: '/x402/catalog' });
  down = false;
  const after = await app.inject({ url: '/x402/catalog' });
  assert.equal(before.json().availableServices, context.services.length);
  assert.equal(during.json().availableServices, 0);
  assert.notEqual(during.headers.etag, before.headers.etag);
  assert.equal(after.headers.etag, before.headers.etag);
  await app.close();
});

test('documents about payments on a chain come and go with them', async () => {
  const network = {
    network: 'eip155:8453',
    name: 'base',
    payTo: '0x0000000000000000000000000000000000000001',
    asset: { symbol: 'USDC', address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', decimals: 6 },
    canRefund: true,
  };
  let on = false;
  const rails = {
    get x402() {
      return on ? { facilitatorUrl: null, networks: [network] as const } : null;
    },
    mpp: null,
  };
  const app = appOf(sampleContext({ rails }));
  for (const url of ['/x402/payment-manifest.json', '/.well-known/x402', '/.well-known/x402.json']) {
    on = false;
    const before = await app.inject({ url });
    assert.equal(before.statusCode, 404, url);
    assert.equal(before.headers['cache-control'], 'no-store');
    const { knownPaths } = before.json();
    assert.ok(knownPaths.length > 3 && !knownPaths.includes(url));
    for (const path of knownPaths) assert.equal((await app.inject({ url: path })).statusCode, 200, path);
    on = true;
    const during = await app.inject({ url });
    assert.equal(during.statusCode, 200, url);
    assert.match(String(during.headers['content-type']), /^application\/json/);
    assert.equal(
      (await app.inject({ url, headers: { 'if-none-match': String(during.headers.etag) } })).statusCode,
      304,
    );
  }
  await app.close();
});

test('documents about MPP exist while it is on; while it is off their addresses name other documents', async () => {
  const urls = ['/mpp/catalog', '/.well-known/mpp.json'];
  const off = appOf();
  for (const url of urls) {
    const reply = await off.inject({ url });
    assert.equal(reply.statusCode, 404, url);
    const { error, knownPaths } = reply.json();
    assert.equal(error, 'NOT_FOUND');
    assert.ok(knownPaths.length > 3 && !urls.some((each) => knownPaths.includes(each)));
  }
  await off.close();
  const method = {
    method: 'tempo',
    chainId: 4217,
    currency: '0x20C000000000000000000000b9537d11c60E8b50',
    recipient: '0x0000000000000000000000000000000000000002',
    canRefund: false,
  } as const;
  const on = appOf(sampleContext({ rails: { x402: null, mpp: { methods: [method] } } }));
  for (const url of urls) {
    const reply = await on.inject({ url });
    assert.equal(reply.statusCode, 200, url);
    assert.equal(reply.json().protocol, 'mpp');
    assert.ok((await on.inject({ url: '/.well-known/nothing' })).json().knownPaths.includes(url));
    const known = { 'if-none-match': String(reply.headers.etag) };
    assert.equal((await on.inject({ url, headers: known })).statusCode, 304);
  }
  await on.close();
});

test('the Host header of a request is in no document', async () => {
  const app = appOf();
  for (const url of DOCUMENTS) {
    const reply = await app.inject({ url, headers: { host: 'evil.test', 'x-forwarded-host': 'evil.test' } });
    assert.doesNotMatch(`${reply.body}${JSON.stringify(reply.headers)}`, /evil\.test/, url);
  }
  await app.close();
});

test('an unknown document or recipe gets a JSON 404 that names known ones', async () => {
  const app = appOf();
  for (const url of ['/.well-known/nothing.json', '/.well-known/a/b', '/x402/recipes/nothing']) {
    const reply = await app.inject({ url });
    assert.equal(reply.statusCode, 404);
    const body = reply.json();
    assert.equal(body.error, 'NOT_FOUND');
    assert.equal(typeof body.message, 'string');
    for (const path of body.knownPaths) assert.equal((await app.inject({ url: path })).statusCode, 200, path);
  }
  await app.close();
});

test('/ is a page for a browser and JSON for a program', async () => {
  const app = appOf();
  const page = await app.inject({
    url: '/',
    headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
  });
  const program = await app.inject({ url: '/', headers: { accept: '*/*' } });
  assert.match(String(page.headers['content-type']), /^text\/html/);
  assert.match(String(program.headers['content-type']), /^application\/json/);
  assert.match(String(program.headers.vary), /Accept\b/);
  assert.match(String(program.headers.link), /<\/openapi\.json>; rel="service-desc"/);
  assert.equal(program.json().services.total, catalogDocument(sampleContext()).totalServices);
  await app.close();
});

test('pages work under a policy that allows no foreign and no inline scripts', async () => {
  const app = appOf();
  for (const url of [
    '/',
    '/docs',
    '/docs/ping',
    '/keys',
    '/services',
    '/docs/guides/x402',
    '/docs/errors/BUSY',
  ]) {
    const page = await app.inject({ url, headers: { accept: 'text/html' } });
    assert.equal(page.statusCode, 200, url);
    const policy = String(page.headers['content-security-policy']);
    assert.match(policy, /default-src 'self'/);
    assert.match(policy, /form-action 'none'/);
    assert.doesNotMatch(policy, /unsafe/);
    assert.equal(page.headers['referrer-policy'], 'no-referrer');
    assert.doesNotMatch(page.body, /<script(?![^>]*\ssrc=)|<[^>]*\s(style|on\w+)=/, url);
    assert.doesNotMatch(
      page.body,
      /<(script|img|iframe|form)[^>]*https?:|<link rel="(icon|stylesheet)"[^>]*https?:/,
      url,
    );
    const links = [...page.body.matchAll(/(?:src|href)="(\/[^"]*)"/g)].map(([, path = '']) => path);
    assert.ok(links.length > 5);
    for (const path of links)
      assert.equal((await app.inject({ url: path })).statusCode, 200, `${url} -> ${path}`);
  }
  assert.equal((await app.inject({ url: '/docs/nothing' })).statusCode, 404);
  await app.close();
});

test('what a script imports is served, and every file of the folder is either served or a test', async () => {
  const app = appOf();
  for (const name of readdirSync(WEB_FOLDER)) {
    if (name.endsWith('.html') || name.endsWith('.test.ts')) continue;
    const asset = await app.inject({ url: `/assets/${name}` });
    assert.equal(asset.statusCode, 200, name);
    for (const [, imported = ''] of asset.body.matchAll(/from '\.\/([\w-]+\.js)'/g)) {
      assert.equal(
        (await app.inject({ url: `/assets/${imported}` })).statusCode,
        200,
        `${name} -> ${imported}`,
      );
    }
  }
  await app.close();
});

test('no request becomes a file name', async () => {
  const app = appOf();
  const secret = readFileSync(join(import.meta.dirname, 'pages.ts'), 'utf8').slice(0, 40);
  for (const url of [
    '/assets/../server/src/discovery/pages.ts',
    '/assets/..%2fserver%2fsrc%2fdiscovery%2fpages.ts',
    '/assets/%2e%2e/server/src/discovery/pages.ts',
    '/assets/index.html',
    '/docs/..%2f..%2fpackage.json',
  ]) {
    const reply = await app.inject({ url });
    assert.equal(reply.statusCode, 404, url);
    assert.ok(!reply.body.includes(secret), url);
  }
  await app.close();
});

test('the catalog, services, guides and codes of errors are pages that need no script, and Markdown for programs', async () => {
  const app = appOf();
  const read = async (url: string, accept?: string) =>
    app.inject({ url, headers: accept === undefined ? {} : { accept } });
  for (const [url, sign] of [
    ['/services', /Echo|Ping/],
    ['/docs/ping', /POST https:\/\/farebox\.test\/x402\/ping/],
    ['/docs/guides', /Buy[\s\S]*Paying from a wallet/],
    ['/docs/guides/x402', /See/],
    ['/docs/errors', /BUSY/],
    ['/docs/errors/BUSY', /Wait for/],
  ] as const) {
    const page = await read(url, 'text/html,application/xhtml+xml,*/*;q=0.8');
    assert.equal(page.statusCode, 200, url);
    assert.match(String(page.headers['content-type']), /^text\/html/, url);
    assert.match(page.body, sign, url);
    assert.match(page.body, new RegExp(`<link rel="canonical" href="https://farebox.test${url}">`));
    const sent = await read(url, 'text/markdown');
    const named = await read(`${url}.md`, 'text/html');
    for (const text of [sent, named]) {
      assert.match(String(text.headers['content-type']), /^text\/markdown/, url);
      assert.match(text.body, /^# /, url);
      assert.match(text.body, sign, url);
    }
    for (const each of [page, sent]) assert.match(String(each.headers.vary), /\bAccept(,|$)/, url);
    const rather = await read(url, 'text/html, text/markdown;q=0.5');
    assert.match(String(rather.headers['content-type']), /^text\/html/, 'a page is wanted more');
  }
  for (const url of [
    '/docs/guides/nothing',
    '/docs/errors/NOTHING',
    '/docs/nothing.md',
    '/docs/guides/..%2fx402',
  ])
    assert.equal((await read(url)).statusCode, 404, url);
  await app.close();
});

test('what a guide or somebody else wrote is shown and never run, and links lead to this server alone', async () => {
  const hostile = '<img src=x onerror=alert(1)> [x](javascript:alert(1)) **b** | c `d';
  const [first, ...others] = sampleContext().services;
  assert(first !== undefined);
  const context = sampleContext({
    services: [{ ...first, name: hostile, summary: hostile, tag: hostile }, ...others],
  });
  const app = appOf(context);
  const guide = (await app.inject({ url: '/docs/guides/x402' })).body;
  assert.match(guide, /<a href="\/docs\/errors#paid-calls">the codes<\/a>, a file and &#60;script&#62;/);
  const pages = [
    '/services',
    `/docs/${first.path}`,
    `/services?q=${encodeURIComponent('"><script>alert(1)</script>')}`,
  ];
  for (const url of pages) {
    const { body } = await app.inject({
      url,
      headers: { accept: 'text/html', 'x-odd': '<b>', referer: '<i>odd' },
    });
    assert.doesNotMatch(body, /<img src=x|<script>|href="javascript:|<strong>b<|<i>odd|<b>/, url);
  }
  const text = (await app.inject({ url: `/docs/${first.path}.md` })).body;
  assert(
    text.includes('\\[x\\](javascript:alert(1)) \\*\\*b\\*\\* \\| c'),
    'Markdown shows it as it was written',
  );
  await app.close();
});

test('the catalog shows what its address asks for, and by default what can be bought now', async () => {
  const context = sampleContext();
  const app = appOf(context);
  const shown = async (query: string) => {
    const { body } = await app.inject({ url: `/services${query}` });
    const [table = ''] = /<tbody>.*<\/tbody>/s.exec(body) ?? [];
    return [...table.matchAll(/<a href="\/docs\/([^"]+)"/g)].map(([, path]) => path);
  };
  const forSale = context.services
    .filter((each) => context.availability(each).available)
    .map(({ path }) => path);
  assert(forSale.length < context.services.length);
  assert.deepEqual(await shown(''), forSale);
  assert.deepEqual(
    await shown('?all=1'),
    context.services.map(({ path }) => path),
  );
  const [first] = context.services;
  const ofTag = context.services.filter(({ tag, path }) => tag === first?.tag && forSale.includes(path));
  assert.deepEqual(
    await shown(`?group=${encodeURIComponent(first?.tag ?? '')}`),
    ofTag.map(({ path }) => path),
  );
  assert.equal((await shown('?q=ping'))[0], 'ping');
  assert.deepEqual(await shown('?q=zzzz'), []);
  assert.deepEqual(await shown('?pays=x402'), [], 'no chain takes payments');
  assert.deepEqual(
    await shown('?pays=gold&group=none&q[]=1'),
    forSale,
    'what it does not know counts as nothing',
  );
  await app.close();
});
