/** The bridge of desktop agents, as they start it: a process of its own between an SDK's client and the running app. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { createKeyPairSignerFromPrivateKeyBytes, getBase58Decoder, getBase58Encoder } from '@solana/kit';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { breaches } from '../../../../packages/core/src/mcp/provider-rules.fixture.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { fundTempo } from '../../../../packages/sandbox/src/tempo/faucet.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { type CuttingProxy, openCuttingProxy } from '../operator/cutting-proxy.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

const MAIN = join(import.meta.dirname, '../../../../packages/mcp-bridge/src/main.ts');
const services = await loadServices();
const folder = mkdtempSync(join(tmpdir(), 'farebox-bridge-'));
let world: MppWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let proxy: CuttingProxy;
let files = 0;
before(async () => {
  [world, database, upstreams] = await Promise.all([
    startMppWorld({ solana: true }),
    openTestDatabase(),
    startUpstreams(),
  ]);
  server = await startTestServer({
    pools: database,
    environment: { ...world.environment, ...world.made },
    upstreamsUrl: upstreams.url,
    services,
  });
  proxy = await openCuttingProxy(server.url);
});
after(async () => {
  await proxy?.close();
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  proxy.set(() => 'arrives');
  proxy.seen.length = 0;
});

// biome-ignore lint/suspicious/noExplicitAny: what a server of anybody's may answer
type Json = Record<string, any>;
interface Result {
  isError?: boolean;
  structuredContent?: Json;
  _meta?: Json;
}
type Environment = Record<string, string>;

/** A file of its own: who was the same person yesterday hands the same one over. */
function newFile(): string {
  files += 1;
  return join(folder, `${files}.sqlite`);
}
const environmentOf = (given: Environment): Environment => ({
  ...SURROUNDINGS,
  FAREBOX_URL: proxy.url,
  FAREBOX_SPENDING_FILE: newFile(),
  FAREBOX_SANDBOX_WALLET: 'true',
  NODE_NO_WARNINGS: '1',
  ...given,
});
const starting = { command: process.execPath, args: [MAIN], stderr: 'pipe' as const };

interface Bridge {
  client: Client;
  pid: number;
  /** What it wrote to its standard error. */
  words(): string;
}

async function withBridge<T>(
  given: Environment,
  use: (bridge: Bridge) => Promise<T>,
  elicit?: (asked: Json) => object,
): Promise<T> {
  const capabilities = elicit === undefined ? {} : { elicitation: {} };
  const client = new Client({ name: 'test', version: '1' }, { capabilities });
  if (elicit !== undefined)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicit(params as Json) as never);
  const transport = new StdioClientTransport({ ...starting, env: environmentOf(given) });
  let words = '';
  transport.stderr?.on('data', (bytes) => {
    words += bytes;
  });
  await client.connect(transport as never);
  try {
    return await use({ client, pid: transport.pid ?? assert.fail(), words: () => words });
  } finally {
    await client.close();
    for (const secret of [
      given.FAREBOX_API_KEY,
      given.FAREBOX_EVM_PRIVATE_KEY,
      given.FAREBOX_SOLANA_PRIVATE_KEY,
    ])
      if (secret !== undefined) assert.ok(!words.includes(secret), 'the bridge has told its secret');
  }
}

const called = async (client: Client, name: string, input: object = {}) =>
  (await client.callTool({ name, arguments: input as Json })) as Result;
const ping = (client: Client, message: string) => called(client, 'ping', { message });
const PAID = /farebox\/idempotencyKey|x402\/payment|org\.paymentauth\/credential/;
const paidCalls = () => proxy.seen.filter(({ body }) => PAID.test(body));
const paymentsSent = () =>
  new Set(
    paidCalls().map(({ body }) => JSON.stringify({ ...JSON.parse(body).params._meta, progressToken: 0 })),
  );

async function balanceOf(apiKey: string): Promise<number> {
  const { balanceUsd } = await jsonOf(
    fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': apiKey } }),
  );
  return Number(balanceUsd);
}

