/** A paid call as its caller sees it: what is charged, what is refused and why, what comes back. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { z } from 'zod';
import ping from '../../../../packages/catalogue/src/services/discovery/ping.ts';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { noAnswer, notFound, sourceUnavailable } from '../../../../packages/core/src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

let runs = 0;
/** A service that does as it is told. */
const obedient: Service = defineService({
  path: 'obedient',
  name: 'Obedient',
  tag: 'Discovery',
  priceUsd: '0.10',
  summary: 'For tests.',
  input: z.object({
    agentId: z.string().optional(),
    fail: z.enum(['not-found', 'no-answer', 'source', 'bug', 'hang', 'misfit', 'huge']).optional(),
  }),
  output: z.object({ run: z.number().int(), agentId: z.string().nullable(), padding: z.string().optional() }),
  example: {},
  aliases: { agent: 'agentId' },
  timeoutMs: 200,
  async run({ fail, agentId }) {
    runs += 1;
    if (fail === 'not-found') throw notFound('agentId', 'no such agent');
    if (fail === 'no-answer') throw noAnswer('ON_LAND', 'no sea here', 'agentId');
    if (fail === 'source') throw sourceUnavailable('somewhere', 'upstream_down', 'Somewhere is down', 9_000);
    if (fail === 'bug') throw new TypeError('a secret inside: password=hunter2');
    if (fail === 'hang') await new Promise(() => {});
    if (fail === 'misfit') return answer({ run: 0.5, agentId: null }, { method: 'wrong on purpose' });
    const padding = fail === 'huge' ? 'x'.repeat(2_000_000) : undefined;
    return answer(
      { run: runs, agentId: agentId ?? null, ...(padding === undefined ? {} : { padding }) },
      { method: 'Counted.' },
    );
  },
});

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, services: [ping, obedient] });
});
after(async () => {
  await server.close();
  await database.close();
});

/** A clock that stands still: however slow the machine is, all is asked within one minute of a limit. */
function stopped(): () => number {
  const atMs = Date.now();
  return () => atMs;
}

async function balance(key: string): Promise<string> {
  const { balanceUsd, reservedUsd } = await jsonOf(
    fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }),
  );
  assert.equal(reservedUsd, '0.000000');
  return balanceUsd;
}

describe('what fails costs nothing', () => {
  const failures = [
    ['not-found', 404, 'NOT_FOUND'],
    ['no-answer', 422, 'ON_LAND'],
    ['source', 503, 'UPSTREAM_UNAVAILABLE'],
    ['bug', 500, 'SERVICE_ERROR'],
    ['hang', 503, 'DEADLINE_EXCEEDED'],
    ['misfit', 500, 'SERVICE_ERROR'],
    ['huge', 500, 'SERVICE_ERROR'],
  ] as const;
  for (const [fail, status, code] of failures) {
    test(`${fail}: ${status} ${code}`, async () => {
      const key = await server.key('1');
      const response = await server.call('obedient', key, { fail });
      const body = await jsonOf(response);
      assert.deepEqual([response.status, body.error, body.code, body.charged], [status, code, code, false]);
      assert.equal(body.requestId, response.headers.get('x-request-id'));
      assert.equal(typeof body.message, 'string');
      assert(!JSON.stringify(body).includes('hunter2'));
      if (status === 503) assert(Number(response.headers.get('retry-after')) >= 1);
      assert.equal(await balance(key), '1.000000');
    });
  }

  test('a body that does not fit names the field and never reaches the service', async () => {
    const key = await server.key('1');
    const before = runs;
    const cases = [
      ['{"fail":"maybe"}', 'fail'],
      ['{"agentId":5}', 'agentId'],
      ['{"agent":5}', 'agentId'],
      ['[]', ''],
      ['{', ''],
      ['"x"', ''],
    ] as const;
    for (const [body, field] of cases) {
      const response = await fetch(`${server.url}/x402/obedient`, {
        method: 'POST',
        headers: { 'x-api-key': key },
        body,
      });
      const refusal = await jsonOf(response);
      assert.equal(response.status, 400, body);
      assert.equal(refusal.fields[0]?.field ?? '', field, body);
    }
    assert.equal(runs, before);
    assert.equal(await balance(key), '1.000000');
  });
});

