/**
 * Tests that all views agree on what is sold, for how much, by which input and whether it is for sale now: every document, every tool and every live 402
 * says the same as the registry, on a running server on which some of it is not for sale.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Challenge } from 'mppx';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import type { Service } from '../../../../packages/core/src/service/define.ts';
import { inputSchemaOf } from '../../../../packages/core/src/service/json-schema.ts';
import { toolNameOf } from '../../../../packages/core/src/service/tool-name.ts';
import { toolFormOf } from '../../../../packages/core/src/service/tool-schema.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const PUBLIC_URL = 'http://farebox.test';
const services = await loadServices();
let database: TestDatabase;
let world: PaymentWorld;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
/** The paths of what a call without a credential is told the price of. */
let forSale: Set<string>;
before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startUpstreams(),
  ]);
  const environment = {
    ...EVERYTHING_ON,
    ...world.environment,
    PUBLIC_URL,
    // What leaves something behind is not sold to wallets: nothing could be sent back to them.
    X402_REFUND_KEYS: '',
    // Without these sources some services are not for sale.
    UPSTREAM_POLYMARKET_BASE_URL: 'none',
    UPSTREAM_POWER_BASE_URL: 'none',
  };
  server = await startTestServer({ pools: database, environment, upstreamsUrl: upstreams.url });
  const states = await everyOf(services, async ({ path }) => [path, (await unpaid(`/x402/${path}`)).status]);
  for (const [path, status] of states) assert.ok(status === 402 || status === 503, `${path}: ${status}`);
  forSale = new Set(states.flatMap(([path, status]) => (status === 402 ? [String(path)] : [])));
  assert.ok(forSale.size > 20 && forSale.size < services.length, `${forSale.size} of ${services.length}`);
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), upstreams?.stop(), database?.close()]);
});

// biome-ignore lint/suspicious/noExplicitAny: documents are read as whoever reads them would
type Json = any;
const unpaid = (path: string) => fetch(server.url + path, { method: 'POST' });
const read = async (path: string, headers: Record<string, string> = {}): Promise<Json> =>
  jsonOf(fetch(server.url + path, { headers }));
const text = async (path: string) => (await fetch(server.url + path)).text();

/** A few at a time: a server takes no hundred connections for a test. */
async function everyOf<T, R>(all: readonly T[], ask: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += 10)
    results.push(...(await Promise.all(all.slice(from, from + 10).map(ask))));
  return results;
}

/** One view's words about a service; things that it does not speak of are left out. */
interface Said {
  path: string;
  /** The prices as decimal USD in text or as a number, in each of the ways that the view has. */
  prices?: readonly (string | number)[];
  /** In millionths of USD. */
  micros?: readonly (string | number)[];
  schema?: Json;
  /** How a 402 has the schema, which is sent with each first contact: without its words, or of each field its type alone. */
  shortened?: 'words' | 'all' | 'tool';
  example?: Json;
  available?: boolean;
}
interface View {
  /** Which services it must have: all of them unless said otherwise. */
  has?(service: Service): boolean;
  say(): Promise<Said[]>;
}

const byMpp = ({ mpp }: Service) => mpp;
/** Services with a lasting effect are sold on chains on which money can be sent back; here there is none. */
const byWallet = ({ effect }: Service) => effect === 'read';
const isForSale = ({ path }: Service) => forSale.has(path);
const after402 = (url: string) => url.replace(/^.*\/(x402|mpp|recipes)\//, '');
const serviceOfTool = new Map(services.map((service) => [toolNameOf(service), service.path]));
const pathOfTool = (tool: string) => serviceOfTool.get(tool) ?? `no service: ${tool}`;

/** JSON Schema without what a view adds around it. */
function schemaOf({ $schema, type, ...schema }: Json): Json {
  return { type: 'object', ...schema };
}

function withoutWords(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withoutWords);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    // A field may be called so too.
    ([name, each]) => name !== 'description' || typeof each !== 'string',
  );
  return Object.fromEntries(kept.map(([name, each]) => [name, withoutWords(each)]));
}

function outlineOf({ properties = {}, required = [] }: Json): Json {
  const typesOf = ({ type, anyOf = [] }: Json) =>
    [...new Set([type, ...anyOf.map((each: Json) => each.type)].flat())].filter((each) => each !== undefined);
  const types = Object.entries<Json>(properties).map(([name, field]) => [name, typesOf(field).sort()]);
  return { required, types: Object.fromEntries(types) };
}

