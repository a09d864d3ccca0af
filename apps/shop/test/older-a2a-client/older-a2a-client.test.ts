/** The published A2A client 0.2, unmodified: it reads the card that it asks for at `/.well-known/agent.json`, and buys by it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { installApart } from '../kept-apart.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

const modules = installApart(import.meta.dirname, 'the A2A client 0.2');
const skip =
  modules === null && 'NOT TESTED: the package registry cannot be reached to install the A2A client 0.2';
if (typeof skip === 'string') process.stderr.write(`\n*** ${skip} ***\n\n`);

/** What the test uses of the client. */
interface OlderClient {
  getAgentCard(): Promise<{ name: string; url: string; protocolVersion: string; skills: { id: string }[] }>;
  sendMessage(params: object): Promise<{ result?: Task; error?: { message: string } }>;
}
interface Task {
  kind: string;
  status: { state: string };
  artifacts?: { parts: { kind: string; data?: Record<string, unknown> }[] }[];
}

let database: TestDatabase;
let server: TestServer;
before(async () => {
  if (skip !== false) return;
  database = await openTestDatabase();
  server = await startTestServer({ pools: database });
});
after(async () => {
  await server?.close();
  await database?.close();
});

async function connect(): Promise<OlderClient> {
  const file = join(modules ?? assert.fail(), '@a2a-js/sdk/dist/client/index.js');
  const { A2AClient }: { A2AClient: new (url: string) => OlderClient } = await import(
    pathToFileURL(file).href
  );
  return new A2AClient(server.url);
}

const asking = (messageId: string) => ({
  message: {
    kind: 'message',
    role: 'user',
    messageId,
    parts: [{ kind: 'data', data: { skill: 'ping', input: { message: 'an older client' } } }],
  },
});

/** Requests arrive where the server listens, whatever its public address is, with what the client's program adds to each. */
function arriving(t: TestContext, headers: Record<string, string> = {}): void {
  const send = globalThis.fetch;
  t.mock.method(globalThis, 'fetch', (url: string | URL, init: RequestInit = {}) =>
    send(String(url).replace('http://farebox.test', server.url), {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init.headers)), ...headers },
    }),
  );
}

test('reads agent.json as its card, and sends to the address in there', { skip }, async (t) => {
  arriving(t);
  const client = await connect();
  const card = await client.getAgentCard();
  assert.ok(card.skills.some(({ id }) => id === 'ping'));
  const { result, error } = await client.sendMessage(asking('unpaid'));
  assert.equal(error, undefined);
  assert.deepEqual([result?.kind, result?.status.state], ['task', 'input-required']);
});

test('buys with a key that its program sends with each request', { skip }, async (t) => {
  arriving(t, { 'x-api-key': await server.key('1.00') });
  const client = await connect();
  const { result } = await client.sendMessage(asking('paid'));
  assert.equal(result?.status.state, 'completed', JSON.stringify(result));
  const [part] = result?.artifacts?.[0]?.parts ?? [];
  assert.equal(part?.data?.echo, 'an older client');
});
