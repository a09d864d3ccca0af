import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { openRoutes } from '../sell/open-routes.ts';
import { readConfigText } from './load.ts';
import { ConfigError } from './problem.ts';

const SECRET = 'a-secret-of-the-tests-and-of-nothing-else';
const TOKEN = '$' + '{SHOP_A}';
const GATES = `gates:\n  shop-a: { url: "https://shop-a.example/api/", secret: "${TOKEN}" }\n`;
const UPSTREAMS = 'upstreams:\n  u: { url: "http://127.0.0.1:9000", prefix: "/" }\n';

const read = (text: string, env: Record<string, string> = { SHOP_A: SECRET }) =>
  readConfigText(text, 'f.yaml', { env, serviceNames: null });

function told(text: string, env?: Record<string, string>): string {
  try {
    read(text, env);
  } catch (error) {
    assert(error instanceof ConfigError, String(error));
    return error.message;
  }
  throw new Error(`accepted: ${text}`);
}

test('a route names a gate in place of an upstream; its secret is in no field', () => {
  const config = read(`${GATES}routes:\n  "POST /x": { gate: shop-a, price: "0.02" }\n`);
  const [gate] = config.gates;
  assert.deepEqual(
    [gate?.name, gate?.url, gate?.secret.reveal()],
    ['shop-a', 'https://shop-a.example/api', SECRET],
  );
  assert.equal(config.routes[0]?.gate, gate);
  assert.equal(inspect(config, { depth: null }).includes(SECRET), false);
});

test('a route behind a gate is at no address of this server, and in no list of its services', () => {
  const text = `${GATES}${UPSTREAMS}routes:\n  "POST /x": { gate: shop-a, price: "0.02" }\n  "POST /y": { upstream: u, price: "0.02" }\n`;
  const opened = openRoutes(read(text), { version: '0', nowMs: () => 0, taken: [] });
  assert.deepEqual(
    opened.services.map(({ path }) => path),
    ['post-y'],
  );
  assert.equal(opened.table.match('POST', '/x'), null);
  const [gate] = opened.gates;
  assert.deepEqual(
    gate?.routes.map(({ service }) => service.path),
    ['post-x'],
  );
  const [route] = gate?.routes ?? [];
  // A service without a guest to ask, as every other door would call it.
  assert.throws(() => route?.service.route?.read({ http: null, rawBody: undefined }), /at its own server/);
  assert.throws(() =>
    route?.service.route?.read({ http: { url: '/x', rawHeaders: [] }, rawBody: undefined }),
  );
});

test('what a gate cannot do is refused with its line', () => {
  const route = (fields: string) => `${GATES}${UPSTREAMS}routes:\n  "POST /x": { ${fields} }\n`;
  for (const [text, expected] of [
    [route('gate: shop-b, price: "0.02"'), /there is no gate "shop-b"; did you mean "shop-a"\?/],
    [route('gate: shop-a, upstream: u, price: "0.02"'), /write either an upstream or a gate/],
    [route('price: "0.02"'), /write either an upstream or a gate/],
    [route('gate: shop-a, free: true'), /what costs nothing needs no gate/],
    [route('gate: shop-a, price: "0.02", answer: streamed'), /cannot leave as a stream/],
    [route('gate: shop-a, price: "0.02", upstreamKnowsIdempotencyKey: true'), /nothing is sent to a gate/],
    ['routes:\n  "POST /x": { gate: a, price: "0.02" }\n', /there are no gates/],
    [
      'gates:\n  a: { url: "ftp://x", secret: "secret" }\n',
      /write the environment variable that holds the secret/,
    ],
    [`gates:\n  a: { url: "ftp://x", secret: "${TOKEN}" }\n`, /begins with http/],
    [`gates:\n  a: { url: "https://x", secret: "Bearer ${TOKEN}" }\n`, /write the variable alone/],
  ] as const)
    assert.match(told(text), expected);
  assert.match(told(GATES, {}), /SHOP_A is not set/);
  const short = told(GATES, { SHOP_A: 'too-short' });
  assert.match(short, /SHOP_A has 9 characters: a secret has at least 32/);
  assert.equal(short.includes('too-short'), false);
});
