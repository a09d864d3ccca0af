import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { after, before, beforeEach, describe } from 'node:test';
import { HTTPFacilitatorClient } from '@x402/core/http';
import type { PaymentRequirements } from '@x402/core/types';
import { declareDiscoveryExtension, withBazaar } from '@x402/extensions/bazaar';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { SURROUNDINGS } from '../../../../apps/shop/test/surroundings.fixture.ts';
import { SANDBOX_ACCOUNTS, SEED } from '../accounts.fixture.ts';
import { startEvmChain } from '../chain/chain.ts';
import {
  asHex,
  CREATE2_DEPLOYER,
  openLedger,
  type Payment,
  pay,
  RECIPIENT,
  requirementsV1,
  requirementsV2,
  smartWallets,
} from './facilitator.fixture.ts';
import { type Facilitator, startFacilitator } from './facilitator.ts';
import { fieldsOf } from './payment-request.ts';

const PRICE = 50_000n;
const PRIVATE_KEYS = [SANDBOX_ACCOUNTS.facilitator, SANDBOX_ACCOUNTS.relayer].map(
  ({ privateKey }) => privateKey,
);
const GENERATIONS = [
  {
    name: 'v2',
    network: 'eip155:8453',
    requirements: requirementsV2,
    withPrice: (amount: string) => requirementsV2({ amount }),
  },
  {
    name: 'v1',
    network: 'base',
    requirements: requirementsV1,
    withPrice: (maxAmountRequired: string) => requirementsV1({ maxAmountRequired }),
  },
];

let chain: Awaited<ReturnType<typeof startEvmChain>>;
let ledger: ReturnType<typeof openLedger>;
let facilitator: Facilitator;
let client: HTTPFacilitatorClient;
before(async () => {
  chain = await startEvmChain({ seed: SEED, stateDir: null });
  ledger = openLedger(chain.url);
  facilitator = await startFacilitator({ evm: evmOf(chain.url), solana: null });
  client = new HTTPFacilitatorClient({ url: facilitator.url, timeoutMs: 20_000 });
});
after(async () => {
  await facilitator?.stop();
  await chain?.stop();
});
beforeEach(() => fetch(`${facilitator.url}/__control`, { method: 'DELETE' }));

function evmOf(rpcUrl: string) {
  return { rpcUrl, privateKeys: PRIVATE_KEYS };
}

async function post(path: string, body: unknown, url = facilitator.url) {
  const reply = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: reply.status, json: fieldsOf(await reply.json()) };
}

async function order(fault: Record<string, unknown>): Promise<void> {
  const { status, json } = await post('/__control', { faults: [fault] });
  assert.equal(status, 201, JSON.stringify(json));
}

async function counts(url = facilitator.url) {
  const reply = await fetch(`${url}/__control`);
  const { verify, settle, broadcasts } = fieldsOf(fieldsOf(await reply.json()).counts);
  return { verify: Number(verify), settle: Number(settle), broadcasts: Number(broadcasts) };
}

const verify = ({ payload, requirements }: Payment) => client.verify(payload, requirements);
const settle = ({ payload, requirements }: Payment) => client.settle(payload, requirements);

test('says what it supports', async () => {
  const { kinds, extensions, signers } = await client.getSupported();
  assert.deepEqual(
    kinds.map(({ x402Version, scheme, network }) => ({ x402Version, scheme, network })),
    [
      { x402Version: 2, scheme: 'exact', network: 'eip155:8453' },
      { x402Version: 1, scheme: 'exact', network: 'base' },
    ],
  );
  assert.deepEqual(extensions, ['bazaar']);
  assert.deepEqual(signers, {
    'eip155:*': [SANDBOX_ACCOUNTS.facilitator.address, SANDBOX_ACCOUNTS.relayer.address],
  });
});

