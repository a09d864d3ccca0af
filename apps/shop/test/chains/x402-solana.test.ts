/** The unmodified Solana client of x402 buys from the running app. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  createSolanaRpc,
  generateKeyPairSigner,
  getBase64Encoder,
  getTransactionDecoder,
  type KeyPairSigner,
  type Signature,
} from '@solana/kit';
import { appendPaymentIdentifierToExtensions, generatePaymentId } from '@x402/extensions/payment-identifier';
import { createSIWxClientExtension, type SIWxSigner } from '@x402/extensions/sign-in-with-x';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/client';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { ERC8004_IDENTITY_REGISTRY } from '../../../../packages/core/src/identity/registry-abi.ts';
import { tokenAccountOf } from '../../../../packages/core/src/rails/x402/solana-programs.ts';
import { signerOf } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { USDC_MINT } from '../../../../packages/sandbox/src/solana/programs.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { eachOf, pathsOf, spoiled, withPath } from '../hostile-values.fixture.ts';
import { jsonOf, startUpstreams } from '../server.fixture.ts';
import { openStorefront, type SeenRequest, type Storefront } from '../storefront.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const SOLANA = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const FIRST_CALL = { path: '/x402/first-call', body: { agentId: 'unmodified' }, priceUnits: 50_000n };

/** In a transaction: behind the number of signatures and that of who pays the fee. */
const PAYER_SIGNATURE_AT = 1 + 64;

let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let shop: Storefront;
let nowMs: number;
let rpcUrl: string;
let recipient: string;

before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld({ solana: true }),
    openTestDatabase(),
    startUpstreams(),
  ]);
  rpcUrl = world.solana?.url ?? '';
  recipient = world.environment.X402_RECIPIENT_SOLANA ?? '';
  nowMs = Date.now();
  shop = await openStorefront({
    pools: database,
    environment: { ...world.environment, ...world.made },
    upstreamsUrl: upstreams.url,
    nowMs: () => nowMs,
  });
});
after(async () => {
  await shop?.stop();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
});

/** A wallet with USDC and no SOL: the facilitator pays the fee. */
async function newWallet(usdcUnits = 5_000_000): Promise<KeyPairSigner> {
  const wallet = await generateKeyPairSigner();
  await give(wallet, usdcUnits);
  return wallet;
}

async function give({ address }: KeyPairSigner, usdcUnits: number): Promise<void> {
  const params = [address, { usdcUnits }];
  await fetch(rpcUrl, asJson({ jsonrpc: '2.0', id: 1, method: 'sandbox_fund', params }));
}

const asJson = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

function clientOf(wallet: KeyPairSigner): x402Client {
  return new x402Client().register('solana:*', new ExactSvmScheme(wallet, { rpcUrl }));
}

async function balanceOf(owner: string): Promise<bigint> {
  const account = await tokenAccountOf(owner, USDC_MINT);
  const { value } = await createSolanaRpc(rpcUrl)
    .getTokenAccountBalance(account as never)
    .send();
  return BigInt(value.amount);
}

async function received(work: () => Promise<unknown>): Promise<bigint> {
  const before = await balanceOf(recipient);
  await work();
  return (await balanceOf(recipient)) - before;
}

const receiptOf = (answer: Response) =>
  decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');

test('buys, also while the app restarts, and its payment stays good', async () => {
  const wallet = await newWallet();
  const pay = wrapFetchWithPayment(fetch, clientOf(wallet));
  const risk = (await loadServices()).find(({ path }) => path === 'risk-metrics');
  const purchases = [
    { ...FIRST_CALL, restarting: false },
    { path: '/x402/risk-metrics', body: risk?.example, priceUnits: 1_000_000n, restarting: true },
    { path: '/x402/ping', body: {}, priceUnits: 250_000n, restarting: false },
  ];
  for (const { path, body, priceUnits, restarting } of purchases) {
    if (restarting) shop.restartBeforePayment();
    const moved = await received(async () => {
      const answer = await pay(shop.url + path, asJson(body));
      const text = await answer.text();
      assert.equal(answer.status, 200, text + shop.log());
      const receipt = receiptOf(answer);
      assert.deepEqual([receipt.success, receipt.network, receipt.payer], [true, SOLANA, wallet.address]);
      const landed = await createSolanaRpc(rpcUrl)
        .getTransaction(receipt.transaction as Signature, {
          maxSupportedTransactionVersion: 0,
          encoding: 'base64',
        })
        .send();
      assert.equal(landed?.meta?.err, null);
      const { signatures } = getTransactionDecoder().decode(getBase64Encoder().encode(landed.transaction[0]));
      assert.ok(signatures[wallet.address], 'the payer signed it');

      const presented = shop.payments.at(-1);
      assert.ok(presented);
      if (restarting) await shop.restart();
      const again = await shop.present(presented);
      assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
      assert.equal(await again.text(), text);
      assert.equal(receiptOf(again).transaction, receipt.transaction);
      const other = await shop.present({ ...presented, path: '/x402/gas-price-oracle' });
      assert.notEqual(other.status, 200);
    });
    assert.equal(moved, priceUnits);
  }
  assert.equal(await balanceOf(wallet.address), 5_000_000n - 1_300_000n);
});

