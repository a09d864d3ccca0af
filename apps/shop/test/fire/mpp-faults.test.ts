/**
 * The fault table of the MPP rail: one row a fault, for each method. Each row says what the payer holds after each
 * request, how often the service ran, how much money moved on the chain, and what the books say once all is at rest.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { encodeFunctionData, erc20Abi } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { USDC_E } from '../../../../packages/sandbox/src/tempo/addresses.ts';
import {
  altered,
  METHODS,
  type Method,
  type MppWorld,
  opened,
  resigned,
  sealed,
  startMppWorld,
} from '../mpp.fixture.ts';
import { signPayment } from '../x402.fixture.ts';
import {
  byNeed,
  ONE_SALE,
  rowsOfAnyChain,
  rowsOfAnyRail,
  stagePool,
  type Row as TableRow,
} from './fault-table.fixture.ts';
import { minutesLater, NOBODY, PRICE, type Stage, setStage, WORDS } from './mpp-stage.fixture.ts';
import { until } from './until.fixture.ts';
import type { NodeFault } from './x402-node.fixture.ts';

type Row = TableRow<Stage, PrivateKeyAccount, Method>;

/** Refused before anything was claimed. */
const NOTHING = { runs: 0, paid: 0, books: {} } as const;
const refusedAs = (problem: string) => ({ told: [`402 ${problem}`], atRest: `402 ${problem}`, ...NOTHING });

const firstRun =
  (does: (stage: Stage, payer: PrivateKeyAccount) => Promise<void>): NonNullable<Row['given']> =>
  (stage, payer) => {
    stage.script.during = (run) => (run === 1 ? does(stage, payer) : Promise.resolve());
  };
const changed =
  (change: Parameters<typeof altered>[1]): NonNullable<Row['pay']> =>
  async (stage, payer) =>
    altered(await stage.credential(payer), change);
const resignedAs =
  (change: Parameters<typeof resigned>[2]): NonNullable<Row['pay']> =>
  async (stage, payer) =>
    resigned(payer, await stage.credential(payer), change);
const sendingMeets =
  (fault: NodeFault): NonNullable<Row['given']> =>
  (stage) =>
    stage.node.next(stage.sending, fault);

/** An EIP-3009 authorization over other terms, with the nonce that its challenge demands. */
async function withAuthorization(
  stage: Stage,
  payer: PrivateKeyAccount,
  terms: Partial<Parameters<typeof signPayment>[1]>,
): Promise<string> {
  const credential = opened(await stage.credential(payer));
  const { authorization, signature } = await signPayment(payer, {
    to: stage.recipient,
    valueUnits: PRICE,
    nonce: credential.payload.nonce,
    ...terms,
  });
  Object.assign(credential.payload, authorization, { signature });
  return sealed(credential);
}

