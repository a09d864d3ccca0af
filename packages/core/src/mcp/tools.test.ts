import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadServices } from '../../../catalogue/src/services/registry.ts';
import { TAGS } from '../../../catalogue/src/services/tags.ts';
import { Problem } from '../http/problem.ts';
import type { Service } from '../service/define.ts';
import { inputSchemaOf } from '../service/json-schema.ts';
import { CALL_TOOL } from './calling.ts';
import { createFreeTools } from './free-tools.ts';
import { breaches, strictForm } from './provider-rules.fixture.ts';
import { createToolList, MAX_PAGE_BYTES, type Tool } from './tools.ts';
import { EVERY_TOOL, listedOf, readToolset, toolsetName } from './toolsets.ts';

const services = await loadServices();
const shelf = { services, leftOut: [], soldBefore: [] };
const forSale = { available: true, reason: null, message: null, retryAfterMs: 0, chains: [] } as const;
const free = { name: 'catalog', title: 'Catalog' } as Tool;

function allPages(list: ReturnType<typeof createToolList>, toolset = EVERY_TOOL) {
  const pages = [list.page(toolset, undefined)];
  for (let cursor = pages[0]?.nextCursor; cursor !== undefined; cursor = pages.at(-1)?.nextCursor)
    pages.push(list.page(toolset, cursor));
  return pages.map((page) => page ?? assert.fail('a cursor leads nowhere'));
}

test('every service stands on one page, and no page is too large', () => {
  const pages = allPages(createToolList(shelf, [free], CALL_TOOL, () => forSale));
  assert.ok(pages.length > 1);
  for (const page of pages) assert.ok(Buffer.byteLength(JSON.stringify(page)) <= MAX_PAGE_BYTES + 100);
  const names = pages.flatMap(({ tools }) => tools.map(({ name }) => name));
  assert.deepEqual(names, ['catalog', ...services.map(({ path }) => path.replaceAll('-', '_'))]);
});

test('a cursor that no page had leads nowhere', () => {
  const list = createToolList(shelf, [free], CALL_TOOL, () => forSale);
  for (const cursor of ['', 'page-0', 'page-99', 'page-01', '__proto__', 'page--1'])
    assert.equal(list.page(EVERY_TOOL, cursor), null);
});

test('a tool says when it is not for sale, and the list is made anew when that changes', () => {
  let available = true;
  const [service = assert.fail()] = services;
  const list = createToolList({ services: [service], leftOut: [], soldBefore: [] }, [], CALL_TOOL, () =>
    available ? forSale : { ...forSale, available, message: 'Its source is down.' },
  );
  const shown = () => list.page(EVERY_TOOL, undefined)?.tools[0] ?? assert.fail();
  assert.equal(shown(), shown());
  assert.equal(shown()._meta['farebox/available'], true);
  available = false;
  assert.equal(shown()._meta['farebox/available'], false);
  assert.match(shown().description, /Its source is down\.$/);
});

test('above 100 routes of other APIs the core alone is listed, unless tags are asked for, and each can be called', () => {
  const [service = assert.fail()] = services;
  const routes = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      ...service,
      path: `get-${index}`,
      route: { method: 'GET', address: `/${index}`, shown: {} } as Service['route'],
    }));
  const namesOf = (count: number, toolset = EVERY_TOOL) =>
    allPages(
      createToolList(
        { services: routes(count), leftOut: [], soldBefore: [] },
        [free],
        CALL_TOOL,
        () => forSale,
      ),
      toolset,
    ).flatMap(({ tools }) => tools.map(({ name }) => name));
  assert.equal(namesOf(100).length, 101);
  assert.deepEqual(namesOf(101), ['catalog', 'call_service']);
  assert.equal(namesOf(101, readToolset(toolsetName(service.tag), TAGS)).length, 102);
  const list = createToolList(
    { services: routes(101), leftOut: [], soldBefore: [] },
    [free],
    CALL_TOOL,
    () => forSale,
  );
  assert.equal(list.serviceOf('get_100')?.path, 'get-100');
  // However many services the shop has of its own, they are listed.
  assert.equal(listedOf(EVERY_TOOL, services), EVERY_TOOL);
});

