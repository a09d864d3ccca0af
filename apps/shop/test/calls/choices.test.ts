/**
 * Tests what an error lists that its caller may send instead. Clients of an earlier interface leave out fields that are needed here; they
 * learn at every door what there is to choose from, pay nothing, and buy with what was listed.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { MAX_CHOICES } from '../../../../packages/core/src/words/choices.ts';
import { rpc, seen } from '../agents/a2a-agents.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { register } from '../devices.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

interface Listed {
  field: string;
  value: unknown;
  about: string;
}

/** The bodies that such a client sends, and the fields that it is told values of. */
const CALLS = {
  'fleet-telematics': { body: { limit: 5 }, status: 400, fields: ['fleetId', 'deviceId'] },
  'weather-station-data': { body: { radiusKm: 25 }, status: 400, fields: ['stationId'] },
  'satellite-earthdata': { body: { dataset: 'precipitation' }, status: 400, fields: ['product'] },
  'construction-progress': { body: { projectId: 'tower-7' }, status: 422, fields: ['milestones'] },
  'compliance-check': {
    body: { entityType: 'company' },
    status: 400,
    fields: ['checkType', 'entityType', 'chain'],
  },
} as const;

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let owner: string;
let stranger: string;
before(async () => {
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams()]);
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url });
  owner = await server.key('9');
  stranger = await server.key('9');
  await register(server, owner, { deviceId: 'open-van-1', fleetId: 'open-vans' });
  await register(server, owner, { deviceId: 'open-van-2', fleetId: 'open-vans' });
  await register(server, owner, { deviceId: 'own-van-1', fleetId: 'own-vans', public: false });
  await register(server, owner, { deviceId: 'own-bike-1', public: false });
  // Without a fleet nobody is told of it, although it is sold to everybody.
  await register(server, owner, { deviceId: 'open-bike-1' });
});
after(async () => {
  await server?.close();
  await Promise.all([database?.close(), upstreams?.stop()]);
});

const balance = async (key: string) =>
  (await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }))).balanceUsd;
const valuesOf = (choices: readonly Listed[], wanted: string) =>
  choices.filter(({ field }) => field === wanted).map(({ value }) => value);

function assertListed(
  path: keyof typeof CALLS,
  { charged, choices }: { charged: unknown; choices: Listed[] },
) {
  assert.equal(charged, false, path);
  assert.ok(choices.length >= 1 && choices.length <= MAX_CHOICES, path);
  const fields: readonly string[] = CALLS[path].fields;
  for (const { field, about } of choices)
    assert.ok(fields.includes(field) && about.length > 0 && about.length <= 200, `${path} ${field} ${about}`);
}

for (const [path, { body, status }] of Object.entries(CALLS) as [
  keyof typeof CALLS,
  (typeof CALLS)[keyof typeof CALLS],
][])
  test(`${path} lists what there is to choose from, at every door, and charges nothing`, async () => {
    const before = await balance(owner);
    const overHttp = await server.call(path, owner, body);
    assert.equal(overHttp.status, status, path);
    assertListed(path, await jsonOf(overHttp));

    const headers = { 'x-api-key': owner };
    const call = { name: path.replaceAll('-', '_'), arguments: body };
    const { result } = await mcp(call, headers);
    assert.equal(result.isError, true);
    assertListed(path, result.structuredContent);
    assertListed(path, JSON.parse(result.content[0].text));

    const data = { skill: path, input: body };
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ data }] };
    const sent = await rpc(server.url, 'SendMessage', { message }, { 'a2a-version': '1.0', ...headers });
    const told = seen(sent.result?.task ?? {});
    assert.match(told.state, status === 400 ? /input.required/i : /failed/i);
    assertListed(path, told.data as { charged: unknown; choices: Listed[] });
    assert.equal(await balance(owner), before);
  });

test('with a value that was listed the same call is answered', async () => {
  for (const path of ['weather-station-data', 'satellite-earthdata', 'construction-progress'] as const) {
    const { body } = CALLS[path];
    const { choices } = (await jsonOf(server.call(path, owner, body))) as { choices: Listed[] };
    for (const { field, value } of choices) {
      const isOnLand = value === 'soil-moisture' || value === 'precipitation';
      const [lat, lon] = isOnLand ? [41.6, -93.6] : [36.2, -123.5];
      const place = path === 'satellite-earthdata' ? { lat, lon, dataset: undefined } : {};
      const answer = await server.call(path, await server.key('2'), { ...body, ...place, [field]: value });
      assert.equal(answer.status, 200, `${path} ${JSON.stringify(value)}`);
    }
  }
});

test('fleets are listed that are the caller’s own or sold to everybody, and no others', async () => {
  const listed = async (key: string) =>
    (await jsonOf(server.call('fleet-telematics', key, {}))).choices as Listed[];
  const own = await listed(owner);
  assert.deepEqual(valuesOf(own, 'fleetId'), ['open-vans', 'own-vans']);
  assert.deepEqual(valuesOf(own, 'deviceId'), ['own-bike-1', 'open-bike-1']);
  const others = await listed(stranger);
  assert.deepEqual(valuesOf(others, 'fleetId'), ['open-vans']);
  assert.deepEqual(valuesOf(others, 'deviceId'), []);
  assert.equal(others[0]?.about, 'Public, with 2 device(s)');

  const device = (id: string) =>
    fetch(`${server.url}/api/devices/${id}`, { method: 'DELETE', headers: { 'x-api-key': owner } });
  for (const id of ['open-van-1', 'open-van-2']) assert.equal((await device(id)).status, 200);
  assert.deepEqual(await listed(stranger), [], 'those that were revoked are not there any more');
});

test('nobody has to pay to learn what is missing', async () => {
  for (const path of ['weather-station-data', 'satellite-earthdata', 'compliance-check'] as const) {
    const tried = await fetch(`${server.url}/x402/${path}?dryRun=1`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(CALLS[path].body),
    });
    assert.equal(tried.status, 400);
    assertListed(path, await jsonOf(tried));
  }
});

async function mcp(params: unknown, headers: Record<string, string>) {
  const response = await fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  const text = await response.text();
  return JSON.parse(text.slice(text.indexOf('{')));
}
