import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parametersOf, type RouteKey, readPathPattern, readRouteKey, shapeOf } from './route-key.ts';

const read = (key: string): RouteKey => {
  const made = readRouteKey(key);
  assert(!('wrong' in made), `${key}: ${'wrong' in made ? made.wrong : ''}`);
  return made;
};
const wrong = (key: string): string => {
  const made = readRouteKey(key);
  assert('wrong' in made, `${key} was accepted`);
  return made.wrong;
};

describe('the key of a route', () => {
  test('is a method and a path, split at its slashes', () => {
    assert.deepEqual(read('GET /v1/stations/:id'), {
      method: 'GET',
      path: {
        text: '/v1/stations/:id',
        segments: [
          { kind: 'literal', text: 'v1' },
          { kind: 'literal', text: 'stations' },
          { kind: 'parameter', name: 'id' },
        ],
      },
    });
    assert.deepEqual(parametersOf(read('GET /:a/x/:b_2').path), ['a', 'b_2']);
  });

  test('may end in a slash, be the root, and have colons, dots and tildes inside of segments', () => {
    assert.deepEqual(read('POST /').path.segments, [{ kind: 'literal', text: '' }]);
    assert.equal(read('POST /a/').path.segments.length, 2);
    for (const key of ['POST /v1/models/x:run', 'GET /feed.json', 'GET /~me/a...b', 'DELETE /a;v=1/b@c'])
      read(key);
  });

  test('tells which paths match the same addresses: names of parameters do not count, slashes at the end do', () => {
    const shape = (key: string) => shapeOf(read(key).path);
    assert.equal(shape('GET /a/:x/b'), shape('GET /a/:y/b'));
    assert.notEqual(shape('GET /a/:x'), shape('GET /a/x'));
    assert.notEqual(shape('GET /a'), shape('GET /a/'));
  });

  test('is refused with what to write instead', () => {
    const rows: [key: string, says: RegExp][] = [
      ['/v1/x', /a method, one space/],
      ['GET  /v1', /a method, one space/],
      ['GET v1', /a method, one space/],
      ['get /v1', /in capitals: GET/],
      ['HEAD /v1', /HEAD is answered by the server/],
      ['OPTIONS /v1', /OPTIONS is answered by the server/],
      ['TRACE /v1', /must be one of GET, POST/],
      ['GET /a//b', /no empty segments/],
      ['GET //', /no empty segments/],
      ['GET /a/./b', /no segments "\." and "\.\."/],
      ['GET /a/..', /no segments "\." and "\.\."/],
      ['GET /a/%2e%2e/b', /percent-encoded/],
      ['GET /a%2Fb', /percent-encoded/],
      ['GET /a/*', /no wildcards/],
      ['GET /a/{id}', /as :name/],
      ['GET /a/:', /no parameter/],
      ['GET /a/:id(\\d+)', /no parameter/],
      ['GET /a/:id-:to', /no parameter/],
      ['GET /a/:x/:x', /:x stands in this path twice/],
      ['GET /a?b=1', /no "\?" or "#"/],
      ['GET /a\\b', /need no encoding/],
      ['GET /a\n', /need no encoding/],
      ['GET /ä', /need no encoding/],
      [`GET /${'a'.repeat(600)}`, /at most 512 characters/],
      [`GET ${'/a'.repeat(33)}`, /at most 32 segments/],
    ];
    for (const [key, says] of rows) assert.match(wrong(key), says, key);
  });

  test('is never one of the server’s own paths, however it is written', () => {
    for (const own of ['/.well-known/x402', '/admin', '/Admin/x', '/mcp', '/a2a/', '/MCP/:tool'])
      assert.match(wrong(`GET ${own}`), /the server's own/, own);
    for (const other of ['/administrators', '/v1/admin', '/mcpx']) read(`GET ${other}`);
    assert('wrong' in readPathPattern('v1'));
  });
});
