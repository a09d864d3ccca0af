/**
 * Unmodified clients of the Machine Payments Protocol, and of the rails whose money is taken at the same address, buy
 * from the running app over HTTP.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { ExactEvmScheme } from '@x402/evm';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { type Address, erc20Abi, parseEventLogs } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { connectPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { USDC_E } from '../../../../packages/sandbox/src/tempo/addresses.ts';
import { fundTempo } from '../../../../packages/sandbox/src/tempo/faucet.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { METHODS, type Method, type MppWorld, receiptOf, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startUpstreams } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { USDC } from '../x402.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const CLI = join(ROOT, 'node_modules/mppx/dist/bin.js');
const SOLD = ['ping', 'first-call', 'ai-inference', 'gas-price-oracle', 'token-metadata'];
const services = (await loadServices()).filter(({ path }) => SOLD.includes(path));

let world: MppWorld;
let database: TestDatabase;
let elsewhere: Pools;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let shop: Storefront;

before(async () => {
  [world, database, upstreams] = await Promise.all([startMppWorld(), openTestDatabase(), startUpstreams()]);
  elsewhere = connectPools(database.url, 6);
  shop = await openShop(database);
});
after(async () => {
  await shop?.stop();
  await Promise.all([elsewhere?.sql.end(), elsewhere?.commits.end()]);
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

const openShop = (pools: Pools, environment: Record<string, string> = {}) =>
  openStorefront({
    pools,
    // As a sandbox, which says more in every 402: nobody may stumble over it.
    environment: { ...world.environment, ...world.made, TRIAL_ALLOW_INTERNAL: 'true', ...environment },
    upstreamsUrl: upstreams.url,
  });

const posting = (body: unknown, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

/** What a service is asked for here: what it can answer from the sandbox. */
const bodyOf = (path: string) =>
  path === 'gas-price-oracle'
    ? { chains: ['base'] }
    : path === 'token-metadata'
      ? { chain: 'base', tokenAddress: USDC }
      : (services.find((service) => service.path === path)?.example ?? {});

/** Reads the chain: the transaction moves the price from the payer to the recipient. */
async function assertMoved(method: Method, hash: string, payer: Address, amountUnits: bigint): Promise<void> {
  const client = method === 'evm' ? world.base.chain.client : world.tempo.client;
  const { status, logs } = await client.getTransactionReceipt({ hash: hash as Address });
  assert.equal(status, 'success');
  const token = method === 'evm' ? USDC : USDC_E;
  const to = method === 'evm' ? world.base.recipient : world.tempo.recipient;
  const paid = parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs }).filter(
    ({ address, args }) => BigInt(address) === BigInt(token) && BigInt(args.to) === BigInt(to),
  );
  assert.deepEqual(
    paid.map(({ args }) => [args.from, args.value]),
    [[payer, amountUnits]],
  );
}

async function assertBooksBalance(): Promise<void> {
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
}

test('every service that the interface names is for sale', () => {
  assert.deepEqual(
    services.map(({ path, mpp }) => [path, mpp]).toSorted(),
    SOLD.map((path) => [path, true]).toSorted(),
  );
});