const ROWS: readonly Row[] = [
  ...rowsOfAnyRail<Stage, PrivateKeyAccount>(),
  ...rowsOfAnyChain<Stage, PrivateKeyAccount>(),

  // One payment, many requests.
  {
    fault: 'the same credential again when its challenge has expired',
    setsClock: true,
    play: async (stage, credential) => {
      const first = await stage.present(credential);
      return [first, await minutesLater(6, () => stage.present(credential))];
    },
    told: ['200', '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'a challenge that was asked for with a body, paid for with another',
    pay: async (stage, payer) => stage.credential(payer, { body: '{"name":"bound"}' }),
    told: ['402 invalid-challenge'],
    atRest: '402 invalid-challenge',
    ...NOTHING,
  },

  // The node.
  {
    fault: 'the transaction gets lost on its way to the node',
    given: sendingMeets('request lost'),
    told: ['200|503 SETTLEMENT_UNKNOWN'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and its reply gets lost',
    given: sendingMeets('reply lost'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the node takes the transaction and never replies',
    waits: true,
    given: sendingMeets('reply held'),
    told: ['200'],
    ...ONE_SALE,
  },
  ...WORDS.map(
    ([code, message]): Row => ({
      fault: `the node passes it on, answers ${code} (${message}), and shows the receipt two looks later`,
      given: (stage) => {
        // Both ways to send, and every repetition.
        for (const sending of ['eth_sendRawTransactionSync', 'eth_sendRawTransaction']) {
          stage.node.next(sending, { did: true, says: { error: { code, message } } });
          stage.node.next(sending, { did: false, says: { error: { code, message } } }, 20);
        }
        // The first look is the one before it is sent.
        stage.node.next('eth_getTransactionReceipt', { did: false, says: { result: null } }, 3);
      },
      // Never a 402, which would have it paid once more.
      told: ['200|503 SETTLEMENT_UNKNOWN'],
      ...ONE_SALE,
    }),
  ),
  {
    fault: 'the node refuses every sending, and passes none on',
    waits: true,
    only: 'tempo',
    pay: resignedAs((transaction) => ({
      ...transaction,
      gas: 2_000_000n,
      nonceKey: 5n,
      nonce: 0,
      validBefore: Math.floor(Date.now() / 1_000) + 180,
    })),
    given: (stage) =>
      stage.node.next(
        stage.sending,
        { did: false, says: { error: { code: -32003, message: 'rejected' } } },
        200,
      ),
    play: async (stage, credential) => {
      const told = await stage.present(credential);
      stage.node.mend();
      return [told];
    },
    told: ['503 SETTLEMENT_UNKNOWN'],
    ...ONE_SALE,
  },

  // The payer.
  {
    fault: 'a payer without funds',
    usd: 0.01,
    told: ['402 payment-insufficient'],
    atRest: '402 payment-insufficient',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the balance moves between verify and settle',
    only: 'evm',
    given: firstRun((stage, payer) => stage.empty(payer)),
    told: ['402 payment-insufficient|402 verification-failed'],
    atRest: '402 payment-insufficient|402 verification-failed',
    runs: 1,
    paid: 0,
    books: { withChain: 1 },
  },
  {
    fault: 'the balance moves between verify and settle, and never comes back',
    waits: true,
    only: 'tempo',
    pay: resignedAsEndingSoon(),
    given: firstRun((stage, payer) => stage.empty(payer)),
    play: async (stage, credential) => {
      const told = await stage.present(credential);
      // From here on the chain's clock says that it can never be mined.
      await until('the transaction to be dead', async () => {
        await stage.rest();
        return (await stage.calls()).withChain === 0;
      });
      return [told];
    },
    told: ['503 SETTLEMENT_UNKNOWN|402 payment-expired'],
    atRest: '402 payment-expired',
    runs: 1,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the payer sends the transaction itself, and then presents it',
    only: 'tempo',
    play: async (stage, credential) => {
      await stage.world.tempo.client.request({
        method: 'eth_sendRawTransaction',
        params: [opened(credential).payload.signature],
      } as never);
      await until('it to be mined', async () => (await stage.moved()) === PRICE);
      return [await stage.present(credential)];
    },
    told: ['200'],
    ...ONE_SALE,
  },

  // The challenge.
  {
    fault: 'an expired challenge',
    setsClock: true,
    play: async (stage, credential) => [await minutesLater(6, () => stage.present(credential))],
    told: ['402 payment-expired'],
    // The server's own clock went back to now.
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1, released: 1 },
  },
  {
    fault: 'a challenge that never expires',
    pay: async (stage, payer) => {
      const unpaid = await stage.unpaid();
      return altered(await stage.answer(payer, unpaid), ({ challenge }) => delete challenge.expires);
    },
    ...refusedAs('invalid-challenge'),
  },
  {
    fault: 'a credential of another service at the same price',
    play: async (stage, credential) => [await stage.present(credential, { path: 'coin' })],
    told: ['402 invalid-challenge'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1 },
  },
  {
    fault: 'an altered amount',
    pay: changed(({ challenge }) => {
      challenge.request.amount = '1';
    }),
    ...refusedAs('invalid-challenge'),
  },
  {
    fault: 'a lower amount, signed',
    only: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { valueUnits: 1n }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a payment to somebody else',
    only: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { to: NOBODY }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'an authorization that is valid for ever',
    only: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { validForSeconds: 1e15 }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'an authorization with a nonce of its own',
    only: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { nonce: `0x${'ab'.repeat(32)}` }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'an authorization signed by somebody else',
    only: 'evm',
    pay: async (stage, payer) => {
      const thief = privateKeyToAccount(generatePrivateKey());
      const credential = opened(await stage.credential(thief));
      credential.payload.from = payer.address;
      return sealed(credential);
    },
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a challenge of another server',
    play: async (stage, credential) => {
      await stage.restart({ MPP_SECRET_KEY: 'another-secret-of-32-characters-or-more' });
      const told = await stage.present(credential);
      await stage.restart();
      return [told];
    },
    told: ['402 invalid-challenge'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1 },
  },

  // The credential.
  {
    fault: 'two credentials in one header',
    play: async (stage, credential) => [await stage.present(`${credential}, ${credential}`)],
    told: ['400 TWO_CREDENTIALS'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1 },
  },
  {
    fault: 'an x402 payment beside the credential',
    play: async (stage, credential) => [
      await stage.present(credential, { headers: { 'payment-signature': 'eyJ4NDAyVmVyc2lvbiI6Mn0=' } }),
    ],
    told: ['400 TWO_CREDENTIALS'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1 },
  },
  { fault: 'garbage', pay: async () => 'Payment @@@@', ...refusedAs('malformed-credential') },
  {
    fault: 'a credential of 20 kB',
    pay: async () => `Payment ${'a'.repeat(15_000)}`,
    ...refusedAs('malformed-credential'),
  },
  {
    fault: 'a payload that is empty',
    pay: changed((credential) => {
      credential.payload = {};
    }),
    ...refusedAs('invalid-payload'),
  },
  {
    fault: 'a transaction that its payer has sent already (push)',
    only: 'tempo',
    pay: changed(({ payload }) => {
      payload.type = 'hash';
      payload.hash = `0x${'12'.repeat(32)}`;
      delete payload.signature;
    }),
    ...refusedAs('invalid-payload'),
  },
  {
    fault: 'a transaction without an end',
    only: 'tempo',
    pay: resignedAs(({ validBefore: _, ...transaction }) => ({ ...transaction, nonceKey: 0n, nonce: 9 })),
    ...refusedAs('invalid-payload'),
  },
  {
    fault: 'a transaction that is valid for ever',
    only: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, nonceKey: 5n, validBefore: 2 ** 48 })),
    ...refusedAs('invalid-payload'),
  },
  {
    fault: 'a transaction that is not valid yet',
    only: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, validAfter: Math.floor(Date.now() / 1_000) + 15 })),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a transaction for another chain',
    only: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, chainId: 42_431 })),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a transaction that is over',
    only: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, validBefore: Math.floor(Date.now() / 1_000) - 1 })),
    told: ['402 payment-expired'],
    atRest: '402 payment-expired',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a transaction of nothing',
    only: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, calls: [{ to: NOBODY, data: '0x' }] })),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a transaction that does something else first',
    only: 'tempo',
    pay: resignedAs((transaction) => {
      const before = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [NOBODY, 1n] });
      const calls = [{ to: USDC_E, data: before }, ...(transaction.calls as object[])];
      return { ...transaction, gas: 2_000_000n, calls };
    }),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'the transaction of somebody else, from the chain, with a challenge of the thief',
    only: 'tempo',
    play: async (stage, credential, payer) => {
      const first = await stage.present(credential);
      const stolen = opened(await stage.credential(payer));
      stolen.payload = opened(credential).payload;
      return [first, await stage.present(sealed(stolen))];
    },
    told: ['200', '402 verification-failed'],
    ...ONE_SALE,
  },
  {
    fault: 'the authorization of somebody else, from the chain, with a challenge of the thief',
    only: 'evm',
    play: async (stage, credential, payer) => {
      const first = await stage.present(credential);
      const stolen = opened(await stage.credential(payer));
      stolen.payload = opened(credential).payload;
      return [first, await stage.present(sealed(stolen))];
    },
    told: ['200', '402 verification-failed'],
    ...ONE_SALE,
  },

  // Two rails.
  {
    // What settles stands on the chain; the challenge does not, and without it nobody gets what the credential buys.
    fault: 'the authorization alone, as an x402 payment, while the service runs and afterwards',
    only: 'evm',
    play: async (stage, credential) => {
      const hold = Promise.withResolvers<void>();
      stage.script.during = () => hold.promise;
      const asked = stage.present(credential);
      await until('the service to run', () => stage.script.runs === 1);
      assert.equal((await stage.presentAsX402(credential)).text, '409 IDEMPOTENCY_KEY_REUSED');
      hold.resolve();
      const bought = await asked;
      assert.equal((await stage.presentAsX402(credential)).text, '409 IDEMPOTENCY_KEY_REUSED');
      return [bought];
    },
    told: ['200'],
    ...ONE_SALE,
  },
];

