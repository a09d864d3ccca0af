/** The unmodified client of x402's first generation (x402-fetch 1.2.0) buys from the running app. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { createKeyPairSignerFromPrivateKeyBytes, getBase58Decoder } from '@solana/kit';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startUpstreams } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';
import { type LegacyClient, openLegacyClient } from './legacy-client.ts';

const client = await openLegacyClient();
const skip = client === null && 'NOT TESTED: the package registry cannot be reached to install x402-fetch';
if (typeof skip === 'string') process.stderr.write(`\n*** ${skip} ***\n\n`);

let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let shop: Storefront;

before(async () => {
  if (client === null) return;
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld({ solana: true }),
    openTestDatabase(),
    startUpstreams(),
  ]);
  const chains = ['ETHEREUM', 'POLYGON', 'ARBITRUM'];
  shop = await openStorefront({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: {
      ...world.environment,
      // As a sandbox, which says more in every 402: the client must not stumble over it.
      ...world.made,
      X402_NETWORKS: 'base,ethereum,polygon,arbitrum,solana',
      X402_RELAYER_KEYS: world.chain.accounts.relayer.privateKey,
      ...Object.fromEntries(chains.map((name) => [`UPSTREAM_${name}_BASE_URL`, world.chain.url])),
    },
  });
});
after(async () => {
  await shop?.stop();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

function installed(): LegacyClient {
  assert.ok(client);
  return client;
}

const asJson = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

async function newWallet() {
  const privateKey = generatePrivateKey();
  const { address } = privateKeyToAccount(privateKey);
  await fund(world.chain.url, address, { usdcMicros: 5_000_000n, ethWei: 0n });
  return { address, signer: await installed().createSigner('base', privateKey) };
}

async function received(work: () => Promise<unknown>): Promise<bigint> {
  const before = await world.received();
  await work();
  return (await world.received()) - before;
}

test('reads the body of every 402, and its cap is named in those above it', { skip }, async () => {
  const { PaymentRequirementsSchema } = installed();
  for (const { path } of await loadServices()) {
    const { accepts, ...body } = await jsonOf(fetch(`${shop.url}/x402/${path}`, { method: 'POST' }));
    assert.ok(accepts.length > 0);
    assert.equal(body.x402Version, 1);
    for (const entry of accepts) {
      const { scheme, resource, maxAmountRequired } = PaymentRequirementsSchema.parse(entry);
      assert.deepEqual([scheme, resource], ['exact', `${shop.url}/x402/${path}`]);
      if (BigInt(String(maxAmountRequired)) > 100_000n) assert.match(body.spendingCap ?? '', /0\.10/, path);
    }
  }
});

test('buys, also while the app restarts, and its payment stays good', { skip }, async () => {
  const { wrapFetchWithPayment, decodeXPaymentResponse } = installed();
  const { address, signer } = await newWallet();
  const risk = (await loadServices()).find(({ path }) => path === 'risk-metrics');
  const purchases = [
    { path: '/x402/first-call', body: {}, priceUnits: 50_000n, cap: undefined, restarting: false },
    {
      path: '/x402/risk-metrics',
      body: risk?.example,
      priceUnits: 1_000_000n,
      cap: 1_000_000n,
      restarting: true,
    },
    { path: '/x402/ping', body: {}, priceUnits: 250_000n, cap: 250_000n, restarting: false },
  ];
  for (const { path, body, priceUnits, cap, restarting } of purchases) {
    if (restarting) shop.restartBeforePayment();
    const moved = await received(async () => {
      const answer = await wrapFetchWithPayment(fetch, signer, cap)(shop.url + path, asJson(body));
      const text = await answer.text();
      assert.equal(answer.status, 200, text + shop.log());
      const receipt = decodeXPaymentResponse(answer.headers.get('x-payment-response') ?? '');
      assert.deepEqual(
        [receipt.success, receipt.network, receipt.payer.toLowerCase()],
        [true, 'base', address.toLowerCase()],
      );
      const { status } = await world.chain.client.getTransactionReceipt({ hash: receipt.transaction });
      assert.equal(status, 'success');

      const presented = shop.payments.at(-1);
      assert.ok(presented?.headers['x-payment']);
      if (restarting) await shop.restart();
      const again = await shop.present(presented);
      assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
      assert.equal(await again.text(), text);
      const stored = decodeXPaymentResponse(again.headers.get('x-payment-response') ?? '');
      assert.equal(stored.transaction, receipt.transaction);
    });
    assert.equal(moved, priceUnits);
  }
  assert.equal(await world.balanceOf(address), 5_000_000n - 1_300_000n);
});

test('a secret: it is told to bring a claim and charged nothing; with one in the body it buys', {
  skip,
}, async () => {
  const { address, signer } = await newWallet();
  const url = `${shop.url}/x402/instant-agent-wallet`;
  const pay = installed().wrapFetchWithPayment(fetch, signer, 1_000_000n);
  const refused = await pay(url, asJson({ chain: 'base' }));
  const { code, charged, hint } = await jsonOf(refused);
  assert.deepEqual([refused.status, code, charged], [400, 'CLAIM_SECRET_REQUIRED', false]);
  assert.match(hint, /claimSecret of 16 to 128 random characters into the body/);
  assert.equal(await world.balanceOf(address), 5_000_000n);

  const moved = await received(async () => {
    const claimSecret = randomBytes(16).toString('hex');
    const answer = await pay(url, asJson({ chain: 'base', claimSecret }));
    const text = await answer.text();
    assert.equal(answer.status, 200, text + shop.log());
    const presented = shop.payments.at(-1);
    assert.ok(presented);
    await shop.restart();
    assert.equal(await (await shop.present(presented)).text(), text);
    const copied = await shop.present({ ...presented, body: Buffer.from('{"chain":"base"}') });
    assert.equal(copied.status, 400);
  });
  assert.equal(moved, 1_000_000n);
});

test('signs nothing above its cap of 0.10', { skip }, async () => {
  const { signer } = await newWallet();
  const payments = shop.payments.length;
  await assert.rejects(
    installed().wrapFetchWithPayment(fetch, signer)(`${shop.url}/x402/ping`, asJson({})),
    /exceeds maximum allowed/,
  );
  assert.equal(shop.payments.length, payments);
});

test('buys on Solana', { skip }, async () => {
  const { createSigner, wrapFetchWithPayment, decodeXPaymentResponse } = installed();
  const rpcUrl = world.solana?.url ?? '';
  const seed = randomBytes(32);
  const { address } = await createKeyPairSignerFromPrivateKeyBytes(seed);
  await fetch(
    rpcUrl,
    asJson({ jsonrpc: '2.0', id: 1, method: 'sandbox_fund', params: [address, { usdcUnits: 1_000_000 }] }),
  );
  const signer = await createSigner('solana', getBase58Decoder().decode(seed));
  const pay = wrapFetchWithPayment(fetch, signer, undefined, undefined, { svmConfig: { rpcUrl } });
  const moved = await received(async () => {
    const answer = await pay(`${shop.url}/x402/first-call`, asJson({}));
    const text = await answer.text();
    assert.equal(answer.status, 200, text + shop.log());
    const receipt = decodeXPaymentResponse(answer.headers.get('x-payment-response') ?? '');
    assert.deepEqual([receipt.success, receipt.network, receipt.payer], [true, 'solana', address]);
    const presented = shop.payments.at(-1);
    assert.ok(presented);
    assert.equal(await (await shop.present(presented)).text(), text);
  });
  assert.equal(moved, 0n, 'nothing on the other chain');
  const { result } = await jsonOf(
    fetch(
      rpcUrl,
      asJson({
        jsonrpc: '2.0',
        id: 2,
        method: 'getTokenAccountsByOwner',
        params: [
          address,
          { mint: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' },
          { encoding: 'jsonParsed' },
        ],
      }),
    ),
  );
  assert.equal(result.value[0].account.data.parsed.info.tokenAmount.amount, '950000');
});
