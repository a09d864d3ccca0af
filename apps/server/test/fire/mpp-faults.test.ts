/**
 * The fault table of the MPP rail: one row a fault, for each method. Each row says what the payer holds after each
 * request, how often the service ran, how much money moved on the chain, and what the books say once all is at rest.
 */
import assert from 'node:assert/strict';
import { after, before, describe, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { encodeFunctionData, erc20Abi, parseEther } from 'viem';
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { Actions } from 'viem/tempo';
import { z } from 'zod';
import { PATH_USD, USDC_E } from '../../../../packages/sandbox/src/tempo/addresses.ts';
import { connectPools, type Pools } from '../../src/db/connection.ts';
import { proveBooks } from '../../src/ledger/books.ts';
import { defineService, type Service } from '../../src/services/define.ts';
import { answer } from '../../src/words/answer.ts';
import { ServiceFailure } from '../../src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import {
  altered,
  METHODS,
  type Method,
  type MppWorld,
  opened,
  receiptOf,
  resigned,
  sealed,
  startMppWorld,
} from '../mpp.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { paymentHeader, type SignedPayment, signPayment, USDC } from '../x402.fixture.ts';
import { startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';
import { type NodeFault, startNodeWire } from './x402-node.fixture.ts';

const PRICE = 50_000n;
const NOBODY = '0x000000000000000000000000000000000000dEaD';
const SERVICE_TIMEOUT_MS = 2_000;

interface Told {
  status: number;
  /** `200`, `200 again`, `402 <problem>`, or the status and the code. */
  text: string;
  body: string;
  headers: Headers;
}

interface Asking {
  path?: 'nickel' | 'coin' | 'deed';
  body?: string;
  on?: TestServer;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

interface Row {
  fault: string;
  method?: Method;
  /** What is put into the wallet before it pays; 5 USD unless said otherwise. */
  usd?: number;
  /** The credential; the reference client's unless said otherwise. */
  pay?: (stage: Stage, payer: PrivateKeyAccount) => Promise<string>;
  given?: (stage: Stage, payer: PrivateKeyAccount) => Promise<void> | void;
  /** What the payer does; all that it is told. Presents its credential once unless said otherwise. */
  play?: (stage: Stage, credential: string, payer: PrivateKeyAccount) => Promise<readonly Told[]>;
  told: readonly string[];
  /** What the same credential gets once everything is at rest. */
  atRest: string;
  runs: number;
  /** How many prices have come to the recipient. */
  paid: number;
  books: { captured?: number; released?: number; withChain?: number };
}

const ONE_SALE = { atRest: '200 again', runs: 1, paid: 1, books: { captured: 1 } } as const;
/** Refused before anything was claimed. */
const NOTHING = { runs: 0, paid: 0, books: {} } as const;
const refusedAs = (problem: string) => ({ told: [`402 ${problem}`], atRest: `402 ${problem}`, ...NOTHING });

async function fails(): Promise<void> {
  throw new ServiceFailure({ status: 503, code: 'SOURCE_DOWN', message: 'The source is down.' });
}
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

/** What nodes were seen to answer to a transaction that they had passed on. */
const WORDS = [
  [-32000, 'transaction already in pool'],
  [-32000, 'internal error'],
  [-32003, 'transaction rejected'],
] as const;

const ROWS: readonly Row[] = [
  // One payment, many requests.
  { fault: 'none', told: ['200'], ...ONE_SALE },
  {
    fault: '50 copies at once, on two replicas',
    play: async (stage, credential) => {
      const copies = Array.from({ length: 50 }, (_, i) =>
        stage.present(credential, { on: i % 2 === 0 ? stage.here : stage.there }),
      );
      return (await Promise.all(copies)).toSorted((a, b) => a.text.localeCompare(b.text));
    },
    told: ['200', ...Array.from({ length: 49 }, () => '200 again')],
    ...ONE_SALE,
  },
  {
    fault: 'the same credential again after success, on both replicas and after a restart',
    play: async (stage, credential) => {
      const told = [await stage.present(credential), await stage.present(credential)];
      told.push(await stage.present(credential, { on: stage.there }));
      await stage.restart();
      return [...told, await stage.present(credential)];
    },
    told: ['200', '200 again', '200 again', '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'the same credential again while the node is down, after a restart',
    play: async (stage, credential) => {
      const first = await stage.present(credential);
      stage.node.cut();
      await stage.restart();
      const again = await stage.present(credential);
      stage.node.mend();
      return [first, again];
    },
    told: ['200', '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'the same credential again after the operator changed the recipient',
    play: async (stage, credential) => {
      const first = await stage.present(credential);
      await stage.restart({ X402_RECIPIENT: NOBODY, MPP_TEMPO_RECIPIENT: NOBODY });
      const again = await stage.present(credential);
      await stage.restart();
      return [first, again];
    },
    told: ['200', '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'the same credential again when its challenge has expired',
    play: async (stage, credential) => {
      const first = await stage.present(credential);
      return [first, await minutesLater(6, () => stage.present(credential))];
    },
    told: ['200', '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'the same credential for another body',
    play: async (stage, credential) => [
      await stage.present(credential),
      await stage.present(credential, { body: '{"name":"b"}' }),
    ],
    told: ['200', '409 IDEMPOTENCY_KEY_REUSED'],
    ...ONE_SALE,
  },
  {
    fault: 'a challenge that was asked for with a body, paid for with another',
    pay: async (stage, payer) => stage.credential(payer, { body: '{"name":"bound"}' }),
    told: ['402 invalid-challenge'],
    atRest: '402 invalid-challenge',
    ...NOTHING,
  },
  {
    fault: 'the same credential for two bodies at once',
    play: async (stage, credential) => {
      const both = await Promise.all([
        stage.present(credential),
        stage.present(credential, { body: '{"name":"b"}', on: stage.there }),
      ]);
      return both.toSorted((a, b) => a.status - b.status);
    },
    told: ['200', '409 IDEMPOTENCY_KEY_REUSED'],
    ...ONE_SALE,
    atRest: '200 again|409 IDEMPOTENCY_KEY_REUSED',
  },
  {
    fault: 'the client hangs up while the service runs',
    play: async (stage, credential) => {
      const hold = Promise.withResolvers<void>();
      stage.script.during = () => hold.promise;
      const gone = new AbortController();
      const asked = stage.present(credential, { signal: gone.signal });
      await until('the service to run', () => stage.script.runs === 1);
      gone.abort();
      await assert.rejects(asked);
      hold.resolve();
      await until('the call to end', async () => (await stage.calls()).open === 0);
      return [];
    },
    told: [],
    ...ONE_SALE,
  },

  // The service.
  {
    fault: 'the service fails once',
    given: firstRun(fails),
    told: ['503 SOURCE_DOWN'],
    atRest: '200',
    runs: 2,
    paid: 1,
    books: { captured: 1, released: 1 },
  },
  {
    fault: 'the service fails always',
    given: (stage) => {
      stage.script.during = fails;
    },
    told: ['503 SOURCE_DOWN'],
    atRest: '503 SOURCE_DOWN',
    runs: 2,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the service throws something of its own',
    given: firstRun(async () => {
      throw new Error('a secret of the house, in viem');
    }),
    told: ['500 SERVICE_ERROR'],
    atRest: '200',
    runs: 2,
    paid: 1,
    books: { captured: 1, released: 1 },
  },
  {
    fault: 'the service does not end in time',
    given: firstRun(() => sleep(SERVICE_TIMEOUT_MS + 1_000)),
    told: ['503 DEADLINE_EXCEEDED'],
    atRest: '200',
    runs: 2,
    paid: 1,
    books: { captured: 1, released: 1 },
  },
  {
    fault: 'a body that does not fit',
    play: async (stage, credential) => [await stage.present(credential, { body: '{"name":7}' })],
    told: ['400 INVALID_REQUEST'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1 },
  },

  // The node.
  {
    fault: 'the node is down',
    play: async (stage, credential) => {
      stage.node.cut();
      const told = await stage.present(credential);
      stage.node.mend();
      return [told];
    },
    told: ['503 CHAIN_UNAVAILABLE'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1, released: 1 },
  },
  {
    fault: 'the node goes down while the service runs, and comes back',
    given: firstRun(async (stage) => stage.node.cut()),
    play: async (stage, credential) => {
      const told = await stage.present(credential);
      stage.node.mend();
      return [told];
    },
    told: ['503 SETTLEMENT_UNKNOWN'],
    ...ONE_SALE,
  },
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
    method: 'tempo',
    pay: resignedAs((transaction) => ({
      ...transaction,
      ...{ gas: 2_000_000n, nonceKey: 5n, nonce: 0, validBefore: Math.floor(Date.now() / 1_000) + 180 },
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
    method: 'evm',
    given: firstRun((stage, payer) => stage.empty(payer)),
    told: ['402 payment-insufficient|402 verification-failed'],
    atRest: '402 payment-insufficient|402 verification-failed',
    runs: 1,
    paid: 0,
    books: { withChain: 1 },
  },
  {
    fault: 'the balance moves between verify and settle, and never comes back',
    method: 'tempo',
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
    method: 'tempo',
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
    method: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { valueUnits: 1n }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a payment to somebody else',
    method: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { to: NOBODY }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'an authorization that is valid for ever',
    method: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { validForSeconds: 1e15 }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'an authorization with a nonce of its own',
    method: 'evm',
    pay: (stage, payer) => withAuthorization(stage, payer, { nonce: `0x${'ab'.repeat(32)}` }),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'an authorization signed by somebody else',
    method: 'evm',
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
    method: 'tempo',
    pay: changed(({ payload }) => {
      payload.type = 'hash';
      payload.hash = `0x${'12'.repeat(32)}`;
      delete payload.signature;
    }),
    ...refusedAs('invalid-payload'),
  },
  {
    fault: 'a transaction without an end',
    method: 'tempo',
    pay: resignedAs(({ validBefore: _, ...transaction }) => ({ ...transaction, nonceKey: 0n, nonce: 9 })),
    ...refusedAs('invalid-payload'),
  },
  {
    fault: 'a transaction that is valid for ever',
    method: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, nonceKey: 5n, validBefore: 2 ** 48 })),
    ...refusedAs('invalid-payload'),
  },
  {
    fault: 'a transaction that is not valid yet',
    method: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, validAfter: Math.floor(Date.now() / 1_000) + 15 })),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a transaction for another chain',
    method: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, chainId: 42_431 })),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a transaction that is over',
    method: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, validBefore: Math.floor(Date.now() / 1_000) - 1 })),
    told: ['402 payment-expired'],
    atRest: '402 payment-expired',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'a transaction of nothing',
    method: 'tempo',
    pay: resignedAs((transaction) => ({ ...transaction, calls: [{ to: NOBODY, data: '0x' }] })),
    ...refusedAs('verification-failed'),
  },
  {
    fault: 'a transaction that does something else first',
    method: 'tempo',
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
    method: 'tempo',
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
    method: 'evm',
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
    method: 'evm',
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

/** Lets all of this process believe that it is later; chains keep their own time. */
async function minutesLater<T>(minutes: number, work: () => Promise<T>): Promise<T> {
  mock.timers.enable({ apis: ['Date'], now: Date.now() + minutes * 60_000 });
  try {
    return await work();
  } finally {
    mock.timers.reset();
  }
}

let world: MppWorld;
before(async () => {
  world = await startMppWorld();
});
after(() => world?.stop());

for (const method of METHODS) {
  describe(`paid by ${method}`, () => {
    for (const row of ROWS) {
      if (row.method === undefined || row.method === method) test(row.fault, () => prove(row, method));
    }
  });
}

async function prove(row: Row, method: Method): Promise<void> {
  const stage = await setStage(method);
  try {
    const payer = await world.wallet(row.usd ?? 5);
    const credential = await (row.pay?.(stage, payer) ?? stage.credential(payer));
    const held = await world.holds(payer.address, method);
    await row.given?.(stage, payer);
    const told = await (row.play?.(stage, credential, payer) ?? Promise.all([stage.present(credential)]));
    assert.deepEqual(
      told.map(({ text }, i) => (row.told[i]?.split('|').includes(text) ? row.told[i] : text)),
      row.told,
      [...told.map(({ body }) => body), ...stage.here.log.filter((line) => line.includes('"err"'))].join(
        '\n',
      ),
    );
    await stage.rest();
    const last = await stage.present(credential);
    assert(row.atRest.split('|').includes(last.text), `at rest it gets ${last.text}: ${last.body}`);
    for (const each of [...told, last]) assertProper(each);
    // A payment has one answer, and one receipt, to the byte.
    const answers = [...told, last].filter(({ status }) => status === 200);
    assert(new Set(answers.map(({ body }) => body)).size <= 1, 'the same payment got two answers');
    const receipts = answers.flatMap(({ headers }) => headers.get('payment-receipt') ?? []);
    assert(new Set(receipts).size <= 1, 'the same payment got two receipts');

    const moved = await stage.moved();
    assert.equal(stage.script.runs, row.runs, 'runs of the service');
    assert.equal(moved, PRICE * BigInt(row.paid), 'money moved');
    if (row.paid === 0 && moved === 0n && row.runs === 0)
      assert.equal(await world.holds(payer.address, method), held, 'the payer lost something');
    const { capturedMicros, ...calls } = await stage.calls();
    assert.deepEqual(calls, { open: 0, captured: 0, released: 0, withChain: 0, ...row.books });
    assert.equal(capturedMicros, moved, 'what moved is not what was captured');
    await stage.assertBooksBalance();
  } finally {
    await stage.close();
  }
}

/** What must hold of every answer, whatever happened. */
function assertProper({ status, text, body, headers }: Told): void {
  assert.doesNotMatch(
    body,
    /viem|FiatToken|ERC20:|TIP20|at \S+ \(|ECONN|postgres|eth_/i,
    'inner text got out',
  );
  assert.equal(headers.has('payment-receipt'), status === 200 && !headers.has('payment-response'), text);
  if (status === 200) {
    assert.match(headers.get('cache-control') ?? '', /private/);
    return;
  }
  assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.match(headers.get('cache-control') ?? '', /no-store/);
  assert.equal(JSON.parse(body).status, status);
  assert.equal(
    headers.has('www-authenticate'),
    status === 402,
    `${text}: a challenge with a 402, and else none`,
  );
  if (status === 503) assert(Number(headers.get('retry-after')) >= 1, 'no Retry-After');
}

type Stage = Awaited<ReturnType<typeof setStage>>;

/** A shop of its own: a database, recipients, a settler, two replicas, and wires to the nodes that can be cut. */
async function setStage(method: Method) {
  const recipient = privateKeyToAccount(generatePrivateKey()).address;
  const settlerKey = generatePrivateKey();
  await world.base.chain.client.setBalance({
    address: privateKeyToAccount(settlerKey).address,
    value: parseEther('10'),
  });
  const [database, base, tempo]: [TestDatabase, ...Awaited<ReturnType<typeof startNodeWire>>[]] =
    await Promise.all([
      openTestDatabase(),
      startNodeWire(world.base.chain.url),
      startNodeWire(world.tempo.url),
    ]);
  assert(base !== undefined && tempo !== undefined);
  const elsewhere = connectPools(database.url, 6);
  const script = { runs: 0, during: async (_run: number): Promise<void> => {} };
  const services = (['nickel', 'coin', 'deed'] as const).map(
    (path): Service =>
      defineService({
        path,
        name: path,
        tag: 'Discovery',
        priceUsd: '0.05',
        mpp: true,
        summary: 'For tests.',
        effect: path === 'deed' ? 'write' : 'read',
        timeoutMs: SERVICE_TIMEOUT_MS,
        input: z.object({ name: z.string().default('a') }),
        output: z.object({ name: z.string(), run: z.number().int() }),
        example: { name: 'a' },
        async run({ name }) {
          script.runs += 1;
          const { runs } = script;
          await script.during(runs);
          return answer({ name, run: runs }, { method: 'Counted.' });
        },
      }),
  );
  const environment: Record<string, string> = {
    ...world.environment,
    UPSTREAM_BASE_BASE_URL: base.url,
    FACILITATOR_URL: '',
    X402_RELAYER_KEYS: settlerKey,
    X402_RECIPIENT: recipient,
    MPP_TEMPO_RPC_URL: tempo.url,
    MPP_TEMPO_RECIPIENT: recipient,
  };
  const open = (pools: Pools, more: Record<string, string> = {}) =>
    startTestServer({ pools, services, nowMs: () => Date.now(), environment: { ...environment, ...more } });
  let [here, there] = await Promise.all([open(database), open(elsewhere)]);

  const stage = {
    world,
    method,
    recipient,
    database,
    script,
    node: method === 'tempo' ? tempo : base,
    /** How the rail sends a transaction there. */
    sending: method === 'tempo' ? 'eth_sendRawTransaction' : 'eth_sendRawTransactionSync',
    get here() {
      return here;
    },
    get there() {
      return there;
    },
    /** A new process on the same database. */
    async restart(more: Record<string, string> = {}): Promise<void> {
      await here.close();
      here = await open(database, more);
    },
    unpaid: (asking: { body?: string } = {}): Promise<Response> =>
      fetch(`${here.url}/mpp/nickel`, { method: 'POST', ...asking }),
    answer: (payer: PrivateKeyAccount, unpaid: Response): Promise<string> =>
      world.credential(payer, method, unpaid),
    async credential(payer: PrivateKeyAccount, asking: { body?: string } = {}): Promise<string> {
      return stage.answer(payer, await stage.unpaid(asking));
    },
    async present(authorization: string, asking: Asking = {}): Promise<Told> {
      const { path = 'nickel', body = '{"name":"a"}', on = here, headers = {}, signal } = asking;
      const response = await fetch(`${on.url}/mpp/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization, ...headers },
        body,
        ...(signal === undefined ? {} : { signal }),
      });
      return toldOf(response);
    },
    /** The authorization of an MPP credential, as an x402 client would bring it. */
    async presentAsX402(credential: string): Promise<Told> {
      const { signature, type: _, ...authorization } = opened(credential).payload;
      const unpaid = await fetch(`${here.url}/x402/nickel`, { method: 'POST' });
      const payment = { authorization, signature } as SignedPayment;
      const response = await fetch(`${here.url}/x402/nickel`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'payment-signature': await paymentHeader(unpaid, payment),
        },
        body: '{"name":"a"}',
      });
      return toldOf(response);
    },
    /** What came to the recipient, in base units. */
    moved: (): Promise<bigint> => world.holds(recipient, method),
    /** The payer sends all its money away. */
    async empty(payer: PrivateKeyAccount): Promise<void> {
      const amount = await world.holds(payer.address, method);
      if (method === 'evm') {
        const hash = await world.base.chain.client.writeContract({
          account: payer,
          address: USDC,
          abi: erc20Abi,
          functionName: 'transfer',
          args: [NOBODY, amount],
        });
        await world.base.chain.client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
        return;
      }
      await Actions.token.transferSync(world.tempo.client, {
        account: payer,
        feeToken: PATH_USD,
        gas: 5_000_000n,
        nonceKey: 'expiring',
        validBefore: Math.floor(Date.now() / 1_000) + 20,
        token: USDC_E,
        to: NOBODY,
        amount,
      });
    },
    /** Lets the jobs do what is left to do. What is held has its time; the test does not wait for it. */
    async rest(): Promise<void> {
      for (let round = 0; round < 2; round += 1) {
        await database.sql`update settlements set next_at = now() where final_at is null`;
        for (const name of ['resume-relayers', 'reconcile-calls', 'finish-settlements', 'pay-refunds'])
          await here.app.jobs.find((job) => job.name === name)?.run();
      }
    },
    async calls() {
      const rows = await database.sql<{ state: number; count: number; micros: bigint }[]>`
        select state, count(*)::integer as count, sum(price_micros)::bigint as micros from calls group by state`;
      const of = (state: number) => rows.find((row) => row.state === state);
      return {
        open: of(0)?.count ?? 0,
        captured: of(1)?.count ?? 0,
        released: of(2)?.count ?? 0,
        withChain: of(3)?.count ?? 0,
        capturedMicros: of(1)?.micros ?? 0n,
      };
    },
    async assertBooksBalance(): Promise<void> {
      const { checks } = await proveBooks(database.patient);
      assert.deepEqual(
        checks.filter(({ ok }) => !ok),
        [],
      );
    },
    async close(): Promise<void> {
      base.mend();
      tempo.mend();
      await Promise.all([here.close(), there.close()]);
      await Promise.all([base.close(), tempo.close(), elsewhere.sql.end(), elsewhere.commits.end()]);
      await database.close();
    },
  };
  return stage;
}

async function toldOf(response: Response): Promise<Told> {
  const body = await response.text();
  const { status, headers } = response;
  const said: { code?: string; type?: string } = JSON.parse(body);
  const why = status === 402 ? said.type?.split('/').at(-1) : said.code;
  const again = headers.get('idempotent-replayed') === 'true';
  const text = [String(status), ...(why === undefined ? [] : [why]), ...(again ? ['again'] : [])].join(' ');
  return { status, text, body, headers };
}

for (const method of METHODS) {
  for (const [code, message] of WORDS) {
    test(`the unmodified client pays once when the node passes it on and answers ${code} (${message}) (${method})`, async () => {
      const stage = await setStage(method);
      try {
        for (const sending of ['eth_sendRawTransactionSync', 'eth_sendRawTransaction'])
          stage.node.next(sending, { did: true, says: { error: { code, message } } }, 2);
        stage.node.next('eth_getTransactionReceipt', { did: false, says: { result: null } }, 3);
        const client = world.client(await world.wallet(), method);
        const { status } = await client.fetch(`${stage.here.url}/mpp/nickel`, { method: 'POST' });
        await stage.rest();
        assert([200, 503].includes(status), String(status));
        assert.deepEqual([await stage.moved(), stage.script.runs], [PRICE, 1]);
        const { captured, capturedMicros } = await stage.calls();
        assert.deepEqual([captured, capturedMicros], [1, PRICE]);
        await stage.assertBooksBalance();
      } finally {
        await stage.close();
      }
    });
  }
}

test('who paid is who signed, whatever the credential claims', async () => {
  const stage = await setStage('tempo');
  try {
    const [payer, other] = [await world.wallet(), await world.wallet()];
    const claimed = altered(await stage.credential(payer), (credential) => {
      credential.source = `did:pkh:eip155:4217:${other.address}`;
    });
    const told = await stage.present(claimed);
    assert.equal(told.text, '200', told.body);
    const rows = await stage.database.sql<{ payer: string }[]>`select payer from settlements`;
    assert.deepEqual(
      rows.map((row) => row.payer),
      [payer.address.toLowerCase()],
    );
  } finally {
    await stage.close();
  }
});

for (const method of METHODS) {
  test(`whatever is written into the header moves nothing, and the answer is of the standard form (${method})`, async () => {
    const stage = await setStage(method);
    try {
      const good = await stage.credential(await world.wallet());
      const fields = Object.keys(opened(good).payload);
      const json = fc.json().map((text) => `Payment ${Buffer.from(text).toString('base64url')}`);
      const noise = fc
        .string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) })
        .map((text) => `Payment ${text}`);
      const payload = fc.jsonValue().map((value) =>
        altered(good, (credential) => {
          credential.payload = value;
        }),
      );
      const hex = fc
        .uint8Array({ maxLength: 300 })
        .map((bytes) => `0x76${Buffer.from(bytes).toString('hex')}`);
      const field = fc.tuple(fc.constantFrom(...fields), fc.oneof(fc.jsonValue(), hex)).map(([name, value]) =>
        altered(good, (credential) => {
          credential.payload[name] = value;
        }),
      );
      /** One byte of what was signed is another. */
      const flipped = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })).map(([at, by]) =>
        altered(good, ({ payload: signed }) => {
          const bytes = Buffer.from(signed.signature.slice(2), 'hex');
          const index = at % bytes.length;
          bytes[index] = (bytes[index] ?? 0) ^ by;
          signed.signature = `0x${bytes.toString('hex')}`;
        }),
      );
      await fc.assert(
        fc.asyncProperty(fc.oneof(json, noise, payload, field, flipped), async (authorization) => {
          const told = await stage.present(authorization);
          // What every look takes for good and the node will not send is dead only when the chain is past its end.
          const isRefused = [400, 402].includes(told.status) || told.text === '503 SETTLEMENT_UNKNOWN';
          assert(isRefused, `${told.text} to ${authorization}: ${told.body}`);
          assertProper(told);
        }),
        { numRuns: 250 },
      );
      assert.deepEqual([await stage.moved(), (await stage.calls()).captured], [0n, 0]);
    } finally {
      await stage.close();
    }
  });
}

test('a service that leaves something behind is sold only where money can be sent back', async () => {
  const stage = await setStage('evm');
  try {
    const offered = async (path: string) => {
      const { status, headers } = await fetch(`${stage.here.url}/mpp/${path}`, { method: 'POST' });
      return [
        status,
        [...(headers.get('www-authenticate') ?? '').matchAll(/method="(\w+)"/g)].map(([, name]) => name),
      ];
    };
    assert.deepEqual(await offered('nickel'), [402, ['tempo', 'evm']]);
    assert.deepEqual(await offered('deed'), [402, ['tempo', 'evm']]);
    const payer = await world.wallet();
    const unpaid = await fetch(`${stage.here.url}/mpp/deed`, { method: 'POST' });
    const authorization = await stage.answer(payer, unpaid);
    stage.script.during = (run) => (run === 1 ? fails() : Promise.resolve());
    const told = [
      await stage.present(authorization, { path: 'deed' }),
      await stage.present(authorization, { path: 'deed' }),
      await stage.present(authorization, { path: 'deed' }),
    ];
    assert.deepEqual(
      told.map(({ text }) => text),
      ['503 SOURCE_DOWN', '200', '200 again'],
    );
    for (const each of told) assertProper(each);
    assert.deepEqual([stage.script.runs, await stage.moved()], [2, PRICE]);
    await stage.restart({ MPP_TEMPO_REFUND_KEY: '' });
    assert.deepEqual(await offered('deed'), [402, ['evm']]);
    await stage.restart({ X402_REFUND_KEYS: '', MPP_TEMPO_REFUND_KEY: '' });
    assert.deepEqual(await offered('deed'), [402, []]);
    await stage.assertBooksBalance();
  } finally {
    await stage.close();
  }
});

for (const method of METHODS) {
  test(`what was paid for and cannot be delivered is sent back (${method})`, async () => {
    const stage = await setStage(method);
    try {
      const payer = await world.wallet();
      const unpaid = await fetch(`${stage.here.url}/mpp/deed`, { method: 'POST' });
      const authorization = await stage.answer(payer, unpaid);
      stage.script.during = fails;
      const told = [await stage.present(authorization, { path: 'deed' })];
      assert.equal(await stage.moved(), PRICE);
      // On Tempo the payer has paid a fee, too.
      const held = await world.holds(payer.address, method);
      await minutesLater(60, () => stage.rest());
      await minutesLater(60, () => stage.rest());
      assert.equal((await world.holds(payer.address, method)) - held, PRICE);
      told.push(await stage.present(authorization, { path: 'deed' }));
      assert.deepEqual(
        told.map(({ text }) => text),
        ['503 SOURCE_DOWN', '410 REFUNDED again'],
      );
      for (const each of told) assertProper(each);
      await stage.assertBooksBalance();
    } finally {
      await stage.close();
    }
  });
}

for (const method of METHODS) {
  test(`kill -9 between settlement and capture: the finisher completes it (${method})`, async () => {
    const [database, wire] = await Promise.all([
      openTestDatabase(),
      startNodeWire(method === 'tempo' ? world.tempo.url : world.base.chain.url),
    ]);
    const environment = {
      ...world.environment,
      DATABASE_URL: database.url,
      RECONCILE_INTERVAL_MS: '100',
      FACILITATOR_URL: '',
      X402_RELAYER_KEYS: world.base.chain.accounts.relayer.privateKey,
      ...(method === 'tempo' ? { MPP_TEMPO_RPC_URL: wire.url } : { UPSTREAM_BASE_BASE_URL: wire.url }),
    };
    const sending = method === 'tempo' ? 'eth_sendRawTransaction' : 'eth_sendRawTransactionSync';
    let server = await startServerProcess(environment);
    try {
      const payer = await world.wallet();
      const received = await world.received(method);
      const unpaid = await fetch(`${server.url}/mpp/first-call`, { method: 'POST' });
      const authorization = await world.credential(payer, method, unpaid);
      const present = () =>
        fetch(`${server.url}/mpp/first-call`, { method: 'POST', headers: { authorization }, body: '{}' });
      wire.next(sending, 'reply held');
      const asked = present().then(
        () => 'answered',
        () => 'died',
      );
      await until('the money to move', async () => (await world.received(method)) > received);
      await server.end('SIGKILL');
      assert.equal(await asked, 'died');
      await database.sql`update settlements set next_at = now(), lease_until = now() where final_at is null`;

      server = await startServerProcess(environment);
      await until('the finisher to capture it', async () => {
        const [row] = await database.sql<{ state: number }[]>`select state from calls`;
        return row?.state === 1;
      });
      const answers = [await present(), await present()];
      const texts = await Promise.all(answers.map((each) => each.text()));
      assert.deepEqual(
        answers.map(({ status, headers }) => [status, headers.get('idempotent-replayed')]),
        [
          [200, 'true'],
          [200, 'true'],
        ],
        texts.join('\n'),
      );
      assert.equal(texts[0], texts[1]);
      assert.equal(receiptOf(answers[0] ?? assert.fail())?.method, method);
      assert.equal((await world.received(method)) - received, PRICE);
      const { checks } = await proveBooks(database.patient);
      assert.deepEqual(
        checks.filter(({ ok }) => !ok),
        [],
      );
    } finally {
      await server.end('SIGKILL');
      await wire.close();
      await database.close();
    }
  });
}