for (const { name, network, requirements } of GENERATIONS) {
  describe(`the published client, ${name}`, () => {
    test('a payment is verified, settled once, and refused the second time', async () => {
      const payer = await ledger.payer();
      const payment = await pay(payer, requirements());
      const moved = await ledger.received(async () => {
        assert.deepEqual(await verify(payment), { isValid: true, payer: payer.address });
        const { transaction, ...settled } = await settle(payment);
        assert.deepEqual(settled, { success: true, network, payer: payer.address });
        const { status } = await ledger.client.getTransactionReceipt({ hash: asHex(transaction) });
        assert.equal(status, 'success');
        const again = await settle(payment);
        assert.equal(again.success, false);
        assert.equal(again.errorReason, 'invalid_exact_evm_nonce_already_used');
        assert.equal(again.transaction, '');
      });
      assert.equal(moved, PRICE);
      assert.equal(await ledger.balanceOf(payer.address), 1_000_000n - PRICE);
      assert.deepEqual(await counts(), { verify: 1, settle: 2, broadcasts: 1 });
    });

    test('of five copies at once one settles, and the next payment is not delayed', async () => {
      const payment = await pay(await ledger.payer(), requirements());
      const moved = await ledger.received(async () => {
        const outcomes = await Promise.all(Array.from({ length: 5 }, () => settle(payment)));
        assert.equal(outcomes.filter(({ success }) => success).length, 1);
        for (const { success, errorReason } of outcomes) {
          if (!success)
            assert.match(errorReason ?? '', /^invalid_exact_evm_(nonce_already_used|transaction_failed)$/);
        }
        assert.equal((await settle(await pay(await ledger.payer(), requirements()))).success, true);
      });
      assert.equal(moved, 2n * PRICE);
    });
  });
}

test('many payers at once all settle, over all keys', async () => {
  const payments: Payment[] = [];
  for (let index = 0; index < 20; index += 1)
    payments.push(await pay(await ledger.payer(), requirementsV2()));
  const moved = await ledger.received(async () => {
    const outcomes = await Promise.all(payments.map(settle));
    assert.ok(outcomes.every(({ success }) => success));
    const senders = await Promise.all(
      outcomes.map(async ({ transaction }) => {
        return (await ledger.client.getTransaction({ hash: asHex(transaction) })).from;
      }),
    );
    assert.equal(new Set(senders).size, PRIVATE_KEYS.length);
  });
  assert.equal(moved, 20n * PRICE);
});

test('transactions that wait to be mined get consecutive nonces', async () => {
  const payments: Payment[] = [];
  for (let index = 0; index < 6; index += 1) payments.push(await pay(await ledger.payer(), requirementsV2()));
  await order({ on: 'settle', fault: 'pending', times: 6 });
  const moved = await ledger.received(async () => {
    await ledger.mine(false);
    const pending = await Promise.all(payments.map(settle));
    await ledger.mine(true);
    for (const { errorReason, transaction } of pending) {
      assert.equal(errorReason, 'settlement_pending');
      const { status } = await ledger.client.getTransactionReceipt({ hash: asHex(transaction) });
      assert.equal(status, 'success');
    }
  });
  assert.equal(moved, 6n * PRICE);
});