/** Its transaction ends as soon as it may. */
function resignedAsEndingSoon(): NonNullable<Row['pay']> {
  return resignedAs((transaction) => ({
    ...transaction,
    validBefore: Math.floor(Date.now() / 1_000) + 8,
  }));
}

let world: MppWorld;
before(async () => {
  world = await startMppWorld();
});

const pools = {
  tempo: stagePool<Stage, PrivateKeyAccount>(() => setStage(world, 'tempo')),
  evm: stagePool<Stage, PrivateKeyAccount>(() => setStage(world, 'evm')),
};
after(async () => {
  await Promise.all(METHODS.map((method) => pools[method].close()));
  await world?.stop();
});

/** Each row with each method that it is about. */
function play(rows: readonly Row[]): void {
  for (const row of rows)
    for (const method of row.only === undefined ? METHODS : [row.only])
      test(`${row.fault} (${method})`, () => pools[method].prove(row));
}

const NEEDS = byNeed(ROWS.filter(({ setsClock }) => setsClock !== true));
describe('the fault table', { concurrency: 2 }, () => {
  const { waiting, busy } = NEEDS;
  describe('rows that wait for a time-out', { concurrency: 8 }, () => play(waiting));
  describe('all others', { concurrency: 4 }, () => play(busy));
});
describe('crowds', () => play(NEEDS.crowded));

/** The rows that change this process's clock run alone. */
describe('at another time', () => play(ROWS.filter(({ setsClock }) => setsClock === true)));
