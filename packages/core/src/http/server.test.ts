/** Tests what the edge refuses before any route is asked: in the house's form, in time, and with one time to wait. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { Problem } from './problem.ts';
import { admit, createRateLimit, rateHeaders, withRate } from './rate-limit.ts';
import { allowBrowsers, createHttpServer } from './server.ts';

let app: FastifyInstance;
let port: number;
before(async () => {
  app = createHttpServer(pino({ level: 'silent' }), { requestTimeoutMs: 500 });
  const limit = createRateLimit({ perMinute: 2, maxNames: 10, nowMs: () => 0 });
  allowBrowsers(app, () => []);
  app.get('/things/:thing', () => ({ success: true }));
  app.post('/things', () => ({ success: true }));
  app.route({ method: ['GET', 'POST'], url: '/shop/*', handler: () => ({ success: true }) });
  app.get('/shop/catalog', () => ({ success: true }));
  app.knownAddresses.addList((path) =>
    path.toLowerCase() === '/shop/wares' ? { path: '/shop/wares', methods: ['GET', 'POST'] } : null,
  );
  app.get('/hidden', { config: { isTold: () => false } }, () => ({ success: true }));
  app.get('/limited', (_request, reply) => {
    admit(limit, 'somebody', reply);
    return { success: true };
  });
  app.get('/broken', () => {
    throw new Error('the password is hunter2');
  });
  app.get('/away', () => {
    throw Object.assign(new Error('hunter2 let nobody in'), { code: 'ECONNREFUSED' });
  });
  app.get('/tomorrow', (_request, reply) => {
    reply.headers(rateHeaders({ allowed: true, limit: 10, remaining: 9, resetSeconds: 60 }));
    throw new Problem(429, 'ONCE_A_DAY', 'Once a day.', { headers: { 'retry-after': '86400' } });
  });
  const address = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  port = Number(address.port);
});
after(() => app.close());

/** Sends bytes as they are, and reads until the other side ends it. */
function raw(bytes: string): Promise<{ status: number; headers: string; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', reject).on('close', () => {
      const [headers = '', body = ''] = text.split(/\r\n\r\n(.*)/s);
      resolve({ status: Number(headers.split(' ')[1]), headers: headers.toLowerCase(), body });
    });
  });
}

function assertHouseForm(
  answer: { status: number; headers: string; body: string },
  status: number,
  code: string,
) {
  const body = JSON.parse(answer.body);
  assert.deepEqual([answer.status, body.error, body.code], [status, code, code]);
  assert.equal(typeof body.message, 'string');
  assert.match(body.requestId, /^req_/);
  assert(answer.headers.includes(`x-request-id: ${body.requestId.toLowerCase()}`), answer.headers);
  assert(answer.headers.includes('access-control-allow-origin: *'), answer.headers);
}

const HOST = 'Host: farebox.test\r\n';

test('what is too long or cannot be read is refused in the form of every other error', async () => {
  const close = 'Connection: close\r\n';
  const long = await raw(`GET /things/${'a'.repeat(300)} HTTP/1.1\r\n${HOST}${close}\r\n`);
  assertHouseForm(long, 414, 'ADDRESS_TOO_LONG');
  const headers = await raw(`GET /things/a HTTP/1.1\r\n${HOST}X-Long: ${'a'.repeat(40_000)}\r\n\r\n`);
  assertHouseForm(headers, 431, 'HEADERS_TOO_LARGE');
  assertHouseForm(await raw('NOT HTTP AT ALL\r\n\r\n'), 400, 'INVALID_REQUEST');
  assertHouseForm(await raw(`GET /things/%zz HTTP/1.1\r\n${HOST}${close}\r\n`), 400, 'INVALID_REQUEST');
});