describe('refusals', () => {
  const STRANGER = '0x000000000000000000000000000000000000bEEF';

  /** Signs for the requirements `signed`, and presents the payment for `presented`. `to` replaces the recipient after signing. */
  async function refusalOf(signed: PaymentRequirements, presented: PaymentRequirements, to?: string) {
    const { payload } = await pay(await ledger.payer(), signed);
    const { authorization, signature } = payload.payload;
    const altered = { ...fieldsOf(authorization), ...(to !== undefined && { to }) };
    const payment = {
      payload: { ...payload, payload: { signature, authorization: altered } },
      requirements: presented,
    };
    const verdict = await verify(payment);
    const outcome = await settle(payment);
    assert.deepEqual([verdict.isValid, outcome.success, outcome.transaction], [false, false, '']);
    return [verdict.invalidReason, outcome.errorReason];
  }

  for (const { name, requirements, withPrice } of GENERATIONS) {
    const otherValue =
      name === 'v2'
        ? 'invalid_exact_evm_payload_authorization_value_mismatch'
        : 'invalid_exact_evm_authorization_value';
    const otherDomain = { extra: { name: 'USDC', version: '2' } };
    const rows: {
      what: string;
      refusal: () => ReturnType<typeof refusalOf>;
      reason: string;
      atSettle?: string;
    }[] = [
      {
        what: 'signed for another recipient',
        refusal: () => refusalOf(requirements({ payTo: STRANGER }), requirements()),
        reason: 'invalid_exact_evm_recipient_mismatch',
      },
      {
        what: 'recipient changed after signing',
        refusal: () => refusalOf(requirements({ payTo: STRANGER }), requirements(), RECIPIENT),
        reason: 'invalid_exact_evm_signature',
      },
      {
        what: 'signed for less',
        refusal: () => refusalOf(withPrice('49999'), requirements()),
        reason: otherValue,
      },
      {
        what: 'signed for more',
        refusal: () => refusalOf(withPrice('50001'), requirements()),
        reason: otherValue,
      },
      {
        what: 'more than the payer has',
        refusal: () => refusalOf(withPrice('1000001'), withPrice('1000001')),
        reason: 'invalid_exact_evm_insufficient_balance',
      },
      {
        what: 'signed for another domain',
        refusal: () => refusalOf(requirements(otherDomain), requirements()),
        reason: 'invalid_exact_evm_signature',
      },
      {
        what: 'offered and signed for a domain that is not the token’s',
        refusal: () => refusalOf(requirements(otherDomain), requirements(otherDomain)),
        reason: 'invalid_exact_evm_token_name_mismatch',
        // v2 does not simulate again to settle, so the token's own refusal is the only reason.
        ...(name === 'v2' && { atSettle: 'invalid_exact_evm_signature' }),
      },
      {
        what: 'offered without a domain',
        refusal: () => refusalOf(requirements(), requirements({ extra: {} })),
        reason: 'invalid_exact_evm_missing_eip712_domain',
      },
      {
        what: 'valid for five more seconds only',
        refusal: () => refusalOf(requirements({ maxTimeoutSeconds: 5 }), requirements()),
        reason: 'invalid_exact_evm_payload_authorization_valid_before',
      },
    ];
    for (const { what, refusal, reason, atSettle } of rows) {
      test(`${name}, ${what}: ${reason}`, async () => {
        const moved = await ledger.received(async () => {
          assert.deepEqual(await refusal(), [reason, atSettle ?? reason]);
        });
        assert.equal(moved, 0n);
        assert.equal((await counts()).broadcasts, 0);
      });
    }

    test(`${name}, the money is gone between verify and settle`, async () => {
      const payer = await ledger.payer();
      const payment = await pay(payer, requirements());
      assert.equal((await verify(payment)).isValid, true);
      assert.equal((await settle(await pay(payer, withPrice('1000000')))).success, true);
      const { success, errorReason } = await settle(payment);
      assert.deepEqual([success, errorReason], [false, 'invalid_exact_evm_insufficient_balance']);
    });

    test(`${name}, the authorization is cancelled between verify and settle`, async () => {
      const payer = await ledger.payer();
      const payment = await pay(payer, requirements());
      assert.equal((await verify(payment)).isValid, true);
      await ledger.cancel(payer, String(fieldsOf(payment.payload.payload.authorization).nonce));
      const { success, errorReason } = await settle(payment);
      assert.deepEqual([success, errorReason], [false, 'invalid_exact_evm_nonce_already_used']);
    });
  }

  test('an asset that is not a contract: asset_not_deployed_contract', async () => {
    const requirements = requirementsV2({ asset: STRANGER });
    const reason = 'asset_not_deployed_contract';
    assert.deepEqual(await refusalOf(requirements, requirements), [reason, reason]);
  });

  test('a body that is not a payment gets status 400 and a reason', async () => {
    const { payload, requirements } = await pay(await ledger.payer(), requirementsV2());
    const rows: [Record<string, unknown>, string][] = [
      [{}, 'invalid_x402_version'],
      [
        { paymentPayload: payload, paymentRequirements: requirements, x402Version: 1 },
        'invalid_x402_version',
      ],
      [
        { paymentPayload: { ...payload, x402Version: 3 }, paymentRequirements: requirements },
        'invalid_x402_version',
      ],
      [{ paymentPayload: { x402Version: 2 }, paymentRequirements: requirements }, 'invalid_payload'],
      [{ paymentPayload: { ...payload, payload: {} }, paymentRequirements: requirements }, 'invalid_payload'],
      [{ paymentPayload: payload, paymentRequirements: {} }, 'invalid_payment_requirements'],
      [{ paymentPayload: payload, paymentRequirements: requirementsV1() }, 'invalid_payment_requirements'],
      [
        { paymentPayload: payload, paymentRequirements: { ...requirements, network: 'eip155:1' } },
        'invalid_network',
      ],
      [
        { paymentPayload: payload, paymentRequirements: { ...requirements, scheme: 'upto' } },
        'unsupported_scheme',
      ],
    ];
    for (const [body, reason] of rows) {
      const verdict = await post('/verify', body);
      const outcome = await post('/settle', body);
      assert.deepEqual(
        [verdict.status, verdict.json.isValid, verdict.json.invalidReason],
        [400, false, reason],
      );
      assert.deepEqual(
        [outcome.status, outcome.json.success, outcome.json.errorReason],
        [400, false, reason],
      );
    }
    assert.equal((await post('/verify', { junk: 'x'.repeat(70_000) })).status, 413);
    await assert.rejects(client.verify({ ...payload, payload: {} }, requirements), { name: 'VerifyError' });
    await assert.rejects(client.settle({ ...payload, payload: {} }, requirements), { name: 'SettleError' });
  });
});