const SHOWN = {
  nothing: schemaOf,
  words: (schema: Json) => withoutWords(schemaOf(schema)),
  all: outlineOf,
  /** The form that tools have; the form of a form is the same. */
  tool: toolFormOf,
};

/** A schema of OpenAPI with its references followed. */
function followed(document: Json, schema: Json): Json {
  if (Array.isArray(schema)) return schema.map((each) => followed(document, each));
  if (typeof schema !== 'object' || schema === null) return schema;
  if (typeof schema.$ref === 'string') {
    const target = schema.$ref
      .slice(2)
      .split('/')
      .reduce((node: Json, name: string) => node[name], document);
    return followed(document, target);
  }
  return Object.fromEntries(Object.entries(schema).map(([name, each]) => [name, followed(document, each)]));
}

async function operations(door: 'x402' | 'mpp'): Promise<Said[]> {
  const document = await read('/openapi.json');
  return Object.entries<Json>(document.paths).flatMap(([path, { post }]): Said[] => {
    if (!path.startsWith(`/${door}/`) || post?.['x-price-usd'] === undefined) return [];
    const { schema, example } = post.requestBody.content['application/json'];
    const info = post['x-payment-info'];
    return [
      {
        path: after402(path),
        schema: followed(document, schema),
        example,
        prices: [post['x-price-usd'], info.price.amount],
        micros: (info.offers ?? []).map(({ amount }: Json) => amount),
        available: post['x-availability'] === undefined,
      },
    ];
  });
}

async function mcp(method: string, params: object): Promise<Json> {
  const answer = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const [, data = ''] = /^data: (.*)$/m.exec(await answer.text()) ?? [];
  return JSON.parse(data).result;
}

async function tools(): Promise<Json[]> {
  const listed: Json[] = [];
  let cursor: string | undefined;
  do {
    const page = await mcp('tools/list', cursor === undefined ? {} : { cursor });
    listed.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return listed.filter(({ _meta }) => _meta['farebox/service'] !== undefined);
}

/** Prices that a text says, by the link to each recipe. */
async function linesOf(path: string): Promise<Said[]> {
  const lines = await text(path);
  return [...lines.matchAll(/\/x402\/recipes\/([a-z0-9-]+)\): (\d+\.\d+) USD\. (.*)$/gm)].map(
    ([, service = '', price = '', rest = '']) => ({
      path: service,
      prices: [price],
      available: !rest.endsWith('Not for sale at the moment.'),
    }),
  );
}

const challenged = (terms: Json, path: string): Said => ({
  path,
  micros: terms.accepts.map(({ amount }: Json) => amount),
  prices: [terms.price_usd ?? terms['x-price-usd']].filter((price) => price !== undefined),
});

/**
 * Every view of what is sold. What a server says of its services in a new place, such as skills of another protocol, is a line
 * here, and nothing else.
 */
