/**
 * Unmodified MCP clients of both lines list, are told the price, pay by every rail and repeat, against the running app
 * over HTTP.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ExactEvmScheme } from '@x402/evm';
import { x402Client } from '@x402/fetch';
import { tempo } from 'mppx/client';
import { McpClient } from 'mppx/mcp/client';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { connect } from '../../../../packages/sandbox/src/tempo/node.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';

const services = await loadServices();
/** What a client is connected to, when a test does not say. */
const MCP = '/mcp';
const CORE = '/mcp?toolset=core';
const FREE = ['search_services', 'catalog', 'service_recipe', 'credit_balance', 'get_trial_key'];
let world: MppWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
before(async () => {
  [world, database, upstreams] = await Promise.all([startMppWorld(), openTestDatabase(), startUpstreams()]);
  server = await startTestServer({
    pools: database,
    environment: { ...world.environment, ...world.made, TRIAL_ALLOW_INTERNAL: 'true' },
    upstreamsUrl: upstreams.url,
    services,
  });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

// biome-ignore lint/suspicious/noExplicitAny: what a server of anybody's may answer
type Json = Record<string, any>;
interface Result {
  isError?: boolean;
  content: { type: string; text?: string }[];
  structuredContent?: Json;
  _meta?: Json;
}
interface AnyClient {
  listTools(params?: { cursor?: string }): Promise<{ tools: { name: string }[]; nextCursor?: string }>;
  callTool(call: object): Promise<unknown>;
  listResources(): Promise<unknown>;
  readResource(asked: { uri: string }): Promise<unknown>;
  listPrompts(): Promise<unknown>;
  getPrompt(asked: object): Promise<unknown>;
  close(): Promise<void>;
}

/** The clients of both lines, and the newer one in each of its ways to begin. */
const CLIENTS: Readonly<
  Record<string, (headers: Record<string, string>, path: string) => Promise<AnyClient>>
> = {
  'SDK 1': async (headers, path) => {
    const client = new Client({ name: 'test', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(server.url + path), {
      requestInit: { headers },
    });
    await client.connect(transport as never);
    return client as unknown as AnyClient;
  },
  'SDK 2': (headers, path) => modern(headers, path, {}),
  'SDK 2, negotiating': (headers, path) => modern(headers, path, { versionNegotiation: { mode: 'auto' } }),
  'SDK 2, of 2026': (headers, path) =>
    modern(headers, path, { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
};

async function modern(headers: Record<string, string>, path: string, options: object): Promise<AnyClient> {
  const client = new ModernClient({ name: 'test', version: '1' }, options as never);
  await client.connect(new ModernTransport(new URL(server.url + path), { requestInit: { headers } }));
  return client as unknown as AnyClient;
}

type Use<T> = (client: AnyClient) => Promise<T>;

/** @param rest the address where it is not all of `/mcp`, and what is done there */
async function using<T>(
  name: string,
  headers: Record<string, string>,
  ...rest: [Use<T>] | [string, Use<T>]
): Promise<T> {
  const [path, use] = rest.length === 1 ? [MCP, rest[0]] : rest;
  const client = await (CLIENTS[name] ?? assert.fail(name))(headers, path);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const called = (client: AnyClient, call: object) => client.callTool(call) as Promise<Result>;

for (const name of Object.keys(CLIENTS)) {
  describe(name, () => {
    test('lists a tool for each service, and what is free beside them', () =>
      using(name, {}, async (client) => {
        const names = new Set<string>();
        let cursor: string | undefined;
        do {
          const page = await client.listTools(cursor === undefined ? {} : { cursor });
          for (const tool of page.tools) names.add(tool.name);
          cursor = page.nextCursor;
        } while (cursor !== undefined);
        assert.deepEqual(
          services.map(({ path }) => path.replaceAll('-', '_')).filter((tool) => !names.has(tool)),
          [],
        );
        for (const tool of FREE) assert.ok(names.has(tool), tool);
      }));

    test('is told the price before anything else', () =>
      using(name, {}, async (client) => {
        const { isError, structuredContent, _meta } = await called(client, { name: 'gas_price_oracle' });
        assert.equal(isError, true);
        assert.equal(structuredContent?.x402Version, 2);
        assert.equal(structuredContent?.resource.url, 'mcp://tool/gas_price_oracle');
        assert.ok(structuredContent?.accepts.length > 0);
        assert.equal(_meta?.['org.paymentauth/payment-required'].httpStatus, 402);
      }));

    test('pays with a key, and gets the same answer again without paying', async () => {
      const key = await server.key('1');
      await using(name, { 'x-api-key': key }, async (client) => {
        const call = {
          name: 'ping',
          arguments: { message: 'hello' },
          _meta: { 'farebox/idempotencyKey': `once-${name.replaceAll(/\W/g, '-')}` },
        };
        const first = await called(client, call);
        assert.equal(first.isError, undefined, JSON.stringify(first));
        assert.equal(first.structuredContent?.success, true);
        const again = await called(client, call);
        assert.deepEqual(again.structuredContent, first.structuredContent);
        assert.equal(again._meta?.['farebox/call'].replayed, 'true');
        const { structuredContent: balance } = await called(client, { name: 'credit_balance' });
        assert.equal(Number(balance?.balanceUsd), 1 - Number(first._meta?.['farebox/call'].creditsUsedUsd));
      });
    });

    test('is told what is wrong with its arguments, uncharged', async () => {
      const key = await server.key('1');
      await using(name, { 'x-api-key': key }, async (client) => {
        const { isError, structuredContent } = await called(client, {
          name: 'token_metadata',
          arguments: { chain: 5 },
        });
        assert.equal(isError, true);
        assert.equal(structuredContent?.code, 'INVALID_REQUEST');
        assert.equal(structuredContent?.charged, false);
      });
    });

    test('buys by the name of a service in the core, and it is the purchase that its tool makes', async () => {
      const key = await server.key('1');
      await using(name, { 'x-api-key': key }, CORE, async (client) => {
        const { tools } = await client.listTools();
        assert.deepEqual(
          tools.map((tool) => tool.name),
          [...FREE, 'call_service'],
        );
        const input = { message: `core of ${name}` };
        const _meta = { 'farebox/idempotencyKey': `core-${name.replaceAll(/\W/g, '-')}` };
        const named = { name: 'call_service', arguments: { service: 'ping', input }, _meta };
        const first = await called(client, named);
        assert.equal(first.isError, undefined, JSON.stringify(first));
        assert.equal(first._meta?.['farebox/call'].creditsUsedUsd, '0.2500');
        const again = await called(client, { name: 'ping', arguments: input, _meta });
        assert.deepEqual(again.structuredContent, first.structuredContent);
        assert.equal(again._meta?.['farebox/call'].replayed, 'true');
        const asText = { service: 'ping', input: JSON.stringify(input) };
        const third = await called(client, { ...named, arguments: asText });
        assert.equal(third._meta?.['farebox/call'].replayed, 'true');
      });
    });

    test('pays for call_service by x402, and the same payment gets the answer from the tool by name', async () => {
      const account = await world.wallet();
      const payer = new x402Client();
      payer.register('eip155:*', new ExactEvmScheme(account));
      await using(name, {}, CORE, async (client) => {
        const input = { message: `core by x402 of ${name}` };
        const call = { name: 'call_service', arguments: { service: 'ping', input } };
        const { structuredContent: terms } = await called(client, call);
        const byName = await called(client, { name: 'ping', arguments: input });
        assert.equal(terms?.resource.url, 'mcp://tool/ping');
        assert.deepEqual(terms?.accepts, byName.structuredContent?.accepts);
        const _meta = { 'x402/payment': await payer.createPaymentPayload(terms as never) };
        const paid = await called(client, { ...call, _meta });
        assert.equal(paid.isError, undefined, JSON.stringify(paid));
        const again = await called(client, { name: 'ping', arguments: input, _meta });
        assert.deepEqual(again.structuredContent, paid.structuredContent);
      });
    });

    test('pays for call_service by MPP', async () => {
      const account = await world.wallet();
      await using(name, {}, CORE, async (client) => {
        const methods = [tempo.charge({ account, getClient: () => connect(world.tempo.url) })];
        const wallet = McpClient.wrap(client as never, { methods } as never) as unknown as AnyClient;
        const input = { message: `core by MPP of ${name}` };
        const paid = (await wallet.callTool({
          name: 'call_service',
          arguments: { service: 'ping', input },
        })) as Result & { receipt?: { status: string } };
        assert.equal(paid.isError, undefined, JSON.stringify(paid));
        assert.equal(paid.receipt?.status, 'success');
      });
    });

    test('is paid for by x402', async () => {
      const account = await world.wallet();
      const payer = new x402Client();
      payer.register('eip155:*', new ExactEvmScheme(account));
      await using(name, {}, async (client) => {
        const call = { name: 'ping', arguments: { message: name } };
        const { structuredContent: terms } = await called(client, call);
        const payment = await payer.createPaymentPayload(terms as never);
        const paid = await called(client, { ...call, _meta: { 'x402/payment': payment } });
        assert.equal(paid.isError, undefined, JSON.stringify(paid));
        assert.equal(paid._meta?.['x402/payment-response'].success, true);
        const again = await called(client, { ...call, _meta: { 'x402/payment': payment } });
        assert.deepEqual(again.structuredContent, paid.structuredContent);
      });
    });

    test('is paid for by the reference client of MPP', async () => {
      const account = await world.wallet();
      await using(name, {}, async (client) => {
        const methods = [tempo.charge({ account, getClient: () => connect(world.tempo.url) })];
        const wallet = McpClient.wrap(client as never, { methods } as never) as unknown as AnyClient;
        const paid = (await wallet.callTool({ name: 'ping', arguments: { message: name } })) as Result & {
          receipt?: { status: string };
        };
        assert.equal(paid.isError, undefined, JSON.stringify(paid));
        assert.equal(paid.receipt?.status, 'success');
      });
    });
  });
}

describe('beside the paid tools', () => {
  test('call_service buys nothing where it is not told exactly what', async () => {
    const key = await server.key('1');
    await using('SDK 1', { 'x-api-key': key }, CORE, async (client) => {
      const call = (given: object) => called(client, { name: 'call_service', arguments: given });
      for (const given of [
        {},
        { service: 'ping', message: 'beside input' },
        { service: 'ping', arguments: { message: 'a' } },
        { service: 'ping', input: 'no object' },
        { service: 'ping', input: '[1]' },
        // Text that cannot be kept, spelled within the text of an object.
        { service: 'ping', input: String.raw`{"message":"a\u0000b"}` },
        { service: 'ping', input: String.raw`{"message":"\ud800"}` },
        { service: 5 },
      ]) {
        const { isError, structuredContent } = await call(given);
        assert.equal(isError, true, JSON.stringify(given));
        assert.deepEqual(
          [structuredContent?.code, structuredContent?.charged],
          ['INVALID_REQUEST', false],
          JSON.stringify(given),
        );
      }
      const { structuredContent: absent } = await call({ service: 'token_prize', input: {} });
      assert.deepEqual([absent?.code, absent?.charged], ['UNKNOWN_SERVICE', false]);
      assert.ok(absent?.services.includes('token-price'));
      const { structuredContent: itself } = await call({ service: 'call_service', input: {} });
      assert.equal(itself?.code, 'UNKNOWN_SERVICE');
      const deep = `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`;
      await assert.rejects(call({ service: 'ping', input: deep }), /nested 64 deep/);
      const { structuredContent: balance } = await called(client, { name: 'credit_balance' });
      assert.equal(Number(balance?.balanceUsd), 1);
    });
  });

  test('a toolset that is not there is refused with those that are', async () => {
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    const response = await post(list, {}, '/mcp?toolset=nonsense');
    assert.equal(response.status, 400);
    assert.match(await response.text(), /There are core, onboarding/);
  });

  test('the free ones answer what HTTP answers', () =>
    using('SDK 2', {}, async (client) => {
      const ask = async (name: string, input: object = {}) =>
        called(client, { name, arguments: input as Record<string, unknown> });
      const { structuredContent: catalog } = await ask('catalog');
      const { services: sold } = await jsonOf(await fetch(`${server.url}/x402/catalog`));
      assert.equal(catalog?.services, sold.length);
      const { structuredContent: recipe } = await ask('service_recipe', { service: 'gas_price_oracle' });
      assert.equal(recipe?.service, 'gas-price-oracle');
      const { structuredContent: found } = await ask('search_services', { query: 'gas price' });
      assert.equal(found?.services[0].tool, 'gas_price_oracle');
      const { isError, structuredContent: unfit } = await ask('search_services', { query: '' });
      assert.deepEqual([isError, unfit?.code, unfit?.fields[0].field], [true, 'INVALID_REQUEST', 'query']);
      const { isError: keyless } = await ask('credit_balance');
      assert.equal(keyless, true);
    }));

  test('a key from the free tool pays the next call', async () => {
    const answered = await using('SDK 1', {}, (client) => called(client, { name: 'get_trial_key' }));
    const { apiKey } = answered.structuredContent ?? {};
    assert.match(String(apiKey), /^fbx_/, JSON.stringify(answered));
    await using('SDK 1', { authorization: `Bearer ${apiKey}` }, async (client) => {
      const paid = await called(client, { name: 'ping', arguments: {} });
      assert.equal(paid.isError, undefined, JSON.stringify(paid));
    });
  });

  test('a refusal by another rail is named as it is below /mpp/', async () => {
    const key = await server.key('0.01');
    await using('SDK 1', { 'x-api-key': key }, async (client) => {
      const { isError, structuredContent, _meta } = await called(client, { name: 'ping' });
      assert.equal(isError, true);
      assert.equal(structuredContent?.last_error_reason.code, 'INSUFFICIENT_CREDITS');
      const { type } = _meta?.['org.paymentauth/payment-required'].problem ?? {};
      assert.equal(type, 'https://paymentauth.org/problems/payment-insufficient');
    });
  });

  test('documents can be read and prompts be had, by either line', async () => {
    for (const name of ['SDK 1', 'SDK 2, of 2026']) {
      await using(name, {}, async (client) => {
        const { resources } = (await client.listResources()) as { resources: { uri: string }[] };
        for (const { uri } of resources.slice(0, 4)) {
          const { contents } = (await client.readResource({ uri })) as { contents: { text: string }[] };
          assert.ok((contents[0]?.text.length ?? 0) > 100, uri);
        }
        await assert.rejects(client.readResource({ uri: 'farebox://services/../admin' }));
        await assert.rejects(client.readResource({ uri: 'file:///etc/passwd' }));
        const { prompts } = (await client.listPrompts()) as { prompts: { name: string }[] };
        assert.deepEqual(
          prompts.map((prompt) => prompt.name),
          ['how_to_pay', 'find_service'],
        );
        await client.getPrompt({ name: 'find_service', arguments: { task: 'watch a forest' } });
        await assert.rejects(client.getPrompt({ name: 'find_service', arguments: {} }));
      });
    }
  });

  test('what is no tool, no cursor and no message of MCP is told so', async () => {
    await using('SDK 1', {}, async (client) => {
      await assert.rejects(called(client, { name: 'no_such_tool' }), /There is no tool no_such_tool/);
      await assert.rejects(client.listTools({ cursor: 'nowhere' }), /nextCursor/);
    });
    for (const [body, status] of [
      ['', 400],
      ['{', 400],
      ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\\u0000"}}', 400],
      [JSON.stringify(Array.from({ length: 21 }, () => ({}))), 400],
      [`${'['.repeat(60_000)}${']'.repeat(60_000)}`, 400],
    ] as const) {
      const response = await post(body);
      assert.equal(response.status, status, body.slice(0, 80));
      await response.text();
    }
  });

  test('arguments that are nested too deep are refused', async () => {
    const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    const response = await post(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping","arguments":${deep}}}`,
      { 'x-api-key': await server.key('1') },
    );
    assert.match(await response.text(), /nested 64 deep at most/);
  });

  test('foreign hosts and pages are refused, those of this machine are not', async () => {
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    for (const origin of ['https://evil.test', 'null', 'https://localhost.evil.test', 'garbage'])
      assert.equal((await post(list, { origin })).status, 403, origin);
    for (const origin of ['http://localhost:6274', 'http://[::1]:3000', new URL(server.url).origin])
      assert.equal((await post(list, { origin })).status, 200, origin);
    assert.equal(await statusForHost('evil.test'), 403);
    assert.equal(await statusForHost(`evil.test:${new URL(server.url).port}`), 403);
    assert.equal(await statusForHost('farebox.test'), 200);
  });

  test('there is nothing to get and no session to end', async () => {
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${server.url}/mcp`, { method, headers: { accept: 'text/event-stream' } });
      assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST']);
    }
  });
});

const MCP_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

const post = (body: string, headers: Record<string, string> = {}, path = MCP) =>
  fetch(server.url + path, { method: 'POST', headers: { ...MCP_HEADERS, ...headers }, body });

/** By the bare client of HTTP: others do not let their user say whom they ask. */
async function statusForHost(host: string): Promise<number | undefined> {
  const { port, hostname } = new URL(server.url);
  const asked = request({ hostname, port, path: '/mcp', method: 'POST', headers: { ...MCP_HEADERS, host } });
  asked.end('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}