for (const method of METHODS) {
  test(`the mppx client buys everything by ${method}, also from an app that was restarted meanwhile`, async () => {
    const account = await world.wallet();
    const { fetch: pay } = world.client(account, method);
    for (const [index, { path, priceUsd }] of services.entries()) {
      const price = usdToMicros(priceUsd);
      const received = await world.received(method);
      if (index === 1) await shop.restart();
      const answer = await pay(`${shop.url}/mpp/${path}`, posting(bodyOf(path)));
      const body = await jsonOf(answer);
      assert.equal(answer.status, 200, `${path}: ${JSON.stringify(body)} ${shop.log()}`);
      assert.deepEqual([body.success, body.service !== undefined, body.protocol], [true, true, 'mpp']);
      assert.equal(typeof body.responseTimeMs, 'number');
      const receipt = receiptOf(answer);
      assert.deepEqual([receipt?.method, receipt?.status], [method, 'success']);
      assert.match(answer.headers.get('cache-control') ?? '', /private/);
      await assertMoved(method, receipt?.reference ?? '', account.address, price);
      assert.equal((await world.received(method)) - received, price, path);
    }
    await assertBooksBalance();
  });

  test(`a challenge of one replica is paid at the other, and the same credential at both, by ${method}`, async () => {
    const other = await openShop(elsewhere);
    try {
      const account = await world.wallet();
      const received = await world.received(method);
      const unpaid = await fetch(`${shop.url}/mpp/first-call`, { method: 'POST' });
      const authorization = await world.credential(account, method, unpaid);
      // Each storefront has an address of its own, and challenges are bound to the host alone.
      const present = (at: Storefront) =>
        fetch(`${at.url}/mpp/first-call`, posting({ agentId: 'two' }, { authorization }));
      const first = await present(other);
      const text = await first.text();
      assert.equal(first.status, 200, text + other.log());
      for (const at of [shop, other]) {
        const again = await present(at);
        assert.deepEqual([again.status, await again.text()], [200, text]);
        assert.equal(again.headers.get('idempotent-replayed'), 'true');
        assert.equal(again.headers.get('payment-receipt'), first.headers.get('payment-receipt'));
      }
      await shop.restart();
      assert.equal(await (await present(shop)).text(), text);
      assert.equal((await world.received(method)) - received, 50_000n);
      await assertBooksBalance();
    } finally {
      await other.stop();
    }
  });

  test(`the mppx client pays an app that settles with keys of its own, by ${method}`, async () => {
    const own = await openShop(elsewhere, {
      FACILITATOR_URL: '',
      X402_RELAYER_KEYS: world.base.chain.accounts.relayer.privateKey,
    });
    try {
      const account = await world.wallet();
      const answer = await world
        .client(account, method)
        .fetch(`${own.url}/mpp/ping`, posting({ message: 'own' }));
      assert.equal(answer.status, 200, await answer.clone().text());
      assert.equal((await jsonOf(answer)).echo, 'own');
    } finally {
      await own.stop();
    }
  });
}

describe('other wallets at the same addresses', () => {
  test('@x402/fetch', async () => {
    const account = await world.wallet();
    const client = new x402Client()
      .register('eip155:*', new ExactEvmScheme(account))
      .setSpendControls({ maxAmountPerPayment: '$10' });
    const pay = wrapFetchWithPayment(fetch, client);
    for (const { path, priceUsd } of services) {
      const received = await world.received('evm');
      const answer = await pay(`${shop.url}/mpp/${path}`, posting(bodyOf(path)));
      assert.equal(answer.status, 200, await answer.clone().text());
      const receipt = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
      assert.equal(receipt.success, true);
      assert.equal((await world.received('evm')) - received, usdToMicros(priceUsd));
    }
  });

  test('an API key', async () => {
    const trial = await jsonOf(fetch(`${shop.url}/api/m2m/credits/trial`));
    const key: string = trial.apiKey;
    assert.ok(key, JSON.stringify(trial));
    let left = 5_000_000n;
    for (const { path, priceUsd } of services) {
      const answer = await fetch(`${shop.url}/mpp/${path}`, posting(bodyOf(path), { 'x-api-key': key }));
      assert.equal(answer.status, 200, await answer.clone().text());
      left -= usdToMicros(priceUsd);
      assert.equal(usdToMicros(answer.headers.get('x-credits-remaining') ?? '-1'), left);
    }
  });

  test('an MPP credential at /x402/ is told where it belongs, and is still good there', async () => {
    const account = await world.wallet();
    const unpaid = await fetch(`${shop.url}/mpp/ping`, { method: 'POST' });
    const authorization = await world.credential(account, 'evm', unpaid);
    const wrong = await fetch(`${shop.url}/x402/ping`, posting({}, { authorization }));
    const body = await jsonOf(wrong);
    assert.deepEqual([wrong.status, body.code], [402, 'PROTOCOL_MISMATCH']);
    const there = await fetch(body.resolution.option_a.endpoint, posting({}, { authorization }));
    assert.equal(there.status, 200, await there.text());
  });
});

