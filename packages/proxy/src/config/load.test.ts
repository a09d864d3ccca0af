import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { checkConfig, loadConfig, readConfigText } from './load.ts';
import { ConfigError } from './problem.ts';
import type { ProxyConfig, Route } from './proxy-config.ts';
import type { Surroundings } from './resolve.ts';

const PLAIN: Surroundings = { env: {}, serviceNames: ['token-price', 'echo'] };

/** A text in which `@{` stands for the beginning of a reference to a variable. */
const yaml = (text: string) => text.replaceAll('@{', '$' + '{');

const read = (text: string, env: Surroundings['env'] = {}): ProxyConfig =>
  readConfigText(yaml(text), 'farebox.config.yaml', { ...PLAIN, env });

function told(text: string, surroundings: Surroundings = PLAIN): string[] {
  try {
    readConfigText(yaml(text), 'f.yaml', surroundings);
  } catch (error) {
    assert(error instanceof ConfigError, String(error));
    return error.message.split('\n');
  }
  throw new Error(`accepted: ${text}`);
}

/** A file with one upstream and one route with these fields. */
const withRoute = (fields: string, key = 'POST /x') =>
  `upstreams:\n  u: { url: "http://127.0.0.1:9000", prefix: "/" }\nroutes:\n  "${key}": { upstream: u, ${fields} }\n`;
const withUpstream = (fields: string) => `upstreams:\n  u: { ${fields} }\n`;

function only(config: ProxyConfig): Route {
  const [route] = config.routes;
  assert(route !== undefined);
  return route;
}

const EXAMPLE = `
upstreams:
  weather: { url: "http://127.0.0.1:9000", prefix: "/" }
routes:
  "POST /v1/forecast":     { upstream: weather, price: "0.02", summary: "The forecast of a place" }
  "GET /v1/stations/:id":  { upstream: weather, price: "0.01" }
  "GET /v1/health":        { upstream: weather, free: true }
`;

