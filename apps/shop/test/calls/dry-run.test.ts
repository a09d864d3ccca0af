/** Calls that are tried out, and errors in the form that their reader asks for: both doors of one server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { defineService } from '../../../../packages/catalogue/src/services/define.ts';
import { outputSchemaOf } from '../../../../packages/core/src/service/json-schema.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

let runs = 0;
const count = defineService({
  path: 'count',
  name: 'Count',
  tag: 'Discovery',
  priceUsd: '0.10',
  mpp: true,
  summary: 'For tests.',
  input: z.object({ upTo: z.int().min(1).max(9) }),
  output: z.object({ run: z.int() }),
  example: { upTo: 3 },
  async run() {
    runs += 1;
    return answer({ run: runs }, { method: 'Counted.' });
  },
});
/** Its source is not configured here. */
const sourceless = defineService({
  path: 'sourceless',
  name: 'Sourceless',
  tag: 'Discovery',
  priceUsd: '0.20',
  mpp: true,
  summary: 'For tests.',
  input: z.object({ upTo: z.int().optional() }),
  output: z.object({ run: z.int() }),
  example: {},
  needs: ['firms'],
  run: () => Promise.reject(new Error('nobody can buy this')),
});

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({
    pools: database,
    services: [count, sourceless],
    environment: EVERYTHING_ON,
  });
});
after(async () => {
  await server.close();
  await database.close();
});

const DOORS = ['/x402', '/api/x402', '/mpp'] as const;