test('two tools of one name are refused at the start', () => {
  const [service = assert.fail()] = services;
  const twin = { ...free, name: service.path.replaceAll('-', '_') };
  assert.throws(
    () =>
      createToolList({ services: [service], leftOut: [], soldBefore: [] }, [twin], CALL_TOOL, () => forSale),
    /two tools are named/,
  );
});

const lines = services.map((service) => ({ ...service, available: true, aliasOf: null, chains: [] }));
const freeTools = createFreeTools(
  () => assert.fail(),
  shelf,
  () => lines,
  'http://farebox.test',
);
const asker = { headers: {}, remoteAddress: undefined };
const toolList = createToolList(shelf, freeTools.tools, CALL_TOOL, () => forSale);
const toolsOf = (toolset: string) =>
  allPages(toolList, readToolset(toolset, TAGS)).flatMap(({ tools }) => tools);
const everyTool = toolsOf('core,all');

test('providers of models accept every tool', () => {
  assert.deepEqual(everyTool.flatMap(breaches), []);
});

test('a tool that providers refuse is found out, by each rule', () => {
  const field = (schema: object) => ({ type: 'object', properties: { field: schema } });
  for (const [inputSchema, rule] of [
    [{ type: 'object', anyOf: [{ required: ['a'] }] }, '/ has anyOf'],
    [{ properties: {} }, '/ is no object'],
    [field({ type: 'array', prefixItems: [{ type: 'number' }], items: false }), '/field has prefixItems'],
    [field({ type: 'array' }), '/field/items is no schema'],
    [field({ type: ['string', 'object'] }), '/field has not one type'],
    [field({ enum: ['a', 1], type: 'string' }), '/field has an enum of other than texts'],
    [field({ anyOf: [{ type: 'string' }], description: 'x' }), '/field has anyOf and more beside it'],
    [{ type: 'object', required: ['gone'] }, '/ requires gone, which it lacks'],
  ] as const)
    assert.ok(
      breaches({ name: 'sample', description: 'A sample.', inputSchema }).includes(`sample: ${rule}`),
      rule,
    );
  const unnamed = { name: 'a b', description: '', inputSchema: { type: 'object' } };
  assert.deepEqual(breaches(unnamed), ['a b: its name', 'a b: its description']);
});

test('all tools but these have a strict form: these take objects of any fields', () => {
  const loose = everyTool.filter(({ inputSchema }) => strictForm(inputSchema) === null);
  assert.deepEqual(loose.map(({ name }) => name).sort(), LOOSE);
});

const LOOSE = ['call_service', 'fraud_detection', 'transaction_preflight'];

test('what spends says so, and names its price where a person reads it', () => {
  const paid = everyTool.filter(({ _meta }) => _meta['farebox/service'] !== undefined);
  assert.equal(paid.length, services.length);
  for (const { name, title, annotations, _meta } of paid) {
    assert.deepEqual([annotations.readOnlyHint, annotations.destructiveHint], [false, false], name);
    const { amountUsd } = _meta['farebox/price'] as { amountUsd: string };
    assert.ok(title.endsWith(`(${amountUsd} USD)`), title);
    assert.equal(annotations.title, title);
  }
});

test('what must be given together stands in the words of the tool', () => {
  const about = (name: string) => everyTool.find((tool) => tool.name === name)?.description ?? '';
  assert.match(about('token_price'), /Needs tokenAddress and chain, or symbol\./);
  for (const service of services.filter((each) => inputSchemaOf(each).anyOf !== undefined))
    assert.match(about(service.path.replaceAll('-', '_')), / Needs .+, or .+\./, service.path);
});

test('no list of values has the same value twice, as a number and as text', () => {
  for (const service of services) {
    const text = JSON.stringify(inputSchemaOf(service));
    for (const [, values = ''] of text.matchAll(/"anyOf":(\[(?:\{"enum":\[[^\]]*\]\},?)+\])/g)) {
      const all = (JSON.parse(values) as { enum: unknown[] }[]).flatMap((each) => each.enum.map(String));
      assert.equal(new Set(all).size, all.length, `${service.path}: ${values}`);
    }
  }
});

/**
 * English and JSON have some four characters a token in the encodings of today. Three is less than any text here was measured
 * to have.
 */
