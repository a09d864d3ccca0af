import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Problem } from '@farebox/core/http/problem';
import fc from 'fast-check';
import { decidingField } from './deciding-field.ts';
import { checkConfig } from './load.ts';
import { type PricedRequest, priceOfRequest } from './price-of-request.ts';
import { likeness } from './price-refused.ts';
import type { Sale } from './proxy-config.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

function saleOf(fields: object, key = 'POST /v1/x/:size'): Sale {
  const route = { upstream: 'u', ...fields };
  const upstreams = { u: { url: 'http://127.0.0.1:9000', prefix: '/' } };
  const config = checkConfig({ upstreams, routes: { [key]: route } }, 'test', {
    env: {},
    serviceNames: null,
  });
  const [made] = config.routes;
  assert(made !== undefined);
  return made.sale;
}

const NOTHING: PricedRequest = { parameters: {}, query: '', rawHeaders: [], body: bytes('') };
const JSON_TYPE = ['Content-Type', 'application/json'];
const withBody = (body: string | Uint8Array, rawHeaders: string[] = JSON_TYPE): PricedRequest => ({
  ...NOTHING,
  rawHeaders,
  body: typeof body === 'string' ? bytes(body) : body,
});

/** The code with which a request is refused, with its field; or its price. */
function outcome(sale: Sale, request: PricedRequest): string | bigint {
  try {
    return priceOfRequest(sale, request);
  } catch (error) {
    assert(error instanceof Problem, String(error));
    assert.equal(error.status, 400);
    assert.equal(error.details.charged, false);
    const [first] = error.details.fields as { field: string }[];
    return `${error.code} ${first?.field}`;
  }
}

const MODELS = saleOf({
  priceBy: { field: 'model', prices: { small: '0.01', large: '0.5', true: '0.2', 7: '0.07', 1.5: '0.15' } },
});
const NESTED = saleOf({
  priceBy: { field: 'options.size', prices: { s: '0.01' }, default: '2', absent: '0.03' },
});

describe('a price without a rule', () => {
  test('is fixed or nothing, whatever the request holds', () => {
    const anything = withBody(new Uint8Array([0xff]), []);
    assert.equal(priceOfRequest(saleOf({ price: '0.25' }), anything), 250_000n);
    assert.equal(priceOfRequest(saleOf({ free: true }), anything), 0n);
  });
});

