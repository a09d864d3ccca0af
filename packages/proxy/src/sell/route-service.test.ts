import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AnyRunContext, Service } from '@farebox/core/service/define';
import type { ReadCall } from '@farebox/core/service/route';
import { ServiceFailure } from '@farebox/core/words/failure';
import { readConfigText } from '../config/load.ts';
import { type RawServer, rawServer, sized } from '../wire/raw-upstream.fixture.ts';
import type { Upstream } from '../wire/upstream.ts';
import { routeStream } from './ask-upstream.ts';
import { type OpenRoutes, openRoutes } from './open-routes.ts';

const SECRET = 'wt-0c8d7e6f5a4b3c2d';
let sends = '';
const api: RawServer = await rawServer((socket) => socket.end(sends));

function opened(): OpenRoutes {
  const yaml = `
    upstreams:
      weather:
        url: "${api.url}"
        prefix: "/"
        headers: { authorization: "Bearer \${TOKEN}" }
        breaker: { failures: 1, openMs: 60000 }
    routes:
      "GET /stations/:id":
        upstream: weather
        price: "0.01"
        requestHeaders: [x-variant]
        answerHeaders: [x-trace]
        maxAnswerBytes: 100
        success: { hasNot: [errors] }
      "POST /orders": { upstream: weather, price: "0.02", maxRequestBytes: 20, requestHeaders: [x-variant] }
  `;
  const config = readConfigText(yaml, 'farebox.config.yaml', { env: { TOKEN: SECRET }, serviceNames: null });
  return openRoutes(config, { version: '0', nowMs: () => 0, taken: [] });
}

function serviceOf(routes: OpenRoutes, key: string): Service {
  const service = routes.routes.find(({ route }) => route.key === key)?.service;
  assert(service !== undefined && service !== null);
  return service;
}

function read(service: Service, url: string, rawHeaders: string[] = [], body = ''): ReadCall {
  const rawBody = body === '' ? undefined : Buffer.from(body);
  const called = service.route?.read({ http: { url, rawHeaders }, rawBody });
  assert(called !== undefined);
  return called;
}

function run(service: Service, called: ReadCall, orderId = 'an order') {
  const call = {
    callId: 'call',
    orderId,
    caller: 'one',
    rail: 'credits',
    payer: '',
    priceMicros: 0n,
    network: null,
  } as const;
  const context = { call, signal: new AbortController().signal, nowMs: () => 0 };
  return service.run(called.input as never, context as unknown as AnyRunContext);
}

test('a payment is bound to the path, query, named headers in their order, content type and each byte of the body', async () => {
  const routes = opened();
  const station = serviceOf(routes, 'GET /stations/:id');
  const order = serviceOf(routes, 'POST /orders');
  const variants = (...values: string[]) => values.flatMap((value) => ['X-Variant', value]);
  const json = ['content-type', 'application/json'];
  const different = [
    read(station, '/stations/7'),
    read(station, '/stations/8'),
    read(station, '/stations/7?unit=c'),
    read(station, '/stations/7', variants('a')),
    read(station, '/stations/7', variants('a', 'b')),
    read(station, '/stations/7', variants('b', 'a')),
    read(order, '/orders', json, '{}'),
    read(order, '/orders', json, '{} '),
    read(order, '/orders', ['content-type', 'text/plain'], '{}'),
    read(order, '/orders', json),
  ].map(({ fingerprint }) => fingerprint.toString('hex'));
  assert.equal(new Set(different).size, different.length);
  const same = read(station, '/stations/7', ['X-Other', 'a', 'accept', 'text/plain', 'x-variant', 'a']);
  assert.equal(same.fingerprint.toString('hex'), different[3], 'what the route does not name does not count');
  await routes.close();
});

test('a body that is too large, and headers that cannot be sent on, are refused while nothing is priced', async () => {
  const routes = opened();
  const order = serviceOf(routes, 'POST /orders');
  const refusedWith = (status: number) => (error: unknown) =>
    error instanceof ServiceFailure && error.status === status;
  assert.throws(() => read(order, '/orders', [], 'x'.repeat(21)), refusedWith(413));
  assert.equal(read(order, '/orders', [], 'x'.repeat(20)).priceMicros, 20_000n);
  assert.throws(() => read(order, '/orders', ['x-variant', 'a\nb'], 'x'), refusedWith(400));
  assert.throws(() => read(order, '/orders', ['content-encoding', 'gzip'], 'x'), refusedWith(400));
  assert.throws(() => read(serviceOf(routes, 'GET /stations/:id'), '/stations/7', [], 'x'), refusedWith(400));
  await routes.close();
});

