import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  checkOwnHeaders,
  headersForCaller,
  headersForUpstream,
  mayComeBack,
  mayGoOn,
  type RequestHeaderParts,
  withOwnHeaders,
} from './headers.ts';

const PARTS: RequestHeaderParts = {
  received: [],
  named: new Set(),
  hasBody: true,
  isAnswerRead: false,
  own: new Set(),
  userAgent: 'shop',
};
/** Headers that are known by no route, in either direction. */
const NEVER = [
  ...[
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'Expect',
  ],
  ...['Content-Length', 'Host', 'Proxy-Authorization', 'Proxy-Authenticate', 'WWW-Authenticate'],
  ...[
    'Authorization',
    'X-Api-Key',
    'Cookie',
    'Set-Cookie',
    'Payment',
    'Payment-Signature',
    'Payment-Required',
  ],
  ...['Payment-Response', 'Payment-Receipt', 'Payment-Identifier', 'X-Payment', 'X-Payment-Response'],
  ...['X-Payment-Transaction', 'X-Payment-Price', 'X-Credits-Used', 'X-Credits-Remaining', 'X-Wallet-Secret'],
  ...[
    'Idempotency-Key',
    'X-Idempotency-Key',
    'X-Farebox-Sandbox',
    'Farebox-Signature',
    'X-Price-Usd',
    'X-Call-Id',
  ],
  ...['X-Retrieval-Token', 'X-X402-Networks', 'Forwarded', 'Via', 'X-Forwarded-For', 'X-Forwarded-Host'],
  ...['X-Real-IP', 'X-Client-IP', 'True-Client-IP', 'CF-Connecting-IP', 'X-HTTP-Method-Override'],
  ...['X-Method-Override', 'X-Original-URL', 'X-Rewrite-URL', 'Sec-WebSocket-Key'],
];

function sent(parts: Partial<RequestHeaderParts>): Record<string, string[]> {
  const flat = headersForUpstream({ ...PARTS, ...parts });
  assert(!('refused' in flat), JSON.stringify(flat));
  const all: Record<string, string[]> = {};
  for (let at = 0; at < flat.length; at += 2)
    all[flat[at] ?? ''] = [...(all[flat[at] ?? ''] ?? []), flat[at + 1] ?? ''];
  return all;
}
const refused = (parts: Partial<RequestHeaderParts>): string => {
  const made = headersForUpstream({ ...PARTS, ...parts });
  assert('refused' in made);
  return made.refused;
};

describe('an upstream gets', () => {
  test('what the caller accepts and sends, and nothing that the route does not name', () => {
    assert.deepEqual(
      sent({
        received: ['Accept', 'text/csv', 'content-type', 'a/b', 'X-Size', 'L', 'Accept-Language', 'de'],
      }),
      {
        accept: ['text/csv'],
        'content-type': ['a/b'],
        'accept-encoding': ['identity'],
        'user-agent': ['shop'],
      },
    );
    assert.deepEqual(sent({ hasBody: false, received: ['content-type', 'a/b'] }), {
      accept: ['*/*'],
      'accept-encoding': ['identity'],
      'user-agent': ['shop'],
    });
  });

  test('what the route names, each value as it came', () => {
    const received = [
      'X-Size',
      'L',
      'x-size',
      'M\xe9',
      'Range',
      'bytes=0-1',
      'If-None-Match',
      '"a"',
      'User-Agent',
      'u',
    ];
    const named = new Set(['x-size', 'range', 'if-none-match', 'user-agent']);
    const all = sent({ received, named });
    assert.deepEqual(all['x-size'], ['L', 'M\xe9']);
    assert.deepEqual(all.range, ['bytes=0-1']);
    assert.deepEqual(all['if-none-match'], ['"a"']);
    assert.deepEqual(all['user-agent'], ['u']);
    assert.equal(sent({ received }).range, undefined);
  });

  test('no header of a connection, a caller’s identity, money or this server, even where it is named', () => {
    const named = new Set(NEVER.map((name) => name.toLowerCase()));
    // `Connection` with names of its own is looked at by another test.
    const received = NEVER.flatMap((name) => [name, name === 'Connection' ? 'close' : 'x']);
    assert.deepEqual(Object.keys(sent({ received, named })), ['accept', 'accept-encoding', 'user-agent']);
    for (const name of NEVER) {
      assert(!mayGoOn(name.toLowerCase()), name);
      assert(!mayComeBack(name.toLowerCase()), name);
    }
  });

  test('its own credentials, which no caller can replace, and our name for the call', () => {
    const received = [
      'Authorization',
      'Bearer caller',
      'X-Token',
      'caller',
      'Accept',
      'a/b',
      'Idempotency-Key',
      'caller',
    ];
    const own = { authorization: 'Bearer ours', 'x-token': 'ours', accept: 'c/d', 'accept-encoding': 'gzip' };
    const named = new Set(['x-token', 'authorization', 'idempotency-key']);
    const flat = headersForUpstream({ ...PARTS, received, named, own: new Set(Object.keys(own)) });
    assert(!('refused' in flat));
    assert.deepEqual(flat, ['user-agent', 'shop']);
    assert.deepEqual(withOwnHeaders(flat, own, null), [...flat, ...Object.entries(own).flat()]);
    assert.deepEqual(withOwnHeaders(flat, {}, 'ours'), [...flat, 'idempotency-key', 'ours']);
  });

  test('leave to compress only where the caller asked for it, the route lets it, and nobody reads the answer', () => {
    const received = ['Accept-Encoding', 'gzip'];
    const named = new Set(['accept-encoding']);
    assert.deepEqual(sent({ received, named })['accept-encoding'], ['gzip']);
    assert.deepEqual(sent({ received })['accept-encoding'], ['identity']);
    assert.deepEqual(sent({ received, named, isAnswerRead: true })['accept-encoding'], ['identity']);
  });

  test('nothing at all if a header cannot be sent on as it is', () => {
    const named = new Set(['x-size']);
    for (const value of ['a\r\nX-Admin: 1', 'a\nb', 'a\rb', 'a\0b', '\u20ac', 'a\x7fb'])
      assert.match(refused({ received: ['X-Size', value], named }), /x-size cannot be sent on/);
    // It could be priced with the header, and asked without it.
    assert.match(
      refused({ received: ['X-Size', 'L', 'Connection', 'close, X-Size'], named }),
      /do not name it in Connection/,
    );
    assert.match(refused({ received: ['Content-Type', 'a/b', 'content-type', 'c/d'] }), /one Content-Type/);
    assert.match(refused({ received: ['Content-Encoding', 'gzip'] }), /may not be compressed/);
    assert.match(refused({ received: ['X-Size', 'x'.repeat(16_400)], named }), /at most 16384/);
  });

  test('no secret that cannot be sent, found at the start and not shown', () => {
    for (const value of ['', 'a\nb', 'a\0', '\u20ac-secret'])
      assert.throws(
        () => checkOwnHeaders({ 'x-token': value }),
        (error: Error) => /x-token/.test(error.message) && !/secret|a\n/.test(error.message),
      );
    for (const name of ['host', 'connection', 'content-length', 'X Token', 'X-Token', ''])
      assert.throws(() => checkOwnHeaders({ [name]: 'x' }), /No upstream can have/);
    checkOwnHeaders({ authorization: 'Bearer a', cookie: 'a=b' });
  });
});