describe('smart wallets', () => {
  const walletOf = smartWallets();

  for (const { name, requirements } of GENERATIONS) {
    test(`${name}, a wallet on the chain signs by EIP-1271`, async () => {
      const owner = await ledger.payer();
      const wallet = walletOf(owner, CREATE2_DEPLOYER);
      await ledger.send(CREATE2_DEPLOYER, wallet.deployment);
      await ledger.mint(wallet.deployed.address, PRICE);
      const forged = {
        ...wallet.deployed,
        signTypedData: walletOf(await ledger.payer(), CREATE2_DEPLOYER).deployed.signTypedData,
      };
      const moved = await ledger.received(async () => {
        assert.equal(
          (await verify(await pay(forged, requirements()))).invalidReason,
          'invalid_exact_evm_signature',
        );
        const payment = await pay(wallet.deployed, requirements());
        assert.deepEqual(await verify(payment), { isValid: true, payer: wallet.deployed.address });
        assert.equal((await settle(payment)).success, true);
      });
      assert.equal(moved, PRICE);
    });

    test(`${name}, a wallet that is not deployed yet is deployed (ERC-6492)`, async () => {
      const wallet = walletOf(await ledger.payer(), CREATE2_DEPLOYER);
      await ledger.mint(wallet.deployed.address, 2n * PRICE);
      const { address } = wallet.deployed;
      const moved = await ledger.received(async () => {
        const payment = await pay(wallet.counterfactual, requirements());
        assert.deepEqual(await verify(payment), { isValid: true, payer: address });
        assert.equal(await ledger.client.getCode({ address }), undefined);
        assert.equal((await settle(payment)).success, true);
        assert.notEqual(await ledger.client.getCode({ address }), undefined);
        // The wallet's library may go on wrapping signatures (ERC-6492) for a while after the deployment.
        assert.equal((await settle(await pay(wallet.counterfactual, requirements()))).success, true);
      });
      assert.equal(moved, 2n * PRICE);
      assert.equal((await counts()).broadcasts, 3);
    });

    test(`${name}, a factory that is not listed is not called`, async () => {
      const wallet = walletOf(await ledger.payer(), RECIPIENT);
      await ledger.mint(wallet.deployed.address, PRICE);
      const payment = await pay(wallet.counterfactual, requirements());
      assert.equal((await verify(payment)).invalidReason, 'eip6492_factory_not_allowed');
      assert.equal((await settle(payment)).errorReason, 'eip6492_factory_not_allowed');
      assert.equal((await counts()).broadcasts, 0);
    });
  }
});