async function evmWallet(usd: number) {
  const privateKey = generatePrivateKey();
  const { address } = privateKeyToAccount(privateKey);
  if (usd > 0) await fund(world.base.chain.url, address, { usdcMicros: BigInt(usd * 1e6), ethWei: 0n });
  return { address, environment: { FAREBOX_EVM_PRIVATE_KEY: privateKey } as Environment };
}

async function solanaWallet() {
  const seed = crypto.getRandomValues(new Uint8Array(32));
  const { address } = await createKeyPairSignerFromPrivateKeyBytes(seed);
  const rpcUrl = world.base.solana?.url ?? '';
  await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'sandbox_fund',
      params: [address, { usdcUnits: 5_000_000 }],
    }),
  });
  const secret = new Uint8Array([...seed, ...getBase58Encoder().encode(address)]);
  return { FAREBOX_SOLANA_PRIVATE_KEY: getBase58Decoder().decode(secret), FAREBOX_SOLANA_RPC_URL: rpcUrl };
}

/** Every tool that the bridge lists, page by page. */
async function toolsOf(client: Client) {
  const { tools, nextCursor } = await client.listTools({});
  for (let cursor = nextCursor; cursor !== undefined; ) {
    const page = await client.listTools({ cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  }
  return tools.map(({ description = '', ...tool }) => ({ ...tool, description }));
}

describe('what is shown', () => {
  test('with the toolset of a desktop agent, tools that providers of models accept', () =>
    withBridge({ FAREBOX_TOOLSET: 'core' }, async ({ client }) => {
      const tools = await toolsOf(client);
      assert.ok(tools.some(({ name }) => name === 'call_service'));
      assert.ok(tools.length < 10);
      assert.deepEqual(tools.flatMap(breaches), []);
    }));

  test('the tools, documents and prompts of the server, and its prices to who has nothing to pay with', () =>
    withBridge({}, async ({ client }) => {
      const tools = await toolsOf(client);
      assert.deepEqual(
        tools.slice(-services.length).map(({ name }) => name),
        services.map(({ path }) => path.replaceAll('-', '_')),
      );
      assert.deepEqual(tools.flatMap(breaches), [], 'providers of models accept every tool');
      const found = await called(client, 'search_services', { query: 'gas price' });
      assert.equal(found.structuredContent?.services[0].tool, 'gas_price_oracle');
      const { resources } = await client.listResources();
      assert.ok(resources.length > services.length);
      const read = await client.readResource({ uri: 'farebox://overview' });
      assert.equal(read.contents.length, 1);
      assert.equal((await client.listPrompts()).prompts.length, 2);
      await client.getPrompt({ name: 'find_service', arguments: { task: 'watch a forest' } });
      const { isError, structuredContent } = await ping(client, 'unpaid');
      assert.deepEqual(
        [isError, structuredContent?.x402Version, structuredContent?.price_usd],
        [true, 2, 0.25],
      );
      await assert.rejects(called(client, 'no_such_tool'), /There is no tool no_such_tool/);
      await assert.rejects(client.readResource({ uri: 'file:///etc/passwd' }), /There is no resource/);
    }));

  test('snippets of configuration, without a secret, and which setting is wrong, without its value', async () => {
    const secret = `0x${'5ec4e7'.repeat(11)}`;
    const run = async (args: string[], env: Environment) => {
      const child = spawn(process.execPath, [MAIN, ...args], { env: { ...environmentOf({}), ...env } });
      const [out, err, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'exit'),
      ]);
      return { out, err, code };
    };
    const { out, code } = await run(['setup'], { FAREBOX_API_KEY: 'fbx_live_of_a_person' });
    assert.equal(code, 0);
    assert.ok(!out.includes('of_a_person'));
    const snippets = [...out.matchAll(/^\{\n[\s\S]*?^\}/gm)].map(([json]) => JSON.parse(json));
    assert.equal(snippets.length, 5);
    for (const { mcpServers, servers } of snippets.slice(0, -1)) {
      const { command, args } = (mcpServers ?? servers).farebox;
      assert.deepEqual([command, args], [process.execPath, [MAIN]]);
    }
    for (const [env, named] of [
      [{ FAREBOX_EVM_PRIVATE_KEY: secret }, 'FAREBOX_EVM_PRIVATE_KEY'],
      [{ FAREBOX_SOLANA_PRIVATE_KEY: '1'.repeat(88) }, 'private key'],
      [{ FAREBOX_API_KEY: 'fbx_live_1', FAREBOX_EVM_PRIVATE_KEY: `0x${'1'.repeat(64)}` }, 'one of them'],
      [{ FAREBOX_MAX_USD_PER_DAY: '-1' }, 'FAREBOX_MAX_USD_PER_DAY'],
      [{ FAREBOX_MAX_USD_PER_CALL: '1e3' }, 'FAREBOX_MAX_USD_PER_CALL'],
      [{ FAREBOX_NETWORKS: 'base,mars' }, 'FAREBOX_NETWORKS'],
      [{ FAREBOX_URL: 'file:///etc/passwd' }, 'FAREBOX_URL'],
    ] as const) {
      const said = await run([], env as Environment);
      assert.equal(said.code, 1, said.err);
      assert.match(said.err, new RegExp(named));
      assert.ok(!said.err.includes(secret) && said.out === '', said.err);
    }
  });
});

