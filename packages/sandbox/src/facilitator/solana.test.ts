import assert from 'node:assert/strict';
import test, { after, before, beforeEach, describe } from 'node:test';
import { type Address, createSolanaRpc, generateKeyPairSigner, type KeyPairSigner } from '@solana/kit';
import { x402Client } from '@x402/core/client';
import { HTTPFacilitatorClient } from '@x402/core/http';
import type { PaymentRequirements } from '@x402/core/types';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { ExactSvmSchemeV1 } from '@x402/svm/exact/v1/client';
import { SEED, secretKeyOf, signerOf } from '../accounts.fixture.ts';
import { usdcAccountOf } from '../solana/genesis.ts';
import { USDC_MINT } from '../solana/programs.ts';
import { type SolanaChain, startSolana } from '../solana/solana.ts';
import type { Payment } from './facilitator.fixture.ts';
import { type Facilitator, startFacilitator } from './facilitator.ts';
import { fieldsOf } from './payment-request.ts';

const NETWORK = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const PRICE = 50_000n;

let chain: SolanaChain;
let facilitator: Facilitator;
let client: HTTPFacilitatorClient;
let recipient: Address;
let feePayer: Address;
before(async () => {
  chain = await startSolana({ seed: SEED, stateDir: null });
  facilitator = await startFacilitator({ evm: null, solana: await solanaOf(chain.url) });
  client = new HTTPFacilitatorClient({ url: facilitator.url, timeoutMs: 20_000 });
  recipient = (await signerOf('recipient')).address;
  feePayer = (await signerOf('facilitator')).address;
});
after(async () => {
  await facilitator?.stop();
  await chain?.stop();
});
beforeEach(() => fetch(`${facilitator.url}/__control`, { method: 'DELETE' }));

async function solanaOf(rpcUrl: string) {
  return { rpcUrl, feePayerSecretKey: secretKeyOf('facilitator') };
}

async function post(url: string, body: unknown) {
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: reply.status, json: fieldsOf(await reply.json()) };
}

const order = (fault: Record<string, unknown>) => post(`${facilitator.url}/__control`, { faults: [fault] });
const sandbox = (method: string, ...params: unknown[]) =>
  post(chain.url, { jsonrpc: '2.0', id: 1, method, params });

function v2(amount = String(PRICE)): PaymentRequirements {
  const common = { scheme: 'exact', asset: USDC_MINT, payTo: recipient, maxTimeoutSeconds: 300 };
  return { ...common, network: NETWORK, amount, extra: { feePayer } };
}

function v1(amount = String(PRICE)): PaymentRequirements {
  const { amount: maxAmountRequired, ...rest } = v2(amount);
  const resource = 'https://sandbox.test/x402/token-price';
  const described = { resource, description: 'Token price', mimeType: 'application/json' };
  // The library's types know the second generation only; its code looks at the version.
  return { ...rest, ...described, network: 'solana', maxAmountRequired } as unknown as PaymentRequirements;
}

const GENERATIONS = [
  { name: 'v2', network: NETWORK, requirements: v2 },
  { name: 'v1', network: 'solana', requirements: v1 },
];

/** A fresh account with one USDC and no SOL. */
async function newPayer(): Promise<KeyPairSigner> {
  const signer = await generateKeyPairSigner();
  await sandbox('sandbox_fund', signer.address, { usdcUnits: 1_000_000 });
  return signer;
}

/** Signs with the published client. */
async function pay(signer: KeyPairSigner, requirements: PaymentRequirements): Promise<Payment> {
  const config = { rpcUrl: chain.url };
  const payload = await new x402Client()
    .register(NETWORK, new ExactSvmScheme(signer, config))
    .registerV1('solana', new ExactSvmSchemeV1(signer, config))
    .setSpendControls(false)
    .createPaymentPayload({
      x402Version: 'amount' in requirements ? 2 : 1,
      resource: { url: 'https://sandbox.test/x402/token-price' },
      accepts: [requirements],
    });
  return { payload, requirements };
}