describe('faults on order', () => {
  /** What the published client sees of a settle that a fault strikes, and whether the money moved. */
  const SETTLE_ROWS: { fault: Record<string, unknown>; answer: RegExp; moves: boolean }[] = [
    {
      fault: { fault: 'refuse', errorReason: 'insufficient_funds' },
      answer: /^success false insufficient_funds none$/,
      moves: false,
    },
    {
      fault: { fault: 'refuse-after-broadcast', errorReason: 'insufficient_funds' },
      answer: /^success false insufficient_funds none$/,
      moves: true,
    },
    { fault: { fault: 'throw-before-broadcast' }, answer: /^Error .*\(500\)/, moves: false },
    { fault: { fault: 'throw-after-broadcast' }, answer: /^Error .*\(500\)/, moves: true },
    { fault: { fault: 'drop-before' }, answer: /^TypeError fetch failed/, moves: false },
    { fault: { fault: 'drop-after-broadcast' }, answer: /^TypeError fetch failed/, moves: true },
    { fault: { fault: 'late', delayMs: 20 }, answer: /^success true undefined known$/, moves: true },
    { fault: { fault: 'never' }, answer: /^FacilitatorTimeoutError/, moves: true },
    { fault: { fault: 'never', broadcast: false }, answer: /^FacilitatorTimeoutError/, moves: false },
    { fault: { fault: 'pending' }, answer: /^success false settlement_pending known$/, moves: true },
    {
      fault: { fault: 'pending', broadcast: false },
      answer: /^success false settlement_pending bogus$/,
      moves: false,
    },
    { fault: { fault: 'lie' }, answer: /^success true undefined bogus$/, moves: false },
    { fault: { fault: 'garbage' }, answer: /^FacilitatorResponseError .*invalid JSON/, moves: false },
    {
      fault: { fault: 'garbage', text: '{"success":"yes"}' },
      answer: /^FacilitatorResponseError .*invalid data/,
      moves: false,
    },
  ];
  /** A client that waits long for every answer except the one that never comes. */
  const clientFor = (fault: Record<string, unknown>) =>
    fault.fault === 'never' ? new HTTPFacilitatorClient({ url: facilitator.url, timeoutMs: 200 }) : client;

  async function outcomeOf(fault: Record<string, unknown>, payment: Payment): Promise<string> {
    try {
      const { payload, requirements } = payment;
      const { success, errorReason, transaction } = await clientFor(fault).settle(payload, requirements);
      const kind = transaction === '' ? 'none' : (await ledger.knows(transaction)) ? 'known' : 'bogus';
      return `success ${success} ${errorReason} ${kind}`;
    } catch (error) {
      return String(error).replace(/^(\w+):/, '$1');
    }
  }

  for (const { name, requirements } of GENERATIONS) {
    for (const { fault, answer, moves } of SETTLE_ROWS) {
      test(`${name}, settle, ${JSON.stringify(fault)}`, async () => {
        const payment = await pay(await ledger.payer(), requirements());
        await order({ on: 'settle', ...fault });
        const before = await ledger.balanceOf(RECIPIENT);
        assert.match(await outcomeOf(fault, payment), answer);
        // A transaction that is pending when the answer comes is mined a moment later.
        if (moves) {
          while ((await ledger.balanceOf(RECIPIENT)) === before) await new Promise(setImmediate);
        }
        assert.equal((await ledger.balanceOf(RECIPIENT)) - before, moves ? PRICE : 0n);
        assert.deepEqual(await counts(), { verify: 0, settle: 1, broadcasts: moves ? 1 : 0 });
        // The fault struck once: the next payment is settled normally.
        assert.equal((await settle(await pay(await ledger.payer(), requirements()))).success, true);
      });
    }
  }

  test('a pending v2 settlement is found by the next settle of the same payment', async () => {
    const payment = await pay(await ledger.payer(), requirementsV2());
    await order({ on: 'settle', fault: 'pending' });
    const pending = await settle(payment);
    const settled = await settle(payment);
    assert.deepEqual([settled.success, settled.transaction], [true, pending.transaction]);
    assert.equal((await counts()).broadcasts, 1);
  });

  test('verify, each fault', async () => {
    // The amount exceeds the payer's balance, so only a lie finds it valid.
    const valid = await pay(await ledger.payer(), requirementsV2());
    const poor = await pay(await ledger.payer(), requirementsV2({ amount: '1000001' }));
    const ask = (fault: Record<string, unknown>, { payload, requirements }: Payment) =>
      clientFor(fault)
        .verify(payload, requirements)
        .then(
          ({ isValid, invalidReason }) => `${isValid} ${invalidReason}`,
          (error: unknown) => String(error),
        );
    const rows: [Record<string, unknown>, Payment, RegExp][] = [
      [{ fault: 'refuse', errorReason: 'some_reason' }, valid, /^false some_reason$/],
      [{ fault: 'throw-before-broadcast' }, valid, /\(500\)/],
      [{ fault: 'throw-after-broadcast' }, valid, /\(500\)/],
      [{ fault: 'drop-before' }, valid, /fetch failed/],
      [{ fault: 'drop-after-broadcast' }, valid, /fetch failed/],
      [{ fault: 'late', delayMs: 20 }, valid, /^true undefined$/],
      [{ fault: 'never' }, valid, /FacilitatorTimeoutError/],
      [{ fault: 'lie' }, poor, /^true undefined$/],
      [{ fault: 'garbage' }, valid, /invalid JSON/],
    ];
    for (const [fault, payment, answer] of rows) {
      await order({ on: 'verify', ...fault });
      assert.match(await ask(fault, payment), answer);
    }
    assert.deepEqual(await counts(), { verify: rows.length, settle: 0, broadcasts: 0 });
  });

  test('strike as often as ordered, each step for itself, and are refused when they make no sense', async () => {
    const payment = await pay(await ledger.payer(), requirementsV2());
    await order({ on: 'verify', fault: 'refuse', errorReason: 'twice', times: 2 });
    const reasons = [];
    for (let time = 0; time < 3; time += 1) reasons.push((await verify(payment)).invalidReason);
    assert.deepEqual(reasons, ['twice', 'twice', undefined]);
    for (const fault of [
      { on: 'verify', fault: 'pending' },
      { on: 'settle', fault: 'late' },
      { on: 'settle', fault: 'refuse' },
      { on: 'settle', fault: 'explode' },
      { on: 'supported', fault: 'lie' },
      { on: 'settle', fault: 'lie', times: 0 },
    ]) {
      assert.equal((await post('/__control', { faults: [fault] })).status, 400, JSON.stringify(fault));
    }
  });

  test('pending waits end when the server stops', async () => {
    const other = await startFacilitator({ evm: evmOf(chain.url), solana: null });
    const faults = [
      { on: 'settle', fault: 'never', broadcast: false },
      { on: 'settle', fault: 'late', delayMs: 600_000 },
    ];
    await post('/__control', { faults }, other.url);
    const waiting = new HTTPFacilitatorClient({ url: other.url });
    const { payload, requirements } = await pay(await ledger.payer(), requirementsV2());
    const moved = await ledger.received(async () => {
      const asked = [1, 2].map(() => assert.rejects(waiting.settle(payload, requirements), /fetch failed/));
      while ((await counts(other.url)).settle < 2) await new Promise(setImmediate);
      await other.stop();
      await Promise.all(asked);
    });
    assert.equal(moved, 0n);
  });
});

