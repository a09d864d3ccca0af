/** What is served and what is described are the same, whichever part a route is of. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from './database.fixture.ts';
import { EVERYTHING_ON } from './everything-on.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from './server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, environment: EVERYTHING_ON });
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

test('each part of OpenAPI is below 64 KB with everything on, and together they describe what the whole does', async () => {
  const whole = await jsonOf(fetch(`${server.url}/openapi.json`));
  const { knownPaths } = await jsonOf(fetch(`${server.url}/openapi/none.json`));
  const parts: string[] = knownPaths.filter((path: string) => path.startsWith('/openapi/'));
  for (const name of ['free', 'credits', 'yield', 'legacy', 'iot-depin'])
    assert(parts.includes(`/openapi/${name}.json`), parts.join());
  const operations = ({ paths }: { paths: Record<string, object> }) =>
    Object.entries(paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`));
  const together: string[] = [];
  for (const part of parts) {
    const text = await (await fetch(`${server.url}${part}`)).text();
    assert(Buffer.byteLength(text) < 64_000, `${part}: ${Buffer.byteLength(text)} bytes`);
    const document = JSON.parse(text);
    const found = operations(document);
    assert(found.length > 0, `${part} is empty`);
    together.push(...found);
    for (const [, name = ''] of text.matchAll(/"#\/components\/([^"]+)"/g)) {
      const [kind = '', key = ''] = name.split('/');
      assert(document.components[kind]?.[key] !== undefined, `${part} refers to ${name}, which is not in it`);
    }
  }
  assert.deepEqual(together.sort(), operations(whole).sort());
});