describe('the mppx command line', () => {
  const run = promisify(execFile);
  let folder: string;
  const key = generatePrivateKey();
  const account = privateKeyToAccount(key);
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'farebox-mppx-'));
    await fund(world.base.chain.url, account.address, { usdcMicros: 10_000_000n, ethWei: 10n ** 17n });
    await fundTempo(world.tempo.url, account.address, 10_000_000n);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const environment = () => ({
    ...SURROUNDINGS,
    HOME: folder,
    MPPX_PRIVATE_KEY: key,
    NODE_NO_WARNINGS: '1',
  });
  const mppx = (...options: string[]) =>
    run(process.execPath, [CLI, ...options], { cwd: folder, env: environment(), timeout: 60_000 });

  const WAYS: Record<string, { options: () => string[]; method: Method }> = {
    tempo: { options: () => ['--rpc-url', world.tempo.url], method: 'tempo' },
    evm: { options: () => ['--currency', USDC, '--rpc-url', world.base.chain.url], method: 'evm' },
    x402: { options: () => ['--protocol', 'x402', '--rpc-url', world.base.chain.url], method: 'evm' },
  };
  for (const [way, { options, method }] of Object.entries(WAYS)) {
    test(`pays /mpp/ping by ${way}`, async () => {
      const received = await world.received(method);
      const { stdout } = await mppx(
        `${shop.url}/mpp/ping`,
        '-J',
        '{"message":"from a shell"}',
        '-s',
        ...options(),
      );
      assert.match(stdout, /from a shell/);
      assert.equal((await world.received(method)) - received, 250_000n);
    });
  }

  test('a credential that it signs for curl buys once', async () => {
    const received = await world.received('tempo');
    const unpaid = await fetch(`${shop.url}/mpp/ping`, { method: 'POST' });
    const challenge = unpaid.headers.get('www-authenticate') ?? '';
    const { stdout } = await mppx('sign', '--challenge', challenge, '--rpc-url', world.tempo.url);
    const authorization = /Payment [\w-]+/.exec(stdout)?.[0] ?? '';
    for (let time = 0; time < 2; time += 1) {
      const answer = await fetch(`${shop.url}/mpp/ping`, posting({}, { authorization }));
      assert.equal(answer.status, 200, await answer.text());
    }
    assert.equal((await world.received('tempo')) - received, 250_000n);
  });

  test('mppx validate pays for everything that it discovers, and finds nothing wrong', async () => {
    const config = join(folder, 'mppx.config.mjs');
    const from = (name: string) => JSON.stringify(import.meta.resolve(name));
    writeFileSync(
      config,
      `import { evm, tempo } from ${from('mppx/client')};
       import { createClient, http } from ${from('viem')};
       import { privateKeyToAccount } from ${from('viem/accounts')};
       import { tempo as network } from ${from('viem/tempo/chains')};
       const account = privateKeyToAccount(process.env.MPPX_PRIVATE_KEY);
       const rpc = ${JSON.stringify(world.tempo.url)};
       const chain = { ...network, rpcUrls: { default: { http: [rpc] } } };
       export default { methods: [
         tempo.charge({ account, getClient: () => createClient({ chain, transport: http(rpc) }) }),
         evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } }),
       ] };`,
    );
    const child = spawn(process.execPath, [CLI, 'validate', shop.url, '--yes', '-j'], {
      cwd: folder,
      env: { ...environment(), MPPX_CONFIG: config },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    child.stdout.on('data', (bytes) => (said += bytes));
    child.stderr.on('data', (bytes) => (said += bytes));
    const [code] = await once(child, 'exit');
    assert.equal(code, 0, said);
    const found: Findings = JSON.parse(said.slice(said.indexOf('{')));
    assert.deepEqual([found.summary.failed, found.summary.warnings], [0, 0], said);
    const sold = found.endpoints.filter(({ path }) => path.startsWith('/mpp/'));
    assert.deepEqual(sold.map(({ path }) => path).toSorted(), SOLD.map((path) => `/mpp/${path}`).toSorted());
    for (const { path, payment } of sold) {
      for (const method of METHODS) {
        const paid = payment.find(({ label }) => label === `Payment [${method}]: submitted`);
        assert.equal(paid?.severity, 'pass', `${path} by ${method}: ${JSON.stringify(payment)}`);
      }
      assert.equal(payment.filter(({ label }) => label === 'Payment: successful').length, METHODS.length);
    }
    await assertBooksBalance();
  });
});

interface Findings {
  summary: { failed: number; warnings: number };
  endpoints: { path: string; payment: { label: string; severity: string }[] }[];
}
