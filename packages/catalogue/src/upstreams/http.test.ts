import assert from 'node:assert/strict';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { z } from 'zod';
import { UpstreamUnavailable } from '../../../core/src/words/failure.ts';
import { inCall } from './call-scope.ts';
import { defineUpstream } from './define.ts';
import { connectUpstream, type UpstreamConnection, type UpstreamParts } from './http.ts';
import { SANDBOX_HEADER } from './wire.ts';

const reply = z.object({ n: z.number() });
const definition = defineUpstream({
  name: 'probe',
  title: 'Probe',
  baseUrl: null,
  licence: 'none',
  terms: { commercialUse: 'own', note: null, attribution: null, url: null },
  key: 'optional',
  authorize: (apiKey) => ({ query: { key: apiKey } }),
  requestsPerMinute: 6_000,
  timeoutMs: 20_000,
  open: (http) => http,
  probe: async () => {},
});

type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void;
let server: Server;
let baseUrl: string;
let count = 0;
let seen: string[] = [];
let asked: { method: string; headers: IncomingHttpHeaders }[] = [];
let handle: Handler;
let nowMs = 0;

before(async () => {
  server = createServer((request, response) => {
    count += 1;
    seen.push(request.url ?? '');
    asked.push({ method: request.method ?? '', headers: request.headers });
    handle(request, response, count);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert(typeof address === 'object' && address !== null);
  baseUrl = `http://127.0.0.1:${address.port}`;
});
after(() => void server.close());
beforeEach(() => {
  count = 0;
  seen = [];
  asked = [];
  nowMs = 1_000_000;
  handle = (_request, response, n) => response.end(JSON.stringify({ n }));
});

const json = (response: ServerResponse, status: number, headers: Record<string, string> = {}) =>
  response.writeHead(status, headers).end('{"n":0}');

function connect(parts: Partial<UpstreamParts> = {}, perMinute?: number): UpstreamConnection {
  const adjusted = perMinute === undefined ? definition : { ...definition, requestsPerMinute: perMinute };
  const connection = connectUpstream(
    adjusted,
    { baseUrl, apiKey: 'very-secret' },
    { userAgent: 'test', acceptSandbox: true, nowMs: () => nowMs, ...parts },
  );
  after(() => connection.close());
  return connection;
}

const request = { path: '/a', schema: reply, freshMs: 1_000, staleMs: 5_000 };
const refused = (reason: string) => (error: unknown) =>
  error instanceof UpstreamUnavailable && error.reason === reason;

let calls = 0;
/** A call of its own, by this caller. */
function as<T>(caller: string, work: () => Promise<T>): Promise<T> {
  calls += 1;
  return inCall({ callId: `call ${calls}`, caller, isEffect: false }, work);
}

test('callers that ask for the same thing at once share one request', async () => {
  const { http } = connect();
  const replies = await Promise.all(Array.from({ length: 20 }, () => http.get(request)));
  assert.equal(count, 1);
  assert(replies.every(({ value }) => value.n === 1));
});

test('a fresh reply is served from the cache and says so; a stale one while the next is fetched', async () => {
  const { http } = connect();
  assert.equal((await http.get(request)).source.cached, false);
  nowMs += 999;
  const fresh = await http.get(request);
  assert.deepEqual([fresh.value.n, fresh.source.cached, count], [1, true, 1]);
  nowMs += 2_000;
  const stale = await http.get(request);
  assert.equal(stale.value.n, 1);
  for (let n = 1; n !== 2; n = (await http.get(request)).value.n)
    await new Promise((resolve) => setImmediate(resolve));
});

test('a dead upstream is covered by the cache within its bound, and never beyond', async () => {
  const { http } = connect();
  await http.get(request);
  handle = (_request, response) => json(response, 500);
  nowMs += 5_999;
  assert.equal((await http.get(request)).value.n, 1);
  nowMs += 2;
  await assert.rejects(http.get(request), refused('upstream_down'));
});

test('a GET is repeated after 503 and honours a short Retry-After; a POST is sent once', async () => {
  const { http } = connect();
  handle = (_request, response, n) =>
    n < 3 ? json(response, 503, { 'retry-after': '0' }) : response.end(JSON.stringify({ n }));
  assert.equal((await http.get(request)).value.n, 3);
  count = 0;
  handle = (_request, response) => json(response, 503);
  await assert.rejects(http.post({ path: '/b', body: {}, schema: reply }), refused('upstream_down'));
  assert.equal(count, 1);
});

test('a long Retry-After is passed on instead of waited for', async () => {
  const { http } = connect();
  handle = (_request, response) => json(response, 429, { 'retry-after': '17' });
  await assert.rejects(http.get(request), (error: unknown) => {
    assert(error instanceof UpstreamUnavailable);
    assert.deepEqual([error.reason, error.retryAfterMs, count], ['rate_limited', 17_000, 1]);
    return true;
  });
});

test('after repeated failures the upstream is not asked until some time has passed', async () => {
  const { http, health } = connect();
  handle = (_request, response) => json(response, 500);
  for (let i = 0; i < 3; i++) await assert.rejects(http.get({ ...request, path: `/${i}` }));
  assert.equal(health().state, 'down');
  const asked = count;
  await assert.rejects(http.get({ ...request, path: '/later' }), refused('upstream_down'));
  assert.equal(count, asked);
  nowMs += 20_001;
  assert.equal(health().state, 'up', 'for sale again: the next call finds out');
});

test('a mistake of the caller does not count against the upstream', async () => {
  const { http, health } = connect();
  handle = (_request, response) => json(response, 404);
  for (let i = 0; i < 10; i++) assert.equal((await http.find({ ...request, path: `/${i}` })).value, null);
  handle = (_request, response) => json(response, 400);
  for (let i = 0; i < 10; i++)
    await assert.rejects(http.get({ ...request, path: `/x${i}` }), refused('invalid_reply'));
  assert.equal(health().state, 'up');
});

test('a reply of another shape, an HTML page or a truncated reply is a failure, not an answer', async () => {
  const { http } = connect();
  for (const body of ['{"n":"1"}', '<html></html>', '{"n":1', '']) {
    handle = (_request, response) => response.end(body);
    await assert.rejects(http.get({ ...request, path: `/${body.length}` }), refused('invalid_reply'));
  }
});

test('a slow upstream is abandoned at the time-out', async () => {
  const { http } = connect();
  handle = () => {};
  await assert.rejects(http.get({ ...request, timeoutMs: 50 }), refused('timeout'));
});

test('an endless reply is cut off', async () => {
  const { http } = connect();
  const megabyte = Buffer.alloc(1_000_000, 32);
  handle = (_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write(megabyte));
    };
    response.on('drain', more);
    more();
  };
  await assert.rejects(http.get({ ...request, timeoutMs: 10_000 }), UpstreamUnavailable);
});