describe('it pays', () => {
  test('with a key, each call once', async () => {
    const key = await server.key('1');
    await withBridge({ FAREBOX_API_KEY: key }, async ({ client }) => {
      const first = await ping(client, 'hello');
      assert.equal(first.isError, undefined, JSON.stringify(first));
      assert.equal(first.structuredContent?.success, true);
      assert.equal((await ping(client, 'hello')).isError, undefined, 'an answered question is asked anew');
      const { structuredContent } = await called(client, 'credit_balance');
      assert.equal(Number(structuredContent?.balanceUsd), 0.5);
      const wrong = await called(client, 'token_metadata', { chain: 5 });
      assert.deepEqual([wrong.isError, wrong.structuredContent?.code], [true, 'INVALID_REQUEST']);
    });
    assert.equal(paymentsSent().size, 3);
  });

  test('from a wallet on an EVM chain and on Solana', async () => {
    const { address, environment } = await evmWallet(1);
    for (const wallet of [environment, await solanaWallet()])
      await withBridge(wallet, async ({ client }) => {
        const bought = await ping(client, 'from a wallet');
        assert.equal(bought.isError, undefined, JSON.stringify(bought));
        assert.equal(bought._meta?.['x402/payment-response'].success, true);
      });
    assert.equal(await world.holds(address, 'evm'), 750_000n);
  });

  test('a sandbox is paid by no wallet that was not made for one', async () => {
    const { address, environment } = await evmWallet(1);
    await withBridge({ ...environment, FAREBOX_SANDBOX_WALLET: 'false' }, async ({ client }) => {
      const refused = await ping(client, 'from a wallet with real money');
      assert.equal(refused.structuredContent?.bridge.code, 'SANDBOX_REFUSED');
    });
    assert.equal(paymentsSent().size, 0);
    assert.equal(await world.holds(address, 'evm'), 1_000_000n);
  });

  test('from a wallet by MPP, on an EVM chain and on Tempo, once though the answer is cut off', async () => {
    for (const [method, FAREBOX_NETWORKS] of [
      ['evm', 'base'],
      ['tempo', 'tempo'],
    ] as const) {
      const { address, environment } = await evmWallet(1);
      await fundTempo(world.tempo.url, address, 1_000_000n);
      const before = await world.received(method);
      const chosen = { FAREBOX_PAY_BY: 'mpp', FAREBOX_NETWORKS, FAREBOX_TEMPO_RPC_URL: world.tempo.url };
      const given = { ...environment, ...chosen, FAREBOX_MAX_USD_PER_DAY: '0.30' };
      proxy.seen.length = 0;
      loseFirst('cut', 2);
      await withBridge(given, async ({ client }) => {
        const bought = await ping(client, 'by MPP');
        assert.equal(bought.isError, undefined, JSON.stringify(bought));
        assert.equal(bought._meta?.['farebox/call'].replayed, 'true');
        const receipt = bought._meta?.['org.paymentauth/receipt'];
        assert.deepEqual([receipt.method, receipt.status], [method, 'success']);
        assert.equal((await ping(client, 'above the limit')).structuredContent?.code, 'ABOVE_LIMIT');
      });
      assert.deepEqual([paidCalls().length, paymentsSent().size], [3, 1], method);
      assert.equal((await world.received(method)) - before, 250_000n, method);
    }
  });

  test('a refusal costs nothing, and counts for nothing with a key', async () => {
    const poor = await server.key('0.10');
    await withBridge({ FAREBOX_API_KEY: poor, FAREBOX_MAX_USD_PER_DAY: '0.30' }, async ({ client }) => {
      for (const message of ['one', 'two', 'three']) {
        const { structuredContent } = await ping(client, message);
        assert.equal(structuredContent?.last_error_reason.code, 'INSUFFICIENT_CREDITS');
      }
    });
    const { environment } = await evmWallet(0);
    await withBridge(environment, async ({ client }) => {
      const { isError, structuredContent } = await ping(client, 'without money');
      assert.deepEqual([isError, structuredContent?.x402Version], [true, 2]);
    });
  });
});

