import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Fastify from 'fastify';
import { refuseWhileShut } from './shut.ts';

let why: string | null = null;
const app = Fastify();
refuseWhileShut(app, () => why);
app.all('/*', async () => 'done');
after(() => app.close());

const statusOf = async (method: 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'DELETE', url: string) =>
  (await app.inject({ method, url })).statusCode;

test('while it is shut only what is read is answered, by its whole name and by no other method', async () => {
  why = 'because';
  for (const path of [
    '/',
    '/?a=1',
    '/health/ready',
    '/admin',
    '/admin/api/overview',
    '/docs/x',
    '/openapi.json',
    '/status',
    '/status.json',
  ])
    assert.equal(await statusOf('GET', path), 200, path);
  assert.equal(await statusOf('HEAD', '/metrics'), 200);
  assert.equal(await statusOf('OPTIONS', '/x402/ping'), 200);
  for (const path of [
    '/x402/ping',
    '/weather',
    '/adminish',
    '/healthy',
    '//admin',
    '/openapi.jsonx',
    '/api/keys/me',
  ])
    assert.equal(await statusOf('GET', path), 503, path);
  for (const path of ['/', '/admin/api/accounts/1001/grant', '/docs/x', '/x402/ping'])
    assert.equal(await statusOf('POST', path), 503, path);
  assert.equal(await statusOf('DELETE', '/admin/api/x'), 503);
  why = null;
  assert.equal(await statusOf('POST', '/x402/ping'), 200);
});
