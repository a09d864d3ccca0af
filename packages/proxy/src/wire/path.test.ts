import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRouteKey } from '../config/route-key.ts';
import { type RoutePattern, RouteTable, readAddress, upstreamTarget, withCredentials } from './path.ts';

const route = (key: string): RoutePattern & { key: string } => {
  const read = readRouteKey(key);
  assert(!('wrong' in read), key);
  return { ...read, key };
};
const table = (...keys: string[]) => new RouteTable(keys.map(route));

/** The key of the route that a request names, with its parameters; or why it names none. */
function found(of: RouteTable<RoutePattern & { key: string }>, method: string, target: string) {
  const matched = of.match(method, target);
  if (matched === null) return null;
  if ('refused' in matched) return matched.status;
  return [matched.route.key, { ...matched.parameters }];
}

describe('the route of an address', () => {
  const routes = table(
    'GET /',
    'POST /v1/forecast',
    'GET /v1/stations/:id',
    'GET /v1/stations/list',
    'GET /v1/stations/:id/days/:day',
    'DELETE /v1/stations/:station',
    'GET /v1/stations/',
    'GET /:any/exact/x',
    'GET /v1/:kind/y',
  );

  test('is the one of its method and segments, fixed texts first', () => {
    assert.deepEqual(found(routes, 'GET', '/'), ['GET /', {}]);
    assert.deepEqual(found(routes, 'POST', '/v1/forecast?a=1'), ['POST /v1/forecast', {}]);
    assert.deepEqual(found(routes, 'GET', '/v1/stations/list'), ['GET /v1/stations/list', {}]);
    assert.deepEqual(found(routes, 'GET', '/v1/stations/7'), ['GET /v1/stations/:id', { id: '7' }]);
    assert.deepEqual(found(routes, 'DELETE', '/v1/stations/list'), [
      'DELETE /v1/stations/:station',
      { station: 'list' },
    ]);
    assert.deepEqual(found(routes, 'GET', '/v1/stations/7/days/2'), [
      'GET /v1/stations/:id/days/:day',
      { id: '7', day: '2' },
    ]);
    assert.deepEqual(found(routes, 'GET', '/v1/stations/'), ['GET /v1/stations/', {}]);
    // The fixed text leads nowhere here, and the parameter does.
    assert.deepEqual(found(routes, 'GET', '/v1/exact/x'), ['GET /:any/exact/x', { any: 'v1' }]);
  });

  test('is none where no route names it', () => {
    for (const [method, target] of [
      ['GET', '/v1/forecast'],
      ['POST', '/v1/forecast/'],
      ['POST', '/v1/forecasts'],
      ['POST', '//v1/forecast'],
      ['POST', '/v1//forecast'],
      ['GET', '/v1/stations//days/2'],
      ['GET', '/v1/stations'],
      ['post', '/v1/forecast'],
      ['POST', '/V1/forecast'],
      ['GET', '/constructor'],
    ] as const)
      assert.equal(found(routes, method, target), null, `${method} ${target}`);
  });

  test('is told by the decoded text, so that an encoded letter buys nothing else', () => {
    assert.deepEqual(found(routes, 'GET', '/v1/stations/%6Cist'), ['GET /v1/stations/list', {}]);
    assert.deepEqual(found(routes, 'GET', '/v1/stations/caf%C3%A9%20a'), [
      'GET /v1/stations/:id',
      { id: 'café a' },
    ]);
  });

  test('is none of two when a lenient server would take the parameter for another route’s fixed text', () => {
    for (const almost of ['LIST', 'list.', 'list%20', 'list;v=1', 'list.json', 'ＬＩＳＴ'])
      assert.equal(
        found(routes, 'GET', `/v1/stations/${encodeURI(almost).replace(/%25/g, '%')}`),
        400,
        almost,
      );
    // Nothing else stands there for DELETE.
    assert.deepEqual(found(routes, 'DELETE', '/v1/stations/LIST'), [
      'DELETE /v1/stations/:station',
      { station: 'LIST' },
    ]);
    assert.deepEqual(found(routes, 'GET', '/v1/stations/listed'), ['GET /v1/stations/:id', { id: 'listed' }]);
  });

  test('has parameters of any name', () => {
    const odd = table('GET /x/:__proto__/:constructor');
    assert.deepEqual(
      Object.entries((odd.match('GET', '/x/a/b') as { parameters: Record<string, string> }).parameters),
      [
        ['__proto__', 'a'],
        ['constructor', 'b'],
      ],
    );
  });

  test('is the only one: two that match the same addresses are refused', () => {
    assert.throws(
      () => table('GET /a/:x/b', 'GET /a/:y/b'),
      /Two routes match the same addresses: GET \/a\/:y\/b/,
    );
    table('GET /a/:x', 'POST /a/:y', 'GET /a/x', 'GET /A/:x');
  });

  test('is one of the methods that the address has', () => {
    assert.deepEqual(routes.methodsAt('/v1/stations/list?x'), ['DELETE', 'GET']);
    assert.deepEqual(routes.methodsAt('/v1/forecast'), ['POST']);
    assert.deepEqual(routes.methodsAt('/v1'), []);
    assert.deepEqual(routes.methodsAt('/v1/%2e%2e'), []);
  });

  test('is found among thousands', () => {
    const keys = Array.from({ length: 2_000 }, (_, n) => `GET /v${n % 7}/things-${n}/:id/parts/:part`);
    const many = table(...keys);
    for (const n of [0, 1_234, 1_999])
      assert.deepEqual(found(many, 'GET', `/v${n % 7}/things-${n}/a/parts/b`), [
        keys[n],
        { id: 'a', part: 'b' },
      ]);
    assert.equal(found(many, 'GET', '/v0/things-1/a/parts/b'), null);
  });
});