test('a secret is bought at the first try, and what stands on the chain gets nobody else to it', async () => {
  const wallet = await newWallet();
  const path = '/x402/instant-agent-wallet';
  const body = { chain: 'solana' };
  const moved = await received(async () => {
    const answer = await wrapFetchWithPayment(fetch, clientOf(wallet))(shop.url + path, asJson(body));
    const text = await answer.text();
    assert.equal(answer.status, 200, text + shop.log());
    const { privateKey } = JSON.parse(text);
    const presented = shop.payments.at(-1);
    assert.ok(presented);
    await shop.restart();
    assert.equal(await (await shop.present(presented)).text(), text);

    // A stranger takes the signed transaction from the chain, and makes of it what it can.
    const { transaction: signature } = receiptOf(answer);
    const landed = await createSolanaRpc(rpcUrl)
      .getTransaction(signature as Signature, { maxSupportedTransactionVersion: 0, encoding: 'base64' })
      .send();
    const transaction = landed?.transaction[0];
    const challenge = await fetch(shop.url + path, asJson(body));
    const required = JSON.parse(
      Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString(),
    );
    const accepted = required.accepts.find(({ network }: { network: string }) => network === SOLANA);
    const claimless = { ...accepted, extra: { feePayer: accepted.extra.feePayer } };
    const v1 = { x402Version: 1, scheme: 'exact', network: 'solana', payload: { transaction } };
    const v2 = (terms: unknown) => ({ x402Version: 2, accepted: terms, payload: { transaction } });
    const guess = { ...body, claimSecret: 'c'.repeat(32) };
    for (const [payment, sent, expected] of [
      [v1, body, [400, 'CLAIM_SECRET_REQUIRED']],
      [v1, guess, [409, 'IDEMPOTENCY_KEY_REUSED']],
      [v2(accepted), body, [409, 'IDEMPOTENCY_KEY_REUSED']],
      [v2(claimless), body, [400, 'CLAIM_SECRET_REQUIRED']],
      [{ txHash: signature }, body, [402, 'PAYMENT_HASH_NOT_TAKEN_HERE']],
      [{ txHash: signature }, guess, [402, 'PAYMENT_HASH_NOT_TAKEN_HERE']],
    ] as const) {
      const stolen: SeenRequest = {
        path,
        headers: {
          'content-type': 'application/json',
          'x-payment': Buffer.from(JSON.stringify(payment)).toString('base64'),
        },
        body: Buffer.from(JSON.stringify(sent)),
      };
      const refused = await shop.present(stolen);
      const told = await refused.text();
      const { code, last_error_reason: reason } = JSON.parse(told);
      assert.deepEqual([refused.status, reason?.code ?? code], expected);
      assert.ok(!told.includes(privateKey));
    }
  });
  assert.equal(moved, 1_000_000n);
});

test('a key that is bought holds what was paid for it, once, and pays for calls', async () => {
  const pay = wrapFetchWithPayment(fetch, clientOf(await newWallet()));
  const moved = await received(async () => {
    const answer = await pay(`${shop.url}/x402/instant-api-key`, asJson({ name: 'from Solana' }));
    const text = await answer.text();
    assert.equal(answer.status, 200, text + shop.log());
    const { apiKey, payment, expires_at } = JSON.parse(text);
    assert.deepEqual([payment.chain, payment.token, expires_at], [SOLANA, 'USDC', null]);
    const presented = shop.payments.at(-1) ?? assert.fail('nothing was presented');
    assert.equal(await (await shop.present(presented)).text(), text);
    const mine = { headers: { 'x-api-key': apiKey } };
    const held = async () => (await jsonOf(fetch(`${shop.url}/api/keys/me`, mine))).balanceUsd;
    assert.equal(await held(), '1.000000');
    const call = await fetch(`${shop.url}/x402/ping`, { method: 'POST', body: '{}', ...mine });
    assert.deepEqual([call.status, await held()], [200, '0.750000']);
  });
  assert.equal(moved, 1_000_000n);
});