test('the key is sent, and is in no provenance', async () => {
  const { http } = connect();
  const { source } = await http.get(request);
  assert.match(seen[0] ?? '', /key=very-secret/);
  assert(!JSON.stringify(source).includes('very-secret'));
});

test('provenance shows the public address of a source, and never the one that the operator has configured', async () => {
  const { source } = await connect().http.get(request);
  assert.equal(source.url, 'urn:source:probe', 'one without a public address has a name');
  const known = connectUpstream(
    { ...definition, baseUrl: 'https://api.example/v2' },
    { baseUrl: `${baseUrl}/secret-token/backend`, apiKey: 'very-secret' },
    { userAgent: 'test', acceptSandbox: true, nowMs: () => nowMs },
  );
  after(() => known.close());
  const sources = [
    (await known.http.get({ ...request, query: { of: 'x y' } })).source,
    (await known.http.post({ path: '/a', body: {}, schema: reply })).source,
    (await known.http.download({ path: '/a', maxBytes: 100, timeoutMs: 5_000 })).source,
  ];
  assert.deepEqual(
    sources.map(({ url }) => url),
    ['https://api.example/v2/a?of=x+y', 'https://api.example/v2/a', 'https://api.example/v2/a'],
  );
  assert(
    seen.slice(1).every((path) => path.startsWith('/secret-token/backend/a')),
    'asked where it is configured',
  );
});

test('headers and methods are sent as given, and requests with different headers are cached apart', async () => {
  const { http } = connect();
  await http.send({
    method: 'PUT',
    path: '/a',
    headers: { 'Content-Type': 'text/csv', 'X-Tenant': 'one' },
    body: 'a,b',
    schema: reply,
  });
  assert.equal(asked[0]?.method, 'PUT');
  assert.equal(asked[0]?.headers['content-type'], 'text/csv');
  assert.equal(asked[0]?.headers['x-tenant'], 'one');
  const read = (tenant: string) => http.get({ ...request, headers: { 'x-tenant': tenant } });
  assert.notEqual((await read('one')).value.n, (await read('two')).value.n);
  assert.equal((await read('one')).source.cached, true);
});