/** The answer to the first paid call of all is lost in this way. */
function loseFirst(fate: 'cut' | 'held', times = 1): void {
  let lost = 0;
  proxy.set((body) => {
    if (!PAID.test(body) || lost === times) return 'arrives';
    lost += 1;
    return fate;
  });
}

describe('nothing is paid twice', () => {
  test('when the answer is cut off: the same payment is sent until it is answered', async () => {
    const key = await server.key('1');
    const { address, environment } = await evmWallet(1);
    for (const given of [{ FAREBOX_API_KEY: key }, environment]) {
      proxy.seen.length = 0;
      loseFirst('cut', 2);
      await withBridge(given, async ({ client }) => {
        const bought = await ping(client, 'cut off');
        assert.equal(bought.isError, undefined, JSON.stringify(bought));
        assert.equal(bought._meta?.['farebox/call'].replayed, 'true');
      });
      assert.deepEqual([paidCalls().length, paymentsSent().size], [3, 1]);
    }
    assert.equal(await balanceOf(key), 0.75);
    assert.equal(await world.holds(address, 'evm'), 750_000n);
  });

  for (const [how, end] of [
    ['who asked has given up', null],
    ['the bridge was killed', 'SIGKILL'],
  ] as const)
    test(`when ${how} before the answer came: the same call again has it`, async () => {
      const key = await server.key('1');
      const { address, environment } = await evmWallet(1);
      for (const pays of [{ FAREBOX_API_KEY: key }, environment]) {
        const given = { ...pays, FAREBOX_SPENDING_FILE: newFile() };
        proxy.seen.length = 0;
        const waiting = proxy.held() + 1;
        loseFirst('held');
        await withBridge(given, async ({ client, pid }) => {
          const gaveUp = new AbortController();
          const lost = client.callTool({ name: 'ping', arguments: { message: how } }, undefined, {
            signal: gaveUp.signal,
          });
          await Promise.all([
            assert.rejects(lost),
            until('the answer is held', () => proxy.held() === waiting).then(() =>
              end === null ? gaveUp.abort() : process.kill(pid, end),
            ),
          ]);
          if (end !== null) return;
          const again = await ping(client, how);
          assert.equal(again._meta?.['farebox/call'].replayed, 'true');
        });
        if (end !== null)
          await withBridge(given, async ({ client }) => {
            const again = await ping(client, how);
            assert.equal(again._meta?.['farebox/call'].replayed, 'true', JSON.stringify(again));
          });
        assert.equal(paymentsSent().size, 1);
      }
      assert.equal(await balanceOf(key), 0.75);
      assert.equal(await world.holds(address, 'evm'), 750_000n);
    });

  test('when the same is asked ten times at once, here and by another process', async () => {
    const { address, environment } = await evmWallet(1);
    const given = { ...environment, FAREBOX_SPENDING_FILE: newFile() };
    let late = false;
    // No answer is out before the last has been asked.
    proxy.set((body) => (/x402\/payment/.test(body) && !late ? 'cut' : 'arrives'));
    await withBridge(given, (one) =>
      withBridge(given, async (two) => {
        const asked = Array.from({ length: 10 }, (_, n) => ping((n % 2 === 0 ? one : two).client, 'at once'));
        await until('all have paid', () => paidCalls().length >= 10);
        late = true;
        for (const result of await Promise.all(asked))
          assert.equal(result.isError, undefined, JSON.stringify(result));
      }),
    );
    assert.equal(paymentsSent().size, 1);
    assert.equal(await world.holds(address, 'evm'), 750_000n);
  });
});

