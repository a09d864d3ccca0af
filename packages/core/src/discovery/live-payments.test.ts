/**
 * Compares what is published about paying by wallet and by MPP with the 402s of a running server, and runs the
 * published programs.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Challenge, Receipt } from 'mppx';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { z } from 'zod';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import {
  jsonOf,
  startTestServer,
  startUpstreams,
  type TestServer,
} from '../../../../apps/shop/test/server.fixture.ts';
import { SURROUNDINGS } from '../../../../apps/shop/test/surroundings.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../../../../apps/shop/test/x402.fixture.ts';
import { loadServices } from '../../../catalogue/src/services/registry.ts';
import { SEED } from '../../../sandbox/src/accounts.fixture.ts';
import { fund } from '../../../sandbox/src/chain/faucet.ts';
import { USDC_E } from '../../../sandbox/src/tempo/addresses.ts';
import { fundTempo } from '../../../sandbox/src/tempo/faucet.ts';
import { startTempo, type TempoChain } from '../../../sandbox/src/tempo/tempo.ts';

/** The whole schema of what a service takes and answers; a model reads a part or a recipe instead. */
const MAX_BYTES_A_SERVICE = 5_060;
/** The free operations, devices, the vault and the older family: as many, however many services there are. */
const MAX_BYTES_BESIDE_SERVICES = 86_000;

const TEMPO_RECIPIENT = '0x00000000000000000000000000000000000000b0';

const termsShape = z.looseObject({
  accepts: z.array(
    z.looseObject({
      scheme: z.string(),
      network: z.string(),
      amount: z.string(),
      asset: z.string(),
      payTo: z.string(),
    }),
  ),
});
const manifestShape = z.looseObject({
  networks: z.array(
    z.looseObject({ network: z.string(), payTo: z.string(), asset: z.looseObject({ address: z.string() }) }),
  ),
  resources: z.array(
    z.looseObject({
      path: z.string(),
      resource: z.string(),
      priceMicro: z.string(),
      networks: z.array(z.string()),
      available: z.boolean(),
    }),
  ),
});

let world: PaymentWorld;
let tempo: TempoChain;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
before(async () => {
  [world, tempo, database, upstreams] = await Promise.all([
    startPaymentWorld({ solana: true }),
    startTempo({ seed: SEED, stateDir: null }),
    openTestDatabase(),
    startUpstreams(),
  ]);
  server = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: {
      ...world.environment,
      MPP_METHODS: 'tempo,evm',
      MPP_SECRET_KEY: 'a-secret-of-the-tests-and-of-nothing-else',
      MPP_TEMPO_RPC_URL: tempo.url,
      MPP_TEMPO_RECIPIENT: TEMPO_RECIPIENT,
      MPP_TEMPO_CURRENCY: USDC_E,
    },
  });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), tempo?.stop(), database?.close(), upstreams?.stop()]);
});

test('every 402 has the amount, recipient and chains that the documents state', async () => {
  const manifest = manifestShape.parse(await jsonOf(fetch(`${server.url}/x402/payment-manifest.json`)));
  const openapi = await jsonOf(fetch(`${server.url}/openapi.json`));
  const catalog = await jsonOf(fetch(`${server.url}/x402/catalog`));
  const { resources } = await jsonOf(fetch(`${server.url}/.well-known/x402`));
  assert.ok(manifest.resources.length > 20);
  const sold = manifest.resources.filter(({ networks }) => networks.length > 0);
  assert.deepEqual(
    sold.map(({ resource }) => resource),
    resources,
  );
  const chains = new Map(manifest.networks.map((each) => [each.network, each]));
  for (const { path, networks, priceMicro, available } of manifest.resources) {
    const challenge = await fetch(`${server.url}${path}`, { method: 'POST' });
    assert.equal(challenge.status, available ? 402 : 503, path);
    if (!available) continue;
    const header = challenge.headers.get('payment-required') ?? '';
    const { accepts } = termsShape.parse(JSON.parse(Buffer.from(header, 'base64').toString('utf8')));
    assert.deepEqual(
      accepts.map(({ network }) => network),
      networks,
      path,
    );
    for (const { network, amount, asset, payTo } of accepts) {
      assert.equal(amount, priceMicro, path);
      assert.equal(payTo, chains.get(network)?.payTo, path);
      assert.equal(asset, chains.get(network)?.asset.address, path);
    }
    const info = openapi.paths[path].post['x-payment-info'];
    assert.deepEqual(info.protocols, [{ x402: {} }], path);
    assert.equal(BigInt(Math.round(Number(info.price.amount) * 1e6)), BigInt(priceMicro), path);
    const entry = catalog.services.find((each: { path: string }) => each.path === path);
    assert.equal(entry.priceMicro, priceMicro, path);
    assert.deepEqual(entry.paymentNetworks, networks, path);
  }
});