const VIEWS: Readonly<Record<string, View>> = {
  '/openapi.json': { say: () => operations('x402') },
  '/openapi.json, below /mpp/': { has: byMpp, say: () => operations('mpp') },
  '/x402/catalog': {
    say: async () =>
      (await read('/x402/catalog')).services.map((each: Json) => ({
        path: after402(each.path),
        prices: [each['x-price-usd'], each.priceUSD, each.priceUSDC],
        micros: [each.priceMicro],
        available: each.available,
      })),
  },
  '/x402/recipes/': {
    say: () =>
      everyOf(services, async ({ path }) => {
        const recipe = await read(`/x402/recipes/${path}`);
        const { x402, mpp } = recipe.payment;
        return {
          path: after402(recipe.endpoint),
          prices: [recipe.priceUsd],
          micros: [
            ...(x402 === null ? [] : [x402.amount]),
            ...(mpp?.offers ?? []).map(({ amount }: Json) => amount),
          ],
          schema: recipe.inputSchema,
          example: recipe.example,
          available: recipe.available,
        };
      }),
  },
  '/x402/payment-manifest.json': {
    say: async () =>
      (await read('/x402/payment-manifest.json')).resources
        .filter(({ networks }: Json) => networks.length > 0)
        .map((each: Json) => ({
          path: after402(each.resource),
          prices: [each.priceUsd],
          micros: [each.priceMicro],
          available: each.available,
        })),
    has: byWallet,
  },
  '/.well-known/x402': {
    has: byWallet,
    say: async () =>
      (await read('/.well-known/x402')).resources.map((url: string) => ({ path: after402(url) })),
  },
  '/.well-known/x402.json': {
    say: async () =>
      (await read('/.well-known/x402.json')).services.map((each: Json) => ({
        path: after402(each.path),
        prices: [each.priceUsd],
        available: each.available,
      })),
  },
  ...Object.fromEntries(
    ['0.3', '1.0'].map((version) => [
      `the skills of A2A ${version}`,
      {
        say: async () => {
          const card = await read('/.well-known/agent-card.json', { 'a2a-version': version });
          const [{ params } = { params: null }] = card.capabilities.extensions;
          return card.skills.map(({ id, description, examples, tags }: Json) => {
            const { skill, input } = JSON.parse(examples[0]);
            assert.equal(skill, id);
            return {
              path: id,
              prices: [/Costs (\d+\.\d+) USD a call/.exec(description)?.[1], params.pricesUsd[id]],
              available: !tags.includes('not for sale now'),
              example: input,
            };
          });
        },
      },
    ]),
  ),
  '/mpp/catalog': {
    has: byMpp,
    say: async () =>
      (await read('/mpp/catalog')).services.map((each: Json) => ({
        path: after402(each.endpoint),
        prices: [each.amount],
        micros: each.offers.map(({ amount }: Json) => amount),
        available: each.available,
      })),
  },
  '/.well-known/mpp.json': {
    has: byMpp,
    say: async () =>
      (await read('/.well-known/mpp.json')).services.map((each: Json) => ({
        path: after402(each.url),
        prices: [each.amount, each.price.amount],
        micros: each.offers.map(({ amount }: Json) => amount),
        schema: each.inputSchema,
        available: each.available,
      })),
  },
  '/.well-known/agent.json': {
    say: async () =>
      (await read('/.well-known/agent.json')).skills.map((each: Json) => ({
        path: after402(each.endpoint),
        prices: [each.pricing.amount],
        schema: each.inputSchema,
        shortened: 'tool' as const,
        available: each.available,
      })),
  },
  '/.well-known/awi.json': {
    say: async () =>
      (await read('/.well-known/awi.json')).capabilities.map((each: Json) => ({
        path: after402(each.endpoint),
        prices: [each.price.amount],
        available: each.available,
      })),
  },
  '/.well-known/agents.json': {
    say: async () =>
      (await read('/.well-known/agents.json')).flows.map((each: Json) => ({
        path: each.id,
        prices: [/Costs (\S+) USD a call/.exec(each.description)?.[1] ?? 'none'],
      })),
  },
  '/mcp/services': {
    say: async () =>
      (await read('/mcp/services')).mcpServiceMap.map((each: Json) => ({
        path: pathOfTool(each.mcpTool),
        prices: [each.priceUsd],
        schema: each.inputSchema,
        shortened: 'tool' as const,
        available: each.available,
      })),
  },
  '/.well-known/webmcp.json': {
    say: async () =>
      (await read('/.well-known/webmcp.json')).tools.map((each: Json) => ({
        path: pathOfTool(each.name),
        prices: [/Costs (\S+) USD a call/.exec(each.description)?.[1] ?? 'none'],
        schema: each.inputSchema,
        shortened: 'tool' as const,
      })),
  },
  'tools/list': {
    say: async () =>
      (await tools()).map((each) => ({
        path: pathOfTool(each.name),
        prices: [
          each._meta['farebox/price'].amountUsd,
          /Costs (\S+) USD a call/.exec(each.description)?.[1] ?? 'none',
        ],
        schema: each.inputSchema,
        shortened: 'tool' as const,
        available: each._meta['farebox/available'],
      })),
  },
  search_services: {
    say: () =>
      everyOf(services, async ({ path }) => {
        const call = { name: 'search_services', arguments: { query: path, limit: 20 } };
        const found = (await mcp('tools/call', call)).structuredContent.services;
        const each = found.find(({ service }: Json) => service === path) ?? assert.fail(path);
        return { path: pathOfTool(each.tool), prices: [each.priceUsd], available: each.available };
      }),
  },
  'resources of MCP': {
    say: async () =>
      (await mcp('resources/list', {})).resources.flatMap(({ uri }: Json) =>
        uri.startsWith('farebox://services/') ? [{ path: uri.slice('farebox://services/'.length) }] : [],
      ),
  },
  '/llms.txt': { say: () => linesOf('/llms.txt') },
  '/llms-full.txt': {
    say: async () =>
      [
        ...(await text('/llms-full.txt')).matchAll(
          /`POST \S+\/x402\/(\S+)`, (\S+) USD a call\.\n\nInput: `(.*)`\n\nExample: `(.*)`/g,
        ),
      ].map(([, path = '', price = '', schema = '', example = '']) => ({
        path,
        prices: [price],
        schema: JSON.parse(schema),
        example: JSON.parse(example),
      })),
  },
  '/sitemap.xml': {
    say: async () =>
      [...(await text('/sitemap.xml')).matchAll(/\/docs\/([a-z0-9-]+)</g)].map(([, path = '']) => ({ path })),
  },
  'the 402 below /x402/': {
    has: isForSale,
    say: () =>
      everyOf(services.filter(isForSale), async (service) => {
        const answer = await unpaid(`/x402/${service.path}`);
        const header = answer.headers.get('payment-required');
        assert.equal(header !== null, byWallet(service), `${service.path} is offered to wallets`);
        const body = await jsonOf(answer);
        if (header === null) return challenged({ ...body, accepts: [] }, service.path);
        const { accepts, extensions, resource } = JSON.parse(Buffer.from(header, 'base64').toString());
        const { info, schema } = extensions.bazaar;
        return {
          ...challenged({ ...body, accepts }, after402(resource.url)),
          example: info.input.body,
          schema: schema.properties.input.properties.body,
          shortened: 'all' as const,
        };
      }),
  },
  'the 402 below /mpp/': {
    has: (service) => isForSale(service) && byMpp(service),
    say: () =>
      everyOf(
        services.filter((service) => isForSale(service) && byMpp(service)),
        async ({ path }) => {
          const answer = await unpaid(`/mpp/${path}`);
          await answer.arrayBuffer();
          assert.equal(answer.status, 402, path);
          const challenges = Challenge.fromResponseList(answer);
          return { path, micros: challenges.map(({ request }: Json) => request.amount) };
        },
      ),
  },
  'the price of a tool call': {
    has: isForSale,
    say: () =>
      everyOf(services.filter(isForSale), async (service) => {
        const { structuredContent, _meta } = await mcp('tools/call', { name: toolNameOf(service) });
        const { challenges = [] } = _meta?.['org.paymentauth/payment-required'] ?? {};
        const said = challenged(
          structuredContent,
          pathOfTool(after402(structuredContent.resource.url).replace('mcp://tool/', '')),
        );
        const { input } = structuredContent.extensions.bazaar?.info ?? {};
        return {
          ...said,
          micros: [...(said.micros ?? []), ...challenges.map(({ request }: Json) => request.amount)],
          schema: input?.inputSchema,
          shortened: 'words' as const,
          example: input?.example,
        };
      }),
  },
};