async function received(work: () => Promise<unknown>): Promise<bigint> {
  const rpc = createSolanaRpc(chain.url);
  const account = await usdcAccountOf(recipient);
  const balance = async () => BigInt((await rpc.getTokenAccountBalance(account).send()).value.amount);
  const before = await balance();
  await work();
  return (await balance()) - before;
}

const verify = ({ payload, requirements }: Payment) => client.verify(payload, requirements);
const settle = ({ payload, requirements }: Payment) => client.settle(payload, requirements);

for (const { name, network, requirements } of GENERATIONS) {
  describe(`the published client, ${name}`, () => {
    test('a payment is verified, settled once, and refused the second time', async () => {
      const payer = await newPayer();
      const payment = await pay(payer, requirements());
      const moved = await received(async () => {
        assert.deepEqual(await verify(payment), { isValid: true, payer: payer.address });
        const { transaction, ...settled } = await settle(payment);
        assert.deepEqual(settled, { success: true, network, payer: payer.address });
        assert.match(transaction, /^[1-9A-HJ-NP-Za-km-z]{86,88}$/);
        const again = await settle(payment);
        assert.deepEqual([again.success, again.errorReason], [false, 'duplicate_settlement']);
      });
      assert.equal(moved, PRICE);
    });

    test('more than the payer has, and signed for less than is asked', async () => {
      const simulation =
        name === 'v2' ? 'invalid_exact_svm_transaction_simulation_failed' : 'transaction_simulation_failed';
      const rows = [
        [await pay(await newPayer(), requirements('1000001')), simulation],
        [
          { ...(await pay(await newPayer(), requirements('49999'))), requirements: requirements() },
          'invalid_exact_svm_payload_amount_mismatch',
        ],
      ] as const;
      for (const [payment, reason] of rows) {
        assert.equal((await verify(payment)).invalidReason, reason);
        assert.equal((await settle(payment)).errorReason, reason);
      }
    });

    test('sent, and the node’s reply is lost: its status tells', async () => {
      const payment = await pay(await newPayer(), requirements());
      await sandbox('sandbox_setFault', { fault: 'drop-reply', method: 'sendTransaction' });
      const moved = await received(async () => assert.equal((await settle(payment)).success, true));
      assert.equal(moved, PRICE);
    });

    test('a node that is behind or away is no refusal', async () => {
      const { payload, requirements: paymentRequirements } = await pay(await newPayer(), requirements());
      const body = { paymentPayload: payload, paymentRequirements };
      for (const fault of ['refuse', 'status']) {
        for (const path of ['/verify', '/settle']) {
          await sandbox('sandbox_setFault', { fault, method: 'simulateTransaction' });
          const { status, json } = await post(facilitator.url + path, body);
          assert.deepEqual([status, json.error], [503, 'node_unreachable'], `${fault} ${path}`);
        }
      }
      assert.equal((await settle({ payload, requirements: paymentRequirements })).success, true);
    });

    test('faults on order: pending, and a lie', async () => {
      const pending = await pay(await newPayer(), requirements());
      const lied = await pay(await newPayer(), requirements());
      await order({ on: 'settle', fault: 'pending' });
      const moved = await received(async () => {
        const { errorReason, transaction } = await settle(pending);
        assert.equal(errorReason, 'settlement_pending');
        if (name === 'v2') assert.equal((await settle(pending)).transaction, transaction);
        await order({ on: 'settle', fault: 'lie' });
        const lie = await settle(lied);
        assert.equal(lie.success, true);
        assert.match(lie.transaction, /^[1-9A-HJ-NP-Za-km-z]{86,88}$/);
      });
      assert.equal(moved, PRICE);
    });
  });
}

test('says what it supports, with the fee payer', async () => {
  const { kinds, signers } = await client.getSupported();
  assert.deepEqual(kinds, [
    { x402Version: 2, scheme: 'exact', network: NETWORK, extra: { feePayer } },
    { x402Version: 1, scheme: 'exact', network: 'solana', extra: { feePayer } },
  ]);
  assert.deepEqual(signers, { 'solana:*': [feePayer] });
});
