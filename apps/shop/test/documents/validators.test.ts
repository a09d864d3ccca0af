/** Published validators and an index of x402 find nothing to say of a running server, but for what is listed here with its reason. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  checkL2ForOpenAPI,
  checkL4ForOpenAPI,
  getL3ForOpenAPI,
  getL3ForProbe,
  getOpenAPI,
  getProbe,
  getWarningsForFavicon,
  getWarningsForL2,
  getWarningsForL3,
  getWarningsForL4,
  getWarningsForOpenAPI,
  isOpenApiParseFailure,
} from '@agentcash/discovery';
import { findingsOf } from '../../../../packages/core/src/discovery/openapi-validators.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

let database: TestDatabase;
let world: PaymentWorld;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startUpstreams(),
  ]);
  // As an operator who names no contact.
  const environment = { ...EVERYTHING_ON, ...world.environment };
  server = await startTestServer({ pools: database, environment, upstreamsUrl: upstreams.url });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), upstreams?.stop(), database?.close()]);
});

/** The whole document, and each part of it. */
async function openapiPaths(): Promise<string[]> {
  const { knownPaths } = await jsonOf(fetch(`${server.url}/openapi/none.json`));
  const parts = knownPaths.filter((path: string) => path.startsWith('/openapi/'));
  assert(parts.length > 10, parts.join());
  return ['/openapi.json', ...parts];
}

test('Redocly, swagger-parser, openapi-schema-validator and mppx find nothing in the document or in any of its parts', async () => {
  for (const path of await openapiPaths())
    assert.deepEqual(await findingsOf(await jsonOf(fetch(server.url + path))), [], path);
});

/** What the index says of the documents and stays so, each with its reason. A document that is not named here has no finding. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  // Each service has an address of its own, and a reader of the whole is to find it. The index advises to group routes: so do
  // the parts, none of which is too long for it.
  '/openapi.json': ['warn L2_ROUTE_COUNT_HIGH'],
  // Nothing has one price there: what costs nothing, what is paid by card, what takes a key of the older family, and the call of
  // any service by its name.
  ...Object.fromEntries(
    ['core', 'credits', 'yield', 'solana-yield', 'legacy'].map((part) => [
      `/openapi/${part}.json`,
      ['info L2_NO_PAID_ROUTES'],
    ]),
  ),
  '/openapi/free.json': ['info L2_NO_PAID_ROUTES', 'warn L2_ROUTE_COUNT_HIGH'],
};

async function readByIndex(path: string) {
  const read = await getOpenAPI(server.url, undefined, undefined, server.url + path);
  const source = read._unsafeUnwrap();
  assert(source !== null && !isOpenApiParseFailure(source), `${path}: ${JSON.stringify(source)}`);
  return source;
}

test('the index finds nothing in the document and in its parts but what is known', async () => {
  for (const path of await openapiPaths()) {
    const source = await readByIndex(path);
    const found = [
      ...getWarningsForOpenAPI(source),
      ...getWarningsForL2(checkL2ForOpenAPI(source)),
      ...getWarningsForL4(checkL4ForOpenAPI(source)),
      ...source.routes.flatMap((route) =>
        getWarningsForL3(getL3ForOpenAPI(source, route.path, route.method)),
      ),
    ];
    assert.deepEqual(
      found.map(({ severity, code }) => `${severity} ${code}`),
      KNOWN[path] ?? [],
      `${path}: ${JSON.stringify(found)}`,
    );
  }
  assert.deepEqual((await getWarningsForFavicon(server.url))._unsafeUnwrap(), []);
});

test('the index finds nothing in the terms of any service, by x402 and by MPP', async () => {
  const source = await readByIndex('/openapi.json');
  const paid = source.routes.filter(({ authMode }) => authMode === 'paid' || authMode === 'apiKey+paid');
  for (const { path } of (await jsonOf(fetch(`${server.url}/x402/catalog`))).services)
    assert(
      paid.some((route) => route.path === path),
      path,
    );
  assert(paid.some(({ path }) => path.startsWith('/mpp/')));
  for (const { path, method } of paid) {
    const probed = (await getProbe(server.url + path))._unsafeUnwrap();
    const told = getL3ForProbe(probed, path, method, source);
    assert.deepEqual(getWarningsForL3(told), [], `${method} ${path}`);
    // It has read terms of version 2, and challenges where there are any.
    const protocols = told?.paymentOptions?.map((option) =>
      option.protocol === 'x402' ? `x402 v${option.version}` : option.protocol,
    );
    assert.deepEqual(
      new Set(protocols),
      new Set(['x402 v2', ...(path.startsWith('/mpp/') ? ['mpp'] : [])]),
      path,
    );
  }
});