for (const [name, { has = () => true, say }] of Object.entries(VIEWS))
  test(`${name} says what the registry says`, async () => {
    const said = await say();
    assert.deepEqual(
      said.map(({ path }) => path).sort(),
      services
        .filter(has)
        .map(({ path }) => path)
        .sort(),
    );
    for (const service of services.filter(has)) {
      const { path, priceUsd } = service;
      const each = said.find((line) => line.path === path) ?? assert.fail(path);
      for (const price of each.prices ?? [])
        assert.equal(usdToMicros(String(price)), usdToMicros(priceUsd), `${path} costs ${price}`);
      for (const micros of each.micros ?? []) assert.equal(BigInt(micros), usdToMicros(priceUsd), path);
      const told = SHOWN[each.shortened ?? 'nothing'];
      if (each.schema !== undefined) assert.deepEqual(told(each.schema), told(inputSchemaOf(service)), path);
      if (each.example !== undefined) assert.deepEqual(each.example, service.example, path);
      if (each.available !== undefined)
        assert.equal(each.available, forSale.has(path), `${path} is for sale`);
    }
  });

test('what is not for sale says so to who would pay, by every door', async () => {
  for (const service of services.filter(({ path }) => !forSale.has(path)).slice(0, 5)) {
    if (service.mpp) assert.equal((await unpaid(`/mpp/${service.path}`)).status, 503, service.path);
    const { structuredContent } = await mcp('tools/call', { name: toolNameOf(service) });
    assert.equal(structuredContent.code, 'SERVICE_UNAVAILABLE', service.path);
  }
});
