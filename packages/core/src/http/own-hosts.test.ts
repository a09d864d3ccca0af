import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { ownHosts, refuseForeign } from './own-hosts.ts';
import { createHttpServer } from './server.ts';

async function statusOf(publicUrl: string, headers: { host: string; origin?: string }): Promise<number> {
  const app = createHttpServer(pino({ level: 'silent' }));
  const hosts = ownHosts(publicUrl, ['inner.example']);
  app.post('/', (request) => {
    refuseForeign(request, hosts, 'SOME_HOSTS');
    return {};
  });
  const { statusCode } = await app.inject({ method: 'POST', url: '/', headers });
  await app.close();
  return statusCode;
}

const PAGE = 'https://page.example';

test('a page of any site may ask a server of the open internet, under its public name alone', async () => {
  const url = 'https://shop.example';
  assert.equal(await statusOf(url, { host: 'shop.example', origin: PAGE }), 200);
  assert.equal(await statusOf(url, { host: 'shop.example', origin: 'null' }), 200);
  for (const host of ['page.example', 'localhost:8402', '127.0.0.1', 'inner.example'])
    assert.equal(await statusOf(url, { host, origin: PAGE }), 403, host);
  assert.equal(await statusOf(url, { host: 'page.example' }), 403);
  assert.equal(await statusOf(url, { host: 'localhost:8402', origin: 'http://localhost:3000' }), 200);
});

test('a server of one machine or of a private network is closed to pages of other sites', async () => {
  for (const url of [
    'http://shop.example',
    'https://localhost:8402',
    'https://127.0.0.1',
    'https://10.1.2.3',
    'https://192.168.1.5:8402',
    'https://[::1]',
    'https://[fd00::1]',
    'https://[::ffff:10.0.0.1]',
    'https://box',
    'https://box.local',
    'https://box.internal',
    'https://box.home.arpa',
  ]) {
    const { host } = new URL(url);
    assert.equal(await statusOf(url, { host, origin: PAGE }), 403, url);
    assert.equal(await statusOf(url, { host }), 200, url);
  }
});