describe('a configuration', () => {
  test('of ten lines becomes routes with prices in micro-USD, and everything else has a default', () => {
    const { upstreams, routes, services } = read(EXAMPLE);
    assert.equal(upstreams.length, 1);
    assert.equal(services.size, 0);
    assert.deepEqual(
      routes.map(({ key, effect, sale, summary }) => [key, effect, sale, summary]),
      [
        ['POST /v1/forecast', 'write', { kind: 'fixed', priceMicros: 20_000n }, 'The forecast of a place'],
        ['GET /v1/stations/:id', 'read', { kind: 'fixed', priceMicros: 10_000n }, null],
        ['GET /v1/health', 'read', { kind: 'free' }, null],
      ],
    );
    const route = only(read(EXAMPLE));
    const { origin, basePath, prefix, timeouts, concurrency, keepAlive, breaker } = route.upstream;
    assert.deepEqual(
      { origin, basePath, prefix, timeouts, concurrency, keepAlive, breaker },
      {
        origin: 'http://127.0.0.1:9000',
        basePath: '',
        prefix: '',
        timeouts: { headersMs: 15_000, idleMs: 30_000, wholeMs: 20_000 },
        concurrency: 64,
        keepAlive: true,
        breaker: { failures: 5, openMs: 10_000 },
      },
    );
    assert.deepEqual([route.answer, route.timeoutMs, route.maxRequestBytes], ['kept', 20_000, 262_144]);
    assert(route.success.status.includes(299) && !route.success.status.includes(206));
  });

  test('reads a price by what comes out', () => {
    const saleOf = (metered: string, more = '') =>
      only(
        read(
          `upstreams: { w: { url: "http://a", prefix: "/" } }\nroutes: { "GET /a": { upstream: w, metered: ${metered}${more} } }`,
        ),
      ).sale;
    assert.deepEqual(
      saleOf('{ usage: usage.total, price: "2.00", per: 1000, atMost: "0.05", whenUnmeasured: "0" }'),
      {
        kind: 'metered',
        meter: {
          measure: { kind: 'usage', path: ['usage', 'total'] },
          priceMicros: 2_000_000n,
          per: 1_000n,
          atMostMicros: 50_000n,
          whenUnmeasuredMicros: 0n,
        },
      },
    );
    assert.deepEqual(saleOf('{ items: "$", price: "0.01", atMost: "0.05", whenUnmeasured: "0.05" }'), {
      kind: 'metered',
      meter: {
        measure: { kind: 'items', path: [] },
        priceMicros: 10_000n,
        per: 1n,
        atMostMicros: 50_000n,
        whenUnmeasuredMicros: 50_000n,
      },
    });
    const bytes = saleOf('{ bytes: true, price: "0.01", atMost: "0.05" }', ', answer: streamed');
    assert(bytes.kind === 'metered' && bytes.meter.measure.kind === 'bytes');
  });

  test('refuses a measure that would tell nothing, or charge what is not reserved', () => {
    for (const [metered, more, wrong] of [
      ['price: "0.01", atMost: "0.05"', '', /metered: write one of bytes, items, usage/],
      ['bytes: true, usage: a, price: "0.01", atMost: "0.05", whenUnmeasured: "0.01"', '', /write one of/],
      ['bytes: true, price: "0.01"', '', /metered\.atMost/],
      ['bytes: true, price: "0.01", atMost: "0"', '', /metered\.atMost: must be above zero/],
      ['bytes: true, price: "0", atMost: "0.05"', '', /metered\.price: must be above zero/],
      ['bytes: true, price: "0.01", per: 0, atMost: "0.05"', '', /metered\.per/],
      ['bytes: true, price: "0.01", atMost: "0.05", whenUnmeasured: "0.01"', '', /bytes are always known/],
      ['usage: a, price: "0.01", atMost: "0.05"', '', /write whenUnmeasured/],
      ['usage: a, price: "0.01", atMost: "0.05", whenUnmeasured: "0.06"', '', /must not be above atMost/],
      [
        'usage: a, price: "0.01", atMost: "0.05", whenUnmeasured: "0.01"',
        ', requestHeaders: [range]',
        /remove "range"/,
      ],
      [
        'items: a, price: "0.01", atMost: "0.05", whenUnmeasured: "0.01"',
        ', answer: streamed',
        /a list is counted in a whole answer/,
      ],
      ['bytes: true, price: "0.01", atMost: "0.05"', ', price: "0.01"', /has price and metered: keep one/],
    ] as const) {
      const lines = told(
        `upstreams: { w: { url: "http://a", prefix: "/" } }\nroutes: { "GET /a": { upstream: w, metered: { ${metered} }${more} } }`,
      );
      assert.match(lines.join('\n'), wrong);
    }
  });

  test('is frozen all the way down', () => {
    const route = only(read(EXAMPLE));
    assert.throws(() => Object.assign(route.sale, { priceMicros: 1n }), TypeError);
    assert.throws(() => Object.assign(route.path.segments, { 0: null }), TypeError);
    assert.throws(() => Object.assign(route.upstream.timeouts, { wholeMs: 1 }), TypeError);
  });

  test('cuts the prefix of an upstream off, which is its name unless the file says otherwise', () => {
    const { upstream } = only(
      read(
        'upstreams: { w: { url: "https://api.example.com/v2/" } }\nroutes: { "GET /w/a": { upstream: w, free: true } }',
      ),
    );
    assert.deepEqual(
      [upstream.origin, upstream.basePath, upstream.prefix],
      ['https://api.example.com', '/v2', '/w'],
    );
    assert.deepEqual(
      told('upstreams: { w: { url: "http://a" } }\nroutes:\n  "GET /a": { upstream: w, free: true }'),
      [
        'f.yaml:3:3 routes["GET /a"]: the paths of the upstream w begin with /w: write /w/a, or set the upstream\'s prefix to "/"',
      ],
    );
    // A name that only begins alike is another one.
    assert.match(
      told('upstreams: { w: { url: "http://a" } }\nroutes: { "GET /wx": { upstream: w, free: true } }')[0] ??
        '',
      /begin with \/w/,
    );
  });

  test('may share parts by anchors', () => {
    const { routes } = read(
      'upstreams: { u: { url: "http://a", prefix: "/" } }\nroutes:\n  "GET /a": &r { upstream: u, price: "0.01" }\n  "GET /b": *r',
    );
    assert.equal(routes.length, 2);
  });

  test('says the prices of services that the server ships with', () => {
    const { services } = read('services: { echo: { price: "0.5", available: false } }');
    assert.deepEqual(services.get('echo'), { priceMicros: 500_000n, isAvailable: false, isSoldByMpp: null });
    assert.match(told('services: { ecko: { mpp: true } }')[0] ?? '', /did you mean "echo"/);
  });
});