describe('a price by a field of the body', () => {
  const rows: [body: string, is: string | bigint][] = [
    ['{"model":"small"}', 10_000n],
    [' { "x" : [ { "model" : "large" } ] , "model" : "small" } ', 10_000n],
    ['{"model":true}', 200_000n],
    ['{"model":7}', 70_000n],
    ['{"model":"7"}', 70_000n],
    ['{"model":1.5}', 150_000n],
    ['{"model":"\\u0073mall"}', 10_000n],
    ['{"a":"\\\\","b":"\\"model\\":","model":"large"}', 500_000n],
    ['{"a":"\\\\","model":"large","b":"x"}', 500_000n],
    ['{"a":"\\\\\\"","model":"large"}', 500_000n],
    // Twice, and in other spellings.
    ['{"model":"small","model":"large"}', 'PRICE_DECIDED_TWICE model'],
    ['{"model":"small","model":"small"}', 'PRICE_DECIDED_TWICE model'],
    ['{"model":null,"model":"small"}', 'PRICE_DECIDED_TWICE model'],
    ['{"model":"small","\\u006dodel":"large"}', 'PRICE_NOT_PLAIN model'],
    ['{"\\u006dodel":"small"}', 'PRICE_NOT_PLAIN model'],
    ['{"model":"small","Model":"large"}', 'PRICE_NOT_PLAIN model'],
    ['{"MODEL":"small"}', 'PRICE_NOT_PLAIN model'],
    ['{"model\\u0000":"small"}', 'PRICE_NOT_PLAIN model'],
    ['{"model ":"small"}', 'PRICE_NOT_PLAIN model'],
    ['{"ｍodel":"small"}', 'PRICE_NOT_PLAIN model'],
    // Numbers in another form.
    ['{"model":7.0}', 'PRICE_NOT_PLAIN model'],
    ['{"model":7e0}', 'PRICE_NOT_PLAIN model'],
    ['{"model":0.7E1}', 'PRICE_NOT_PLAIN model'],
    ['{"model":1.50}', 'PRICE_NOT_PLAIN model'],
    ['{"model":-0}', 'PRICE_NOT_PLAIN model'],
    ['{"model":9007199254740993}', 'PRICE_NOT_PLAIN model'],
    ['{"model":1e400}', 'PRICE_NOT_PLAIN model'],
    // Values that are no text, number or boolean.
    ['{"model":["small"]}', 'PRICE_NOT_PLAIN model'],
    ['{"model":{}}', 'PRICE_NOT_PLAIN model'],
    // Values without a price, and those that look like one that has.
    ['{"model":null}', 'PRICE_UNKNOWN model'],
    ['{}', 'PRICE_UNKNOWN model'],
    ['', 'PRICE_UNKNOWN model'],
    ['{"model":"medium"}', 'PRICE_UNKNOWN model'],
    ['{"model":false}', 'PRICE_UNKNOWN model'],
    ['{"model":"LARGE"}', 'PRICE_NOT_PLAIN model'],
    ['{"model":" large"}', 'PRICE_NOT_PLAIN model'],
    ['{"model":"large\\u0000"}', 'PRICE_NOT_PLAIN model'],
    ['{"model":"7.0"}', 'PRICE_NOT_PLAIN model'],
    ['{"model":"0x7"}', 'PRICE_NOT_PLAIN model'],
    ['{"model":1}', 'PRICE_NOT_PLAIN model'],
    ['{"model":"on"}', 'PRICE_NOT_PLAIN model'],
    ['{"model":"constructor"}', 'PRICE_UNKNOWN model'],
    // No JSON object.
    ['[{"model":"small"}]', 'PRICE_NOT_PLAIN body'],
    ['"model"', 'PRICE_NOT_PLAIN body'],
    ['null', 'PRICE_NOT_PLAIN body'],
    ['{"model":"small"', 'PRICE_NOT_PLAIN body'],
    ["{'model':'small'}", 'PRICE_NOT_PLAIN body'],
    ['{"model":"small",}', 'PRICE_NOT_PLAIN body'],
    ['{"model":"small"}//', 'PRICE_NOT_PLAIN body'],
    ['{"model":"small"}{"model":"large"}', 'PRICE_NOT_PLAIN body'],
    ['\ufeff{"model":"small"}', 'PRICE_NOT_PLAIN body'],
    [' ', 'PRICE_NOT_PLAIN body'],
    [`{"x":${'['.repeat(100_000)}${']'.repeat(100_000)},"model":"small"}`, 10_000n],
  ];
  for (const [body, is] of rows)
    test(JSON.stringify(body.slice(0, 60)), () => assert.equal(outcome(MODELS, withBody(body)), is));

  test('looks at each object on the way to it', () => {
    const nested: [string, string | bigint][] = [
      ['{"options":{"size":"s"}}', 10_000n],
      ['{"options":{"size":"xl"}}', 2_000_000n],
      ['{"options":{}}', 30_000n],
      ['{"options":null}', 30_000n],
      ['{}', 30_000n],
      ['{"size":"s"}', 30_000n],
      ['{"x":{"options":{"size":"a"},"options":1},"options":{"x":{"size":1,"size":2},"size":"s"}}', 10_000n],
      ['{"options":{"size":"s"},"options":{"size":"xl"}}', 'PRICE_DECIDED_TWICE options'],
      ['{"options":{"size":"s"},"Options":{}}', 'PRICE_NOT_PLAIN options'],
      ['{"options":{"size":"s","size":"xl"}}', 'PRICE_DECIDED_TWICE options.size'],
      ['{"options":{"size":"s","si\\u007ae":"xl"}}', 'PRICE_NOT_PLAIN options.size'],
      ['{"options":[{"size":"s"}]}', 'PRICE_NOT_PLAIN options'],
      ['{"options":"size"}', 'PRICE_NOT_PLAIN options'],
    ];
    for (const [body, is] of nested) assert.equal(outcome(NESTED, withBody(body)), is, body);
  });

  test('is read only of JSON in UTF-8 that nothing has encoded', () => {
    const small = '{"model":"small"}';
    const type = (...values: string[]) =>
      outcome(
        MODELS,
        withBody(
          small,
          values.flatMap((each) => ['content-type', each]),
        ),
      );
    for (const good of [
      ...['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset="UTF-8"'],
      ...['application/vnd.api+json', 'application/json; profile=x'],
    ])
      assert.equal(type(good), 10_000n, good);
    for (const bad of [
      ...[
        'text/plain',
        'application/x-www-form-urlencoded',
        'application/jsonx',
        '',
        'application/json; charset=utf-16',
      ],
      ...[
        'application/json; charset=latin1',
        'application/json; charset=utf-8; charset=utf-16',
        'multipart/form-data; boundary=x',
      ],
      'application/json; charset*=utf-16',
      'application/json; charset=utf-8; charset=utf-8',
    ])
      assert.equal(type(bad), 'PRICE_NOT_PLAIN content-type', bad);
    assert.equal(type('application/json', 'application/json'), 'PRICE_DECIDED_TWICE content-type');
    assert.equal(outcome(MODELS, withBody(small, [])), 'PRICE_NOT_PLAIN content-type');
    const underscored = withBody(small, ['content_type', 'application/json']);
    assert.equal(outcome(MODELS, underscored), 'PRICE_NOT_PLAIN content-type');
    assert.throws(
      () => priceOfRequest(MODELS, withBody(`\ufeff${small}`)),
      /must begin without a byte order mark/,
    );
    const encoded = withBody(small, [...JSON_TYPE, 'Content-Encoding', 'gzip']);
    assert.equal(outcome(MODELS, encoded), 'PRICE_NOT_PLAIN content-encoding');
    const invalid = bytes('{"model":"small","x":"?"}');
    invalid[22] = 0xff;
    assert.equal(outcome(MODELS, withBody(invalid)), 'PRICE_NOT_PLAIN body');
    const wide = Buffer.from('{"model":"small"}', 'utf16le');
    assert.equal(outcome(MODELS, withBody(wide)), 'PRICE_NOT_PLAIN body');
    const overlong = bytes('{"model":"small"}??');
    overlong.set([0xc1, 0xad], 17);
    assert.equal(outcome(MODELS, withBody(overlong)), 'PRICE_NOT_PLAIN body');
  });

  test('is not in the address too, which some frameworks join with the body', () => {
    const also = (query: string) => outcome(NESTED, { ...withBody('{}'), query });
    assert.equal(also('?options=1'), 'PRICE_DECIDED_TWICE options');
    assert.equal(also('?options[size]=xl'), 'PRICE_NOT_PLAIN ?options');
    assert.equal(also('?size=xl&options='), 30_000n);
  });

  test('leaves the bytes as they are', () => {
    const request = withBody(' {"model" : "small"}');
    const before = Buffer.from(request.body);
    priceOfRequest(MODELS, request);
    assert.deepEqual(Buffer.from(request.body), before);
  });
});