describe('a caller gets', () => {
  const back = (received: Record<string, string | string[]>, named: string[] = [], status = 200) =>
    headersForCaller(received, { named: new Set(named), status });
  const DECIDED = {
    'cache-control': 'private, no-store',
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
  };

  test('of what kind an answer is, and nothing else that the route does not name', () => {
    const ofItsKind = {
      'content-type': 'text/csv; charset=utf-8',
      'content-language': 'de',
      'content-disposition': 'attachment; filename=a.csv',
    };
    const received: Record<string, string | string[]> = { ...ofItsKind, etag: '"a"', 'x-rate': '1' };
    for (const name of ['server', 'x-powered-by', 'cache-control', 'vary', 'last-modified', 'retry-after'])
      received[name] = 'x';
    assert.deepEqual(back(received), { ...ofItsKind, ...DECIDED });
    assert.deepEqual(back(received, ['etag', 'x-rate', 'server']).etag, '"a"');
    assert.equal(back(received, ['x-rate'])['x-rate'], '1');
    assert.equal(back({ 'x-rate': ['1', '2'] }, ['x-rate'])['x-rate'], '1, 2');
  });

  test('no demand for money, cookie or word for this whole server, even where it is named', () => {
    const more = ['access-control-allow-origin', 'strict-transport-security', 'clear-site-data', 'alt-svc'];
    const names = [
      ...NEVER.map((name) => name.toLowerCase()),
      ...more,
      'service-worker-allowed',
      'x-accel-redirect',
    ];
    const received = Object.fromEntries(names.map((name) => [name, 'x']));
    assert.deepEqual(back(received, names), { 'content-type': 'application/octet-stream', ...DECIDED });
    const decided = Object.fromEntries(Object.keys(DECIDED).map((name) => [name, 'theirs']));
    assert.deepEqual(back(decided, Object.keys(decided)), {
      'content-type': 'application/octet-stream',
      ...DECIDED,
    });
  });

  test('no header that the upstream says to be of its connection', () => {
    assert.equal(back({ connection: 'close, X-Rate', 'x-rate': '1' }, ['x-rate'])['x-rate'], undefined);
  });

  test('the part of a range only with a part', () => {
    const received = { 'content-range': 'bytes 0-1/4' };
    assert.equal(back(received, [], 206)['content-range'], 'bytes 0-1/4');
    assert.equal(back(received, ['content-range'])['content-range'], undefined);
  });

  test('bytes of no kind if the upstream says none, several, or one that cannot be sent', () => {
    for (const type of [[], ['text/html', 'text/plain'], [''], ['a\u0001b']])
      assert.equal(back({ 'content-type': type })['content-type'], 'application/octet-stream');
    assert.equal(back({ 'content-type': 'text/html' }, ['content-type'])['content-type'], 'text/html');
    assert.equal(back({ 'x-rate': 'a\nb' }, ['x-rate'])['x-rate'], undefined);
  });
});
