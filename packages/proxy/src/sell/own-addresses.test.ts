import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRouteKey } from '../config/route-key.ts';
import { isReserved, readOwnAddresses, takenOfRoute } from './own-addresses.ts';

const OWN = [
  { path: '/', methods: ['GET', 'HEAD'] },
  { path: '/health', methods: ['GET', 'HEAD'] },
  { path: '/pages/:service', methods: ['GET', 'HEAD'] },
  { path: '/api/keys', methods: ['POST'] },
  { path: '/x402/*', methods: ['GET', 'HEAD', 'POST'] },
  { path: '/:shop/wares/*', methods: ['GET'] },
];

function taken(key: string) {
  const route = readRouteKey(key);
  assert(!('wrong' in route));
  return takenOfRoute(route, readOwnAddresses(OWN));
}

test('a route of which the own addresses leave nothing is found, however it is written', () => {
  for (const [key, whole] of [
    ['GET /', '/'],
    ['GET /health', '/health'],
    ['GET /health/', '/health'],
    ['GET /pages/one', '/pages/:service'],
    ['GET /pages/:page', '/pages/:service'],
    ['POST /api/keys', '/api/keys'],
    ['POST /x402/mine', '/x402/*'],
    ['GET /x402/mine/:id/', '/x402/*'],
    ['GET /mine/wares/:id', '/:shop/wares/*'],
  ] as const)
    assert.deepEqual(taken(key), { whole, parts: [] }, key);
});

test('a pattern is told the own addresses that it covers; another method, length or text is nothing of ours', () => {
  assert.deepEqual(taken('GET /:a'), { whole: null, parts: ['/health'] });
  assert.deepEqual(taken('GET /:a/:b'), { whole: null, parts: ['/pages/:service', '/x402/*'] });
  assert.deepEqual(taken('POST /:a/:b'), { whole: null, parts: ['/api/keys', '/x402/*'] });
  for (const key of [
    'POST /health',
    'GET /Health',
    'GET /health/now',
    'GET /api/keys',
    'PUT /:a',
    // What a wildcard takes is below it, and of its methods.
    'GET /x402',
    'GET /x402/',
    'PUT /x402/mine',
    'GET /mine/wares',
  ])
    assert.deepEqual(taken(key), { whole: null, parts: [] }, key);
});

test('what is below the reserved names is always our own, however it is spelled', () => {
  for (const url of [
    '/admin',
    '/admin/x?a=b',
    '/Admin/x',
    '/%61dmin',
    '/mcp',
    '/a2a/x/y',
    '/.well-known/x',
    '/.WELL-KNOWN/x',
  ])
    assert.equal(isReserved(url), true, url);
  for (const url of ['/', '/v1/admin', '/administration', '/x?y=/admin', '/..%2fadmin'])
    assert.equal(isReserved(url), false, url);
});