test('ten copies of one payment at once are one purchase', async () => {
  const wallet = await newWallet();
  const client = clientOf(wallet);
  const challenge = await fetch(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
  const required = JSON.parse(
    Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString(),
  );
  const payload = await client.createPaymentPayload(required);
  const init = asJson(FIRST_CALL.body);
  const headers = {
    ...init.headers,
    'payment-signature': Buffer.from(JSON.stringify(payload)).toString('base64'),
  };
  const moved = await received(async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => fetch(shop.url + FIRST_CALL.path, { ...init, headers })),
    );
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], texts[0]);
    assert.equal(new Set(texts).size, 1);
  });
  assert.equal(moved, FIRST_CALL.priceUnits);
});

test('no value in any place of a payment is more than refused, in either generation', async () => {
  const challenge = await fetch(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
  const required = JSON.parse(
    Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString(),
  );
  const second = await clientOf(await newWallet()).createPaymentPayload(required);
  const first = { x402Version: 1, scheme: 'exact', network: 'solana', payload: second.payload };
  const moved = await received(async () => {
    for (const honest of [second, first]) {
      // What its payer did not sign cannot pay, so every place of it may be spoiled; of an honest one those that are looked at.
      const bytes = Buffer.from(String(honest.payload.transaction), 'base64');
      bytes[PAYER_SIGNATURE_AT] = (bytes[PAYER_SIGNATURE_AT] ?? 0) ^ 1;
      const forged = withPath(honest, ['payload', 'transaction'], bytes.toString('base64'));
      const lookedAt = pathsOf(honest).filter(
        ([name, field = '']) =>
          !['resource', 'extensions'].includes(name ?? '') && !['extra', 'maxTimeoutSeconds'].includes(field),
      );
      await eachOf([...spoiled(forged), ...spoiled(honest, lookedAt)], async ({ path, put, value }) => {
        const init = asJson(FIRST_CALL.body);
        const payment = Buffer.from(JSON.stringify(value)).toString('base64');
        const answer = await fetch(shop.url + FIRST_CALL.path, {
          ...init,
          headers: { ...init.headers, 'payment-signature': payment },
        });
        const told = await answer.text();
        assert.equal(answer.status, 402, `${path.join('.')} ${JSON.stringify(put)}: ${told}${shop.log()}`);
      });
    }
  });
  assert.equal(moved, 0n);
});

test('two signatures under one payment-identifier are one purchase', async () => {
  const id = generatePaymentId();
  const client = clientOf(await newWallet()).registerExtension({
    key: 'payment-identifier',
    enrichPaymentPayload: async (payload) => ({
      ...payload,
      extensions: appendPaymentIdentifierToExtensions(structuredClone(payload.extensions ?? {}), id),
    }),
  });
  const pay = wrapFetchWithPayment(fetch, client);
  const moved = await received(async () => {
    const first = await pay(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
    const second = await pay(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
    assert.deepEqual([first.status, second.status], [200, 200]);
    assert.equal(await second.text(), await first.text());
    assert.equal(receiptOf(second).transaction, receiptOf(first).transaction);
  });
  assert.equal(moved, FIRST_CALL.priceUnits);
});

test('a wallet without the money is told so, and may pay with the same payment once it has it', async () => {
  const wallet = await newWallet(49_999);
  const pay = wrapFetchWithPayment(fetch, clientOf(wallet));
  const moved = await received(async () => {
    const answer = await pay(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
    assert.equal(answer.status, 402);
    const { last_error_reason } = await jsonOf(answer);
    assert.equal(last_error_reason.code, 'PAYMENT_INSUFFICIENT_FUNDS');
  });
  assert.equal(moved, 0n);
  const presented = shop.payments.at(-1);
  assert.ok(presented);
  await give(wallet, 1);
  const later = await received(async () => assert.equal((await shop.present(presented)).status, 200));
  assert.equal(later, FIRST_CALL.priceUnits);
});

test('a wallet that no money of this sandbox has ever reached is told so', async () => {
  const moved = await received(async () => {
    const pay = wrapFetchWithPayment(fetch, clientOf(await generateKeyPairSigner()));
    const answer = await pay(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
    assert.equal(answer.status, 402);
    const { last_error_reason, sandbox } = await jsonOf(answer);
    assert.deepEqual([last_error_reason.code, sandbox], ['NOT_A_SANDBOX_WALLET', true]);
  });
  assert.equal(moved, 0n);
});

test('sign-in-with-x: what this wallet bought it fetches without paying; another wallet does not', async () => {
  const wallet = await newWallet();
  const member = (signer: KeyPairSigner) =>
    wrapFetchWithPayment(
      fetch,
      clientOf(signer).registerExtension(
        createSIWxClientExtension({ signers: [signer as unknown as SIWxSigner] }),
      ),
    );
  const enter = member(wallet);
  let paid = '';
  const price = await received(async () => {
    paid = await (await enter(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body))).text();
  });
  assert.equal(price, FIRST_CALL.priceUnits);

  nowMs += 1_000;
  await shop.restart();
  const free = await received(async () => {
    const answer = await enter(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
    assert.deepEqual([answer.status, answer.headers.get('idempotent-replayed')], [200, 'true']);
    assert.equal(await answer.text(), paid);
    const used = shop.signIns.at(-1);
    assert.ok(used);
    const replayed = await shop.present(used);
    assert.equal(replayed.status, 402);
    const { last_error_reason } = await jsonOf(replayed);
    assert.deepEqual([last_error_reason.code, last_error_reason.field], ['SIGN_IN_INVALID', 'nonce']);
  });
  assert.equal(free, 0n);

  const stranger = await newWallet();
  const other = await received(async () => {
    assert.equal((await member(stranger)(shop.url + FIRST_CALL.path, asJson(FIRST_CALL.body))).status, 200);
  });
  assert.equal(other, FIRST_CALL.priceUnits, 'it signed in in vain, and paid');
});

for (const settledBy of ['a facilitator', 'a fee payer of our own'] as const) {
  test(`settled by ${settledBy}: clients of both generations buy, also what has an effect; what fails is sent back`, async () => {
    const books = await openTestDatabase();
    let aheadMs = 0;
    const own = await openStorefront({
      pools: books,
      environment: settledBy === 'a facilitator' ? world.environment : world.ownSettler,
      upstreamsUrl: upstreams.url,
      nowMs: () => Date.now() + aheadMs,
    });
    const registry = { address: ERC8004_IDENTITY_REGISTRY } as const;
    const code = await world.chain.client.getCode(registry);
    try {
      const identity = (await loadServices()).find(({ path }) => path === 'verified-agent-identity');
      const dear = asJson(identity?.example);
      const wallets = await Promise.all([newWallet(20_000_000), newWallet(20_000_000)]);
      const [second, first] = wallets as [KeyPairSigner, KeyPairSigner];
      const cap = { maxAmountPerPayment: '$10' };
      const payByV2 = wrapFetchWithPayment(fetch, clientOf(second).setSpendControls(cap));
      const v1 = new x402Client().registerV1('solana', new ExactSvmSchemeV1(first, { rpcUrl }));
      // A server of the first generation has no such header.
      const withoutHeader: typeof fetch = async (...request) => {
        const answer = await fetch(...request);
        const headers = new Headers(answer.headers);
        headers.delete('payment-required');
        return new Response(await answer.arrayBuffer(), { status: answer.status, headers });
      };
      const payByV1 = wrapFetchWithPayment(withoutHeader, v1.setSpendControls(cap));
      const feePayer = (await signerOf(settledBy === 'a facilitator' ? 'facilitator' : 'settler')).address;
      for (const pay of [payByV2, payByV1]) {
        const answer = await pay(own.url + FIRST_CALL.path, asJson(FIRST_CALL.body));
        assert.equal(answer.status, 200, (await answer.text()) + own.log());
        const landed = await createSolanaRpc(rpcUrl)
          .getTransaction((answer.headers.get('x-payment-transaction') ?? '') as Signature, {
            maxSupportedTransactionVersion: 0,
            encoding: 'json',
          })
          .send();
        assert.equal(landed?.transaction.message.accountKeys[0], feePayer);
      }

      // From now on the registry refuses every registration.
      await world.chain.client.setCode({ ...registry, bytecode: '0x5f5ffd' });
      const moved = await received(async () => {
        for (const pay of [payByV2, payByV1]) {
          const answer = await pay(`${own.url}/x402/verified-agent-identity`, dear);
          const { charged, refund } = await jsonOf(answer);
          assert(answer.status >= 500, `${answer.status}`);
          assert.deepEqual([charged, typeof refund?.receipt], [true, 'string']);
        }
      });
      assert.equal(moved, 10_000_000n);
      aheadMs = 700_000;
      for (let round = 0; round < 4; round += 1) {
        await own.finish();
        await fetch(rpcUrl, asJson({ jsonrpc: '2.0', id: 1, method: 'sandbox_advanceSlots', params: [40] }));
        aheadMs += 65_000;
      }
      for (const { address } of wallets) assert.equal(await balanceOf(address), 20_000_000n - 50_000n);
      for (const paid of own.payments.slice(-2)) {
        const again = await own.present(paid);
        assert.deepEqual([again.status, (await jsonOf(again)).code], [410, 'REFUNDED']);
      }
      const { checks } = await proveBooks(books.sql);
      assert.deepEqual(
        checks.filter(({ ok }) => !ok),
        [],
      );
    } finally {
      await world.chain.client.setCode({ ...registry, bytecode: code ?? '0x' });
      await own.stop();
      await books.close();
    }
  });
}
