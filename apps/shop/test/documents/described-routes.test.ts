/** Tests that what is served and what is described are the same, whichever part a route is of. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  const terms = join(import.meta.dirname, '../../../../SECURITY.md');
  server = await startTestServer({ pools: database, environment: { ...EVERYTHING_ON, TERMS: terms } });
});
after(async () => {
  await server.close();
  await database.close();
});

/** `POST /api/wallets/{walletId}/export`, as OpenAPI writes it. */
const nameOf = (method: string, path: string) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`;
const told = () => server.app.parts.flatMap(({ operations = [] }) => operations);
const untold = () => told().flatMap((described) => described.untold ?? []);
const isOf = (pattern: string, path: string) =>
  pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
/** A browser's question before a request, and a GET without its body, are no routes of a part. */
const routes = () =>
  server.app.routes.filter(
    ({ method, path }) => method !== 'HEAD' && !(method === 'OPTIONS' && path === '/*'),
  );

test('each route is described, or its part says why it is not', () => {
  assert(routes().length > 100);
  const operations = new Set(
    told().flatMap((described) => described.operations.map(({ method, path }) => nameOf(method, path))),
  );
  const silent = routes().filter(
    ({ method, path, operation }) =>
      !operations.has(nameOf(method, path)) &&
      (operation?.(method) ?? null) === null &&
      !untold().some((each) => isOf(each.path, path)),
  );
  assert.deepEqual(
    silent.map(({ method, path }) => nameOf(method, path)),
    [],
  );
});

test('each description is of a route that is served, once', () => {
  const served = routes().map(({ method, path }) => nameOf(method, path));
  const operations = told().flatMap((described) =>
    described.operations.map(({ method, path }) => nameOf(method, path)),
  );
  assert(operations.length > 20);
  assert.deepEqual(
    operations.filter((name) => !served.includes(name)),
    [],
  );
  assert.deepEqual(operations, [...new Set(operations)]);
  const names = told().flatMap((described) =>
    described.operations.map(({ operation }) => operation.operationId),
  );
  assert.deepEqual(names, [...new Set(names)]);
  const nowhere = untold().filter((each) => !routes().some(({ path }) => isOf(each.path, path)));
  assert.deepEqual(nowhere, []);
});

test('each part of OpenAPI is below 74 KB with everything on, and together they describe what the whole does', async () => {
  const whole = await jsonOf(fetch(`${server.url}/openapi.json`));
  const { knownPaths } = await jsonOf(fetch(`${server.url}/openapi/none.json`));
  const parts: string[] = knownPaths.filter((path: string) => path.startsWith('/openapi/'));
  for (const name of ['core', 'free', 'credits', 'yield', 'legacy', 'iot-depin'])
    assert(parts.includes(`/openapi/${name}.json`), parts.join());
  const operations = ({ paths }: { paths: Record<string, object> }) =>
    Object.entries(paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`));
  const together: string[] = [];
  for (const part of parts) {
    const text = await (await fetch(`${server.url}${part}`)).text();
    assert(Buffer.byteLength(text) < 74_000, `${part}: ${Buffer.byteLength(text)} bytes`);
    const document = JSON.parse(text);
    const found = operations(document);
    assert(found.length > 0, `${part} is empty`);
    // The core has some operations of other parts too.
    together.push(...(part === '/openapi/core.json' ? ['post /api/call'] : found));
    for (const [, name = ''] of text.matchAll(/"#\/components\/([^"]+)"/g)) {
      const [kind = '', key = ''] = name.split('/');
      assert(document.components[kind]?.[key] !== undefined, `${part} refers to ${name}, which is not in it`);
    }
  }
  assert.deepEqual(together.sort(), operations(whole).sort());
});

/** Its default. */
const RECONCILE_INTERVAL_MS = 5_000;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** An error's message; empty for what is no error in JSON. */
async function answerOf(address: string): Promise<{ status: number; message: string }> {
  const answer = await fetch(server.url + address);
  const text = await answer.text();
  return { status: answer.status, message: answer.status < 400 ? '' : JSON.parse(text).message };
}