describe('the field that decides, in any JSON', () => {
  const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 3 });
  const name = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('a', 'b', 'c', 'd') },
    { weight: 2, arbitrary: fc.constantFrom('A', 'a ', 'a_', 'ａ', 'ab', '__proto__', '') },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) },
  );
  /** A text as JSON may write it: each of its units plain or escaped. */
  const written = fc
    .tuple(
      name,
      fc.array(
        fc.integer({ min: 0, max: 9 }).map((each) => each === 0),
        { maxLength: 4 },
      ),
    )
    .map(([text, escapes]) => {
      const units = Array.from(text, (each, index) =>
        escapes[index] === true && each.length === 1
          ? `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`
          : JSON.stringify(each).slice(1, -1),
      );
      return { text, json: `"${units.join('')}"` };
    });
  interface Tree {
    json: string;
    /** The members of an object; null for anything else. */
    members: readonly { text: string; json: string; value: Tree }[] | null;
  }
  const { value, object } = fc.letrec<{ value: Tree; object: Tree; list: Tree; leaf: Tree }>((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, tie('leaf'), tie('object'), tie('list')),
    leaf: fc.oneof(
      written.map(({ json }) => ({ json, members: null })),
      fc
        .oneof(
          fc.constantFrom('true', 'false', 'null', '1.0', '-0', '1e2'),
          fc.integer().map(String),
          fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => JSON.stringify(each)),
        )
        .map((json) => ({ json, members: null })),
    ),
    list: fc.tuple(space, fc.array(tie('value'), { maxLength: 3 })).map(([gap, items]) => ({
      json: `[${gap}${items.map(({ json }) => json).join(`${gap},`)}]${gap}`,
      members: null,
    })),
    object: fc
      .tuple(space, fc.array(fc.tuple(written, tie('value')), { maxLength: 5 }))
      .map(([gap, pairs]) => ({
        json: `${gap}{${gap}${pairs.map(([key, each]) => `${key.json}${gap}:${gap}${each.json}`).join(`${gap},${gap}`)}${gap}}`,
        members: pairs.map(([key, each]) => ({ ...key, value: each })),
      })),
  }));

  /** Looks the field up in the tree that the text was made from. */
  function expected(tree: Tree, names: readonly string[]): string {
    const [first = '', ...rest] = names;
    const alike = (tree.members ?? []).filter(({ text }) => likeness(text) === likeness(first));
    const [only, another] = alike;
    if (another !== undefined || (only !== undefined && only.json !== `"${first}"`)) return 'refused';
    if (only === undefined || only.value.json.trim() === 'null') return 'absent';
    if (rest.length > 0) return only.value.members === null ? 'refused' : expected(only.value, rest);
    const parsed: unknown = JSON.parse(only.value.json);
    if (typeof parsed === 'string') return `text ${parsed}`;
    if (typeof parsed === 'boolean') return `boolean ${parsed}`;
    const isPlain =
      typeof parsed === 'number' && String(parsed) === only.value.json && !/e/i.test(only.value.json);
    return isPlain ? `number ${parsed}` : 'refused';
  }

  test('is what its text says, once and plainly, or is refused', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(
        fc.oneof({ weight: 9, arbitrary: object }, { weight: 1, arbitrary: value }),
        fc.constantFrom(['a'], ['a', 'b']),
        (tree, names) => {
          JSON.parse(tree.json);
          let found: string;
          try {
            const field = decidingField(bytes(tree.json), names);
            found = field.kind === 'absent' ? 'absent' : `${field.kind} ${field.text}`;
          } catch (error) {
            assert(error instanceof Problem, String(error));
            found = 'refused';
          }
          const wanted = tree.members === null ? 'refused' : expected(tree, names);
          seen.set(found.split(' ')[0] ?? '', (seen.get(found.split(' ')[0] ?? '') ?? 0) + 1);
          assert.equal(found, wanted, tree.json);
        },
      ),
      { numRuns: 5_000, seed: 29 },
    );
    for (const kind of ['absent', 'refused', 'text', 'number', 'boolean'])
      assert((seen.get(kind) ?? 0) >= 3, `${kind} was tried ${seen.get(kind) ?? 0} times`);
  });

  test('is refused or absent, but never thrown over, in any bytes', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 40 }),
          fc.string({ unit: fc.constantFrom(...'{}[]":,\\a1.eEtrufalsn \u0000ä'), maxLength: 30 }).map(bytes),
        ),
        (body) => {
          try {
            decidingField(body, ['a']);
          } catch (error) {
            assert(error instanceof Problem, String(error));
          }
        },
      ),
      { numRuns: 5_000, seed: 29 },
    );
  });
});