describe('secrets come from the environment:', () => {
  const FILE = withUpstream(
    'url: "http://a", headers: { authorization: "Bearer @{WEATHER_TOKEN}" }, query: { key: "@{WEATHER_KEY}" }',
  );
  const env = { WEATHER_TOKEN: 'top-secret', WEATHER_KEY: 'k&y' };

  test('they are sent with their scheme, and no print or copy of the configuration has them', () => {
    const config = read(FILE, env);
    const credentials = config.upstreams[0]?.credentials ?? [];
    assert.deepEqual(
      credentials.map((each) => [each.kind, each.name, each.variable, each.reveal()]),
      [
        ['header', 'authorization', 'WEATHER_TOKEN', 'Bearer top-secret'],
        ['query', 'key', 'WEATHER_KEY', 'k&y'],
      ],
    );
    const prints = [inspect(config, { depth: null, showHidden: true }), JSON.stringify(config.upstreams)];
    for (const print of prints) assert(!print.includes('top-secret') && !print.includes('k&y'), print);
  });

  test('one that is missing, empty or unfit is named, and never shown', () => {
    assert.deepEqual(told(FILE, { ...PLAIN, env: { WEATHER_KEY: '' } }), [
      'f.yaml:2:36 upstreams.u.headers.authorization: the environment variable WEATHER_TOKEN is not set: set it, or remove this line',
      'f.yaml:2:89 upstreams.u.query.key: the environment variable WEATHER_KEY is not set: set it, or remove this line',
    ]);
    for (const bad of ['a\r\nx-evil: 1', ' a', 'a\n', 'ä', 'a'.repeat(8_001)]) {
      const text = told(FILE, { ...PLAIN, env: { ...env, WEATHER_TOKEN: bad } }).join('\n');
      assert.match(text, /WEATHER_TOKEN holds what cannot be sent/);
      assert(!text.includes('evil'));
    }
    // An inherited property is no variable.
    assert.match(
      told(withUpstream('url: "http://a", headers: { x-a: "@{constructor}" }'))[0] ?? '',
      /constructor is not set/,
    );
  });

  test('one that stands in the file is refused without showing it', () => {
    for (const line of [
      ...['headers: { authorization: "Bearer s3cret" }', 'headers: { authorization: s3cret }'],
      ...['fixedHeaders: { authorization: "s3cret" }', 'fixedHeaders: { x-api-key: "s3cret" }'],
      'fixedHeaders: { x-access-token: "s3cret" }',
    ]) {
      const text = told(withUpstream(`url: "http://a", ${line}`)).join('\n');
      assert.match(text, /never stands in this file|a secret in the file/, line);
      assert(!text.includes('s3cret'), text);
    }
    const inUrl = told(withUpstream('url: "http://user:s3cret@a"')).join('\n');
    assert.match(inUrl, /holds no credentials/);
    assert(!inUrl.includes('s3cret'));
    const broken = told('upstreams: { u: { headers: { a: "s3cret" }\n').join('\n');
    assert(!broken.includes('s3cret'), broken);
  });
});