test('a service with an effect sends a key by which its backend recognizes a repeated call', async () => {
  const { http } = connect();
  const order = (callId: string, isEffect: boolean, body: unknown, idempotencyKey?: string | null) =>
    inCall({ callId, caller: 'one', isEffect }, async () => {
      // However much later in the call.
      await new Promise((resolve) => setImmediate(resolve));
      await http.post({
        path: '/a',
        body,
        schema: reply,
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      });
    });
  await order('call-1', true, { item: 1 });
  await order('call-1', true, { item: 1 });
  await order('call-1', true, { item: 2 });
  await order('call-2', true, { item: 1 });
  await order('call-1', false, { item: 1 });
  await order('call-1', true, { item: 1 }, null);
  await order('call-1', true, { item: 1 }, 'my-own');
  await inCall({ callId: 'call-1', caller: 'one', isEffect: true }, () =>
    http.send({ method: 'GET', path: '/a', schema: reply }),
  );
  await http.post({ path: '/a', body: {}, schema: reply });
  const keys = asked.map(({ headers }) => headers['idempotency-key']);
  const [first, again, otherBody, otherCall, ...rest] = keys;
  assert.match(String(first), /^farebox-[0-9a-f]{40}$/);
  assert.equal(again, first);
  assert.equal(new Set([first, otherBody, otherCall]).size, 3);
  assert.deepEqual(rest, [undefined, undefined, 'my-own', undefined, undefined]);
});

test('a reply of a sandbox part is labelled, and refused if the sandbox is not allowed', async () => {
  handle = (_request, response) => response.writeHead(200, { [SANDBOX_HEADER]: 'upstreams' }).end('{"n":1}');
  assert.equal((await connect().http.get(request)).source.sandbox, true);
  await assert.rejects(connect({ acceptSandbox: false }).http.get(request), refused('invalid_reply'));
});

test('a used-up budget refuses at once and says when to come back', async () => {
  const { http } = connect({}, 10);
  for (let i = 0; i < 5; i++) await http.get({ ...request, path: `/${i}` });
  await assert.rejects(http.get({ ...request, path: '/6' }), (error: unknown) => {
    assert(error instanceof UpstreamUnavailable);
    assert.deepEqual([error.reason, error.retryAfterMs, count], ['rate_limited', 6_000, 5]);
    return true;
  });
});

const streaming = {
  path: '/told',
  body: {},
  schema: reply,
  last: 'end',
  mayEnd: () => false,
  hasFailed: () => false,
  silenceMs: 20_000,
  timeoutMs: 20_000,
  maxBytes: 1_000_000,
};
const begin = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.write('data: {"n":1}\n\n');
  return response;
};
async function heard(stream: Promise<{ value: AsyncGenerator<{ n: number }, void> }>): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { n } of (await stream).value) numbers.push(n);
  return numbers;
}

test('a stream is read event by event to its announced end; leaving the loop ends it', async () => {
  const { http, health } = connect();
  const left = Promise.withResolvers<void>();
  let answer: ServerResponse | undefined;
  handle = (_request, response) => {
    answer = begin(response);
    response.on('close', () => left.resolve());
  };
  const { value, source } = await http.stream(streaming);
  assert.equal(source.url, 'urn:source:probe');
  assert.deepEqual(await value.next(), { value: { n: 1 }, done: false });
  answer?.write('data: {"n":2}\n\ndata: end\n\n');
  assert.deepEqual((await value.next()).value, { n: 2 });
  assert.equal((await value.next()).done, true);
  const other = await http.stream(streaming);
  await other.value.next();
  await other.value.return();
  await left.promise;
  assert.equal(health().lastFailureAtMs, null);
});

test('a stream is bounded: its silence, its time, its size, and how many there are at once', async () => {
  handle = (_request, response) => void begin(response);
  const { http } = connect();
  await assert.rejects(heard(http.stream({ ...streaming, silenceMs: 50 })), refused('timeout'));
  await assert.rejects(heard(http.stream({ ...streaming, timeoutMs: 50 })), refused('timeout'));
  await assert.rejects(heard(http.stream({ ...streaming, maxBytes: 10 })), refused('invalid_reply'));
  const fresh = connect();
  const from = (n: number) => as(String(n % 4), () => fresh.http.stream(streaming));
  const open = await Promise.all(Array.from({ length: 32 }, (_, n) => from(n)));
  await assert.rejects(
    as('another', () => fresh.http.stream(streaming)),
    refused('busy'),
  );
  // A stream that was left without being read no longer counts, so nothing of it may be kept.
  await Promise.all(open.map(({ value }) => value.next().then(() => value.return())));
  handle = (_request, response) => begin(response).end('data: end\n\n');
  for (;;) {
    const again = await heard(fresh.http.stream(streaming)).catch(refused('busy'));
    if (typeof again !== 'boolean') break;
    assert.equal(again, true);
    await new Promise((resolve) => setImmediate(resolve));
  }
});