describe('a price by a parameter of the address', () => {
  const DAYS = saleOf({
    priceBy: {
      query: 'days',
      tiers: [
        { upTo: 0, price: '0.001' },
        { upTo: 7, price: '0.01' },
        { upTo: 30, price: '0.05' },
      ],
      absent: '0.02',
    },
  });
  const KIND = saleOf({
    priceBy: { query: 'kind', prices: { 'a b': '0.1', ä: '0.2', small: '0.3' }, default: '1' },
  });
  const rows: [sale: Sale, query: string, is: string | bigint][] = [
    [DAYS, '', 20_000n],
    [DAYS, '?days=', 20_000n],
    [DAYS, '?days', 20_000n],
    [DAYS, '?days=-3', 1_000n],
    [DAYS, '?days=0', 1_000n],
    [DAYS, '?x=1&days=7', 10_000n],
    [DAYS, 'days=8&y', 50_000n],
    [DAYS, '?days=31', 'PRICE_UNKNOWN ?days'],
    [DAYS, '?days=999999999999999', 'PRICE_UNKNOWN ?days'],
    ...['07', '7.0', '+7', '%2B7', '7e0', 'x', '0x7', '7%20', '-0', '9'.repeat(16), '%EF%BC%97'].map(
      (text): [Sale, string, string] => [DAYS, `?days=${text}`, 'PRICE_NOT_PLAIN ?days'],
    ),
    [DAYS, '?days=%37', 'PRICE_NOT_PLAIN ?days'],
    [DAYS, '?days=7&days=30', 'PRICE_DECIDED_TWICE ?days'],
    [DAYS, '?days=7&days=7', 'PRICE_DECIDED_TWICE ?days'],
    [DAYS, '?days=7&days', 'PRICE_DECIDED_TWICE ?days'],
    ...[
      ...[
        'd%61ys=30',
        'Days=30',
        'days[]=30',
        'days%5B0%5D=30',
        'days%00=30',
        '+days=30',
        'day%2573=30',
        'DAY_S=30',
      ],
      ...['x;days=30', 'days=30;x', 'days%20=30'],
    ].flatMap((text): [Sale, string, string][] => [
      [DAYS, `?days=7&${text}`, 'PRICE_NOT_PLAIN ?days'],
      [DAYS, `?${text}&days=7`, 'PRICE_NOT_PLAIN ?days'],
      [DAYS, `?${text}`, 'PRICE_NOT_PLAIN ?days'],
    ]),
    [KIND, '?kind=a+b', 100_000n],
    [KIND, '?kind=a%20b', 100_000n],
    [KIND, '?kind=%C3%A4', 200_000n],
    [KIND, '?kind=b', 1_000_000n],
    [KIND, '?kind=%C3', 'PRICE_NOT_PLAIN ?kind'],
    [KIND, '?kind=a%2520b', 'PRICE_NOT_PLAIN ?kind'],
    [KIND, '?kind=SMALL', 'PRICE_NOT_PLAIN ?kind'],
    [KIND, '?kind=small%00', 'PRICE_NOT_PLAIN ?kind'],
    [KIND, '?kind=b%0A', 'PRICE_NOT_PLAIN ?kind'],
    [KIND, '?kinds=b', 1_000_000n],
  ];
  for (const [sale, query, is] of rows)
    test(`${query} is ${is}`, () => assert.equal(outcome(sale, { ...NOTHING, query }), is));
});