describe('a problem', () => {
  test('names file, line and column, the field and what to write', () => {
    assert.deepEqual(
      told(
        [
          'upstreams:',
          '  weather: { url: "ftp://a", prefix: "/" }',
          'routes:',
          '  "POST /v1/forecast":',
          '    upstream: wether',
          '    price: "0.02"',
          '    priceBy: { field: a, prices: { x: "0" } }',
          '  "GET /v1/:a": { upstream: weather, price: "0.01" }',
          '  "GET /v1/:b":',
          '    upstream: weather',
          '    free: true',
        ].join('\n'),
      ),
      [
        'f.yaml:2:14 upstreams.weather.url: write an address that begins with http:// or https://',
        'f.yaml:5:5 routes["POST /v1/forecast"].upstream: there is no upstream "wether"; did you mean "weather"?',
        'f.yaml:9:3 routes["GET /v1/:b"]: matches the same addresses as "GET /v1/:a" on line 8: remove one',
      ],
    );
  });

  test('with unquoted money says what stood there, so that no digit is lost', () => {
    assert.deepEqual(told(withRoute('price: 0.10')), [
      'f.yaml:4:29 routes["POST /x"].price: write it in quotes: "0.10" (without them it is a number, which may lose digits)',
    ]);
    for (const written of ['1e3', '0x10', '1', '0.1234567'])
      assert.match(told(withRoute(`price: ${written}`))[0] ?? '', new RegExp(`in quotes: "${written}"`));
    assert.match(told(withRoute('price: "0.1234567"'))[0] ?? '', /at most six decimals/);
    assert.match(told(withRoute('price: yes'))[0] ?? '', /write an amount in USD in quotes/);
    assert.match(told(withRoute('price: "0.00"'))[0] ?? '', /must be above zero/);
  });

  test('with an unknown name says the nearest one, at that place', () => {
    assert.deepEqual(told(`upstream: {}\n${withRoute('sumary: x, free: true, success: { state: [200] }')}`), [
      'f.yaml:1:1 upstream: there is no such field; did you mean "upstreams"?',
      'f.yaml:5:29 routes["POST /x"].sumary: there is no such field; did you mean "summary"?',
      'f.yaml:5:63 routes["POST /x"].success.state: there is no such field; did you mean "status"?',
    ]);
    assert.match(
      told(withUpstream('url: "http://a", breaker: { failure: 1 }'))[0] ?? '',
      /breaker\.failure: .*"failures"/,
    );
  });

  test('is told with those of other kinds, but not with what only follows from it', () => {
    assert.deepEqual(
      told(
        [
          'upstreams: { u: { url: "http://a", prefix: "/", keepalive: false }, v: { url: "http://b" } }',
          'routes:',
          '  "GET /a": { upstream: u, price: "0.01" }',
          '  "GET /v/b": { upstream: v, price: 0.01 }',
          '  "GET /v/c": { upstream: v, price: "0" }',
        ].join('\n'),
      ),
      [
        'f.yaml:1:49 upstreams.u.keepalive: there is no such field; did you mean "keepAlive"?',
        'f.yaml:4:30 routes["GET /v/b"].price: write it in quotes: "0.01" (without them it is a number, which may lose digits)',
        'f.yaml:5:30 routes["GET /v/c"].price: must be above zero; a whole route costs nothing with free: true',
      ],
    );
  });

  test('is told with all others, up to 50', () => {
    const many = Array.from({ length: 70 }, (_, index) => `  "GET /${index}": { upstream: u }`).join('\n');
    const lines = told(`upstreams: { u: { url: "http://a", prefix: "/" } }\nroutes:\n${many}`);
    assert.equal(lines.length, 51);
    assert.match(lines[0] ?? '', /^f\.yaml:3:3 routes\["GET \/0"\]: has no price/);
    assert.equal(lines[50], 'and 20 more');
  });

  test('of the text itself is told with its place', () => {
    const rows: [text: string, says: RegExp][] = [
      ['', /sells nothing|must be an object|is missing/],
      ['# emptied\n', /must be an object|is missing/],
      ['a: [', /f\.yaml:1:5/],
      ['routes: {}\nroutes: {}', /f\.yaml:2:1 this name stands here twice/],
      ['routes:\n  "GET /a": { free: true, free: true }', /2:\d+ this name stands here twice/],
      ['a: 1\n---\na: 2', /more than one document/],
      ['upstreams: !!js/function x', /without a tag/],
      ['%TAG ! tag:example.com,2000:\n---\na: !b 1', /without tags of its own/],
      ['a: !!int "five"', /f\.yaml:1:10 this is no int/],
      ['a: !!seq { b: 1 }', /another kind of value/],
      ['a: *b', /f\.yaml:1:4 /],
      ['a: &a [*a]', /nested more than 64/],
      ['? [1]\n: 2', /a name is a text/],
      ['__proto__: 1', /this name cannot be used/],
      [`${'['.repeat(50_000)}`, /f\.yaml:1:\d+ the file is nested too deeply/],
      [
        `a: &a [x,x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `b${i}: &${'bcdefghij'[i]} [${`*${'abcdefghij'[i]},`.repeat(10)}]`).join('\n')}`,
        /too many values/,
      ],
      ['- a', /must be an object/],
    ];
    for (const [text, says] of rows) assert.match(told(text)[0] ?? '', says, text.slice(0, 60));
  });

  test('does not quote the line, in which a secret could stand', () => {
    for (const text of [
      'a: "top-secret',
      'a: [top-secret',
      'a: top-secret: b',
      '\ttop-secret: 1',
      'a: "top-secret\\q"',
    ]) {
      const [line = ''] = told(text);
      assert(/f\.yaml:\d+:\d+ ./.test(line) && !line.includes('secret'), `${text}: ${line}`);
    }
  });
});