describe('limits', () => {
  const wallet = () => server.key('20');

  test('above that of a call nothing is bought without a person, who is named the price', async () => {
    const key = await wallet();
    await withBridge({ FAREBOX_API_KEY: key, FAREBOX_MAX_USD_PER_CALL: '0.24' }, async ({ client }) => {
      const { isError, structuredContent } = await ping(client, 'dear');
      assert.deepEqual(
        [isError, structuredContent?.code, structuredContent?.charged],
        [true, 'ABOVE_LIMIT', false],
      );
      assert.match(structuredContent?.message, /0\.25 USD.*0\.24 USD/);
    });
    assert.equal(await balanceOf(key), 20);
  });

  test('that of a day holds over a restart, for many calls at once, and to the micro-dollar', async () => {
    const key = await wallet();
    const given = {
      FAREBOX_API_KEY: key,
      FAREBOX_SPENDING_FILE: newFile(),
      FAREBOX_MAX_USD_PER_DAY: '0.50',
    };
    await withBridge(given, async ({ client }) =>
      assert.equal((await ping(client, 'first')).isError, undefined),
    );
    await withBridge(given, async ({ client }) => {
      const results = await Promise.all(Array.from({ length: 8 }, (_, n) => ping(client, `number ${n}`)));
      assert.equal(results.filter(({ isError }) => isError === undefined).length, 1);
      for (const { structuredContent } of results.filter(({ isError }) => isError === true))
        assert.equal(structuredContent?.code, 'ABOVE_LIMIT');
    });
    await withBridge({ ...given, FAREBOX_MAX_USD_PER_DAY: '0.749999' }, async ({ client }) =>
      assert.equal((await ping(client, 'last')).structuredContent?.code, 'ABOVE_LIMIT'),
    );
    assert.equal(await balanceOf(key), 19.5);
    assert.equal(statSync(given.FAREBOX_SPENDING_FILE).mode & 0o077, 0, 'payments are for its owner alone');
  });

  test('a person agrees, declines, or says neither', async () => {
    const key = await wallet();
    const said: [answer: object, code: string | undefined][] = [
      [{ action: 'accept', content: { buy: true } }, undefined],
      [{ action: 'accept', content: { buy: false } }, 'DECLINED'],
      [{ action: 'decline' }, 'DECLINED'],
      [{ action: 'cancel' }, 'DECLINED'],
    ];
    const questions: string[] = [];
    await withBridge(
      { FAREBOX_API_KEY: key, FAREBOX_MAX_USD_PER_CALL: '0' },
      async ({ client }) => {
        for (const [, code] of said) {
          const { structuredContent } = await ping(client, 'may I');
          assert.equal(structuredContent?.code, code, JSON.stringify(structuredContent));
        }
      },
      ({ message, requestedSchema }) => {
        assert.match(requestedSchema.properties.buy.title, /0\.25 USD/);
        questions.push(message);
        return said[questions.length - 1]?.[0] ?? {};
      },
    );
    assert.equal(questions.length, said.length);
    for (const question of questions) assert.match(question, /^ping costs 0\.25 USD/);
    assert.equal(await balanceOf(key), 19.75);
  });

  test('a client of 2026 asks its person too', async () => {
    const key = await wallet();
    const client = new ModernClient({ name: 'test', version: '1' }, {
      capabilities: { elicitation: {} },
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    } as never);
    client.setRequestHandler(
      'elicitation/create',
      () => ({ action: 'accept', content: { buy: true } }) as never,
    );
    const given = environmentOf({ FAREBOX_API_KEY: key, FAREBOX_MAX_USD_PER_CALL: '0' });
    await client.connect(new ModernStdio({ ...starting, env: given }));
    const bought = (await client.callTool({ name: 'ping', arguments: {} })) as Result;
    await client.close();
    assert.equal(bought.isError, undefined, JSON.stringify(bought));
    assert.equal(await balanceOf(key), 19.75);
  });

  test('nothing is bought while it cannot be written down, and what is free still works', async () => {
    const key = await wallet();
    const file = newFile();
    writeFileSync(file, 'this is no database, and was somebody’s diary'.repeat(100));
    await withBridge({ FAREBOX_API_KEY: key, FAREBOX_SPENDING_FILE: file }, async ({ client }) => {
      const { isError, structuredContent } = await ping(client, 'unwritten');
      assert.deepEqual([isError, structuredContent?.code], [true, 'CANNOT_BUY']);
      assert.equal((await called(client, 'credit_balance')).isError, undefined);
    });
    assert.equal(await balanceOf(key), 20);
  });
});