test('an answer is given back only whole, within its bound, and without the errors and credentials of the API', async () => {
  const bad = 'HTTP/1.1 400 Bad';
  for (const [what, answer, status] of [
    ['too large', sized(`"${'x'.repeat(99)}"`), 502],
    ['errors', sized('{"errors":["no"]}'), 502],
    ['errors with our credential', sized(`{"errors":["${SECRET}"]}`), 502],
    ['our credential', sized(`{"sent":"Bearer ${SECRET}"}`), 502],
    ['our credential in a header', sized('{}', 'HTTP/1.1 200 OK', `X-Trace: ${SECRET}\r\n`), 502],
    ['a refusal with our credential', sized(`"${SECRET}"`, bad, 'Content-Type: application/json\r\n'), 502],
    ['a refusal', sized('"no"', bad, 'Content-Type: application/json\r\n'), 400],
    ['a failure', sized('{}', 'HTTP/1.1 500 Broken'), 502],
    ['nothing more', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}', 502],
  ] as const) {
    const routes = opened();
    sends = answer;
    const station = serviceOf(routes, 'GET /stations/:id');
    await assert.rejects(run(station, read(station, '/stations/7')), (error: unknown) => {
      assert(error instanceof ServiceFailure);
      assert.equal(error.status, status, what);
      assert.doesNotMatch(JSON.stringify([error.message, error.details]), new RegExp(SECRET), what);
      return true;
    });
    await routes.close();
  }
  const routes = opened();
  const order = serviceOf(routes, 'POST /orders');
  sends = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhalf of it';
  await assert.rejects(run(order, read(order, '/orders')), { status: 502 });
  await routes.close();
});

test('a JSON answer with a rule over its fields is parsed once', async (t) => {
  const routes = opened();
  const text = '{"celsius":12.5}';
  sends = sized(text, 'HTTP/1.1 200 OK', 'Content-Type: application/json\r\n');
  const station = serviceOf(routes, 'GET /stations/:id');
  const called = read(station, '/stations/7');
  const parsed = t.mock.method(JSON, 'parse');
  await run(station, called);
  assert.equal(parsed.mock.calls.filter(({ arguments: [read] }) => read === text).length, 1);
  await routes.close();
});

test('a stream that cannot even begin takes no place among those that are open', async () => {
  const routes = opened();
  const [{ route } = assert.fail('there is no route')] = routes.routes;
  const upstream = { stream: async () => Promise.reject(new Error('not begun')) } as unknown as Upstream;
  const one = { ...route, stream: { maxOpen: 1, maxMs: 1_000 } };
  const stream = routeStream({ route: one, upstream, userAgent: 'test' });
  const called = read(serviceOf(routes, 'GET /stations/:id'), '/stations/7');
  const context = {
    call: { orderId: 'an order', caller: 'one' },
    signal: new AbortController().signal,
    nowMs: () => 0,
  };
  for (let n = 0; n < 3; n += 1)
    await assert.rejects(stream.run(called.input, context), { message: 'not begun' });
  await routes.close();
});

test('an order has one name for its API, which tells neither its id nor the key of its caller', async () => {
  const routes = opened();
  sends = sized('{}');
  const order = serviceOf(routes, 'POST /orders');
  const named = async (orderId: string, body: string) => {
    await run(order, read(order, '/orders', [], body), orderId);
    const [, name = ''] = /\r\nidempotency-key: (\S+)/i.exec(api.requests.at(-1) ?? '') ?? [];
    return name;
  };
  const first = await named('1001 key:mine', 'a');
  assert.match(first, /^[\w-]{32}$/);
  assert.equal(await named('1001 key:mine', 'a'), first);
  assert.notEqual(await named('1002 key:mine', 'a'), first);
  assert.notEqual(await named('1001 key:mine', 'b'), first);
  await routes.close();
});

test('an API that is known to be down is told before a payment moves', async () => {
  const routes = opened();
  const order = serviceOf(routes, 'POST /orders');
  const context = { signal: new AbortController().signal } as unknown as AnyRunContext;
  const called = read(order, '/orders');
  await order.beforeSettling?.(called.input as never, context);
  sends = sized('{}', 'HTTP/1.1 503 Away');
  await assert.rejects(run(order, called), { status: 502 });
  await assert.rejects(async () => order.beforeSettling?.(called.input as never, context), {
    status: 503,
    code: 'UPSTREAM_UNAVAILABLE',
  });
  await routes.close();
});
