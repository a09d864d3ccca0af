/** Codes of refusals that no other test provokes, each over HTTP at a server with nothing configured. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database });
});
after(async () => {
  await server?.close();
  await database?.close();
});

interface Refusal {
  code: string;
  status: number;
  method?: 'GET' | 'POST';
  url: string;
  headers?: Record<string, string>;
  from?: string;
}

const REFUSALS: readonly Refusal[] = [
  { code: 'YIELD_NOT_CONFIGURED', status: 503, url: '/api/yield/vault' },
  { code: 'SOLANA_YIELD_NOT_CONFIGURED', status: 503, url: '/api/solana-yield/reserve' },
  { code: 'UNKNOWN_ENDPOINT', status: 404, url: '/api/gpt/no-such-endpoint' },
  // Figures are for the operator's own network unless a token is configured.
  { code: 'FORBIDDEN', status: 403, url: '/metrics', from: '8.8.4.4' },
  // A page on another site whose name was turned to this machine must not reach it.
  {
    code: 'FOREIGN_HOST',
    status: 403,
    method: 'POST',
    url: '/a2a',
    headers: { host: 'rebound.example', 'content-type': 'application/json' },
  },
];

describe('a refusal has the code that the documents name', () => {
  for (const { code, status, method = 'GET', url, headers = {}, from = '127.0.0.1' } of REFUSALS)
    test(`${code}: ${method} ${url}`, async () => {
      const answer = await server.app.http.inject({
        method,
        url,
        headers,
        remoteAddress: from,
        ...(method === 'POST' ? { payload: '{}' } : {}),
      });
      assert.deepEqual([answer.statusCode, answer.json().code], [status, code], answer.body);
      assert.equal(answer.json().error, code);
      assert.doesNotMatch(answer.json().message, /\b(YIELD|SOLANA_YIELD)_[A-Z_]+/, 'names a variable');
    });

  test('SIMULATED_DEVICE: in production no device is registered whose readings are made up', async () => {
    const production = await startTestServer({
      pools: database,
      environment: { FAREBOX_MODE: 'production', PUBLIC_URL: 'https://fare.test', X402_NETWORKS: '' },
    });
    const headers = { 'x-api-key': await production.key('1') };
    const register = (deviceId: string, simulated: boolean) =>
      production.app.http.inject({
        method: 'POST',
        url: '/api/devices',
        headers,
        payload: { deviceId, simulated },
      });
    const refused = await register('made-up', true);
    assert.deepEqual([refused.statusCode, refused.json().code], [422, 'SIMULATED_DEVICE'], refused.body);
    assert.equal((await register('measured', false)).statusCode, 201);
    const { devices } = (await production.app.http.inject({ url: '/api/devices', headers })).json();
    assert.deepEqual(
      devices.map(({ deviceId }: { deviceId: string }) => deviceId),
      ['measured'],
    );
    await production.close();
  });

  test('NOT_READY: a server that is told to stop takes no more calls', async () => {
    server.app.drain();
    const answer = await server.app.http.inject({ url: '/health/ready' });
    assert.deepEqual([answer.statusCode, answer.json().code], [503, 'NOT_READY']);
  });
});