test('ACCOUNT_BUSY: while somebody else changes the account nothing is run and nothing charged', async () => {
  const key = await server.key('1');
  const { accountId } = (await server.app.keys.find(key)) ?? assert.fail();
  const before = runs;
  await database.patient.begin(async (transaction) => {
    await transaction`select 1 from ledger_accounts where id = ${String(accountId)} for update`;
    const refused = await server.call('obedient', key);
    const { code, charged } = await jsonOf(refused);
    assert.deepEqual([refused.status, code, charged], [503, 'ACCOUNT_BUSY', false]);
    assert.equal(refused.headers.get('retry-after'), '2');
  });
  assert.deepEqual([runs, await balance(key)], [before, '1.000000']);
  assert.equal((await server.call('obedient', key)).status, 200);
  assert.equal(await balance(key), '0.900000');
});

describe('Idempotency-Key', () => {
  const once = { 'idempotency-key': 'order-1' };

  test('the same request again gets the stored answer, free of charge, even after a restart', async () => {
    const key = await server.key('1');
    const first = await server.call('obedient', key, { agentId: 'a' }, once);
    const body = await first.text();
    assert.equal(first.headers.get('idempotent-replayed'), null);
    const again = await server.call('obedient', key, { agent_id: 'a', ignored: true }, once);
    assert.deepEqual([again.status, await again.text()], [200, body]);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(again.headers.get('x-call-id'), first.headers.get('x-call-id'));
    const other = await startTestServer({ pools: database, services: [ping, obedient] });
    const elsewhere = await other.call('obedient', key, { agentId: 'a' }, once);
    assert.equal(await elsewhere.text(), body);
    await other.close();
    assert.equal(await balance(key), '0.900000');
  });

  test('bare or as the quoted string of the draft it is one key', async () => {
    const key = await server.key('1');
    const runs: string[] = [];
    for (const name of ['k-1', '"k-1"', '"k-2"', 'k-2']) {
      const answer = await server.call('obedient', key, {}, { 'idempotency-key': name });
      assert.equal(answer.status, 200, name);
      runs.push(answer.headers.get('x-call-id') ?? '');
    }
    assert.deepEqual([runs[1], runs[3]], [runs[0], runs[2]]);
    assert.notEqual(runs[0], runs[2]);
    assert.equal(await balance(key), '0.800000');
  });

  test('another request under the same key is a 409; another account has keys of its own', async () => {
    const key = await server.key('1');
    await server.call('obedient', key, { agentId: 'a' }, once);
    const body = await server.call('obedient', key, { agentId: 'b' }, once);
    const service = await server.call('ping', key, {}, once);
    assert.deepEqual([body.status, service.status], [409, 409]);
    assert.equal((await jsonOf(body)).code, 'IDEMPOTENCY_KEY_REUSED');
    assert.equal((await server.call('obedient', await server.key('1'), { agentId: 'b' }, once)).status, 200);
    assert.equal(await balance(key), '0.900000');
  });

  test('ANSWER_EXPIRED: what is no longer kept is neither sold again under its key nor charged again', async () => {
    const key = await server.key('1');
    const first = await server.call('obedient', key, { agentId: 'a' }, once);
    const callId = first.headers.get('x-call-id') ?? assert.fail();
    const before = runs;
    await database.sql`update call_answers set expires_at = now() - interval '1 second' where id = ${callId}`;
    const late = await server.call('obedient', key, { agentId: 'a' }, once);
    const told = await jsonOf(late);
    assert.deepEqual([late.status, told.code, told.charged], [409, 'ANSWER_EXPIRED', true]);
    assert.equal(told.callId, callId);
    assert.deepEqual([runs, await balance(key)], [before, '0.900000']);
  });

  test('after a failure the key is free again', async () => {
    const key = await server.key('1');
    assert.equal((await server.call('obedient', key, { fail: 'source' }, once)).status, 503);
    assert.equal((await server.call('obedient', key, {}, once)).status, 200);
    assert.equal(await balance(key), '0.900000');
  });

  test('a key that is none is refused', async () => {
    const key = await server.key('1');
    for (const wrong of ['a b', 'x'.repeat(256)]) {
      const response = await server.call('obedient', key, {}, { 'idempotency-key': wrong });
      assert.deepEqual([response.status, (await jsonOf(response)).fields[0].field], [400, 'Idempotency-Key']);
    }
  });

  test('a replay needs no credit left', async () => {
    const key = await server.key('0.10');
    const first = await (await server.call('obedient', key, {}, once)).text();
    assert.equal((await server.call('obedient', key)).status, 402);
    assert.equal(await (await server.call('obedient', key, {}, once)).text(), first);
  });
});