test('a fault of the server’s own, and a database that does not answer, tell nothing of what was thrown', async () => {
  for (const [path, status, code] of [
    ['/broken', 500, 'INTERNAL_ERROR'],
    ['/away', 503, 'DATABASE_UNAVAILABLE'],
  ] as const) {
    const answer = await raw(`GET ${path} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    assertHouseForm(answer, status, code);
    assert(!answer.body.includes('hunter2'), answer.body);
  }
});

test('a request that is never sent whole is ended soon after its time, in its head and in its body', async () => {
  const startedAt = performance.now();
  const answers = await Promise.all([
    raw(`POST /things HTTP/1.1\r\n${HOST}X-Half: `),
    raw(`POST /things HTTP/1.1\r\n${HOST}Content-Length: 10\r\n\r\n{"a`),
  ]);
  for (const answer of answers) assertHouseForm(answer, 408, 'REQUEST_TIMEOUT');
  assert(performance.now() - startedAt < 20_000, 'the checks are as far apart as a minute');
});

test('header, body and rate limit name one time to wait', async () => {
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return {
      answer,
      body: (await answer.json()) as Record<string, unknown>,
      of: (name: string) => answer.headers.get(name),
    };
  };
  await ask('/limited');
  assert.equal((await ask('/limited')).of('ratelimit-remaining'), '0');
  const refused = await ask('/limited');
  assert.equal(refused.answer.status, 429);
  assert.equal(refused.of('ratelimit-reset'), refused.of('retry-after'));
  assert.equal(refused.of('ratelimit'), `"minute";r=0;t=${refused.of('retry-after')}`);
  assert.equal(String(refused.body.retryAfterSeconds), refused.of('retry-after'));

  const other = await ask('/tomorrow');
  assert.deepEqual([other.of('retry-after'), other.body.retryAfterSeconds], ['86400', 86_400]);
  for (const name of ['limit', 'policy', 'remaining', 'reset'])
    assert.equal(other.of(`ratelimit-${name}`), null, name);
  assert.equal(other.of('ratelimit'), null);
});

test('the same holds for answers that are finished texts', () => {
  const rate = rateHeaders({ allowed: false, limit: 10, remaining: 0, resetSeconds: 42 });
  assert.deepEqual(withRate({ 'retry-after': '42' }, rate), { ...rate, 'retry-after': '42' });
  assert.deepEqual(withRate({ 'retry-after': '1' }, rate), { 'retry-after': '1' });
  assert.deepEqual(withRate({}, rate), rate);
});

test('whose request comes in while the server ends is told so in the same form', async () => {
  const ending = createHttpServer(pino({ level: 'silent' }));
  ending.get('/things', () => ({ success: true }));
  const there = new URL(await ending.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(there.port), '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  const ended = new Promise((resolve) => socket.on('close', resolve));
  const begun = new Promise((resolve) =>
    ending.server.on('connection', (each) => each.once('data', resolve)),
  );
  socket.write(`GET /things HTTP/1.1\r\n${HOST}`);
  await begun;
  const closed = ending.close();
  // The end has begun once nobody new is let in.
  while (ending.server.listening) await new Promise((resolve) => setImmediate(resolve));
  socket.write('\r\n');
  await Promise.all([ended, closed]);
  assert.match(text, /^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n/i, text);
  assert.match(text, /connection: close\r\n/i, text);
  const body = JSON.parse(text.split('\r\n\r\n')[1] ?? '');
  assert.deepEqual([body.code, body.retryAfterSeconds], ['SHUTTING_DOWN', 1]);
});

test('a wrong method is told the right ones, and an address in other letters or slashes the right one', async () => {
  const ask = async (method: 'GET' | 'HEAD' | 'POST' | 'DELETE', url: string) => {
    const reply = await app.inject({ method, url });
    const { code, message, hint, knownPaths } = reply.json();
    const { allow, vary, 'cache-control': kept } = reply.headers;
    assert.deepEqual([vary, kept], ['Accept', 'no-store'], url);
    return { status: reply.statusCode, allow, code, message, hint, knownPaths };
  };
  for (const [method, url, allow] of [
    ['GET', '/things', 'POST'],
    ['GET', '/things/?sort=name', 'POST'],
    ['POST', '/things/a', 'GET, HEAD'],
    ['DELETE', '/shop/catalog', 'GET, HEAD'],
    ['DELETE', '/shop/wares', 'GET, POST'],
  ] as const) {
    const { status, allow: told, code, message } = await ask(method, url);
    const expected = [405, allow, 'METHOD_NOT_ALLOWED', `This address takes ${allow}, not ${method}.`];
    assert.deepEqual([status, told, code, message], expected, url);
  }
  for (const [url, meant] of [
    ['/Things/Ab', '/things/Ab'],
    ['//things//Ab', '/things/Ab'],
    ['/SHOP/Catalog', '/shop/catalog'],
    ['/SHOP/Wares/', '/shop/wares'],
    ['/Limited/?key=secret', '/limited'],
  ] as const) {
    const told = await ask('GET', url);
    assert.deepEqual([told.status, told.code, told.allow], [404, 'NOT_FOUND', undefined], url);
    assert.match(told.hint, new RegExp(`^Did you mean ${meant}\\?`), url);
    assert.deepEqual(told.knownPaths, [meant]);
  }
  const tooLong = `/Things/${'a'.repeat(200)}/${'b'.repeat(5_000)}`;
  for (const url of ['/nothing', '/things/a/b', '/thing.', '/limitedx', '/SHOP/a', '/Hidden', tooLong]) {
    const { status, hint, knownPaths, message } = await ask('GET', url);
    assert.deepEqual([status, hint, knownPaths], [404, 'GET / tells what there is.', undefined], url);
    assert(message.length < 250, message);
  }
});

test('an address that is told to nobody is neither suggested nor known by another method', async () => {
  assert.equal((await app.inject({ url: '/hidden' })).statusCode, 200);
  for (const [method, url] of [
    ['POST', '/hidden'],
    ['GET', '/HIDDEN'],
    ['OPTIONS', '/hidden'],
  ] as const) {
    const { statusCode, headers, body } = await app.inject({ method, url });
    assert.deepEqual([statusCode, headers.allow], [method === 'OPTIONS' ? 204 : 404, undefined], url);
    assert.doesNotMatch(body, /Did you mean|knownPaths/);
  }
});

test('HEAD is told by its status alone, and OPTIONS what an address takes', async () => {
  for (const [url, status, allow] of [
    ['/things', 405, 'POST'],
    ['/nothing', 404, null],
  ] as const) {
    const head = await fetch(`http://127.0.0.1:${port}${url}`, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('allow'), await head.text()], [status, allow, ''], url);
  }
  for (const [url, allow] of [
    ['/things', 'POST, OPTIONS'],
    ['/things/a', 'GET, HEAD, OPTIONS'],
    ['/nothing', undefined],
  ] as const) {
    const reply = await app.inject({ method: 'OPTIONS', url });
    assert.deepEqual([reply.statusCode, reply.headers.allow], [204, allow], url);
    assert.match(String(reply.headers['access-control-allow-methods']), /POST/);
  }
});

