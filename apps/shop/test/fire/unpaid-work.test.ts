/**
 * Work that wallets have done and cannot pay: a model that costs money, asked by payers who have not paid before, and by
 * those who sign the same money more than once.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { PrivateKeyAccount } from 'viem/accounts';
import { z } from 'zod';
import inference from '../../../../packages/catalogue/src/services/ai-services/ai-inference.ts';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { paymentHeader, signPayment } from '../x402.fixture.ts';
import { assertBooksClosed } from './money.fixture.ts';
import { type SlowModel, startSlowModel } from './slow-model.fixture.ts';
import { until } from './until.fixture.ts';

const PRICE = 50_000n;
const PRICE_USD = 0.05;

/** Costs nobody anything. */
const plain = defineService({
  path: 'plain',
  name: 'Plain',
  tag: 'Discovery',
  priceUsd: '0.05',
  mpp: true,
  summary: 'For tests.',
  input: z.object({}),
  output: z.object({}),
  example: {},
  run: async () => answer({}, { method: 'At once.' }),
});

let world: MppWorld;
let database: TestDatabase;
let elsewhere: Pools;
let model: SlowModel;
/** Two replicas that can send money back, and one that cannot. */
let here: TestServer;
let there: TestServer;
let withoutRefunds: TestServer;

before(async () => {
  [world, database, model] = await Promise.all([startMppWorld(), openTestDatabase(), startSlowModel()]);
  elsewhere = connectPools(database.url, 6);
  const environment = { ...world.environment, ...world.base.ownSettler, ...model.environment };
  const open = (pools: Pools, more: Record<string, string> = {}) =>
    startTestServer({ pools, services: [inference, plain], environment: { ...environment, ...more } });
  const none = { X402_REFUND_KEYS: '', MPP_TEMPO_REFUND_KEY: '' };
  [here, there, withoutRefunds] = await Promise.all([open(database), open(elsewhere), open(elsewhere, none)]);
});
after(async () => {
  await Promise.all([here?.close(), there?.close(), withoutRefunds?.close()]);
  await Promise.all([elsewhere && endPools(elsewhere, 1), database?.close(), model?.close(), world?.stop()]);
});
beforeEach(() => {
  model.isSlow = true;
});

type Pay = (on: TestServer, payer: PrivateKeyAccount, path?: string) => Promise<() => Promise<Response>>;

const asking = (headers: Record<string, string>) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ prompt: 'Hello' }),
});
const plainly = (path: string, sent: ReturnType<typeof asking>) =>
  path === 'plain' ? { ...sent, body: '{}' } : sent;

/** Each signs a payment, and returns what presents it. */
const byX402: Pay = async (on, payer, path = 'ai-inference') => {
  const address = `${on.url}/x402/${path}`;
  const unpaid = await fetch(address, { method: 'POST' });
  const signed = await signPayment(payer, { to: world.base.recipient, valueUnits: PRICE });
  const header = await paymentHeader(unpaid, signed);
  return () => fetch(address, plainly(path, asking({ 'payment-signature': header })));
};
const byMpp =
  (method: 'evm' | 'tempo'): Pay =>
  async (on, payer, path = 'ai-inference') => {
    const address = `${on.url}/mpp/${path}`;
    const unpaid = await fetch(address, plainly(path, asking({})));
    const authorization = await world.credential(payer, method, unpaid);
    return () => fetch(address, plainly(path, asking({ authorization })));
  };

const RAILS = [
  { name: 'x402', pay: byX402, received: () => world.received('evm') },
  { name: 'MPP (evm)', pay: byMpp('evm'), received: () => world.received('evm') },
  { name: 'MPP (tempo)', pay: byMpp('tempo'), received: () => world.received('tempo') },
] as const;

/** Presents a payment, and returns once the model is asked. */
async function asked(present: () => Promise<Response>): Promise<{ answered: Promise<Response> }> {
  const before = model.asked;
  const answered = present();
  await until('the model to be asked', () => model.asked > before);
  return { answered };
}

for (const { name, pay, received } of RAILS)
  describe(name, () => {
    test('a payer who has not paid before pays before the model is asked, and from then on after it', async () => {
      const payer = await world.wallet();
      for (const isFirst of [true, false]) {
        const before = await received();
        const present = await pay(here, payer);
        const response = await asked(present);
        assert.equal((await received()) - before, isFirst ? PRICE : 0n);
        model.answer();
        assert.equal((await response.answered).status, 200);
        assert.equal((await received()) - before, PRICE);
      }
    });

    test('where money cannot be sent back, such a payer asks it once at a time', async () => {
      const payer = await world.wallet();
      const [first, second, third] = [
        await pay(withoutRefunds, payer),
        await pay(withoutRefunds, payer),
        await pay(withoutRefunds, payer),
      ];
      const [before, moved] = [model.asked, await received()];
      const running = await asked(first);
      assert.equal(await received(), moved, 'it pays after the work, since nothing could go back');
      const refused = await second();
      const told = await jsonOf(refused);
      assert.deepEqual([refused.status, told.code, told.charged], [429, 'TOO_MANY_CONCURRENT_CALLS', false]);
      assert.equal(refused.headers.get('retry-after'), '2');
      // What costs nothing is sold beside it.
      assert.equal((await (await pay(withoutRefunds, payer, 'plain'))()).status, 200);
      model.answer();
      assert.equal((await running.answered).status, 200);
      // Both are known from now on.
      model.isSlow = false;
      for (const present of [second, third]) assert.equal((await present()).status, 200);
      assert.equal(model.asked, before + 3);
    });

    test('60 payments of a wallet that holds the price of one ask the model once', async () => {
      model.isSlow = false;
      for (const on of [
        [here, there],
        [withoutRefunds, withoutRefunds],
      ] as const) {
        // On Tempo the fee is taken from the same money.
        const payer = await world.wallet(PRICE_USD * 1.5);
        const signed = await Promise.all(
          Array.from({ length: 60 }, (_, n) => pay(n % 2 === 0 ? on[0] : on[1], payer)),
        );
        const [before, asked] = [await received(), model.asked];
        const statuses = await Promise.all(signed.map(async (present) => (await present()).status));
        assert.equal(model.asked - asked, 1);
        assert.equal(statuses.filter((status) => status === 200).length, 1);
        assert.equal((await received()) - before, PRICE);
      }
    });
  });

test('what a wallet has in flight at one door counts at the other', async () => {
  const payer = await world.wallet(2 * PRICE_USD);
  model.isSlow = false;
  assert.equal((await (await byX402(here, payer))()).status, 200);
  model.isSlow = true;
  const [first, second] = [await byX402(here, payer), await byMpp('evm')(there, payer)];
  const running = await asked(first);
  const count = model.asked;
  const refused = await second();
  const told = await jsonOf(refused);
  assert.deepEqual([refused.status, told.code], [402, 'PAYMENT_INSUFFICIENT_FUNDS']);
  assert.equal(model.asked, count);
  // With more money in the wallet the same payment buys.
  model.answer();
  assert.equal((await running.answered).status, 200);
});

test('the books balance', () => assertBooksClosed(database.patient));