test('every MPP challenge has the terms that the documents state, and the same 402 offers x402', async () => {
  const manifest = await jsonOf(fetch(`${server.url}/.well-known/mpp.json`));
  const mppCatalog = await jsonOf(fetch(`${server.url}/mpp/catalog`));
  const openapi = await jsonOf(fetch(`${server.url}/openapi.json`));
  const x402 = manifestShape.parse(await jsonOf(fetch(`${server.url}/x402/payment-manifest.json`)));
  const sold = (await loadServices()).filter(({ mpp }) => mpp);
  assert.ok(sold.length >= 5);
  for (const { services } of [manifest, mppCatalog]) {
    assert.deepEqual(
      services.map(({ id }: { id: string }) => id),
      sold.map(({ path }) => path),
    );
  }
  for (const [index, { id, path, offers, amount }] of manifest.services.entries()) {
    const unpaid = await fetch(`${server.url}${path}`, { method: 'POST' });
    assert.equal(unpaid.status, 402, path);
    const challenges = Challenge.fromResponseList(unpaid);
    assert.deepEqual(
      challenges.map(({ realm, method, intent, request }) => ({ realm, method, intent, ...request })),
      manifest.methods.map((each: { method: string; currency: string; recipient: string }, at: number) => ({
        realm: manifest.realm,
        method: each.method,
        intent: 'charge',
        amount: offers[at].amount,
        currency: each.currency,
        recipient: each.recipient,
        methodDetails: challenges[at]?.request.methodDetails,
      })),
      path,
    );
    for (const [at, { request }] of challenges.entries()) {
      const { chainId } = z.looseObject({ chainId: z.number() }).parse(request.methodDetails);
      assert.equal(chainId, manifest.methods[at].chainId, path);
      assert.equal(offers[at].currency, manifest.methods[at].currency, path);
    }
    assert.equal(offers[0].amount, String(Math.round(Number(amount) * 1e6)), path);
    assert.deepEqual(mppCatalog.services[index].offers, offers, path);
    assert.deepEqual(openapi.paths[path].post['x-payment-info'].offers, offers, path);
    const recipe = await jsonOf(fetch(`${server.url}/x402/recipes/${id}`));
    assert.deepEqual(recipe.payment.mpp.offers, offers, path);

    const header = unpaid.headers.get('payment-required') ?? '';
    const { accepts } = termsShape.parse(JSON.parse(Buffer.from(header, 'base64').toString('utf8')));
    const beside = x402.resources.find((each) => each.path === `/x402/${id}`);
    assert.deepEqual(
      accepts.map(({ network, amount: units }) => [network, units]),
      beside?.networks.map((network) => [network, beside.priceMicro]),
      path,
    );
  }
  assert.deepEqual(
    manifest.methods.map(({ method, network, recipient }: Record<string, string>) => [
      method,
      network,
      recipient,
    ]),
    [
      ['tempo', 'eip155:4217', TEMPO_RECIPIENT],
      ['evm', 'eip155:8453', world.recipient],
    ],
  );
});

