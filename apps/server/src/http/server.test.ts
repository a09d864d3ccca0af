/** What the edge refuses before any route is asked: in the house's form, in time, and with one time to wait. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { Problem } from './problem.ts';
import { admit, createRateLimit, rateHeaders, withRate } from './rate-limit.ts';
import { createHttpServer } from './server.ts';

let app: FastifyInstance;
let port: number;
before(async () => {
  app = createHttpServer(pino({ level: 'silent' }), 500);
  const limit = createRateLimit({ perMinute: 2, maxNames: 10, nowMs: Date.now });
  app.get('/things/:thing', () => ({ success: true }));
  app.post('/things', () => ({ success: true }));
  app.get('/limited', (_request, reply) => {
    admit(limit, 'somebody', reply);
    return { success: true };
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
  assert.equal(String(refused.body.retryAfterSeconds), refused.of('retry-after'));

  const other = await ask('/tomorrow');
  assert.deepEqual([other.of('retry-after'), other.body.retryAfterSeconds], ['86400', 86_400]);
  for (const name of ['limit', 'policy', 'remaining', 'reset'])
    assert.equal(other.of(`ratelimit-${name}`), null, name);
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
  const body = JSON.parse(text.split('\r\n\r\n')[1] ?? '');
  assert.deepEqual([body.code, body.retryAfterSeconds], ['SHUTTING_DOWN', 1]);
});