const CHARACTERS_A_TOKEN = 3;
const tokensOf = (value: unknown) =>
  Math.ceil((typeof value === 'string' ? value : JSON.stringify(value)).length / CHARACTERS_A_TOKEN);

test('the core is the free tools and the one that buys, in 600 tokens as a model is handed them', () => {
  const core = toolsOf('core');
  assert.deepEqual(
    core.map(({ name }) => name),
    [...freeTools.tools.map(({ name }) => name), 'call_service'],
  );
  const handed = core.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  assert.ok(tokensOf(handed) <= 600, `${tokensOf(handed)}`);
});

test('the catalog by tool is a line for each service, in 2,500 tokens', async () => {
  const { body = '' } = (await freeTools.call('catalog', {}, asker)) ?? {};
  for (const { path, priceUsd } of services) assert.ok(body.includes(`"${path} ${priceUsd} `), path);
  assert.ok(tokensOf(body) <= 2_500, `${tokensOf(body)}`);
});

test('what is found has the schema, the price and an example of its input', async () => {
  const { body = '' } =
    (await freeTools.call('search_services', { query: 'price of ETH', maxPriceUsd: 0.3 }, asker)) ?? {};
  const [first] = JSON.parse(body).services;
  assert.deepEqual([first.service, first.priceUsd, first.available], ['token-price', '0.25', true]);
  assert.deepEqual(first.inputSchema, everyTool.find(({ name }) => name === first.tool)?.inputSchema);
  for (const { priceUsd } of JSON.parse(body).services) assert.ok(Number(priceUsd) <= 0.3);
});

test('a free tool takes null for what is left out, as strict function calling writes it', async () => {
  const answer = (input: object) =>
    freeTools.call('search_services', { query: 'price of ETH', ...input }, asker);
  assert.deepEqual(await answer({ maxPriceUsd: null, limit: null }), await answer({}));
  assert.equal((await answer({ query: null }))?.status, 400);
});

test('a toolset lists the free tools and those of its tags, by either name of a tag, once', () => {
  const tagsIn = (toolset: string) => [
    ...new Set(toolsOf(toolset).flatMap(({ _meta }) => _meta['farebox/tag'] ?? [])),
  ];
  assert.deepEqual(tagsIn('trading,satellite'), ['Trading Intelligence', 'Satellite Intelligence']);
  assert.deepEqual(tagsIn('Satellite_Intelligence , iot,IOT'), ['Satellite Intelligence', 'IoT & DePIN']);
  for (const toolset of ['trading', 'core', 'core,ai'])
    for (const { name } of freeTools.tools) assert.ok(toolsOf(toolset).some((tool) => tool.name === name));
  assert.ok(toolsOf('core,ai').some(({ name }) => name === 'call_service'));
  assert.ok(!toolsOf('ai').some(({ name }) => name === 'call_service'));
  for (const all of ['', 'all', undefined, ',,']) assert.equal(readToolset(all, TAGS), EVERY_TOOL, all);
  assert.deepEqual(readToolset(['ai', 'core'], TAGS), readToolset('core,ai', TAGS));
  assert.deepEqual(
    new Set(TAGS.map(toolsetName)).size,
    TAGS.length,
    'no two tags have the same name in an address',
  );
});

test('a toolset that there is none of is refused with those that there are', () => {
  for (const toolset of ['nonsense', 'trading,__proto__', 'a'.repeat(1_000), 7, { core: 1 }])
    assert.throws(
      () => readToolset(toolset, TAGS),
      (error) => error instanceof Problem && error.status === 400 && /core, onboarding/.test(error.message),
    );
});

test('more toolsets than are kept are made anew, and each is right', () => {
  for (let turn = 0; turn < 2; turn += 1)
    for (let mask = 1; mask < 200; mask += 1) {
      const tags = TAGS.filter((_, index) => (mask >> index) & 1);
      const shown = toolList.page(readToolset(tags.map(toolsetName).join(','), TAGS), undefined)?.tools ?? [];
      const wrong = shown.filter(({ _meta }) => !tags.some((tag) => (_meta['farebox/tag'] ?? tag) === tag));
      assert.deepEqual(wrong, []);
    }
});