test('a price by a parameter of the address is not in the body too, which some frameworks join with it', () => {
  const sale = saleOf({ priceBy: { query: 'days', tiers: [{ upTo: 7, price: '0.01' }], absent: '0.02' } });
  const also = (body: string, type: string, query = '') =>
    outcome(sale, { ...withBody(body, ['content-type', type]), query });
  const form = 'application/x-www-form-urlencoded';
  assert.equal(also('{"days":30}', 'application/json'), 'PRICE_DECIDED_TWICE ?days');
  assert.equal(also('{"Days":30}', 'application/json', '?days=7'), 'PRICE_NOT_PLAIN days');
  assert.equal(also('x=1&days=30', form), 'PRICE_DECIDED_TWICE ?days');
  assert.equal(also('days%5b%5d=30', form), 'PRICE_NOT_PLAIN ?days');
  assert.equal(also('{"x":{"days":30}}', 'application/json', '?days=7'), 10_000n);
  assert.equal(also('x=1', form), 20_000n);
  assert.equal(also('days=30', 'text/plain'), 20_000n);
});

describe('a price by a header', () => {
  const QUALITY = saleOf({ priceBy: { header: 'x-quality', prices: { low: '0.01', high: '0.5' } } });
  const rows: [rawHeaders: string[], is: string | bigint][] = [
    [['X-Quality', ' low '], 10_000n],
    [['x-other', 'high', 'x-quality', 'high'], 500_000n],
    [[], 'PRICE_UNKNOWN x-quality'],
    [['x-quality', ''], 'PRICE_UNKNOWN x-quality'],
    [['x-quality', 'mid'], 'PRICE_UNKNOWN x-quality'],
    [['x-quality', 'low', 'X-Quality', 'high'], 'PRICE_DECIDED_TWICE x-quality'],
    [['x-quality', 'low', 'X_Quality', 'high'], 'PRICE_DECIDED_TWICE x-quality'],
    [['X_Quality', 'low'], 'PRICE_NOT_PLAIN x-quality'],
    [['x-quality', 'low, high'], 'PRICE_NOT_PLAIN x-quality'],
    [['x-quality', 'LOW'], 'PRICE_NOT_PLAIN x-quality'],
    [['x-quality', 'l\u00f6w'], 'PRICE_NOT_PLAIN x-quality'],
  ];
  for (const [rawHeaders, is] of rows)
    test(`${JSON.stringify(rawHeaders)} is ${is}`, () =>
      assert.equal(outcome(QUALITY, { ...NOTHING, rawHeaders }), is));
});