function send(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Reads what is on the books: nothing of it may change by a dry run. */
async function books() {
  const [calls] = await database.sql`select count(*)::int as n from calls`;
  const [transfers] = await database.sql`select count(*)::int as n from ledger_transfers`;
  return { calls: calls?.n, transfers: transfers?.n, runs };
}

test('a dry run tells price, availability and the schema of the answer, and leaves nothing behind', async () => {
  const before = await books();
  for (const door of DOORS) {
    const response = await send(`${door}/count?dryRun=1`, { up_to: 3 }, { 'idempotency-key': 'not-used-up' });
    const told = await jsonOf(response);
    assert.equal(response.status, 200, door);
    assert.equal(response.headers.get('cache-control'), 'no-store');
    const { success, dryRun, charged, service, available, price } = told;
    assert.deepEqual(
      { success, dryRun, charged, service, available, price },
      {
        success: true,
        dryRun: true,
        charged: false,
        service: 'count',
        available: true,
        price: { amountUsd: '0.100000', amountMicros: '100000', currency: 'USD' },
      },
    );
    assert.deepEqual(told.answer, {
      mediaType: 'application/json',
      schema: JSON.parse(JSON.stringify(outputSchemaOf(count))),
    });
    assert.equal(told.protocol, door === '/mpp' ? 'mpp' : undefined);
  }
  assert.deepEqual(await books(), before);
  const metrics = await fetch(`${server.url}/metrics`, {
    headers: { authorization: `Bearer ${EVERYTHING_ON.METRICS_TOKEN}` },
  });
  assert.match(await metrics.text(), /farebox_calls_total\{service="count",rail="none",outcome="tried"\} 3/);
});

test('what a paid call would refuse, a dry run refuses in the same words', async () => {
  const key = await server.key('1');
  for (const door of ['/x402', '/mpp']) {
    for (const body of ['{', '[]', '{"upTo":10}', '{}']) {
      const tried = await send(`${door}/count?dryRun=1`, body);
      const paid = await send(`${door}/count`, body, { 'x-api-key': key });
      const [dry, real] = [await jsonOf(tried), await jsonOf(paid)];
      assert.equal(tried.status, 400, body);
      assert.equal(tried.headers.get('content-type'), paid.headers.get('content-type'));
      assert.deepEqual({ ...dry, requestId: '' }, { ...real, requestId: '' });
    }
    const tried = await send(`${door}/sourceless?dryRun=1`, {});
    const told = await jsonOf(tried);
    assert.deepEqual([tried.status, told.code, told.charged], [503, 'SERVICE_UNAVAILABLE', false]);
    assert(Number(tried.headers.get('retry-after')) >= 1);
    const unfit = await send(`${door}/sourceless?dryRun=1`, { upTo: 'x' });
    assert.equal(unfit.status, 400);
    const byGet = await fetch(`${server.url}${door}/count?dryRun=1`);
    assert.equal(byGet.status, 405);
  }
});

test('with a credential of any kind it is a 400, and the credential is still good', async () => {
  const key = await server.key('1');
  const before = await books();
  const credentials: [string, string][] = [
    ['X-API-KEY', key],
    ['X-API-KEY', ''],
    ['Authorization', `Bearer ${key}`],
    ['Authorization', 'Payment eyJhIjoxfQ'],
    ['Authorization', 'Basic eDp5'],
    ['X-PAYMENT', 'e30='],
    ['PAYMENT-SIGNATURE', 'e30='],
    ['SIGN-IN-WITH-X', 'e30='],
  ];
  for (const door of DOORS) {
    for (const [name, value] of credentials) {
      const response = await send(`${door}/count?dryRun=1`, { upTo: 3 }, { [name]: value });
      const refusal = await jsonOf(response);
      assert.deepEqual(
        [response.status, refusal.code, refusal.charged, refusal.fields[0].field],
        [400, 'DRY_RUN_WITH_CREDENTIAL', false, name],
      );
      assert(!JSON.stringify(refusal).includes(key));
    }
  }
  assert.deepEqual(await books(), before);
  assert.equal((await send('/x402/count?dryRun=0', { upTo: 3 }, { 'x-api-key': key })).status, 200);
  assert.equal(runs, before.runs + 1);
});

test('a slip in the parameter charges nobody', async () => {
  const key = await server.key('1');
  const before = await books();
  const slips = ['dryRun=yes', 'dryRun=', 'dryRun', 'dryrun=1', 'dry_run=1', 'dry-run=true', 'DryRun=1'];
  slips.push(
    ...['dryRun[]=1', 'dryRun%20=1', '%20dryRun=1', 'dry.run=1', 'dryRun[0]=1', 'amp;dryRun=1', '?dryRun=1'],
  );
  slips.push(...['x=1;dryRun=1', 'x=1?dryRun=1', '%EF%BD%84ryRun=1', 'isDryRun=1']);
  for (const slip of [...slips, 'dryRun=1&dryRun=0', 'dryRun=0&dry_run=1', 'dryRun=2']) {
    const response = await send(`/x402/count?${slip}`, { upTo: 3 }, { 'x-api-key': key });
    const refusal = await jsonOf(response);
    assert.deepEqual([response.status, refusal.charged], [400, false], slip);
    assert.deepEqual(refusal.fields[0].field, 'dryRun', slip);
  }
  assert.deepEqual(await books(), before);
});

test('the documents tell of it', async () => {
  const { paths, components } = await jsonOf(fetch(`${server.url}/openapi.json`));
  assert.deepEqual(paths['/x402/count'].post.parameters, [{ $ref: '#/components/parameters/DryRun' }]);
  assert.equal(components.parameters.DryRun.name, 'dryRun');
  assert.match(await (await fetch(`${server.url}/llms.txt`)).text(), /dryRun=1.*Send no credential/);
});

const PROBLEM = 'application/problem+json';
const HOUSE = 'application/json; charset=utf-8';

test('an error is problem details for whoever asks for them, and otherwise what it was, byte for byte', async () => {
  const poor = await server.key('0.01');
  const cases: [string, number, string, () => Promise<[string, RequestInit]>][] = [
    ['no such address', 404, 'about:blank', async () => ['/nowhere?token=hidden', {}]],
    ['no such service', 404, 'about:blank', async () => ['/x402/nothing-like-it', { method: 'POST' }]],
    ['a route’s own refusal', 401, 'about:blank', async () => ['/api/keys/me', {}]],
    [
      'a body too large',
      413,
      'about:blank',
      async () => ['/x402/count', { method: 'POST', body: 'x'.repeat(300_000) }],
    ],
    [
      'a body that does not fit',
      400,
      'about:blank',
      async () => ['/x402/count?dryRun=1', { method: 'POST', body: '{}' }],
    ],
    ['not for sale', 503, 'about:blank', async () => ['/x402/sourceless', { method: 'POST' }]],
    ['below the operator’s page', 404, 'about:blank', async () => ['/admin/nowhere', {}]],
    [
      'no payment',
      402,
      'https://paymentauth.org/problems/payment-required',
      async () => ['/x402/count', { method: 'POST' }],
    ],
    [
      ...(['too little credit', 402, 'https://paymentauth.org/problems/payment-insufficient'] as const),
      async () => ['/x402/count', { method: 'POST', headers: { 'x-api-key': poor }, body: '{"upTo":3}' }],
    ],
  ];
  for (const [what, status, type, make] of cases) {
    const [path, init] = await make();
    const ask = (accept: string | null) =>
      fetch(server.url + path, {
        ...init,
        headers: { ...(accept === null ? {} : { accept }), ...(init.headers as Record<string, string>) },
      });
    const standard = await ask(PROBLEM);
    const details = await jsonOf(standard);
    assert.deepEqual([standard.status, details.status, details.type], [status, status, type], what);
    assert.equal(standard.headers.get('content-type'), `${PROBLEM}; charset=utf-8`, what);
    assert.equal(details.detail, details.message, what);
    assert(typeof details.title === 'string' && details.title !== '', what);
    const requestId = standard.headers.get('x-request-id') ?? '';
    assert.equal(details.instance, `${path.split('?')[0]}#${requestId}`, what);

    for (const accept of [
      null,
      '*/*',
      'application/json',
      'application/json, application/problem+json;q=0.5',
    ]) {
      const own = await ask(accept);
      const text = await own.text();
      assert.equal(own.headers.get('content-type'), HOUSE, `${what}: ${accept}`);
      const { type: _, title, status: told, detail, instance, ...rest } = details;
      const id = own.headers.get('x-request-id') ?? '';
      assert.equal(
        text.replaceAll(id, 'ID'),
        JSON.stringify(rest).replaceAll(requestId, 'ID'),
        `${what}: ${accept}`,
      );
    }
  }
});

test('below /mpp/ problem details say where it happened to whoever asks, and keep their types', async () => {
  const plain = await send('/mpp/count', {});
  const asked = await send('/mpp/count', {}, { accept: PROBLEM });
  const [usual, details] = [await jsonOf(plain), await jsonOf(asked)];
  assert.equal(plain.headers.get('content-type')?.split(';')[0], PROBLEM);
  assert.equal(details.type, usual.type);
  assert.equal(details.title, usual.title);
  assert.equal(details.instance, `/mpp/count#${asked.headers.get('x-request-id')}`);
  assert.equal(usual.instance, undefined);
});

test('an answer that is no error stays what it is', async () => {
  const key = await server.key('1');
  const paid = await send('/x402/count', { upTo: 3 }, { 'x-api-key': key, accept: PROBLEM });
  assert.deepEqual([paid.status, paid.headers.get('content-type')], [200, HOUSE]);
  const document = await fetch(`${server.url}/x402/catalog`, { headers: { accept: PROBLEM } });
  assert.deepEqual([document.status, document.headers.get('content-type')], [200, HOUSE]);
});