describe('what keys are given beside the price', () => {
  const withPlans = (plans: string, fields: string) => `plans: ${plans}\n${withRoute(fields)}`;

  test('is the same for all keys, but for those of a plan, which has the rest from the route', () => {
    const { bounds, plans, sale } = only(
      read(
        withPlans(
          '{ a: { accounts: [1001, 1002] }, b: { accounts: [1003] }, c: { accounts: [1004] } }',
          'price: "1", freeCallsPerDay: 2, quota: { perMinute: 3 }, plans: { a: { price: "0.5" }, b: { quota: false }, c: { freeCallsPerDay: 0, quota: { perDay: 4 } } }',
        ),
      ),
    );
    assert.deepEqual(bounds, { freeCallsPerDay: 2, callsPerMinute: 3, callsPerDay: null });
    assert.deepEqual(Object.fromEntries(plans), {
      1001: { sale: { kind: 'fixed', priceMicros: 500_000n }, bounds },
      1002: { sale: { kind: 'fixed', priceMicros: 500_000n }, bounds },
      1003: { sale, bounds: { freeCallsPerDay: 2, callsPerMinute: null, callsPerDay: null } },
      1004: { sale, bounds: { freeCallsPerDay: 0, callsPerMinute: null, callsPerDay: 4 } },
    });
  });

  test('is refused where a plan or an account is none, or two plans have one account', () => {
    for (const [plans, says] of [
      ['{ partner: { accounts: [1001] } }', /there is no plan "partners"; did you mean "partner"/],
      ['{ partners: { accounts: [] } }', /accounts/],
      ['{ partners: { accounts: [999] } }', /must be at least 1000/],
      ['{ partners: { accounts: [1001] }, b: { accounts: [1001] } }', /has the plan "partners" already/],
    ] as const)
      assert.match(
        told(withPlans(plans, 'price: "1", plans: { partners: { price: "0.5" } }')).join('\n'),
        says,
      );
  });

  test('is refused for a metered route where it is a free call or another price', () => {
    const metered = 'metered: { bytes: true, price: "1", per: 1000000, atMost: "1" }';
    for (const [terms, says] of [
      ['freeCallsPerDay: 1', /freeCallsPerDay: a metered route reserves its most, and a free call nothing/],
      ['plans: { a: { freeCallsPerDay: 1 } }', /plans.*freeCallsPerDay: a metered route reserves its most/],
      ['plans: { a: { price: "0.5" } }', /costs what is counted, for every key/],
    ] as const)
      assert.match(told(withPlans('{ a: { accounts: [1001] } }', `${metered}, ${terms}`)).join('\n'), says);
    assert.equal(only(read(withRoute(`${metered}, quota: { perDay: 4 }`))).bounds.callsPerDay, 4);
  });
});

