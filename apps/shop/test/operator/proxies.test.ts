/** A caller behind a proxy writes what it likes into its headers, and stays who it is. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const TOKEN = 'the-token-of-the-desk-in-this-test';
let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

async function withServer(environment: Record<string, string>, run: (server: TestServer) => Promise<void>) {
  // However slow the machine is, all is asked within one minute of the limits.
  const stoppedAtMs = Date.now();
  const server = await startTestServer({
    pools: database,
    nowMs: () => stoppedAtMs,
    environment: { TRUSTED_PROXIES: 'loopback', ADMIN_TOKENS: `desk:${TOKEN}`, ...environment },
  });
  try {
    await run(server);
  } finally {
    await server.close();
  }
}

/** Through a proxy that names the caller in one header and lets all others pass as they came. */
const proxied = (server: TestServer, path: string, own: Record<string, string>, forged = {}) =>
  fetch(server.url + path, { headers: { ...forged, ...own } });

describe('a proxy that sets X-Forwarded-For alone', () => {
  const own = (address: string) => ({ 'x-forwarded-for': address });
  /** What a caller may have written beside it; the last are told apart by number. */
  const forgeries = (n: number) => [
    { forwarded: `for=8.8.9.${n}` },
    { forwarded: `for="[2606:4700:${n}::1]"` },
    { 'x-real-ip': `8.8.9.${n}` },
    { 'cf-connecting-ip': `8.8.9.${n}`, 'true-client-ip': `8.8.9.${n}` },
  ];

  test('eight forged requests are one trial', async () => {
    await withServer({}, async (server) => {
      const answers = [];
      for (const [n, forged] of [...forgeries(1), ...forgeries(2)].entries()) {
        const { status } = await proxied(server, '/api/m2m/credits/trial', own('8.8.100.1'), forged);
        answers.push([n, status]);
      }
      assert.deepEqual(
        answers.map(([, status]) => status),
        [200, 429, 429, 429, 429, 429, 429, 429],
      );
    });
  });

  test('forged bad tokens lock out nobody: neither who they pretend to be, nor a right token', async () => {
    await withServer({}, async (server) => {
      const admit = (address: string, token: string, forged = {}) =>
        proxied(server, '/admin/api/session', { ...own(address), authorization: `Bearer ${token}` }, forged);
      const operator = '8.8.9.77';
      const forged = { forwarded: `for=${operator}`, 'x-real-ip': operator };
      for (let tried = 0; tried < 15; tried += 1) await (await admit('8.8.100.2', 'a-guess', forged)).text();
      assert.equal((await admit('8.8.100.2', 'a-guess', forged)).status, 429);
      assert.equal(
        (await admit(operator, 'a-guess')).status,
        401,
        'nothing was counted against the operator',
      );
      // From the very address that is locked.
      assert.equal((await admit('8.8.100.2', TOKEN)).status, 200);
    });
  });

  test('limits of requests hold, and a whole /48 has one of its own', async () => {
    await withServer({ RATE_LIMIT_PER_ADDRESS: '5' }, async (server) => {
      const paid = async (address: string, forged = {}) =>
        (await fetch(`${server.url}/x402/ping`, { method: 'POST', headers: { ...forged, ...own(address) } }))
          .status;
      const statuses = [];
      for (const forged of [...forgeries(1), ...forgeries(2)]) statuses.push(await paid('8.8.100.3', forged));
      assert.deepEqual(statuses, [402, 402, 402, 402, 402, 429, 429, 429]);
      const tally = { 402: 0, 429: 0 } as Record<number, number>;
      for (let network = 1; network <= 100; network += 1) {
        const status = await paid(`2606:4700:1:${network.toString(16)}::1`);
        tally[status] = (tally[status] ?? 0) + 1;
      }
      assert.deepEqual(tally, { 402: 80, 429: 20 });
    });
  });
});

test('another header is believed when it is named, and then that one alone', async () => {
  await withServer({ PROXY_HEADER: 'Forwarded' }, async (server) => {
    const trial = (address: string) =>
      proxied(
        server,
        '/api/m2m/credits/trial',
        { forwarded: `for=9.9.9.9, for=${address};proto=https` },
        {
          'x-forwarded-for': '8.8.100.99',
        },
      );
    const statuses = [];
    for (const address of ['8.8.101.1', '8.8.101.1', '8.8.101.2'])
      statuses.push((await trial(address)).status);
    assert.deepEqual(statuses, [200, 429, 200]);
  });
});

test('the log says at the start whom the server believes, and once when a proxy does not fit', async () => {
  await withServer({ PROXY_HEADER: 'x-real-ip' }, async (server) => {
    assert(server.log.some((line) => line.includes('callers are told apart by x-real-ip')));
    for (let count = 0; count < 3; count += 1)
      await (await proxied(server, '/health/live', {}, { 'x-forwarded-for': '8.8.8.8' })).text();
    const { body } = await asked(server, { 'x-forwarded-for': '8.8.8.8' });
    assert.deepEqual([body.by, body.address, body.ignored], ['peer', '127.0.0.1', ['x-forwarded-for']]);
    const warned = server.log.filter((line) => line.includes('PROXY_HEADER must name what it sets'));
    assert.equal(warned.length, 1);
  });
});

async function asked(server: TestServer, headers: Record<string, string>) {
  const response = await fetch(`${server.url}/admin/api/caller`, {
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
  });
  return { body: await jsonOf(response) };
}

describe('metrics without a token', () => {
  const read = async (server: TestServer, headers: Record<string, string> = {}) =>
    (await fetch(`${server.url}/metrics`, { headers })).status;
  const none = { TRUSTED_PROXIES: '' };

  test('are for callers from within alone, who came over no proxy', async () => {
    await withServer(none, async (server) => {
      assert.equal(await read(server), 200);
      // A proxy on this machine that nobody named: the socket is the proxy's, and each of these gives it away.
      for (const headers of [
        { 'x-forwarded-for': '8.8.8.8' },
        { forwarded: 'for=8.8.8.8' },
        { 'x-real-ip': '127.0.0.1' },
        { via: '1.1 proxy' },
      ])
        assert.equal(await read(server, headers), 403, JSON.stringify(headers));
    });
  });

  test('are closed behind a proxy that is named, whatever it says of the caller', async () => {
    await withServer({}, async (server) => {
      for (const headers of [{}, { 'x-forwarded-for': '10.0.0.7' }, { 'x-forwarded-for': '127.0.0.1' }])
        assert.equal(await read(server, headers), 403, JSON.stringify(headers));
    });
  });

  test('are closed on a server with a public address, behind a proxy that adds no header', async () => {
    await withServer({ ...none, PUBLIC_URL: 'https://shop.example' }, async (server) => {
      assert.equal(await read(server), 403);
    });
    const token = 'a-token-for-the-metrics';
    await withServer(
      { ...none, PUBLIC_URL: 'https://shop.example', METRICS_TOKEN: token },
      async (server) => {
        assert.equal(await read(server, { authorization: `Bearer ${token}` }), 200);
      },
    );
  });
});
