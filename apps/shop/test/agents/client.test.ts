/** The client against a server: bought once, whatever is lost on the way, and whoever dies on it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { after, before, beforeEach, test } from 'node:test';
import { createFarebox, FareboxError, type FareboxOptions } from 'farebox';
import { mppWallet } from 'farebox/mpp';
import { x402Wallet } from 'farebox/x402';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { runProgram } from '../../../../packages/client/src/cli/program.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { fundTempo } from '../../../../packages/sandbox/src/tempo/faucet.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

const PROGRAM = join(import.meta.dirname, 'buyer-program.fixture.ts');
const folder = mkdtempSync(join(tmpdir(), 'farebox-client-'));
let folders = 0;
const newFolder = () => join(folder, String(++folders));

/** The fate of a request that carries a payment. */
type Fate = 'arrives' | 'request lost' | 'answer lost' | 'twice' | 'held';

/** A way to the server on which requests and answers are lost, held, or come twice. */
async function openLossyWay(target: string) {
  const way = { url: '', fates: [] as Fate[], paid: 0, held: [] as ServerResponse[], close: () => {} };
  const pass = async (incoming: IncomingMessage, body: Buffer) => {
    const asked = request(target + incoming.url, {
      method: incoming.method,
      headers: incoming.headers as never,
    });
    asked.end(body);
    const [reply] = await once(asked, 'response');
    return { reply, answer: await buffer(reply) };
  };
  const front = createServer(async (incoming, outgoing) => {
    const { headers } = incoming;
    const isPaid = ['x-api-key', 'payment-signature', 'authorization'].some((name) => headers[name]);
    const fate = isPaid && incoming.method === 'POST' ? (way.fates.shift() ?? 'arrives') : 'arrives';
    if (isPaid && incoming.method === 'POST') way.paid += 1;
    const body = await buffer(incoming);
    if (fate === 'request lost') return outgoing.destroy();
    const [{ reply, answer }] = await Promise.all([
      pass(incoming, body),
      ...(fate === 'twice' ? [pass(incoming, body)] : []),
    ]);
    if (fate === 'answer lost') return outgoing.destroy();
    if (fate === 'held') return way.held.push(outgoing);
    return outgoing.writeHead(reply.statusCode, reply.headers).end(answer);
  }).listen(0, '127.0.0.1');
  await once(front, 'listening');
  way.url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  way.close = () => {
    front.closeAllConnections();
    front.close();
  };
  return way;
}

let world: MppWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let way: Awaited<ReturnType<typeof openLossyWay>>;
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
  });
  way = await openLossyWay(server.url);
});
after(async () => {
  way?.close();
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  way.fates = [];
  way.paid = 0;
});