describe('a route is refused', () => {
  const rows: [fields: string, says: RegExp, key?: string][] = [
    ['summary: "x"', /has no price: write price: "0\.02"/],
    ['price: "0.01", free: true', /has price and free: keep one/],
    ['free: false', /must be true, or be left out/],
    ['price: "1", stream: { maxOpen: 1 }', /kept and no stream/],
    ['free: true, freeCallsPerDay: 1', /freeCallsPerDay: a route that is free is called without a key/],
    ['free: true, quota: { perDay: 1 }', /quota: a route that is free is called without a key/],
    ['price: "1", freeCallsPerDay: 0', /must be at least 1/],
    ['price: "1", freeCallsPerDay: 1001', /must be at most 1000/],
    ['price: "1", quota: {}', /bounds nothing: write perMinute or perDay/],
    ['price: "1", quota: { perMinute: 3, perDay: 2 }', /is never reached, as a day has only 2 calls/],
    ['price: "1", plans: { p: { price: "0.5" } }', /plans\.p: there are no plans/],
    ['price: "1", plans: { p: {} }', /changes nothing: write price/],
    ['price: "1", plans: { p: { price: "0" } }', /must be above zero/],
    ['price: "1", plans: { p: { quota: {} } }', /plans\.p\.quota: bounds nothing/],
    [
      'price: "1", plans: { p: { price: "1", priceBy: { field: a, prices: { a: "1" } } } }',
      /keep one of them/,
    ],
    ['price: "1", plans: { p: { priceBy: { field: a, prices: { a: "1" } } } }', /decided by the same thing/],
    [
      'priceBy: { field: a, prices: { a: "1" } }, plans: { p: { priceBy: { field: b, prices: { a: "1" } } } }',
      /decided by the same thing/,
    ],
    ['price: "1", maxAnswerBytes: 1400001', /at most 1400000 bytes/],
    ['price: "1", answer: streamed, timeoutMs: 1', /stream\.maxMs/],
    ['price: "1", success: { status: [304] }', /must be at most 299/],
    ['price: "1", success: { status: [206] }', /206 answers a range/],
    ['price: "1", answer: streamed, success: { hasNot: [errors] }', /only of a whole answer/],
    ['price: "1", success: { lastEvent: "[DONE]" }', /only a stream has a last event/],
    ['price: "1", success: { has: [a], contentType: [text/csv] }', /add "application\/json"/],
    ['price: "1", requestHeaders: [authorization]', /holds the key of whoever pays/],
    ['price: "1", requestHeaders: [Range]', /in lower case/],
    ['price: "1", requestHeaders: [cookie]', /cookies are never sent on/],
    ['price: "1", requestHeaders: [x-payment]', /belongs to payments/],
    ['price: "1", requestHeaders: [transfer-encoding]', /belongs to the connection/],
    ['price: "1", answerHeaders: [set-cookie]', /cookies never come back/],
    ['price: "1", answerHeaders: [www-authenticate]', /a demand of this server/],
    ['price: "1", answerHeaders: [payment-required]', /a demand of this server/],
    ['price: "1", example: { params: { id: "1" } }', /no parameter :id/],
    ['price: "1", example: { body: 1 }', /a GET has no body/, 'GET /x'],
    ['price: "1", example: {}', /a value for :id/, 'GET /x/:id'],
    [
      'priceBy: { field: a, prices: { b: "1" } }, example: { body: { a: c } }',
      /example: would be refused: a has no price with this value: write one of "b"/,
    ],
    ['price: "1", answer: streamed, success: { equals: { a: 1 } }', /only of a whole answer/],
    ['price: "1", request: { query: { type: string } }', /must have type: object/],
    ['price: "1", response: { $ref: "http://a/b" }', /refers to another document/],
    ['priceBy: { prices: { a: "1" } }', /write one of field, header, query, path/],
    ['priceBy: { field: a, query: b, prices: { a: "1" } }', /write one of field, header, query, path/],
    ['priceBy: { field: a }', /either "prices", .* or "tiers"/],
    ['priceBy: { field: a, prices: { }, default: "1" }', /at least one value/],
    ['priceBy: { field: a, prices: { a: "0" } }', /must be above zero/],
    ['priceBy: { field: a, prices: { a: 0.5 } }', /in quotes: "0\.5"/],
    ['priceBy: { field: a, tiers: [{ upTo: 2, price: "1" }, { upTo: 2, price: "2" }] }', /must be above 2/],
    ['priceBy: { field: a, prices: { a: "1" } }', /a GET has no body/, 'GET /x'],
    ['priceBy: { path: id, prices: { a: "1" } }', /has no parameters/],
    ['priceBy: { path: id, prices: { a: "1" } }', /no parameter :id, only :x/, 'GET /x/:x'],
    ['priceBy: { path: x, prices: { a: "1" }, absent: "1" }', /is never absent/, 'GET /x/:x'],
    ['priceBy: { header: authorization, prices: { a: "1" } }', /cannot decide a price/],
    ['priceBy: { header: x-a, prices: { "a,b": "1" } }', /no comma/],
    ['price: "1", effect: readonly', /must be one of "read", "write"/],
    ['price: "1", summary: 1', /in quotes: "1"/],
    ['price: "1", tags: []', /at least 1 entries long/],
    ['price: "1"', /the server's own/, 'GET /mcp'],
    ['price: "1"', /percent-encoded/, 'GET /a%2Fb'],
  ];
  for (const [fields, says, key = 'POST /x'] of rows)
    test(`${key} { ${fields} }`, () => {
      const lines = told(withRoute(fields, key));
      assert(
        lines.some((line) => says.test(line)),
        lines.join('\n'),
      );
    });

  test('when the server cannot sell by its key', () => {
    const refusedKey = () => 'this path is the server’s own';
    assert.deepEqual(told(withRoute('price: "1"'), { ...PLAIN, refusedKey }), [
      'f.yaml:4:3 routes["POST /x"]: this path is the server’s own',
    ]);
  });
});

describe('an upstream is refused', () => {
  const rows: [fields: string, says: RegExp][] = [
    ['url: "127.0.0.1:9000"', /begins with http/],
    ['url: "file:///etc/passwd"', /begins with http/],
    ['url: "http://a?x=1"', /no "\?"/],
    ['url: "http://a/b#c"', /no "\?"/],
    ['url: "http://a/b/../c"', /no segments "\." and "\.\."/],
    ['url: "http://a/%2e%2e/c"', /percent-encoded/],
    ['url: "http://a/:id"', /no parameters/],
    ['url: "http://a", prefix: "x"', /begins with "\/"/],
    ['url: "http://a", prefix: "/x/"', /no slash at its end/],
    ['url: "http://a", prefix: "/:x"', /no parameters/],
    ['url: "http://a", prefix: "/mcp"', /the server's own/],
    ['url: "http://a", headers: { host: "@{A}" }', /belongs to the connection/],
    ['url: "http://a", headers: { cookie: "@{A}" }', /cookies are never sent/],
    ['url: "http://a", headers: { x-payment: "@{A}" }', /belongs to payments/],
    ['url: "http://a", headers: { x-forwarded-for: "@{A}" }', /an address that nobody checked/],
    ['url: "http://a", headers: { x-v: "@{A}" }, fixedHeaders: { x-v: "1" }', /under "headers" too/],
    ['url: "http://a", concurrency: 0', /must be at least 1/],
    ['url: "http://a", concurrency: "1"', /must be a (whole )?number/],
    ['url: "http://a", keepAlive: 1', /must be true or false/],
    ['url: "http://a", breaker: true', /must be (false|an object)/],
    ['url: "http://a", timeouts: { idleMs: 1.5 }', /whole number/],
    ['prefix: "/"', /url: is missing: write a text/],
  ];
  for (const [fields, says] of rows)
    test(`{ ${fields} }`, () => {
      const lines = told(withUpstream(fields), { ...PLAIN, env: { A: 'a' } });
      assert(
        lines.some((line) => says.test(line)),
        lines.join('\n'),
      );
    });

  test('by its name: { Weather: … }', () => {
    assert.match(
      told('upstreams: { Weather: { url: "http://a" } }')[0] ?? '',
      /1:14 upstreams\.Weather: write lower-case/,
    );
  });
});

describe('prices that a request decides', () => {
  test('have a lowest and a highest one, and the header that decides is sent on', () => {
    const { sale, requestHeaders } = only(
      read(withRoute('priceBy: { header: x-quality, prices: { low: "0.01", high: "0.5" }, default: "1" }')),
    );
    assert(sale.kind === 'by');
    assert.deepEqual(
      [sale.rule.lowestMicros, sale.rule.highestMicros, sale.rule.absentMicros, requestHeaders],
      [10_000n, 1_000_000n, 1_000_000n, ['x-quality']],
    );
  });

  test('count a range’s 206 only where a route names the header', () => {
    assert(only(read(withRoute('price: "1", requestHeaders: [range]'))).success.status.includes(206));
  });
});

describe('a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-config-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string, text: string | Uint8Array) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const says = async (path: string) => {
    const error: unknown = await loadConfig(path, PLAIN).then(
      () => null,
      (reason: unknown) => reason,
    );
    assert(error instanceof ConfigError);
    assert(error.message.startsWith(path), error.message);
    return error.message;
  };
  const JSON_TEXT = JSON.stringify(
    {
      $schema: './farebox.config.schema.json',
      upstreams: { u: { url: 'http://a', prefix: '/' } },
      routes: { 'GET /a': { upstream: 'u', price: '0.01' } },
    },
    null,
    '\t',
  );

  test('is YAML or JSON, and a problem of JSON has its place too', async () => {
    for (const path of [file('a.yaml', EXAMPLE), file('a.yml', EXAMPLE)])
      assert.equal((await loadConfig(path, PLAIN)).routes.length, 3);
    assert.equal((await loadConfig(file('a.json', JSON_TEXT), PLAIN)).routes.length, 1);
    assert.match(
      await says(file('b.json', JSON_TEXT.replace('"0.01"', '0.01'))),
      /:12:\d+ .*in quotes: "0\.01"/,
    );
  });

  test('is a module: what it imports is read again each time', async () => {
    file('price.mjs', 'export const price = "0.01";');
    const path = file(
      'c.mjs',
      'import { price } from "./price.mjs";\nexport default { upstreams: { u: { url: "http://a", prefix: "/" } }, routes: { "GET /a": { upstream: "u", price } } };',
    );
    assert.deepEqual(only(await loadConfig(path, PLAIN)).sale, { kind: 'fixed', priceMicros: 10_000n });
    file('price.mjs', 'export const price = "0.03";');
    assert.deepEqual(only(await loadConfig(path, PLAIN)).sale, { kind: 'fixed', priceMicros: 30_000n });
  });

  test('is TypeScript with defineConfig', async () => {
    const define = join(import.meta.dirname, 'define.ts');
    const path = file(
      'd.ts',
      `import { defineConfig } from ${JSON.stringify(define)};\nconst usd: string = '0.02';\nexport default defineConfig({ upstreams: { u: { url: 'http://a', prefix: '/' } }, routes: { 'GET /a': { upstream: 'u', price: usd } } });`,
    );
    assert.deepEqual(only(await loadConfig(path, PLAIN)).sale, { kind: 'fixed', priceMicros: 20_000n });
  });

  test('that is no configuration says why', async () => {
    assert.match(await says(join(folder, 'absent.yaml')), /cannot be read/);
    assert.match(await says(folder), /cannot be read/);
    assert.match(await says(file('e.toml', '')), /must end in \.yaml/);
    assert.match(await says(file('f.yaml', new Uint8Array([0x61, 0x3a, 0x20, 0xff]))), /must be UTF-8/);
    assert.match(await says(file('g.yaml', '#'.repeat(8_000_001))), /larger than/);
    assert.match(await says(file('h.mjs', 'export const x = 1;')), /write export default defineConfig/);
    assert.match(await says(file('i.mjs', 'throw new Error("no money");')), /cannot be loaded: no money/);
    assert.match(await says(file('j.mjs', 'export default {')), /cannot be loaded/);
    assert.match(await says(file('k.mjs', 'export default { routes: () => 1 };')), /no plain data/);
    assert.match(await says(file('l.mjs', 'process.exit(0);')), /ended before it exported/);
    assert.match(
      await says(file('m.mjs', 'export default { routes: { "GET /a": { upstream: "u", price: 0.1 } } };')),
      /routes\["GET \/a"\]\.price: write it in quotes: "0\.1"/,
    );
  });

  test('is checked as a value too', () => {
    assert.throws(() => checkConfig(null, 'x', PLAIN), ConfigError);
    assert.throws(() => checkConfig(new Map(), 'x', PLAIN), ConfigError);
  });
});