test('a node that cannot be reached does not refuse a payment', async () => {
  const gone = await startEvmChain({ seed: SEED, stateDir: null });
  const other = await startFacilitator({ evm: evmOf(gone.url), solana: null });
  await gone.stop();
  try {
    // An asset that this process has not seen yet: the library asks for its code and does not handle a rejection.
    const asset = '0x00000000000000000000000000000000000a55e7';
    for (const requirements of [requirementsV2({ asset }), requirementsV1({ asset }), requirementsV2()]) {
      const payment = await pay(privateKeyToAccount(generatePrivateKey()), requirements);
      const body = { paymentPayload: payment.payload, paymentRequirements: payment.requirements };
      for (const path of ['/verify', '/settle']) {
        const { status, json } = await post(path, body, other.url);
        assert.deepEqual([status, json.error], [503, 'node_unreachable'], path);
      }
    }
    assert.equal((await counts(other.url)).broadcasts, 0);
  } finally {
    await other.stop();
  }
});

test('sent, and the node’s reply is lost: the receipt decides', async () => {
  let lost = 0;
  const wire = createServer(async (request, response) => {
    const asked = await text(request);
    const answer = await fetch(chain.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: asked,
    });
    const said = await answer.text();
    if (!asked.includes('eth_sendRawTransaction')) {
      response.setHeader('content-type', 'application/json').end(said);
      return;
    }
    lost += 1;
    request.socket.destroy();
  });
  const port = await new Promise<number>((resolve) => {
    wire.listen(0, '127.0.0.1', () => resolve(Number(fieldsOf(wire.address()).port)));
  });
  const other = await startFacilitator({ evm: evmOf(`http://127.0.0.1:${port}`), solana: null });
  try {
    const apart = new HTTPFacilitatorClient({ url: other.url });
    for (const { requirements } of GENERATIONS) {
      const moved = await ledger.received(async () => {
        const payment = await pay(await ledger.payer(), requirements());
        assert.equal((await apart.settle(payment.payload, payment.requirements)).success, true);
      });
      assert.equal(moved, PRICE);
    }
    assert.equal(lost, 2);
  } finally {
    await other.stop();
    wire.close();
    wire.closeAllConnections();
  }
});