describe('a price by a parameter of the path', () => {
  const SIZE = saleOf({ priceBy: { path: 'size', prices: { s: '0.01', l: '0.5' }, default: '1' } });
  const rows: [size: string, is: string | bigint][] = [
    ['s', 10_000n],
    ['xl', 1_000_000n],
    ['S', 'PRICE_NOT_PLAIN :size'],
    ['s ', 'PRICE_NOT_PLAIN :size'],
    ['xl;v=1', 'PRICE_NOT_PLAIN :size'],
    ['constructor', 1_000_000n],
  ];
  for (const [size, is] of rows)
    test(`${size} is ${is}`, () => assert.equal(outcome(SIZE, { ...NOTHING, parameters: { size } }), is));
});

test('a refusal lists the values that have a price, twenty at most, and names no price', () => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`v${index}`, '0.01']));
  const sale = saleOf({ priceBy: { field: 'm', prices: many } });
  try {
    priceOfRequest(sale, withBody('{"m":"x"}'));
    assert.fail();
  } catch (error) {
    assert(error instanceof Problem);
    assert.match(error.message, /^m has no price with this value: write one of "v0", .*"v19", or 10 more\.$/);
    assert.equal((error.details.choices as string[]).length, 20);
    assert(!/0\.01/.test(JSON.stringify([error.message, error.details])));
  }
});