test('a browser that is lost gets the page, and everybody else the same in JSON', async () => {
  const asked: (string | null)[] = [];
  const shown = createHttpServer(pino({ level: 'silent' }), {
    lost(_request, reply, meant) {
      asked.push(meant);
      return reply.type('text/html').send('lost');
    },
  });
  shown.get('/things', () => ({ success: true }));
  const ask = (url: string, accept?: string, method: 'GET' | 'POST' = 'GET') =>
    shown.inject({ method, url, headers: accept === undefined ? {} : { accept } });
  for (const [url, meant] of [
    ['/Things', '/things'],
    ['/nothing', null],
  ] as const) {
    const page = await ask(url, 'text/html,application/xhtml+xml,*/*;q=0.8');
    assert.deepEqual([page.statusCode, page.body, page.headers.vary], [404, 'lost', 'Accept']);
    assert.equal(page.headers['cache-control'], 'no-store');
    assert.equal(asked.pop(), meant);
    for (const accept of [undefined, '*/*', 'application/json', 'application/json, text/html;q=0.5']) {
      const json = await ask(url, accept);
      assert.deepEqual([json.statusCode, json.json().code], [404, 'NOT_FOUND'], accept);
      assert.equal(json.headers.vary, 'Accept');
    }
  }
  // What no page is asked by: a form that is sent to nowhere, and a page's address by another method.
  assert.equal((await ask('/nothing', 'text/html', 'POST')).json().code, 'NOT_FOUND');
  assert.equal((await ask('/things', 'text/html', 'POST')).json().code, 'METHOD_NOT_ALLOWED');
  assert.deepEqual(asked, []);
  await shown.close();
});

test('a page with tracing and a cache of its own may ask', async () => {
  const answer = await fetch(`http://127.0.0.1:${port}/limited`, { method: 'OPTIONS' });
  const allowed = (answer.headers.get('access-control-allow-headers') ?? '').toLowerCase().split(', ');
  for (const name of ['traceparent', 'tracestate', 'if-none-match']) assert.ok(allowed.includes(name), name);
});
