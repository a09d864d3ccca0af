/** A long tool call tells whoever gave it a token that it goes on, until its result and never after; and no one else. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { countingServices, type Script } from '../fire/counting-services.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

const BRIDGE = join(import.meta.dirname, '../../../../packages/mcp-bridge/src/main.ts');
const folder = mkdtempSync(join(tmpdir(), 'farebox-progress-'));
let ended = Promise.withResolvers<void>();
const script: Script = { runs: 0, during: () => ended.promise };
let database: TestDatabase;
let server: TestServer;
before(async () => {
  database = await openTestDatabase();
  const services = countingServices(script, { slow: '0.25' }, 25_000);
  server = await startTestServer({ pools: database, services });
});
after(async () => {
  await server?.close();
  await database?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Message {
  method?: string;
  params?: { progressToken: unknown; progress: number; total: number; message: string };
  result?: { isError?: boolean };
}

/** Calls the slow tool, and keeps each message as it comes. */
function call(key: string, meta: object) {
  const messages: Message[] = [];
  const whole = (async () => {
    const answer = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'x-api-key': key,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'slow', arguments: {}, _meta: meta },
      }),
    });
    let rest = '';
    for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('data: ')) messages.push(JSON.parse(line.slice(6)));
    }
  })();
  return { messages, whole };
}

test('by the token of its caller, growing, before the result alone', async () => {
  ended = Promise.withResolvers();
  const key = await server.key('10');
  const calls = [
    { token: 'a token', ...call(key, { progressToken: 'a token' }) },
    { token: 7, ...call(key, { progressToken: 7 }) },
  ];
  const silent = call(key, {});
  await until('both to be told twice', () => calls.every(({ messages }) => messages.length >= 2));
  ended.resolve();
  await Promise.all([...calls, silent].map(({ whole }) => whole));
  for (const { token, messages } of calls) {
    const result = messages.pop();
    assert.equal(result?.result?.isError, undefined);
    assert.ok(result?.result !== undefined, 'the result comes last');
    let before = 0;
    for (const { method, params } of messages) {
      assert.equal(method, 'notifications/progress');
      assert.deepEqual(params?.progressToken, token);
      assert.ok(params.progress > before && params.total >= params.progress, JSON.stringify(params));
      before = params.progress;
    }
  }
  assert.deepEqual(
    silent.messages.map(({ method }) => method),
    [undefined],
  );
});

test('through the bridge, to an agent that asked for it', async () => {
  ended = Promise.withResolvers();
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BRIDGE],
    env: {
      ...SURROUNDINGS,
      FAREBOX_URL: server.url,
      FAREBOX_API_KEY: await server.key('10'),
      FAREBOX_SPENDING_FILE: join(folder, 'spending.sqlite'),
      NODE_NO_WARNINGS: '1',
    },
    stderr: 'ignore',
  });
  await client.connect(transport as never);
  const told: { progress: number; total?: number | undefined }[] = [];
  const bought = client.callTool({ name: 'slow', arguments: {} }, undefined, {
    timeout: 120_000,
    onprogress: (progress) => told.push(progress),
  });
  await until('the agent to be told', () => told.length >= 1);
  ended.resolve();
  const { isError } = await bought;
  const atTheEnd = told.length;
  assert.equal(isError, undefined);
  await client.listTools();
  assert.equal(told.length, atTheEnd, 'nothing comes after the result');
  assert.equal(told[0]?.total, 25);
  await client.close();
});