test('the program and the commands of a recipe buy the call by MPP, with the reference client', async () => {
  const key = generatePrivateKey();
  const address = privateKeyToAddress(key);
  await fund(world.chain.url, address, { usdcMicros: 10_000_000n, ethWei: 0n });
  await fundTempo(tempo.url, address, 10_000_000n);
  const folder = mkdtempSync(join(tmpdir(), 'farebox-mpp-'));
  const here = (text: string) => text.replaceAll('http://farebox.test', server.url);
  try {
    const { payment } = await jsonOf(fetch(`${server.url}/x402/recipes/gas-price-oracle`));
    const file = join(folder, 'program.mjs');
    writeFileSync(
      file,
      here(payment.mpp.program).replaceAll(
        /from '([@\w][\w@/-]*)'/g,
        (_, name: string) => `from '${import.meta.resolve(name)}'`,
      ),
    );
    const received = await world.received();
    const { stdout } = await promisify(execFile)(process.execPath, [file], {
      env: { ...SURROUNDINGS, WALLET_KEY: key },
    });
    assert.match(stdout, /protocol: 'mpp'/);
    assert.match(stdout, /paid by 0x[0-9a-f]{64}/);
    assert.equal((await world.received()) - received, 100_000n);

    const mppx = join(import.meta.dirname, '../../../../node_modules/mppx/dist/bin.js');
    for (const [method, rpcUrl] of [
      ['tempo', tempo.url],
      ['evm', world.chain.url],
    ] as const) {
      const words = here(payment.mpp.commands[method]).match(/'[^']*'|\S+/g) ?? [];
      const [npx, name, ...options] = words.map((word) => word.replace(/^'(.*)'$/, '$1'));
      assert.deepEqual([npx, name], ['npx', 'mppx']);
      const paid = await promisify(execFile)(process.execPath, [mppx, ...options, '--include'], {
        env: { ...SURROUNDINGS, HOME: folder, MPPX_PRIVATE_KEY: key, MPPX_RPC_URL: rpcUrl },
      });
      const receipt = /^payment-receipt: (\S+)$/m.exec(paid.stdout)?.[1] ?? '';
      assert.equal(Receipt.deserialize(receipt).method, method, paid.stdout);
    }
    assert.equal((await world.received()) - received, 200_000n);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the program of a recipe buys the call, with the real client', async () => {
  const key = generatePrivateKey();
  await fund(world.chain.url, privateKeyToAddress(key), { usdcMicros: 10_000_000n, ethWei: 0n });
  const folder = mkdtempSync(join(tmpdir(), 'farebox-program-'));
  try {
    // One that is dearer than what a client pays by default, and the cheapest.
    for (const [path, price] of [
      ['risk-metrics', 1_000_000n],
      ['agent-create-wallet', 2_000_000n],
      ['first-call', 50_000n],
    ] as const) {
      const { payment } = await jsonOf(fetch(`${server.url}/x402/recipes/${path}`));
      const program = String(payment.x402.program)
        .replaceAll('http://farebox.test', server.url)
        .replaceAll(/from '([@\w][\w@/-]*)'/g, (_, name: string) => `from '${import.meta.resolve(name)}'`);
      const file = join(folder, `${path}.mjs`);
      writeFileSync(file, program);
      const received = await world.received();
      const { stdout } = await promisify(execFile)(process.execPath, [file], {
        env: { ...SURROUNDINGS, WALLET_KEY: key },
      });
      assert.match(stdout, /success: true/);
      assert.match(stdout, /paid by 0x[0-9a-f]{64}/);
      assert.equal((await world.received()) - received, price, path);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('openapi.json stays within its bound, and describes the operations about wallets', async () => {
  const reply = await fetch(`${server.url}/openapi.json`);
  const text = await reply.text();
  const { paths, components } = JSON.parse(text);
  const sold = Object.keys(paths).filter((path) => path.startsWith('/x402/') && paths[path].post).length;
  const most = MAX_BYTES_BESIDE_SERVICES + sold * MAX_BYTES_A_SERVICE;
  assert.ok(Buffer.byteLength(text) < most, `${Buffer.byteLength(text)} bytes for ${sold} services`);
  for (const [method, path] of [
    ['get', '/x402/receipts/{id}'],
    ['get', '/x402/payment-manifest.json'],
    ['get', '/mpp/catalog'],
    ['post', '/mpp/ping'],
    ['get', '/api/wallets/{walletId}'],
    ['delete', '/api/wallets/{walletId}'],
    ['post', '/api/wallets/{walletId}/export'],
  ] as const) {
    assert.ok(paths[path]?.[method], `${method} ${path}`);
  }
  assert.deepEqual(Object.keys(components.responses[402].headers), ['PAYMENT-REQUIRED', 'WWW-Authenticate']);
});
