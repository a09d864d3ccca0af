/** Tests what every way to pay must do, whatever it is: a new rail is done when it passes this. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PrivateKeyAccount } from 'viem/accounts';
import { altered, METHODS, type Method, type MppWorld, resigned, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type CreditsStage, setCreditsStage } from './credits-stage.fixture.ts';
import {
  type FaultStage,
  ONE_SALE,
  prove,
  proveBeyondMeans,
  type Row,
  rowsOfAnyRail,
} from './fault-table.fixture.ts';
import { type Stage as MppStage, setStage as setMppStage } from './mpp-stage.fixture.ts';
import { setStage as setX402Stage, type Stage as X402Stage } from './x402-stage.fixture.ts';

const NOBODY = '0x000000000000000000000000000000000000dEaD';
let world: MppWorld;
before(async () => {
  world = await startMppWorld();
});
after(() => world?.stop());

interface RailUnderTest<Stage extends FaultStage<Payer>, Payer> {
  name: string;
  set(): Promise<Stage>;
  /** Where it is sold. */
  door: 'x402' | 'mpp';
  /** The price of an unpaid answer, in millionths of a dollar. */
  priceTold(unpaid: Response): Promise<bigint>;
  /** Payments that do not pay, each with what it is told. */
  forged: Readonly<
    Record<string, { pay: NonNullable<Row<Stage, Payer>['pay']>; told: string; usd?: number }>
  >;
  /** Whether what was paid can be looked up on a chain. */
  hasReceipts: boolean;
}

/** The result of a payment that does not pay: nothing ran, nothing moved, nothing is kept for it. */
const NOTHING = { runs: 0, paid: 0 } as const;

function conforms<Stage extends FaultStage<Payer>, Payer>(rail: RailUnderTest<Stage, Payer>): void {
  describe(rail.name, () => {
    let stage: Stage;
    before(async () => {
      stage = await rail.set();
    });
    after(() => stage?.close());
    const proves = async (row: Row<Stage, Payer>) => {
      await stage.reset();
      await prove(row, stage);
    };

    test('it tells the price before it is paid', async () => {
      const unpaid = await fetch(`${stage.here.url}/${rail.door}/nickel`, { method: 'POST' });
      assert.equal(unpaid.status, 402);
      assert.equal(await rail.priceTold(unpaid), stage.priceOf('nickel'));
    });

    for (const row of rowsOfAnyRail<Stage, Payer>()) test(row.fault, () => proves(row));

    for (const [prices, payments] of [
      [1, 60],
      [3, 12],
    ] as const)
      test(`${payments} payments of a wallet that holds the price of ${prices} run the service no oftener than it can pay`, async () => {
        await stage.reset();
        await proveBeyondMeans(stage, { prices, payments });
      });

    for (const [name, { pay, told, usd }] of Object.entries(rail.forged)) {
      test(`${name} buys nothing: ${told}`, async () => {
        await stage.reset();
        const payer = await stage.wallet(usd);
        const payment = await pay(stage, payer);
        const held = await stage.held(payer);
        const first = await stage.present(payment);
        assert.equal(first.text, told, first.body);
        await stage.assertProper(first);
        await stage.rest();
        const { captured, open, withChain } = await stage.calls();
        assert.deepEqual({ captured, open, withChain }, { captured: 0, open: 0, withChain: 0 });
        assert.deepEqual({ runs: stage.script.runs, paid: Number(await stage.moved()) }, NOTHING);
        assert.equal(await stage.held(payer), held);
      });
    }

    test('text that nothing can keep is refused before anything is taken, and the payment is still good', () =>
      proves({
        fault: 'NUL',
        play: async (on, payment) => [await on.present(payment, { body: { name: 'a\u0000b' } })],
        told: ['400 INVALID_REQUEST'],
        ...ONE_SALE,
        atRest: '200',
      }));

    test('a service that is not there takes nothing, and the payment is still good', () =>
      proves({
        fault: 'unknown service',
        play: async (on, payment) => {
          const told = await on.present(payment, { path: 'no-such-service' });
          assert.equal(told.text, '404 UNKNOWN_SERVICE');
          return [];
        },
        told: [],
        ...ONE_SALE,
        atRest: '200',
      }));

    test('what was paid can be read from the answer, and looked up', async () => {
      await stage.reset();
      const payer = await stage.wallet();
      const bought = await stage.present(await stage.pay(payer));
      assert.equal(bought.text, '200');
      assert.notEqual(stage.receiptOf(bought), null);
      const id = bought.headers.get('x-call-id');
      const looked = await fetch(`${stage.here.url}/x402/receipts/${id}`);
      assert.equal(looked.status, rail.hasReceipts ? 200 : 404);
      if (!rail.hasReceipts) return;
      const receipt = await jsonOf(looked);
      assert.deepEqual(
        [receipt.status, receipt.transaction],
        ['delivered', bought.headers.get('x-payment-transaction')],
      );
    });
  });
}

