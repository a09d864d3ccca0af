/** The name of a purchase over MCP: in `_meta`, or in the header that HTTP has for it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { countingServices } from '../fire/counting-services.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const script = { runs: 0, during: async () => {} };
let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  const services = countingServices(script, { nickel: '0.05' }, 2_000);
  server = await startTestServer({ pools: database, services });
});
after(async () => {
  await server?.close();
  await database?.close();
});

/** Calls the tool as the unmodified client does, with these headers on its connection. */
async function runOf(headers: Record<string, string>, meta?: Record<string, unknown>, name = 'a') {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }) as never,
  );
  try {
    const call = { name: 'nickel', arguments: { name }, ...(meta === undefined ? {} : { _meta: meta }) };
    const { structuredContent } = await client.callTool(call);
    return structuredContent as { run?: number; code?: string; charged?: boolean };
  } finally {
    await client.close();
  }
}

test('the header names the purchase, bare or quoted as the draft has it', async () => {
  const key = await server.key('1');
  const { run } = await runOf({ 'x-api-key': key, 'idempotency-key': 'k-1' });
  for (const same of ['k-1', '"k-1"'])
    assert.equal((await runOf({ 'x-api-key': key, 'idempotency-key': same })).run, run, same);
  assert.equal((await runOf({ 'x-api-key': key }, { 'farebox/idempotencyKey': 'k-1' })).run, run);
  const byHttp = await server.call('nickel', key, { name: 'a' }, { 'idempotency-key': 'k-1' });
  assert.equal((await jsonOf(byHttp)).run, run, 'one name over HTTP and MCP');

  const { run: quoted } = await runOf({ 'x-api-key': key, 'idempotency-key': '"k-\\"1"' });
  assert.notEqual(quoted, run);
  assert.equal((await runOf({ 'x-api-key': key, 'idempotency-key': 'k-"1' })).run, quoted);
  const { run: named } = await runOf(
    { 'x-api-key': key, 'idempotency-key': 'k-1' },
    { 'farebox/idempotencyKey': 'k-2' },
  );
  assert.notEqual(named, run, '_meta comes first');
});

test('a name that bought something else, and one that is none, are refused uncharged', async () => {
  const key = await server.key('1');
  await runOf({ 'x-api-key': key, 'idempotency-key': 'one' });
  const other = await runOf({ 'x-api-key': key, 'idempotency-key': 'one' }, undefined, 'b');
  assert.deepEqual([other.code, other.charged], ['IDEMPOTENCY_KEY_REUSED', false]);
  const unfit = await runOf({ 'x-api-key': key, 'idempotency-key': '"two words"' });
  assert.deepEqual([unfit.code, unfit.charged], ['INVALID_REQUEST', false]);
});

test('one header is refused for several calls of a batch, and taken for one', async () => {
  const key = await server.key('1');
  const call = (id: number) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'nickel', arguments: {} },
  });
  const send = (messages: object[]) =>
    fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'x-api-key': key,
        'idempotency-key': 'batch',
      },
      body: JSON.stringify(messages),
    });
  const { runs } = script;
  const refused = await send([call(1), call(2)]);
  const { code, fields } = await jsonOf(refused);
  assert.deepEqual([refused.status, code, fields[0].field], [400, 'INVALID_REQUEST', 'Idempotency-Key']);
  assert.equal(script.runs, runs);
  const taken = await send([call(3), { jsonrpc: '2.0', id: 4, method: 'ping' }]);
  assert.equal(taken.status, 200);
  assert.match(await taken.text(), /creditsUsedUsd/);
  assert.equal(script.runs, runs + 1);
});
