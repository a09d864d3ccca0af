/** The same question finds the same services in the same order at every door that searches: one index is behind them all. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { fittingBest } from '../../../../packages/core/src/service/fitting.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type Json, rpc } from './a2a-agents.fixture.ts';

const services = await loadServices();
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
before(async () => {
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url, services });
});
after(async () => {
  await server?.close();
  await Promise.all([upstreams?.stop(), database?.close()]);
});

const QUESTIONS = [
  'what is the price of ETH in USD?',
  'is the smog bad in Beijing',
  'sentimnt of stocks',
  'vegetat',
  'token-price',
  'is this person on the OFAC list',
  '__proto__ constructor <script>alert(1)</script> \u202e%00',
  // No word of it says anything.
  'the of is a',
  '漢字',
];

const byCatalog = (words: string, more = ''): Promise<Json> =>
  jsonOf(fetch(`${server.url}/x402/catalog?q=${encodeURIComponent(words)}${more}`));

async function byTool(query: string): Promise<Json> {
  const params = { name: 'search_services', arguments: { query } };
  const response = await fetch(`${server.url}/mcp?toolset=core`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  const text = await response.text();
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text).result.structuredContent;
}

async function byDesk(text: string): Promise<string[]> {
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] };
  const { result, error } = await rpc(server.url, 'SendMessage', { message }, { 'a2a-version': '1.0' });
  const [, part] = result?.task.status.message.parts ?? assert.fail(JSON.stringify(error));
  return part.data.skills.map(({ skill }: Json) => skill);
}

for (const question of QUESTIONS)
  test(`${JSON.stringify(question)} is answered alike`, async () => {
    const wanted = fittingBest(question, services, 5).map(({ path }) => path);
    const catalog = await byCatalog(question);
    const tool = await byTool(question);
    assert.deepEqual(
      catalog.services.map(({ id }: Json) => id),
      wanted,
    );
    assert.deepEqual(
      tool.services.map(({ service }: Json) => service),
      wanted,
    );
    assert.deepEqual(await byDesk(question), wanted);
    assert.deepEqual([catalog.found, tool.found], [wanted.length, wanted.length]);
    // What is needed to buy it is the same too.
    const about = ({ inputSchema, example }: Json) => ({ inputSchema, example });
    assert.deepEqual(catalog.services.map(about), tool.services.map(about));
  });

test('the catalog that is searched says of each service what the whole one says, and how many there are', async () => {
  const whole: Json = await jsonOf(fetch(`${server.url}/x402/catalog`));
  const { services: found, ...about } = await byCatalog('price', '&limit=20');
  for (const { inputSchema: _schema, example: _example, ...entry } of found)
    assert.deepEqual(
      entry,
      whole.services.find(({ id }: Json) => id === entry.id),
    );
  const fitting = fittingBest('price', services, 20);
  assert.ok(fitting.length > 5);
  assert.equal(found.length, fitting.length);
  assert.deepEqual(
    [about.query, about.found, about.totalServices, about.availableServices],
    ['price', fitting.length, whole.totalServices, whole.availableServices],
  );
  assert.equal((await byCatalog('price', '&limit=1')).services.length, 1);
  const oldest = await jsonOf(fetch(`${server.url}/api/x402/catalog?q=price&limit=20`));
  assert.deepEqual(oldest.services, found);
});

test('nothing asked for is the whole catalog, and what cannot be asked is refused', async () => {
  const whole = await jsonOf(fetch(`${server.url}/x402/catalog`));
  for (const empty of ['', '   ', '\t']) assert.deepEqual(await byCatalog(empty), whole);
  for (const query of [
    `q=${'a'.repeat(201)}`,
    'q=a&q=b',
    'q=a&limit=0',
    'q=a&limit=21',
    'q=a&limit=1.5',
    'q=a&limit=x',
    'q=a&limit=',
  ]) {
    const response = await fetch(`${server.url}/x402/catalog?${query}`);
    const { code, fields } = (await response.json()) as Json;
    assert.deepEqual([response.status, code], [400, 'INVALID_REQUEST'], query);
    assert.match(fields[0].field, /^(q|limit)$/);
  }
});