describe('the process', () => {
  test('tells that the server is silent or gone, and goes on when it is back', async () => {
    const key = await server.key('1');
    await withBridge({ FAREBOX_API_KEY: key, FAREBOX_SILENCE_SECONDS: '5' }, async ({ client }) => {
      proxy.set(() => 'held');
      await assert.rejects(client.listTools(), /does not answer: it said nothing for too long/);
      proxy.set(() => 'cut');
      await assert.rejects(client.listTools(), /does not answer/);
      proxy.set((body) => (body.includes('tools/call') ? 'cut' : 'arrives'));
      const { structuredContent } = await ping(client, 'no price');
      assert.deepEqual([structuredContent?.code, structuredContent?.charged], ['SERVER_AWAY', false]);
      proxy.set(() => 'arrives');
      assert.equal((await ping(client, 'back')).isError, undefined);
    });
    const closed = createServer();
    closed.listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as { port: number };
    closed.close();
    await once(closed, 'close');
    await withBridge({ FAREBOX_URL: `http://127.0.0.1:${port}` }, async ({ client }) => {
      await assert.rejects(client.listTools(), /does not answer: ECONNREFUSED/);
    });
  });

  for (const [how, end] of [
    ['its input is closed', (child: ChildProcess) => child.stdin?.end()],
    ['SIGTERM comes', (child: ChildProcess) => child.kill('SIGTERM')],
  ] as const)
    test(`ends when ${how}, and has written nothing but messages to its output`, async () => {
      const child = spawn(process.execPath, [MAIN], { env: environmentOf({}) });
      child.stdin.write(
        `${JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'test', version: '1' },
          },
        })}\nthis is no message\n`,
      );
      let out = '';
      child.stdout.on('data', (bytes) => {
        out += bytes;
      });
      await until('it answers', () => out.includes('\n'));
      end(child);
      const [code] = await once(child, 'exit');
      assert.equal(code, 0);
      for (const line of out.trim().split('\n')) assert.equal(JSON.parse(line).jsonrpc, '2.0');
    });
});