describe('the edge', () => {
  test('a paid GET is told to POST; an unknown service names near ones', async () => {
    const key = await server.key('1');
    const get = await fetch(`${server.url}/x402/ping`, { headers: { 'x-api-key': key } });
    assert.deepEqual([get.status, get.headers.get('allow')], [405, 'POST']);
    assert.equal((await jsonOf(get)).method, 'POST');
    const unknown = await fetch(`${server.url}/x402/pinng`, { method: 'POST' });
    assert.equal(unknown.status, 404);
    assert.equal((await jsonOf(unknown)).knownPaths[0], '/x402/ping');
    assert.equal((await fetch(`${server.url}/nowhere`)).status, 404);
    assert.equal(await balance(key), '1.000000');
  });

  test('the oldest path is an alias, and so is the bearer header', async () => {
    const key = await server.key('1');
    const response = await fetch(`${server.url}/api/x402/ping`, {
      method: 'POST',
      headers: { authorization: `bearer ${key}` },
    });
    assert.equal(response.headers.get('x-payment-method'), 'api-key');
  });

  test('bodies, headers and requests beyond the bounds are refused, uncharged', async () => {
    const key = await server.key('1');
    const large = await server.call('ping', key, { message: 'x'.repeat(300_000) });
    assert.deepEqual([large.status, (await jsonOf(large)).code], [413, 'BODY_TOO_LARGE']);
    const limited = await startTestServer({
      pools: database,
      services: [ping, obedient],
      environment: { RATE_LIMIT_PER_KEY: '3', MAX_CONCURRENT_CALLS_PER_KEY: '2' },
      nowMs: stopped(),
    });
    try {
      const crowd = await Promise.all(
        Array.from({ length: 3 }, () => limited.call('obedient', key, { fail: 'hang' })),
      );
      assert.deepEqual(crowd.map(({ status }) => status).sort(), [429, 503, 503]);
      const over = await limited.call('ping', key);
      assert.equal(over.status, 429);
      assert.equal((await jsonOf(over)).code, 'RATE_LIMIT_EXCEEDED');
      assert.equal(over.headers.get('ratelimit-limit'), '3');
      assert.equal(over.headers.get('ratelimit-policy'), '3;w=60');
      assert.equal(over.headers.get('ratelimit-remaining'), '0');
      assert(Number(over.headers.get('ratelimit-reset')) <= 60);
      const other = await limited.call('ping', await server.key('1'));
      assert.equal(other.status, 200, 'another key has a limit of its own');
    } finally {
      await limited.close();
    }
    assert.equal(await balance(key), '1.000000');
  });

  test('beyond the bounds, only what may be the repeat of a purchase is not said to be free', async () => {
    const key = await server.key('1');
    const environment = { RATE_LIMIT_PER_ADDRESS: '1' };
    const limited = await startTestServer({
      pools: database,
      services: [ping],
      environment,
      nowMs: stopped(),
    });
    try {
      await limited.call('ping', key, {}, { 'idempotency-key': 'order-9' });
      for (const [sent, charged] of [
        [{}, false],
        [{ 'idempotency-key': 'order-9' }, null],
        [{ 'idempotency-key': 'order 9' }, false],
        [{ 'idempotency-key': '9'.repeat(256) }, false],
      ] as const) {
        const over = await limited.call('ping', key, {}, sent);
        assert.deepEqual([over.status, (await jsonOf(over)).charged], [429, charged], JSON.stringify(sent));
      }
    } finally {
      await limited.close();
    }
  });

  test('a browser of another origin may call and read', async () => {
    const preflight = await fetch(`${server.url}/x402/ping`, { method: 'OPTIONS' });
    assert.equal(preflight.status, 204);
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /X-API-KEY.*PAYMENT-SIGNATURE/);
    const unpaid = await fetch(`${server.url}/x402/ping`, { method: 'POST' });
    assert.equal(unpaid.headers.get('access-control-allow-origin'), '*');
  });

  test('junk on the wire never makes a 5xx and never stops the server', async () => {
    const { port } = new URL(server.url);
    const junk = [
      'GET / HTTP/1.1\r\n\r\n',
      'POST /x402/ping HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{"a"',
      `GET /x402/${'a'.repeat(5_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      `GET /x402/ping HTTP/1.1\r\nHost: x\r\nX-API-KEY: ${'k'.repeat(40_000)}\r\n\r\n`,
      'GET /x402/%00%ff HTTP/1.1\r\nHost: x\r\n\r\n',
      'POST /x402/ping HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      '\x16\x03\x01\x00\xa5\x01\x00',
    ];
    for (const bytes of junk) {
      const reply = await new Promise<string>((resolve) => {
        const socket = connect(Number(port), '127.0.0.1', () => socket.end(bytes, 'latin1'));
        let received = '';
        socket.on('data', (chunk) => {
          received += chunk;
        });
        socket.on('close', () => resolve(received));
        socket.on('error', () => resolve(received));
      });
      assert(!/^HTTP\/1\.1 5/.test(reply), reply.slice(0, 200));
    }
    assert.equal((await fetch(`${server.url}/health/ready`)).status, 200);
  });

  test('an SDK without a key makes its four requests and is served', async () => {
    const sdk = await startTestServer({
      pools: database,
      services: [ping],
      environment: { TRIAL_ALLOW_INTERNAL: 'true' },
    });
    try {
      const post = (path: string, body: unknown, headers = {}) =>
        fetch(sdk.url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        });
      const installId = 'mcp-0123456789abcdef';
      assert((await post('/api/sdk/telemetry', { installId, sdkType: 'python-mcp', event: 'usage' })).ok);
      const unpaid = await post('/x402/ping', {});
      assert.equal(unpaid.status, 402);
      assert.equal((await jsonOf(unpaid)).accepts[0].maxAmountRequiredUSD, 0.25);
      const demo = await post('/api/sdk/demo-key', { installId, sdkType: 'python-mcp' });
      assert.equal(demo.status, 200);
      const { api_key: key } = await jsonOf(demo);
      assert.equal((await post('/x402/ping', {}, { 'x-api-key': key })).status, 200);
    } finally {
      await sdk.close();
    }
  });

  test('metrics count what happened; health tells when the server is about to stop', async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(metrics, /farebox_calls_total\{service="obedient",rail="credits",outcome="captured"\} \d+/);
    assert.match(metrics, /farebox_captured_usd_total\{service="ping",rail="credits"\} 0\.25/);
    assert.match(metrics, /farebox_released_usd_total\{service="obedient",rail="credits"\} \d/);
    assert.match(metrics, /farebox_reserved_usd 0/);
    assert.match(
      metrics,
      /farebox_call_duration_seconds_bucket\{le="0\.05",service="ping",outcome="captured"\}/,
    );
    const guarded = await startTestServer({
      pools: database,
      services: [ping],
      environment: { METRICS_TOKEN: 'a-token-for-the-metrics' },
    });
    try {
      const read = (token?: string) =>
        fetch(
          `${guarded.url}/metrics`,
          token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
        );
      assert.deepEqual(
        [(await read()).status, (await read('wrong')).status, (await read('a-token-for-the-metrics')).status],
        [403, 403, 200],
      );
      assert.equal((await fetch(`${guarded.url}/health/live`)).status, 200);
      guarded.app.drain();
      assert.equal((await fetch(`${guarded.url}/health/ready`)).status, 503);
      assert.equal((await fetch(`${guarded.url}/health/live`)).status, 200);
    } finally {
      await guarded.close();
    }
  });

  test('without a card provider the addresses for cards say so', async () => {
    const response = await fetch(`${server.url}/api/m2m/credits/purchase`, { method: 'POST', body: '{}' });
    assert.deepEqual([response.status, (await jsonOf(response)).code], [503, 'CARDS_NOT_CONFIGURED']);
  });
});