/** A fresh wallet with stablecoins on Base and Tempo. */
async function newWallet(usd = 1n) {
  const key = generatePrivateKey();
  const { address } = privateKeyToAccount(key);
  const micros = usd * 1_000_000n;
  await fund(world.base.chain.url, address, { usdcMicros: micros, ethWei: 0n });
  await fundTempo(world.tempo.url, address, micros);
  return { key, address };
}
const creditOf = async (apiKey: string): Promise<string> =>
  (await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': apiKey } }))).balanceUsd;
const open = (options: FareboxOptions) => createFarebox({ url: way.url, ...options });

test('with a key, once, whatever is lost on the way', async () => {
  const apiKey = await server.key('1');
  const farebox = open({ apiKey });
  for (const [n, fates] of (
    [['request lost'], ['answer lost'], ['twice'], ['request lost', 'answer lost']] as Fate[][]
  ).entries()) {
    way.fates = [...fates];
    const { output, receipt } = await farebox.buy('ping', { message: `n${n}` });
    assert.equal(output.echo, `n${n}`);
    assert.deepEqual(receipt?.doubts, []);
    assert.equal(await farebox.spentToday(), 250_000n * BigInt(n + 1));
  }
  assert.equal(Number(await creditOf(apiKey)), 0);
  const error = await farebox.call('ping').catch((error) => error);
  assert.ok(error instanceof FareboxError);
  assert.deepEqual([error.code, error.charged, error.status], ['INSUFFICIENT_CREDITS', false, 402]);
});

test('from a wallet, by x402 and by MPP on two chains, once, and the receipt agrees with the server', async () => {
  const { key, address } = await newWallet(2n);
  const tempo = { networks: ['tempo'], tempoRpcUrl: world.tempo.url } as const;
  for (const wallet of [
    await x402Wallet({ evm: key, sandbox: true }),
    await mppWallet({ evm: key, sandbox: true }),
    await mppWallet({ evm: key, sandbox: true, ...tempo }),
  ])
    for (const fate of ['answer lost', 'request lost'] as const) {
      const farebox = open({ wallets: [wallet] });
      way.fates = [fate];
      const { output, receipt } = await farebox.buy('ping', { message: fate });
      assert.equal(output.echo, fate);
      assert.equal(receipt?.paidBy, wallet.way);
      if (wallet.way === 'x402' || wallet.networks.includes('eip155:8453'))
        assert.deepEqual((await farebox.check(receipt)).doubts, []);
      assert.deepEqual(await farebox.receipts(), [receipt]);
    }
  assert.equal(await world.holds(address, 'evm'), 1_000_000n);
  assert.ok((await world.holds(address, 'tempo')) > 1_490_000n);
  assert.ok((await world.holds(address, 'tempo')) <= 1_500_000n);
});

test('a sandbox is paid by no wallet that was not made for one', async () => {
  const { key } = await newWallet();
  for (const wallet of [await x402Wallet({ evm: key }), await mppWallet({ evm: key })]) {
    const error = await open({ wallets: [wallet] })
      .call('ping')
      .catch((error) => error);
    assert.equal(error.code, 'SANDBOX_REFUSED');
  }
  assert.equal(way.paid, 0);
});

/** Runs the program. @returns its answer; null when it was killed while its answer was on the way */
async function run(environment: Record<string, string>, isKilled: boolean) {
  const program = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM], {
    env: { ...SURROUNDINGS, FAREBOX_URL: way.url, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said = text(program.stdout);
  const ended = once(program, 'exit');
  if (isKilled) {
    await until('the answer is held', () => way.held.length > 0 || program.exitCode !== null);
    program.kill('SIGKILL');
    await ended;
    for (const outgoing of way.held.splice(0)) outgoing.destroy();
    return null;
  }
  const [code] = await ended;
  assert.equal(code, 0);
  return JSON.parse(await said);
}

test('a program that is killed between its payment and the answer buys once, with its store', async () => {
  const { key, address } = await newWallet();
  const apiKey = await server.key('1');
  for (const pays of [{ API_KEY: apiKey }, { WALLET_KEY: key }]) {
    const environment: Record<string, string> = { ...pays, STORE: newFolder() };
    way.fates = ['held', 'held'];
    assert.equal(await run(environment, true), null);
    assert.equal(await run(environment, true), null);
    const { output, receipt, spent } = await run(environment, false);
    assert.equal(output.echo, 'from a program');
    assert.equal(receipt.replayed, true);
    assert.equal(spent, '250000');
  }
  assert.equal(await creditOf(apiKey), '0.750000');
  assert.equal(await world.holds(address, 'evm'), 750_000n);
});

test('tells what is sold and for how much, for nothing', async () => {
  const farebox = open({});
  const [first] = await farebox.search('price of a token', { limit: 3 });
  assert.equal(first?.id, 'token-price');
  assert.deepEqual(await farebox.price('smart-contract-audit'), { micros: 10_000_000n, usd: '10.00' });
  const error = await farebox.call('ping').catch((error) => error);
  assert.deepEqual([error.code, error.charged], ['PAYMENT_REQUIRED', false]);
  const unknown = await farebox.price('no-such-service').catch((error) => error);
  assert.deepEqual([unknown.code, unknown.status], ['UNKNOWN_SERVICE', 404]);
  const misshapen = await open({ apiKey: await server.key('1') })
    .call('token-price', { symbol: 5 } as never)
    .catch((error) => error);
  assert.deepEqual(
    [misshapen.code, misshapen.field, misshapen.charged],
    ['INVALID_REQUEST', 'symbol', false],
  );
});

/** Runs the command line. @returns its exit code and what it wrote */
async function command(
  words: readonly string[],
  home: string,
  more: { input?: string; answers?: string[]; env?: object } = {},
) {
  let [out, error] = ['', ''];
  const code = await runProgram(words, {
    environment: { FAREBOX_URL: way.url, BASE_RPC_URL: world.base.chain.url, ...more.env },
    home,
    out: (line) => {
      out += `${line}\n`;
    },
    error: (line) => {
      error += line;
    },
    progress: () => {},
    isTerminal: more.answers !== undefined,
    read: async () => more.input ?? '',
    ask: async () => more.answers?.shift() ?? assert.fail('it asks too often'),
    signal: new AbortController().signal,
  });
  return { code, out, error };
}

test('the command line buys with a key that it keeps, and a script can tell how it ended', async () => {
  const home = newFolder();
  const apiKey = await server.key('3');
  assert.equal((await command(['keys', 'add'], home, { input: `${apiKey}\n` })).code, 0);
  assert.equal(statSync(join(home, 'settings.json')).mode & 0o077, 0);
  const bought = await command(['call', 'ping', '--message', 'hello', '--json'], home);
  assert.deepEqual([bought.code, JSON.parse(bought.out).output.echo], [0, 'hello'], bought.error);
  assert.match(bought.error, /0\.2500 USD, paid by key/);
  const typed = await command(['call', 'air-quality', '--lat=52.5', '--lon', '13.4', '--json'], home);
  assert.equal(typed.code, 0, typed.error);
  for (const [words, code, said] of [
    [['call', 'ping', '--message'], 2, /message/],
    [['call', 'no-such-service'], 4, /no-such-service/],
    [['call', 'smart-contract-audit', '--contract-address', '0x1', '--chain', 'base'], 3, /10\.00 USD/],
    [['call', 'ping', 'pong'], 2, /one service/],
    [['price', 'ping', '--input', '[]'], 2, /object of JSON/],
    [['fly'], 2, /no command fly/],
    [['search', '--no-such-option'], 2, /no-such-option/],
    [['call', 'ping', '--messge', 'hello'], 2, /it takes --message, and no --messge/],
    [['search', 'zzzzqqqq'], 4, /nothing is found/],
    [['use', 'localhost:8402'], 2, /address of a Farebox/],
  ] as const) {
    const ended = await command(words, home);
    assert.equal(ended.code, code, `${words.join(' ')}: ${ended.error}`);
    assert.match(ended.error, said);
    assert.ok(!`${ended.out}${ended.error}`.includes(apiKey));
  }
  const told = await command(['call', 'ping', '--message', 'x', '--json'], home, {
    env: { FAREBOX_MAX_USD_PER_CALL: '0.1' },
  });
  assert.deepEqual([told.code, JSON.parse(told.out).error.code], [3, 'ABOVE_LIMIT']);
  assert.match(told.error, /--max-usd/);
  const agreed = { answers: ['y'], env: { FAREBOX_MAX_USD_PER_CALL: '0.1' } };
  assert.equal((await command(['call', 'ping'], home, agreed)).code, 0);
  const anew = newFolder();
  for (const [words, code] of [
    [['keys'], 2],
    [['call', 'ping'], 3],
  ] as const) {
    const ended = await command(words, anew);
    assert.deepEqual([ended.code, /farebox keys trial/.test(ended.error)], [code, true], ended.error);
  }
  assert.match((await command(['--version'], home)).out, /^\d+\.\d+\.\d+\n$/);
  assert.match((await command(['receipts'], home)).out, /^\d{4}-.* {2}ping {2}[\da-f-]{36}$/m);
  const { out } = await command(['price', 'smart-contract-audit'], home);
  assert.equal(out, '10.00 USD\n');
  assert.equal(JSON.parse((await command(['receipts', '--json'], home)).out).length, 3);
  assert.match((await command(['completion', 'bash'], home)).out, /token-price/);
  assert.match((await command(['search', 'token', 'price'], home)).out, /^token-price +0\.25 USD/m);
});

test('the command line buys from a wallet that it made, for a sandbox alone, and pays a lost answer once', async () => {
  const home = newFolder();
  const { out } = await command(['wallet', 'create', '--sandbox', '--json'], home);
  const { address } = JSON.parse(out);
  assert.match((await command(['wallet', 'create'], home)).error, /already/);
  assert.match((await command(['wallet', 'fund'], home)).out, /100\.00/);
  way.fates = ['answer lost'];
  const bought = await command(['call', 'first-call', '--json'], home);
  assert.equal(bought.code, 0, bought.error);
  assert.equal(JSON.parse(bought.out).receipt.paidBy, 'x402');
  assert.equal(await world.holds(address, 'evm'), 99_950_000n);
  const real = newFolder();
  await command(['wallet', 'create'], real);
  assert.match((await command(['wallet', 'fund'], real)).error, /not made for a sandbox/);
  const refused = await command(['call', 'first-call'], real);
  assert.deepEqual([refused.code, /sandbox/.test(refused.error)], [3, true]);
  assert.equal(way.paid, 2);
});