test('each address answers a method that it does not take with those that it takes, and charges nothing', async () => {
  const addresses = new Set(server.app.routes.map(({ path }) => path));
  const off = new Set<string>();
  for (const address of addresses) {
    if (!/^\/(x402|mpp|\.well-known)\/[^:*]+$/.test(address)) continue;
    const { status, message } = await answerOf(address);
    if (status === 404 && /does not offer now/.test(message)) off.add(address);
  }
  // No facilitator answers here, so nothing is offered by x402.
  assert(off.has('/x402/payment-manifest.json') && !off.has('/mpp/catalog'), [...off].join());
  let refused = 0;
  for (const address of addresses) {
    if (address.includes('*') || /^\/(admin|a2a)/.test(address)) continue;
    const taken = METHODS.filter((each) =>
      server.app.routes.some(({ method, path }) => path === address && method === each),
    );
    const url = server.url + address.replace(/:\w+/g, 'some');
    for (const method of METHODS.filter((each) => !taken.includes(each))) {
      const answer = await fetch(url, { method });
      const text = await answer.text();
      const allowed = answer.headers.get('allow')?.split(', ') ?? [];
      // A document about something that is off is not there for any method.
      const isOff = off.has(address);
      const expected = isOff ? [404, []] : [405, taken];
      assert.deepEqual([answer.status, allowed], expected, `${method} ${address}: ${text}`);
      if (method !== 'HEAD' && !isOff) {
        const { code, charged } = JSON.parse(text);
        assert.deepEqual([code, charged], ['METHOD_NOT_ALLOWED', false], `${method} ${address}`);
      }
      refused += 1;
    }
    const options = await fetch(url, { method: 'OPTIONS' });
    const told = off.has(address) ? null : [...taken, 'OPTIONS'].join(', ');
    if (taken.length < METHODS.length)
      assert.deepEqual([options.status, options.headers.get('allow')], [204, told], address);
  }
  assert(refused > 500, String(refused));
});

test('what is the operator’s is told to nobody by another method or other letters', async () => {
  const operators = server.app.routes.filter(({ path }) => path.startsWith('/admin'));
  assert(operators.length > 10);
  for (const { path } of operators) {
    const address = path.replace(/:\w+/g, 'some').replace(/\*$/, 'any');
    for (const [method, asked] of [
      ['PATCH', address],
      ['GET', `/${address}`],
      ['GET', address.replace('admin', 'Admin')],
      ['OPTIONS', address],
    ] as const) {
      const answer = await fetch(server.url + asked, { method });
      const text = await answer.text();
      assert.equal(answer.headers.get('allow'), null, `${method} ${asked}`);
      assert.equal(answer.status, method === 'OPTIONS' ? 204 : 404, `${method} ${asked}: ${text}`);
      assert.doesNotMatch(text, /Did you mean|knownPaths/, asked);
    }
  }
});

test('the catalogs are read with GET, and a post to one says so', async () => {
  for (const path of ['/x402/catalog', '/api/x402/catalog', '/mpp/catalog', '/x402/recipes/ping']) {
    const answer = await fetch(server.url + path, { method: 'POST', body: '{}' });
    const { code, message } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD'], path);
    assert.deepEqual(
      [code, message],
      ['METHOD_NOT_ALLOWED', 'This address takes GET, HEAD, not POST.'],
      path,
    );
  }
});

/** In milliseconds, as the table of jobs writes a time. */
function intervalOf(written: string): number {
  if (written === '`RECONCILE_INTERVAL_MS`') return RECONCILE_INTERVAL_MS;
  const [, count = '', unit = ''] = /^(\d+) (s|min|h)$/.exec(written) ?? assert.fail(written);
  return Number(count) * ({ s: 1_000, min: 60_000, h: 3_600_000 }[unit] ?? Number.NaN);
}

test('docs/jobs.md tells of each job, and how often it runs', () => {
  const text = readFileSync(new URL('../../../../docs/jobs.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| (`[^|]+) \| ([^|]+) \|/gm)].flatMap(([, names = '', times = '']) => {
    const intervals = times.split(', ');
    return names.split(', ').map((name, at) => [name.replaceAll('`', ''), intervalOf(intervals[at] ?? '')]);
  });
  // This one runs where the configuration names a gate.
  const ofGates = rows.findIndex(([name]) => name === 'drop-gate-calls');
  assert.deepEqual(rows.splice(ofGates, 1), [['drop-gate-calls', 60_000]]);
  // This one runs where weeks are archived.
  const ofArchives = rows.findIndex(([name]) => name === 'archive-weeks');
  assert.deepEqual(rows.splice(ofArchives, 1), [['archive-weeks', 600_000]]);
  const runs = server.app.jobs.map(({ name, intervalMs }) => [name, intervalMs]);
  assert(runs.length > 40);
  assert.deepEqual(rows.toSorted(), runs.toSorted());
});
