/** What is published about paying by wallet, held against the 402s of a running server; and the program that is published, run. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { z } from 'zod';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { openTestDatabase, type TestDatabase } from '../../test/database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../../test/server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../../test/x402.fixture.ts';

/** Many readers take the whole document into one context; more than this is too much for them. */
const MAX_OPENAPI_BYTES = 65_536;

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
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld({ solana: true }),
    openTestDatabase(),
    startUpstreams(),
  ]);
  server = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: world.environment,
  });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

test('every 402 asks what the documents say, of whom they say, on the chains they say', async () => {
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
    assert.equal(info.offers[0].amount, priceMicro, path);
    const entry = catalog.services.find((each: { path: string }) => each.path === path);
    assert.equal(entry.priceMicro, priceMicro, path);
    assert.deepEqual(entry.paymentNetworks, networks, path);
  }
});

test('the program of a recipe buys the call, with the real client', async () => {
  const key = generatePrivateKey();
  await fund(world.chain.url, privateKeyToAddress(key), { usdcMicros: 10_000_000n, ethWei: 0n });
  const folder = mkdtempSync(join(tmpdir(), 'farebox-program-'));
  try {
    // Dearer than what a client pays of its own accord, and the cheapest.
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
        env: { WALLET_KEY: key },
      });
      assert.match(stdout, /success: true/);
      assert.match(stdout, /paid by 0x[0-9a-f]{64}/);
      assert.equal((await world.received()) - received, price, path);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('openapi.json stays small enough to be read whole, and describes what is about wallets', async () => {
  const reply = await fetch(`${server.url}/openapi.json`);
  const text = await reply.text();
  assert.ok(Buffer.byteLength(text) < MAX_OPENAPI_BYTES, `${Buffer.byteLength(text)} bytes`);
  const { paths, components } = JSON.parse(text);
  for (const [method, path] of [
    ['get', '/x402/receipts/{id}'],
    ['get', '/x402/payment-manifest.json'],
    ['get', '/api/wallets/{walletId}'],
    ['delete', '/api/wallets/{walletId}'],
    ['post', '/api/wallets/{walletId}/export'],
  ] as const) {
    assert.ok(paths[path]?.[method], `${method} ${path}`);
  }
  assert.ok('PAYMENT-REQUIRED' in components.responses[402].headers);
});