describe('the catalog', () => {
  const declared = declareDiscoveryExtension({
    input: { chain: 'base' },
    inputSchema: { properties: { chain: { type: 'string' } }, required: ['chain'] },
    bodyType: 'json',
    output: { example: { price: 1 } },
  });
  assert.ok(declared.bazaar);
  const { info, schema } = declared.bazaar;
  const bazaar = { info: { ...info, input: { ...info.input, method: 'POST' } }, schema };

  test('a resource is listed once it was paid for', async () => {
    const shop = withBazaar(client).extensions.bazaar;
    const payment = await pay(await ledger.payer(), requirementsV2(), { bazaar });
    assert.deepEqual((await verify(payment)).extensionResponses, { bazaar: { status: 'processing' } });
    assert.equal((await shop.listResources()).pagination.total, 0);
    assert.deepEqual((await settle(payment)).extensionResponses, { bazaar: { status: 'success' } });
    const { items, pagination } = await shop.listResources({
      type: 'http',
      network: 'eip155:8453',
      payTo: RECIPIENT,
    });
    assert.deepEqual(pagination, { limit: 20, offset: 0, total: 1 });
    assert.equal(items[0]?.resource, 'https://sandbox.test/x402/token-price');
    assert.deepEqual(items[0]?.accepts, [requirementsV2()]);
    assert.equal((await shop.listResources({ type: 'mcp' })).pagination.total, 0);
    assert.equal((await shop.listResources({ extensions: 'bazaar', offset: 1 })).items.length, 0);
    await assert.rejects(shop.listResources({ limit: 101 }), /400/);
  });

  test('a declaration that does not fit its own schema is rejected; the payment is not', async () => {
    const wrong = { info: { ...bazaar.info, input: { ...bazaar.info.input, body: { chain: 7 } } }, schema };
    const payment = await pay(await ledger.payer(), requirementsV2(), { bazaar: wrong });
    const { success, extensionResponses } = await settle(payment);
    assert.equal(success, true);
    assert.deepEqual(extensionResponses, {
      bazaar: { status: 'rejected', rejectedReason: '/input/body/chain: must be string' },
    });
  });
});

test('runs as a process of its own', async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: {
      ...SURROUNDINGS,
      FACILITATOR_PORT: '0',
      EVM_RPC_URL: chain.url,
      EVM_KEYS: PRIVATE_KEYS.join(','),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  const url = /http:\S+/.exec(String(line))?.[0];
  const apart = new HTTPFacilitatorClient({ url: url ?? '' });
  const { payload, requirements } = await pay(await ledger.payer(), requirementsV2());
  assert.equal((await apart.settle(payload, requirements)).success, true);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});