test('a stream that breaks counts against its source like any failure, and one that its reader leaves does not', async () => {
  const { http, health } = connect();
  handle = (_request, response) => void begin(response);
  for (let n = 0; n < 7; n++) {
    const leaving = new AbortController();
    const { value } = await http.stream({ ...streaming, signal: leaving.signal });
    await value.next();
    leaving.abort();
    await assert.rejects(value.next());
  }
  assert.equal(health().state, 'up');
  handle = (_request, response) => begin(response).destroy();
  for (let n = 0; n < 5; n++) await assert.rejects(heard(http.stream(streaming)), UpstreamUnavailable);
  assert.equal(health().state, 'down');
  assert.equal(count, 12);
});

test('a stream from a sandbox, or a reply that is not a stream, is a failure', async () => {
  const { http } = connect({ acceptSandbox: false });
  handle = (_request, response) => {
    response.setHeader(SANDBOX_HEADER, 'upstreams');
    begin(response);
  };
  await assert.rejects(http.stream(streaming), refused('invalid_reply'));
  handle = (_request, response) => response.end('{"n":1}');
  await assert.rejects(http.stream(streaming), refused('invalid_reply'));
  handle = (_request, response) => json(response, 429, { 'retry-after': '7' });
  await assert.rejects(http.stream(streaming), refused('rate_limited'));
});

test('one caller with slow requests does not turn the upstream off: others get through, and it stays up', async () => {
  const { http, health } = connect();
  const held: ServerResponse[] = [];
  handle = (request, response) => {
    if (request.url?.startsWith('/slow') === true) held.push(response);
    else json(response, 200);
  };
  const leaving = new AbortController();
  const ask = (path: string, signal?: AbortSignal) =>
    http.post({ path, body: {}, schema: reply, ...(signal === undefined ? {} : { signal }) });
  const slow = Array.from({ length: 40 }, () => as('greedy', () => ask('/slow', leaving.signal)));
  const ended = Promise.allSettled(slow);
  for (let n = 0; n < 20; n++) assert.equal((await as('victim', () => ask('/quick'))).value.n, 0);
  // Its quarter of the places, and a quarter that is lent: all other places are for others.
  assert.equal(held.length, 8);
  const busy = await Promise.all(slow.map((each) => each.catch((error: unknown) => error)).slice(8));
  for (const error of busy) {
    assert.ok(error instanceof UpstreamUnavailable);
    assert.deepEqual([error.reason, error.code, error.retryAfterMs], ['busy', 'BUSY', 2_000]);
  }
  assert.deepEqual([health().state, health().lastFailureAtMs], ['up', null]);
  assert.equal((await as('victim', () => ask('/quick'))).value.n, 0);
  leaving.abort();
  await ended;
  assert.equal(health().state, 'up');
});

test('requests that their callers give up count against nobody, whatever the reason that they give', async () => {
  const { http, health } = connect();
  const reached: (() => void)[] = [];
  handle = () => reached.shift()?.();
  for (let n = 0; n < 8; n++) {
    const leaving = new AbortController();
    const arrived = new Promise<void>((resolve) => reached.push(resolve));
    const asked = http.post({ path: '/a', body: {}, schema: reply, signal: leaving.signal });
    await arrived;
    leaving.abort(new Error('the call has ended'));
    await assert.rejects(asked, UpstreamUnavailable);
  }
  assert.equal(health().state, 'up');
});

test('who shares a request of a caller without a place left asks with its own', async () => {
  const { http } = connect();
  const held: ServerResponse[] = [];
  handle = (asked, response) => {
    if (asked.url?.startsWith('/slow') === true) held.push(response);
    else json(response, 200);
  };
  const leaving = new AbortController();
  const slow = (signal: AbortSignal) => http.post({ path: '/slow', body: {}, schema: reply, signal });
  const ended = Promise.allSettled(Array.from({ length: 8 }, () => as('greedy', () => slow(leaving.signal))));
  const theirs = as('greedy', () => http.get(request));
  const shared = as('victim', () => http.get(request));
  await assert.rejects(theirs, refused('busy'));
  assert.equal((await shared).value.n, 0);
  leaving.abort();
  await ended;
});