const CREDITS: RailUnderTest<CreditsStage, string> = {
  name: 'credits',
  set: setCreditsStage,
  door: 'x402',
  priceTold: async (unpaid) => usdIn(unpaid.headers.get('x-payment-price')),
  forged: {
    'a key that nobody has': {
      pay: async () => `fbx_live_${'0'.repeat(64)} name`,
      told: '402 API_KEY_INVALID',
    },
    'a key that is none': { pay: async () => 'nonsense name', told: '402 API_KEY_INVALID' },
    'a key without credit': {
      pay: (stage, key) => stage.pay(key),
      told: '402 INSUFFICIENT_CREDITS',
      usd: 0.01,
    },
    'a key that was revoked': {
      pay: async (stage, key) => {
        await stage.database
          .sql`update api_keys set status = 'revoked' where digest = sha256(convert_to(${key}, 'UTF8'))`;
        return stage.pay(key);
      },
      told: '402 API_KEY_REVOKED',
    },
  },
  hasReceipts: false,
};

const X402 = (settledBy: 'facilitator' | 'own settler'): RailUnderTest<X402Stage, PrivateKeyAccount> => ({
  name: `x402, settled by a${settledBy === 'facilitator' ? ' facilitator' : 'n own settler'}`,
  set: () => setX402Stage({ chain: world.base.chain, settledBy }),
  door: 'x402',
  async priceTold(unpaid) {
    const { accepts } = await jsonOf(unpaid);
    return BigInt(accepts[0].amount);
  },
  forged: {
    'an expired one': {
      pay: (stage, payer) => stage.payment(payer, 'nickel', { validForSeconds: -10 }),
      told: '402 PAYMENT_EXPIRED',
    },
    'one to somebody else': {
      pay: (stage, payer) => stage.payment(payer, 'nickel', { to: NOBODY }),
      told: '402 PAYMENT_RECIPIENT_MISMATCH',
    },
    'one of another amount': {
      pay: (stage, payer) => stage.payment(payer, 'nickel', { valueUnits: 49_999n }),
      told: '402 PAYMENT_AMOUNT_MISMATCH',
    },
    'one on another network': {
      pay: (stage, payer) => stage.payment(payer, 'nickel', { chainId: 1 }),
      told: '402 PAYMENT_SIGNATURE_INVALID',
    },
    'one that is not covered': {
      pay: (stage, payer) => stage.payment(payer),
      told: '402 PAYMENT_INSUFFICIENT_FUNDS',
      usd: 0.01,
    },
  },
  hasReceipts: true,
});

const MPP = (method: Method): RailUnderTest<MppStage, PrivateKeyAccount> => ({
  name: `mpp, by ${method}`,
  set: () => setMppStage(world, method),
  door: 'mpp',
  priceTold: async (unpaid) => usdIn(String((await jsonOf(unpaid)).price_usd)),
  forged: {
    'one for a challenge that never expires': {
      pay: async (stage, payer) =>
        altered(await stage.credential(payer), ({ challenge }) => delete challenge.expires),
      told: '402 invalid-challenge',
    },
    'one of another amount': {
      pay: async (stage, payer) =>
        altered(await stage.credential(payer), ({ challenge }) => {
          challenge.request.amount = '1';
        }),
      told: '402 invalid-challenge',
    },
    'one that is not covered': {
      pay: (stage, payer) => stage.credential(payer),
      told: '402 payment-insufficient',
      usd: 0.01,
    },
    ...(method === 'evm'
      ? {}
      : {
          'one on another network': {
            pay: async (stage: MppStage, payer: PrivateKeyAccount) =>
              resigned(payer, await stage.credential(payer), (transaction) => ({
                ...transaction,
                chainId: 42_431,
              })),
            told: '402 verification-failed',
          },
          'an expired one': {
            pay: async (stage: MppStage, payer: PrivateKeyAccount) =>
              resigned(payer, await stage.credential(payer), (transaction) => ({
                ...transaction,
                validBefore: Math.floor(Date.now() / 1_000) - 1,
              })),
            told: '402 payment-expired',
          },
        }),
  },
  hasReceipts: true,
});

const RAILS = [
  () => conforms(CREDITS),
  () => conforms(X402('facilitator')),
  () => conforms(X402('own settler')),
  ...METHODS.map((method) => () => conforms(MPP(method))),
];
for (const rail of RAILS) rail();

function usdIn(text: string | null): bigint {
  return BigInt(Math.round(Number(/[\d.]+/.exec(text ?? '')?.[0]) * 1e6));
}