describe('an address', () => {
  test('that two programs could read differently is refused', () => {
    const refused: [target: string, why: string][] = [
      ['/a/../b', 'dot segments'],
      ['/a/./b', 'dot segments'],
      ['/..', 'dot segments'],
      ['/a/%2e%2e/b', 'encoded dot segments'],
      ['/a/.%2E/b', 'half-encoded dot segments'],
      ['/a/..;/b', 'dot segments with a parameter'],
      ['/a/%2e%2e;x=1/b', 'encoded dot segments with a parameter'],
      ['/a/..%2fb', 'an encoded slash'],
      ['/a/%2Fb', 'an encoded slash'],
      ['/a/%5cb', 'an encoded backslash'],
      ['/a/..\\b', 'a backslash'],
      ['/a/%252e%252e/b', 'encoded twice'],
      ['/a/%25%32%65', 'encoded twice, in pieces'],
      ['/a/%00', 'a control character'],
      ['/a/b%0d%0ax', 'a line break'],
      ['/a/%7f', 'a control character'],
      ['/a/%c2%85', 'a control character of Unicode'],
      ['/a/%c0%ae%c0%ae/b', 'overlong UTF-8'],
      ['/a/%ff', 'no UTF-8'],
      ['/a/%ed%a0%80', 'half of a surrogate pair'],
      ['/a/%zz', 'no hexadecimal digits'],
      ['/a/%2', 'no hexadecimal digits'],
      ['/a/%u002e', 'no hexadecimal digits'],
      ['/a/%EF%BC%8F', 'a full-width slash'],
      ['/a/%EF%BC%8E%EF%BC%8E/b', 'full-width dots'],
      ['/a b', 'a space'],
      ['/a\tb', 'a tab'],
      ['/é', 'a letter that is not encoded'],
      ['/a?é', 'a letter that is not encoded'],
      ['/a#b', 'a fragment'],
      ['/a?x=1#b', 'a fragment'],
      ['http://other.example/a', 'an absolute address'],
      ['*', 'an asterisk'],
      ['', 'nothing'],
    ];
    for (const [target, why] of refused) {
      const read = readAddress(target);
      assert('refused' in read && read.status === 400, `${why}: ${JSON.stringify(target)}`);
    }
  });

  test('is bounded', () => {
    for (const target of [`/${'a'.repeat(2_048)}`, `/a?${'a'.repeat(8_190)}`, '/a'.repeat(65)]) {
      const read = readAddress(target);
      assert('refused' in read && read.status === 414, target.slice(0, 9));
    }
    for (const target of [`/${'a'.repeat(2_047)}`, `/a?${'a'.repeat(8_189)}`, '/a'.repeat(64)])
      assert(!('refused' in readAddress(target)));
  });

  test('goes to the upstream byte for byte, without its prefix and below the upstream’s own path', () => {
    const rows: [target: string, prefix: string, basePath: string, sent: string][] = [
      [
        '/v1/caf%c3%a9/%41;x=1/100%25?b=2&a=%2F..%2f&a=+;c',
        '/',
        '/',
        '/v1/caf%c3%a9/%41;x=1/100%25?b=2&a=%2F..%2f&a=+;c',
      ],
      ['/weather/v1/x', '/weather', '/', '/v1/x'],
      ['/%77eather/v1/x', '/weather', '/', '/v1/x'],
      ['/weather', '/weather', '/', '/'],
      ['/weather/', '/weather/', '/', '/'],
      ['/weather?x', '/weather', '/api/v2/', '/api/v2/?x'],
      ['/a/b/c/', '/a/b', '/api', '/api/c/'],
      ['/?', '/', '/', '/?'],
    ];
    for (const [target, prefix, basePath, sent] of rows) {
      const read = readAddress(target);
      assert(!('refused' in read), target);
      assert.equal(upstreamTarget(read, { prefix, basePath, credentialNames: [] }), sent);
    }
  });

  test('gets the upstream’s credentials behind the caller’s parameters, of which none may have their names', () => {
    const credentials = { appid: 'a&b=c', v: '1' };
    const place = { prefix: '/', basePath: '/', credentialNames: Object.keys(credentials) };
    const sent = (target: string) => {
      const read = readAddress(target);
      assert(!('refused' in read), target);
      const made = upstreamTarget(read, place);
      return typeof made === 'string' ? withCredentials(made, credentials) : made;
    };
    assert.equal(sent('/x'), '/x?appid=a%26b%3Dc&v=1');
    assert.equal(sent('/x?'), '/x?appid=a%26b%3Dc&v=1');
    assert.equal(sent('/x?q=appid&'), '/x?q=appid&appid=a%26b%3Dc&v=1');
    assert.equal(withCredentials('/x?a', {}), '/x?a');
    for (const query of [
      'appid=1',
      'q=1;appid=1',
      'q=1&APPID',
      '%61ppid=x',
      'appid%5B%5D=1',
      'appid[]=1',
      '+appid=1',
      '%ff&v',
    ])
      assert(typeof sent(`/x?${query}`) !== 'string', query);
  });
});
