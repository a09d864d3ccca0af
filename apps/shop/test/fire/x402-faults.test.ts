/**
 * The fault table of the x402 rail: one row a fault, for both ways to settle. Each row says what the payer holds after
 * each request, how often the service ran, how much USDC moved, and what the books say once everything is at rest.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import {
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  isHex,
  keccak256,
  numberToHex,
  parseAbi,
  parseEther,
  toHex,
} from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { cancelData } from '../../../../packages/sandbox/src/chain/eip3009.fixture.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { proveBooks } from '../books.fixture.ts';
import { startTestChain, type TestChain } from '../chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { eachOf, pathsOf, spoiled, withPath } from '../hostile-values.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type SignedPayment, USDC } from '../x402.fixture.ts';
import {
  byNeed,
  copies,
  fails,
  ONE_SALE,
  rowsOfAnyChain,
  rowsOfAnyRail,
  stagePool,
  type Row as TableRow,
  UNKNOWN,
} from './fault-table.fixture.ts';
import { until } from './until.fixture.ts';
import type { NodeFault } from './x402-node.fixture.ts';
import { PRICE, type SettledBy, type Stage, setStage, type Terms } from './x402-stage.fixture.ts';
import type { Told } from './x402-told.fixture.ts';

type Row = TableRow<Stage, PrivateKeyAccount, SettledBy>;

/** Something goes wrong with the next settlement, in the words of both settlers. */
function settlementMeets(facilitator: Record<string, unknown>, own: NodeFault): NonNullable<Row['given']> {
  return (stage) => {
    // What a node never saw stays unseen: the settler sends it once more at once.
    if (stage.settledBy === 'own settler')
      return stage.settlerFault(own, own === 'request lost' || own === 'no answer');
    return stage.facilitatorFaults([{ on: 'settle', ...facilitator }]);
  };
}
function verificationMeets(facilitator: Record<string, unknown>): NonNullable<Row['given']> {
  return (stage) => stage.facilitatorFaults([{ on: 'verify', ...facilitator }]);
}

async function once(stage: Stage, header: string, path = 'nickel'): Promise<Told[]> {
  return [await stage.present(header, { path })];
}
/** Presents it, and again when the shop said to. */
async function twice(stage: Stage, header: string): Promise<Told[]> {
  const first = await stage.present(header);
  stage.later(11_000);
  await stage.resume();
  return [first, await stage.present(header)];
}
const firstRunFails = (stage: Stage) => {
  stage.script.during = (run) => (run === 1 ? fails() : Promise.resolve());
};

/** How our own settler sends. */
const SEND = 'eth_sendRawTransactionSync';
const NOBODY = '0x000000000000000000000000000000000000dEaD';
const NO_SALE = { runs: 0, paid: 0, books: { released: 1 } } as const;

/** Why facilitators say that they did not settle. */
const REASONS = [
  'insufficient_funds',
  'invalid_exact_evm_payload_authorization_valid_before',
  'settle_failed',
];
/** The answers that nodes were seen to give to a transaction that they had passed on. */
const NODE_WORDS = [
  [-32000, 'already known'],
  [-32000, 'internal error'],
  [-32003, 'transaction rejected'],
] as const;
/** A node that passes the next transaction on and says no, to both ways to send; so many receipts are not there yet. */
function nodeSaysNo(stage: Stage, code: number, message: string, hiddenFor: number): void {
  for (const sending of [SEND, 'eth_sendRawTransaction'])
    stage.node.next(sending, { did: true, says: { error: { code, message } } });
  stage.node.next('eth_getTransactionReceipt', { did: false, says: { result: null } }, hiddenFor);
}

const ROWS: readonly Row[] = [
  ...rowsOfAnyRail<Stage, PrivateKeyAccount>(),
  ...rowsOfAnyChain<Stage, PrivateKeyAccount>(),

  // Verification.
  {
    fault: 'the facilitator refuses to verify',
    only: 'facilitator',
    given: verificationMeets({ fault: 'refuse', errorReason: 'invalid_exact_evm_insufficient_balance' }),
    told: ['402 PAYMENT_INSUFFICIENT_FUNDS'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1, released: 1 },
  },
  ...[
    { fault: 'throw-before-broadcast' },
    { fault: 'drop-before' },
    { fault: 'garbage' },
    { fault: 'never', broadcast: false },
  ].map(
    (fault): Row => ({
      fault: `the facilitator's verification: ${fault.fault}`,
      waits: fault.fault === 'never',
      only: 'facilitator',
      given: verificationMeets(fault),
      told: ['503 FACILITATOR_UNAVAILABLE'],
      atRest: '200',
      runs: 1,
      paid: 1,
      books: { captured: 1, released: 1 },
    }),
  ),
  {
    fault: 'the facilitator verifies what cannot be paid',
    only: 'facilitator',
    given: async (stage, payer) => {
      await verificationMeets({ fault: 'lie', times: 2 })(stage, payer);
      await emptied(stage, payer);
    },
    told: ['402 PAYMENT_INSUFFICIENT_FUNDS'],
    atRest: '402 PAYMENT_INSUFFICIENT_FUNDS',
    runs: 0,
    paid: 0,
    books: { released: 2 },
  },

  // Settlement.
  ...REASONS.flatMap((errorReason): Row[] => [
    {
      fault: `the facilitator refuses to settle, and sends nothing: ${errorReason}`,
      only: 'facilitator',
      waits: true,
      given: settlementMeets({ fault: 'refuse', errorReason }, 'request lost'),
      told: [UNKNOWN],
      ...ONE_SALE,
    },
    {
      fault: `the facilitator sends it, and refuses: ${errorReason}`,
      only: 'facilitator',
      given: settlementMeets({ fault: 'refuse-after-broadcast', errorReason }, 'request lost'),
      told: ['200'],
      ...ONE_SALE,
    },
    {
      fault: `the facilitator refuses, and sends it when nobody looks any more: ${errorReason}`,
      only: 'facilitator',
      waits: true,
      play: async (stage, header) => {
        const late = await startProcrastinator(stage.facilitatorUrl, errorReason);
        await stage.restart({ FACILITATOR_URL: late.url });
        const told = await stage.present(header);
        await late.doIt();
        await late.close();
        await stage.restart();
        return [told];
      },
      told: [UNKNOWN],
      ...ONE_SALE,
    },
  ]),
  ...NODE_WORDS.map(
    ([code, message]): Row => ({
      fault: `the node passes it on, answers ${code} (${message}), and shows the receipt two looks later`,
      only: 'own settler',
      given: (stage) => nodeSaysNo(stage, code, message, 2),
      // Never a 402, which would have it paid once more.
      told: [`200|${UNKNOWN}`],
      ...ONE_SALE,
    }),
  ),
  {
    fault: 'the node says that a payment would pass which does not',
    only: 'own settler',
    play: async (stage, header, payer) => {
      await emptied(stage, payer);
      stage.node.answerWith((method, [call]) =>
        method === 'eth_call' && fieldOf(call, 'data').startsWith(TRANSFER_SELECTOR) ? '0x' : undefined,
      );
      const told = await stage.present(header);
      stage.node.mend();
      return [told];
    },
    told: ['402 PAYMENT_VERIFICATION_FAILED'],
    atRest: '402 PAYMENT_INSUFFICIENT_FUNDS',
    runs: 1,
    paid: 0,
    books: { withChain: 1 },
  },
  {
    fault: 'throws before broadcast; the payer comes again',
    waits: true,
    given: settlementMeets({ fault: 'throw-before-broadcast' }, 'request lost'),
    play: twice,
    told: [UNKNOWN, '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'throws before broadcast; the payer waits',
    waits: true,
    given: settlementMeets({ fault: 'throw-before-broadcast' }, 'request lost'),
    told: [UNKNOWN],
    ...ONE_SALE,
  },
  {
    fault: 'its request to the node is lost once',
    only: 'own settler',
    given: (stage) => stage.settlerFault('request lost', false),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'throws after broadcast',
    given: settlementMeets({ fault: 'throw-after-broadcast' }, 'reply lost'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'drops the connection after broadcast',
    only: 'facilitator',
    given: settlementMeets({ fault: 'drop-after-broadcast' }, 'reply lost'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'answers late',
    given: settlementMeets({ fault: 'late', delayMs: 2_000 }, 2_000),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'never answers, and sent nothing',
    waits: true,
    given: settlementMeets({ fault: 'never', broadcast: false }, 'no answer'),
    play: twice,
    told: [UNKNOWN, '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'never answers, and has sent it',
    waits: true,
    given: settlementMeets({ fault: 'never', broadcast: true }, 'reply held'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'lies: a transaction that does not exist',
    waits: true,
    only: 'facilitator',
    given: settlementMeets({ fault: 'lie' }, 'no answer'),
    play: twice,
    told: [UNKNOWN, '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'pending, and has sent it',
    only: 'facilitator',
    given: settlementMeets({ fault: 'pending', broadcast: true }, 'no answer'),
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'pending for ever',
    waits: true,
    only: 'facilitator',
    given: settlementMeets({ fault: 'pending', broadcast: false }, 'no answer'),
    play: twice,
    told: [UNKNOWN, '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'garbage instead of an answer',
    only: 'facilitator',
    given: settlementMeets({ fault: 'garbage' }, 'no answer'),
    play: twice,
    told: [UNKNOWN, '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'a first facilitator that sends later than it fails, and a second one that refuses',
    only: 'facilitator',
    play: async (stage, header) => {
      // The first one keeps the request and does its work after everybody has gone.
      const slow = await startProcrastinator(stage.facilitatorUrl);
      const refusing = await startProcrastinator(stage.facilitatorUrl, 'insufficient_funds');
      await stage.restart({ FACILITATOR_URL: `${slow.url},${refusing.url}` });
      const told = await stage.present(header);
      await slow.doIt();
      await Promise.all([slow.close(), refusing.close()]);
      return [told];
    },
    told: [UNKNOWN],
    ...ONE_SALE,
  },

  // Between verify and settle.
  {
    fault: 'the balance moves between verify and settle, and comes back',
    given: (stage, payer) => {
      stage.script.during = () => emptied(stage, payer);
    },
    play: async (stage, header, payer) => {
      const first = await stage.present(header);
      await filled(stage, payer);
      return [first, await stage.present(header)];
    },
    told: ['402 PAYMENT_INSUFFICIENT_FUNDS', '200 again'],
    ...ONE_SALE,
  },
  {
    fault: 'the balance moves between verify and settle, and stays away',
    given: (stage, payer) => {
      stage.script.during = () => emptied(stage, payer);
    },
    told: ['402 PAYMENT_INSUFFICIENT_FUNDS'],
    atRest: '402 PAYMENT_INSUFFICIENT_FUNDS',
    runs: 1,
    paid: 0,
    books: { withChain: 1 },
  },
  {
    fault: 'the authorization is cancelled between verify and settle',
    pay: async (stage, payer) => {
      const payment = await stage.sign(payer);
      stage.script.during = async () => {
        await stage.send(payer, USDC, await cancellation(payer, payment));
      };
      return stage.header(payment);
    },
    told: ['402 PAYMENT_AUTHORIZATION_USED'],
    atRest: '402 PAYMENT_AUTHORIZATION_USED',
    runs: 1,
    paid: 0,
    books: { released: 2 },
  },
  {
    fault: 'the nonce is used between verify and settle by an authorization to somebody else',
    pay: async (stage, payer) => {
      const payment = await stage.sign(payer);
      const { nonce } = payment.authorization;
      stage.script.during = async () => {
        const other = await stage.sign(payer, { to: NOBODY, nonce: asHex(nonce) });
        await stage.send(payer, USDC, transferOf(other));
      };
      return stage.header(payment);
    },
    told: ['402 PAYMENT_AUTHORIZATION_USED'],
    atRest: '402 PAYMENT_AUTHORIZATION_USED',
    runs: 1,
    paid: 0,
    books: { released: 2 },
  },
  ...[false, true].map(
    (oursFirst): Row => ({
      fault: `two payments, of which one transaction pays only one, ${oursFirst ? 'ours first' : 'ours last'}`,
      pay: async (stage, payer) => stage.header(await stage.sign(payer)),
      play: async (stage, header, payer) => {
        const unpaid = await stage.sign(payer);
        const { nonce } = unpaid.authorization;
        const elsewhere = await stage.sign(payer, { to: NOBODY, nonce: asHex(nonce) });
        const calls = [transferOf(elsewhere), transferOf(paymentIn(header))];
        await stage.send(payer, MULTICALL3, aggregate(oursFirst ? calls.toReversed() : calls));
        return [await stage.present(await stage.header(unpaid)), await stage.present(header)];
      },
      told: ['402 PAYMENT_AUTHORIZATION_USED', '200'],
      ...ONE_SALE,
      books: { captured: 1, released: 1 },
    }),
  ),
  {
    fault: 'somebody else settled it before the service ran',
    play: async (stage, header, payer) => {
      await stage.send(payer, USDC, transferOf(paymentIn(header)));
      return once(stage, header);
    },
    told: ['200'],
    ...ONE_SALE,
  },
  {
    fault: 'somebody else settles it between verify and settle',
    pay: async (stage, payer) => {
      const payment = await stage.sign(payer);
      stage.script.during = async () => void (await stage.send(payer, USDC, transferOf(payment)));
      return stage.header(payment);
    },
    told: ['200'],
    ...ONE_SALE,
  },

  // The node.
  {
    fault: 'the node is behind',
    // A replica that has just asked believes what it heard.
    alone: 'stage',
    play: async (stage, header) => {
      stage.node.answerWith((method) =>
        method === 'eth_getBlockByNumber'
          ? { number: '0x10', timestamp: '0x65000000', hash: toHex(16, { size: 32 }) }
          : undefined,
      );
      stage.later(4_000);
      const told = await stage.present(header);
      stage.node.mend();
      await sleep(3_100);
      return [told];
    },
    told: ['503 CHAIN_BEHIND'],
    atRest: '200',
    runs: 1,
    paid: 1,
    books: { captured: 1, released: 1 },
  },
  {
    fault: 'the money moves after everybody has gone, and nobody looks for 9,100 blocks',
    only: 'facilitator',
    alone: 'chain',
    play: async (stage, header) => {
      const slow = await startProcrastinator(stage.facilitatorUrl);
      await stage.restart({ FACILITATOR_URL: slow.url });
      const told = await stage.present(header);
      await slow.doIt();
      await slow.close();
      await stage.restart();
      const head = await stage.chain.client.getBlock();
      const timestamp = toHex(head.timestamp);
      const laterHead = { number: toHex(head.number + 9_100n), timestamp, hash: head.hash };
      stage.node.answerWith((method, [first]) => {
        if (method === 'eth_getBlockByNumber' && first === 'latest') return laterHead;
        if (method === 'eth_getBlockByNumber' && BigInt(String(first)) > head.number)
          return { number: first, timestamp };
        if (method === 'eth_getLogs' && BigInt(fieldOf(first, 'fromBlock')) > head.number) return [];
        return undefined;
      });
      return [told];
    },
    told: [UNKNOWN],
    ...ONE_SALE,
  },
  {
    fault: 'a settlement waits in the pool while the balance is away, and is mined when it is back',
    waits: true,
    only: 'own settler',
    alone: 'chain',
    play: async (stage, header, payer) => {
      await stage.chain.client.setAutomine(false);
      const first = await stage.present(header);
      const held = await balanceSlot(stage, payer, 0n);
      stage.later(3_000);
      const second = await stage.present(header);
      await balanceSlot(stage, payer, held);
      await stage.chain.client.mine({ blocks: 1 });
      await stage.chain.client.setAutomine(true);
      return [first, second];
    },
    told: [UNKNOWN, UNKNOWN],
    ...ONE_SALE,
  },
  {
    fault: 'its time is nearly over',
    pay: async (stage, payer) => stage.header(await stage.sign(payer, { validForSeconds: 8 })),
    told: ['402 PAYMENT_EXPIRED'],
    atRest: '402 PAYMENT_EXPIRED',
    ...NO_SALE,
    books: { released: 2 },
  },
  {
    fault: 'its time is nearly over, and somebody settled it already',
    pay: async (stage, payer) => stage.header(await stage.sign(payer, { validForSeconds: 8 })),
    play: async (stage, header, payer) => {
      await stage.send(payer, USDC, transferOf(paymentIn(header)));
      return once(stage, header);
    },
    told: ['200'],
    ...ONE_SALE,
  },

  // A service that leaves something behind is paid first.
  { fault: 'none, paid first', service: 'deed', told: ['200'], ...ONE_SALE },
  {
    fault: 'paid first; 20 copies at once, on two replicas',
    service: 'deed',
    play: (stage, header) => copies(stage, header, 20, 'deed'),
    told: ['200', ...Array.from({ length: 19 }, () => '200 again')],
    ...ONE_SALE,
  },
  {
    fault: 'paid first; fails, and is tried again',
    service: 'deed',
    given: firstRunFails,
    play: async (stage, header) => [
      await stage.present(header, { path: 'deed' }),
      await stage.present(header, { path: 'deed' }),
    ],
    told: ['503 SOURCE_DOWN', '200'],
    ...ONE_SALE,
    runs: 2,
  },
  {
    fault: 'paid first; fails, and is tried again by many at once',
    service: 'deed',
    given: firstRunFails,
    play: async (stage, header) => {
      const first = await stage.present(header, { path: 'deed' });
      return [first, ...(await copies(stage, header, 10, 'deed'))];
    },
    told: ['503 SOURCE_DOWN', '200', ...Array.from({ length: 9 }, () => '200 again')],
    ...ONE_SALE,
    runs: 2,
  },
  {
    fault: 'paid first; fails, and is tried again after the jobs have looked at it four times',
    service: 'deed',
    given: firstRunFails,
    play: async (stage, header) => {
      const first = await stage.present(header, { path: 'deed' });
      for (const pauseMs of [0, 4_100, 8_100, 16_100]) {
        stage.later(pauseMs);
        await stage.finish();
      }
      return [first, await stage.present(header, { path: 'deed' })];
    },
    told: ['503 SOURCE_DOWN', '200'],
    ...ONE_SALE,
    runs: 2,
  },
  {
    fault: 'paid first; the balance moves before, comes back, and many come at once',
    service: 'deed',
    given: async (stage, payer) => {
      if (stage.settledBy === 'own settler') stage.node.before(SEND, () => emptied(stage, payer));
      else
        await stage.facilitatorFaults([{ on: 'settle', fault: 'refuse', errorReason: 'insufficient_funds' }]);
    },
    play: async (stage, header, payer) => {
      const first = await stage.present(header, { path: 'deed' });
      await filled(stage, payer);
      stage.script.during = () => sleep(200);
      return [first, ...(await copies(stage, header, 10, 'deed'))];
    },
    // A facilitator's word is none; that our own transaction failed is the chain's.
    told: [
      `402 PAYMENT_INSUFFICIENT_FUNDS|${UNKNOWN}`,
      '200',
      ...Array.from({ length: 9 }, () => '200 again'),
    ],
    ...ONE_SALE,
  },
  {
    fault: 'paid first; another replica takes it over from one that is too slow, and is faster',
    service: 'deed',
    play: async (stage, header) => {
      const hold = Promise.withResolvers<void>();
      stage.script.during = (run) => (run === 1 ? hold.promise : Promise.resolve());
      const slow = stage.present(header, { path: 'deed' });
      await until('the service to run', () => stage.script.runs === 1);
      stage.later(19_000);
      const fast = await stage.present(header, { path: 'deed', on: stage.there });
      hold.resolve();
      return [fast, await slow];
    },
    told: ['200', '200 again'],
    ...ONE_SALE,
    runs: 2,
  },
  {
    fault: 'paid first; never succeeds',
    service: 'deed',
    given: (stage) => {
      stage.script.during = fails;
    },
    play: async (stage, header) => {
      const told = [
        await stage.present(header, { path: 'deed' }),
        await stage.present(header, { path: 'deed' }),
      ];
      stage.later(61_000);
      await Promise.all([stage.finish(), stage.there.app.settlementFinisher.run()]);
      return told;
    },
    told: ['503 SOURCE_DOWN', '503 SOURCE_DOWN'],
    atRest: '410 REFUNDED again',
    runs: 2,
    paid: 1,
    refunded: 1,
    books: { captured: 1 },
  },
  {
    fault: 'paid first; never succeeds, and the node passes the refund on and says no',
    service: 'deed',
    given: (stage) => {
      stage.script.during = fails;
    },
    play: async (stage, header) => {
      const told = await stage.present(header, { path: 'deed' });
      stage.later(61_000);
      nodeSaysNo(stage, -32003, 'transaction rejected', 2);
      await Promise.all([stage.finish(), stage.there.app.settlementFinisher.run()]);
      return [told];
    },
    told: ['503 SOURCE_DOWN'],
    atRest: '410 REFUNDED again',
    runs: 1,
    paid: 1,
    refunded: 1,
    books: { captured: 1 },
  },
  {
    fault: 'paid first; throws before broadcast',
    waits: true,
    service: 'deed',
    given: settlementMeets({ fault: 'throw-before-broadcast' }, 'request lost'),
    play: async (stage, header) => {
      const first = await stage.present(header, { path: 'deed' });
      stage.later(11_000);
      await stage.resume();
      return [first, await stage.present(header, { path: 'deed' })];
    },
    told: [UNKNOWN, '200'],
    ...ONE_SALE,
  },
  {
    fault: 'paid first; nobody can tell, the money moves later, and the payer never comes back',
    service: 'deed',
    only: 'facilitator',
    play: async (stage, header) => {
      const slow = await startProcrastinator(stage.facilitatorUrl);
      await stage.restart({ FACILITATOR_URL: slow.url });
      const told = await stage.present(header, { path: 'deed' });
      await slow.doIt();
      await slow.close();
      await stage.restart();
      stage.later(61_000);
      return [told];
    },
    told: [UNKNOWN],
    atRest: '410 REFUNDED again',
    runs: 0,
    paid: 1,
    refunded: 1,
    books: { captured: 1 },
  },
];

let chain: TestChain;
let home: TestDatabase;

before(async () => {
  [chain, home] = await Promise.all([startTestChain(), openTestDatabase()]);
  process.env.TEST_DATABASE_URL ??= home.url;
});
after(async () => {
  await Promise.all(SETTLERS.map((settledBy) => pools[settledBy].close()));
  await Promise.all([chain?.stop(), home?.close()]);
});

const SETTLERS = ['facilitator', 'own settler'] as const;
const poolOf = (settledBy: SettledBy) =>
  stagePool<Stage, PrivateKeyAccount>(async (alone) => {
    if (alone !== 'chain') return setStage({ chain, settledBy });
    const own = await startTestChain();
    const stage = await setStage({ chain: own, settledBy });
    const close = async () => {
      await stage.close();
      await own.stop();
    };
    return { ...stage, close };
  });
const pools = { facilitator: poolOf('facilitator'), 'own settler': poolOf('own settler') };

/** Each row with each way to settle that it is about. */
function play(rows: readonly Row[]): void {
  for (const row of rows)
    for (const settledBy of row.only === undefined ? SETTLERS : [row.only])
      test(`${row.fault} (${settledBy})`, () => pools[settledBy].prove(row));
}

const NEEDS = byNeed(ROWS);
describe('the fault table', { concurrency: 2 }, () => {
  const { waiting, busy } = NEEDS;
  describe('rows that wait for a time-out', { concurrency: 8 }, () => {
    for (const settledBy of SETTLERS)
      test(`the chain is reorganised by one block: the same payment is settled again, and its answer stays (${settledBy})`, () =>
        proveReorganised(settledBy));
    play(waiting);
  });
  describe('all others', { concurrency: 4 }, () => play(busy));
});
describe('crowds', () => play(NEEDS.crowded));

describe('terms, signatures and writings', () => {
  let stage: Stage;
  let payer: PrivateKeyAccount;
  before(async () => {
    stage = await setStage({ chain, settledBy: 'facilitator' });
    payer = await stage.wallet();
  });
  after(() => stage?.close());

  const paying = (terms: Terms) => stage.payment(payer, 'nickel', terms);
  const raw = async () => Buffer.from(await paying({}), 'base64').toString('utf8');

  /** The payments that are presented, and the answers to each. What is refused leaves nothing behind; what is taken is sold once. */
  const PRESENTED: readonly [string, () => Promise<string>, string][] = [
    ['a wrong chain, signed', () => paying({ chainId: 1 }), '402 PAYMENT_SIGNATURE_INVALID'],
    [
      'a wrong chain, named',
      () => altered({ accepted: { network: 'eip155:1' } }),
      '402 PAYMENT_NETWORK_UNSUPPORTED',
    ],
    [
      'an unknown chain',
      () => altered({ accepted: { network: 'eip155:5' } }),
      '402 PAYMENT_NETWORK_UNSUPPORTED',
    ],
    ['a wrong asset, signed', () => paying({ asset: NOBODY }), '402 PAYMENT_SIGNATURE_INVALID'],
    [
      'a wrong asset, named',
      () => altered({ accepted: { asset: NOBODY } }),
      '402 PAYMENT_REQUIREMENTS_MISMATCH',
    ],
    ['a wrong recipient', () => paying({ to: NOBODY }), '402 PAYMENT_RECIPIENT_MISMATCH'],
    [
      'a wrong recipient, named',
      () => altered({ accepted: { payTo: NOBODY } }),
      '402 PAYMENT_REQUIREMENTS_MISMATCH',
    ],
    ['too little', () => paying({ valueUnits: 49_999n }), '402 PAYMENT_AMOUNT_MISMATCH'],
    ['too much', () => paying({ valueUnits: 50_001n }), '402 PAYMENT_AMOUNT_MISMATCH'],
    ['too little, named', () => altered({ accepted: { amount: '1' } }), '402 PAYMENT_REQUIREMENTS_MISMATCH'],
    ['a wrong domain name', () => paying({ name: 'USDC' }), '402 PAYMENT_SIGNATURE_INVALID'],
    ['expired', () => paying({ validForSeconds: -10 }), '402 PAYMENT_EXPIRED'],
    ['valid for two hours', () => paying({ validForSeconds: 7_200 }), '402 PAYMENT_VALID_TOO_LONG'],
    [
      'valid for ever',
      () => authorized({ validBefore: String(2n ** 256n - 1n) }),
      '402 PAYMENT_VALID_TOO_LONG',
    ],
    [
      'a number beyond 256 bits',
      () => authorized({ validAfter: '9'.repeat(78) }),
      '402 PAYMENT_DECODE_FAILED|402 PAYMENT_SIGNATURE_INVALID',
    ],
    ['another scheme', () => altered({ accepted: { scheme: 'upto' } }), '402 PAYMENT_SCHEME_UNSUPPORTED'],
    ['another version', () => altered({ x402Version: 3 }), '402 PAYMENT_VERSION_UNSUPPORTED'],
    [
      'the value changed after signing',
      () => authorized({ nonce: `0x${'1'.repeat(64)}` }),
      '402 PAYMENT_SIGNATURE_INVALID',
    ],
    ['signed by somebody else', () => authorized({ from: NOBODY }), '402 PAYMENT_SIGNATURE_INVALID'],
    ['a forged signature', () => signedAs(() => `0x${'5a'.repeat(65)}`), '402 PAYMENT_SIGNATURE_INVALID'],
    ['a signature of nothing', () => signedAs(() => `0x${'00'.repeat(65)}`), '402 PAYMENT_SIGNATURE_INVALID'],
    ['a signature of one byte', () => signedAs(() => '0x1b'), '402 PAYMENT_SIGNATURE_INVALID'],
    ['a signature with a byte too many', () => signedAs((s) => `${s}00`), '402 PAYMENT_SIGNATURE_INVALID'],
    ['the malleable twin', () => signedAs(twin), '402 PAYMENT_SIGNATURE_INVALID'],
    [
      'the other v',
      () => signedAs((s) => withV(s, vOf(s) === 27 ? 28 : 27)),
      '402 PAYMENT_SIGNATURE_INVALID',
    ],
    ['v = 29', () => signedAs((s) => withV(s, 29)), '402 PAYMENT_SIGNATURE_INVALID'],
    ['v = 0 or 1', () => signedAs((s) => withV(s, vOf(s) - 27)), '200'],
    ['base64url, not padded', async () => Buffer.from(await raw()).toString('base64url'), '200'],
    [
      'base64, not padded',
      async () =>
        Buffer.from(await raw())
          .toString('base64')
          .replaceAll('=', ''),
      '200',
    ],
    ['JSON as it is', raw, '200'],
    [
      'NUL in the resource',
      () => altered({ resource: { url: 'a\u0000b' } }),
      '402 PAYMENT_DECODE_FAILED|200',
    ],
    ['NUL in an extension', () => altered({ extensions: { x: '\u0000' } }), '402 PAYMENT_DECODE_FAILED|200'],
    [
      'half a character in an extension',
      () => altered({ extensions: { x: '\ud800' } }),
      '402 PAYMENT_DECODE_FAILED|200',
    ],
    ['a very deep extension', deep, '402 PAYMENT_DECODE_FAILED|200'],
    ['a hash that is too short', async () => '0x1234', '402 PAYMENT_INVALID_TX_HASH_FORMAT'],
    ['a hash that nobody knows', async () => `0x${'ab'.repeat(32)}`, '402 PAYMENT_TRANSACTION_NOT_FOUND'],
    ['an empty header', async () => ' ', '402 PAYMENT_DECODE_FAILED'],
    ['not JSON', async () => '@@@', '402 PAYMENT_DECODE_FAILED'],
    ['an empty object', async () => Buffer.from('{}').toString('base64'), '402 PAYMENT_VERSION_UNSUPPORTED'],
  ];

  async function altered(changes: Record<string, unknown>): Promise<string> {
    const payment: Record<string, unknown> = JSON.parse(await raw());
    for (const [field, value] of Object.entries(changes)) {
      const known = payment[field];
      payment[field] =
        field === 'accepted' && typeof known === 'object' && typeof value === 'object'
          ? { ...known, ...value }
          : value;
    }
    return Buffer.from(JSON.stringify(payment)).toString('base64');
  }
  async function authorized(changes: Record<string, string>): Promise<string> {
    const { authorization, signature } = await stage.sign(payer);
    return altered({ payload: { authorization: { ...authorization, ...changes }, signature } });
  }
  async function signedAs(change: (signature: string) => string): Promise<string> {
    const { authorization, signature } = await stage.sign(payer);
    return altered({ payload: { authorization, signature: change(signature) } });
  }
  async function deep(): Promise<string> {
    const payment = JSON.parse(await raw());
    const text = JSON.stringify({ ...payment, resource: undefined, extensions: 0 });
    return text.replace('"extensions":0', `"extensions":{"x":${'['.repeat(6_500)}${']'.repeat(6_500)}}`);
  }

  for (const headerName of ['payment-signature', 'x-payment'] as const) {
    for (const [name, make, expected] of PRESENTED) {
      test(`${name} in ${headerName}: ${expected}`, async () => {
        const before = { runs: stage.script.runs, moved: await stage.moved(), calls: await stage.calls() };
        const header = await make();
        const told = await stage.present(header, { headerName });
        assert(expected.split('|').includes(told.text), `${told.text} ${stage.here.log.at(-1)}`);
        await stage.assertProper(told);
        const sold = told.status === 200 ? 1 : 0;
        assert.equal(stage.script.runs - before.runs, sold);
        assert.equal((await stage.moved()) - before.moved, PRICE.nickel * BigInt(sold));
        assert.equal((await stage.calls()).captured - before.calls.captured, sold);
        if (sold === 1) assert.equal((await stage.present(header, { headerName })).text, '200 again');
      });
    }

    test(`junk of every kind in ${headerName}`, async () => {
      const runs = stage.script.runs;
      const json = fc.json({ maxDepth: 3 });
      const honest = JSON.parse(await raw());
      const mutated = fc
        .tuple(
          fc.constantFrom(...pathsOf(honest).filter((path) => !FREE.test(path.join('.')))),
          fc.jsonValue({ maxDepth: 2 }),
        )
        .map(([path, value]) => JSON.stringify(withPath(honest, path, value)));
      const encoded = fc
        .tuple(
          fc.oneof(json, mutated, fc.string({ unit: 'binary', maxLength: 200 })),
          fc.constantFrom('base64', 'base64url', 'hex'),
        )
        .map(([text, alphabet]) => Buffer.from(text).toString(alphabet as BufferEncoding));
      const junk = fc.oneof(
        { weight: 3, arbitrary: encoded },
        { weight: 1, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 300 }) },
        { weight: 1, arbitrary: fc.stringMatching(/^(0x)?[0-9a-f]{0,140}$/) },
        { weight: 1, arbitrary: fc.stringMatching(/^[\x80-\xff]{1,40}$/) },
      );
      await fc.assert(
        fc.asyncProperty(junk, async (header) => {
          const told = await stage.present(header, { headerName });
          assert.equal(told.status, 402, `${told.text}: ${header}`);
          await stage.assertProper(told);
        }),
        { numRuns: 150 },
      );
      assert.equal(stage.script.runs, runs);
    });
  }

  test('no value in any place of a payment is more than refused, in either generation', async () => {
    const before = { runs: stage.script.runs, moved: await stage.moved() };
    const { authorization, signature } = await stage.sign(payer);
    const second: unknown = JSON.parse(await raw());
    const first = { x402Version: 1, scheme: 'exact', network: 'base', payload: { authorization, signature } };
    for (const [headerName, honest] of [
      ['payment-signature', second],
      ['x-payment', first],
    ] as const) {
      // What nobody signed cannot pay, so every place of it may be spoiled; of an honest one those that are looked at.
      const forged = withPath(honest, ['payload', 'signature'], `0x${'5a'.repeat(65)}`);
      const lookedAt = pathsOf(honest).filter((path) => !FREE.test(path.join('.')));
      const payments = [...spoiled(forged), ...spoiled(honest, lookedAt)];
      await eachOf(payments, async ({ path, put, value }) => {
        const header = Buffer.from(JSON.stringify(value)).toString('base64');
        const told = await stage.present(header, { headerName });
        assert.equal(told.status, 402, `${told.text} to ${path.join('.')}: ${JSON.stringify(put)}`);
        await stage.assertProper(told);
      });
    }
    assert.deepEqual([stage.script.runs, await stage.moved()], [before.runs, before.moved]);
  });
});

/** The fields that may have more than one form, or are not looked at. */
const FREE = /^(resource|extensions|accepted\.(extra|maxTimeoutSeconds)|payload\.authorization\.validAfter)/;

const vOf = (signature: string) => Number(`0x${signature.slice(130)}`);
const withV = (signature: string, v: number) =>
  `${signature.slice(0, 130)}${v.toString(16).padStart(2, '0')}`;
/** The other signature of the same key over the same words. */
function twin(signature: string): string {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0');
  return withV(`${signature.slice(0, 66)}${s}${signature.slice(130)}`, vOf(signature) === 27 ? 28 : 27);
}

describe('a transfer that the payer made by itself', { concurrency: 4 }, () => {
  const mine = (stage: Stage) => stage.chain.client.mine({ blocks: 1 });
  const transferred =
    (to: (stage: Stage) => Hex, amountUnits: bigint) => async (stage: Stage, payer: PrivateKeyAccount) => {
      const hash = await stage.transfer(payer, to(stage), amountUnits);
      await mine(stage);
      return hash;
    };
  const toUs = ({ recipient }: Stage) => recipient;
  const REFUSED = { runs: 0, paid: 0, books: {} } as const;
  const rows: readonly Row[] = [
    { fault: 'the right one', pay: transferred(toUs, PRICE.nickel), told: ['200'], ...ONE_SALE },
    {
      fault: '20 copies at once',
      pay: transferred(toUs, PRICE.nickel),
      play: (stage, header) => copies(stage, header, 20),
      told: ['200', ...Array.from({ length: 19 }, () => '200 again')],
      ...ONE_SALE,
    },
    {
      fault: 'for another request too, in other letters and in JSON',
      pay: transferred(toUs, PRICE.nickel),
      play: async (stage, header) => {
        const body = { name: 'b' };
        const upper = `0x${header.slice(2).toUpperCase()}`;
        return [
          await stage.present(header),
          await stage.present(header, { body }),
          await stage.present(upper, { body }),
          await stage.present(JSON.stringify({ txHash: header, network: 'base' }), { body }),
          await stage.present(upper),
        ];
      },
      told: ['200', ...Array.from({ length: 3 }, () => '409 IDEMPOTENCY_KEY_REUSED'), '200 again'],
      ...ONE_SALE,
    },
    {
      fault: 'again while the node does not answer',
      pay: transferred(toUs, PRICE.nickel),
      play: async (stage, header) => {
        const first = await stage.present(header);
        stage.node.cut();
        const again = await stage.present(header);
        stage.node.mend();
        return [first, again];
      },
      told: ['200', '200 again'],
      ...ONE_SALE,
    },
    {
      fault: 'too little',
      pay: transferred(toUs, 49_999n),
      told: ['402 PAYMENT_TRANSFER_MISMATCH'],
      atRest: '402 PAYMENT_TRANSFER_MISMATCH',
      ...REFUSED,
      givenAway: 49_999n,
    },
    {
      fault: 'to somebody else',
      pay: transferred(() => NOBODY, PRICE.nickel),
      told: ['402 PAYMENT_TRANSFER_MISMATCH'],
      atRest: '402 PAYMENT_TRANSFER_MISMATCH',
      ...REFUSED,
    },
    {
      fault: "somebody else's settlement",
      pay: async (stage, payer) => {
        const { transaction } = await stage.present(await stage.payment(payer));
        await mine(stage);
        return transaction ?? '';
      },
      told: ['402 PAYMENT_TRANSFER_NOT_PLAIN'],
      atRest: '402 PAYMENT_TRANSFER_NOT_PLAIN',
      runs: 1,
      paid: 1,
      books: { captured: 1 },
    },
    {
      fault: 'not deep enough yet',
      alone: 'chain',
      pay: (stage, payer) => stage.transfer(payer, stage.recipient, PRICE.nickel),
      play: async (stage, header) => {
        const first = await stage.present(header);
        await mine(stage);
        await sleep(3_100);
        return [first];
      },
      told: ['503 PAYMENT_NOT_CONFIRMED'],
      atRest: '200',
      runs: 1,
      paid: 1,
      books: { captured: 1 },
    },
    {
      fault: 'in no block yet',
      alone: 'chain',
      pay: async (stage, payer) => {
        await stage.chain.client.setAutomine(false);
        return stage.chain.client.writeContract({
          account: payer,
          address: USDC,
          abi: erc20Abi,
          functionName: 'transfer',
          args: [stage.recipient, PRICE.nickel],
        });
      },
      play: async (stage, header) => {
        const first = await stage.present(header);
        await stage.chain.client.mine({ blocks: 2 });
        await stage.chain.client.setAutomine(true);
        await sleep(3_100);
        return [first];
      },
      told: ['503 PAYMENT_NOT_CONFIRMED'],
      atRest: '200',
      runs: 1,
      paid: 1,
      books: { captured: 1 },
    },
    {
      fault: 'a transaction that failed',
      pay: async (stage, payer) => {
        const data = encodeFunctionData({
          abi: erc20Abi,
          functionName: 'transfer',
          args: [stage.recipient, 10n ** 12n],
        });
        const hash = await stage.chain.client.sendTransaction({
          account: payer,
          to: USDC,
          data,
          gas: 100_000n,
        });
        await stage.chain.client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
        await mine(stage);
        return hash;
      },
      told: ['402 PAYMENT_TRANSACTION_FAILED'],
      atRest: '402 PAYMENT_TRANSACTION_FAILED',
      ...REFUSED,
    },
    {
      fault: 'paid first, never succeeds',
      service: 'deed',
      pay: transferred(toUs, PRICE.deed),
      given: (stage) => {
        stage.script.during = fails;
      },
      play: async (stage, header) => {
        const told = await stage.present(header, { path: 'deed' });
        stage.later(61_000);
        return [told];
      },
      told: ['503 SOURCE_DOWN'],
      atRest: '410 REFUNDED again',
      runs: 1,
      paid: 1,
      refunded: 1,
      books: { captured: 1 },
    },
  ];
  // A replica that has just asked for the head does not see the block that follows.
  for (const row of rows) test(row.fault, () => pools.facilitator.prove({ alone: 'stage', ...row }));

  for (const { above, sentBack, environment, because } of [
    { above: 20_000n, sentBack: 20_000n, environment: {}, because: 'it goes back' },
    { above: 9_999n, sentBack: 0n, environment: {}, because: 'below the bound it stays' },
    { above: 20_000n, sentBack: 0n, environment: { X402_REFUND_KEYS: '' }, because: 'nothing can go back' },
  ])
    test(`above the price by ${above}: ${because}, and the books are the chain's to the unit`, async () => {
      const own = await startTestChain();
      const stage = await setStage({ chain: own, settledBy: 'facilitator', environment });
      try {
        const payer = await stage.wallet();
        const hash = await stage.transfer(payer, stage.recipient, PRICE.nickel + above);
        await mine(stage);
        const held = await stage.balanceOf(payer.address);
        const told = await stage.present(hash);
        assert.equal(told.text, '200', told.body);
        await stage.assertProper(told);
        await stage.rest();
        assert.equal(await stage.balanceOf(payer.address), held, 'it may still be forgotten by the chain');
        await own.client.mine({ blocks: 31 });
        await stage.rest();
        assert.equal((await stage.balanceOf(payer.address)) - held, sentBack);
        const { capturedMicros } = await stage.calls();
        assert.equal(capturedMicros, await stage.moved(), 'all that came is booked');
        const { house, ...books } = await proveBooks(stage.database.patient);
        assert(books.balanced, JSON.stringify(books.checks.filter(({ ok }) => !ok)));
        const net = new Map(house.map(({ account, netMicros }) => [account, netMicros]));
        const kept = PRICE.nickel + above - sentBack;
        assert.deepEqual([net.get('chain_clearing'), net.get('revenue_x402')], [-kept, kept]);
        const audit = await stage.audit();
        assert.deepEqual([audit.findings, audit.unmatched], [[], []]);
        const id = told.headers.get('x-call-id');
        const receipt = await jsonOf(fetch(`${stage.here.url}/x402/receipts/${id}`));
        assert.deepEqual(
          [receipt.status, receipt.refund?.state, receipt.refund?.amountUsd],
          ['delivered', ...(sentBack === 0n ? [undefined, undefined] : ['paid', '0.020000'])],
        );
        assert.equal((await stage.present(hash)).text, '200 again');
        // One unit more in the books than on the chain is found.
        await stage.database.patient`update settlements set amount_units = amount_units + 1`;
        assert.match((await stage.audit()).findings.join(), /booked with 1 units more/);
        assert.equal((await proveBooks(stage.database.patient)).balanced, false);
      } finally {
        await stage.close();
        await own.stop();
      }
    });

  test('above the price while the key for refunds is dry: it is owed, and goes back once the key is filled', async () => {
    const own = await startTestChain();
    const stage = await setStage({ chain: own, settledBy: 'facilitator' });
    try {
      const payer = await stage.wallet();
      const hash = await stage.transfer(payer, stage.recipient, PRICE.nickel + 20_000n);
      await mine(stage);
      const held = await stage.balanceOf(payer.address);
      assert.equal((await stage.present(hash)).text, '200');
      const lookAtGas = () => stage.here.app.jobs.find(({ name }) => name === 'look-at-gas')?.run();
      await own.client.setBalance({ address: stage.refunds, value: 0n });
      await lookAtGas();
      await own.client.mine({ blocks: 31 });
      await stage.rest();
      assert.equal(await stage.balanceOf(payer.address), held);
      await own.client.setBalance({ address: stage.refunds, value: parseEther('10') });
      await lookAtGas();
      await stage.rest();
      assert.equal((await stage.balanceOf(payer.address)) - held, 20_000n);
      await stage.assertBooksBalance();
    } finally {
      await stage.close();
      await own.stop();
    }
  });

  test('all that a payer sends in one transaction counts, and nothing of anybody else', async () => {
    const stage = await setStage({ chain, settledBy: 'facilitator' });
    try {
      const payer = await stage.wallet();
      const part = encodeFunctionData({
        abi: erc20Abi,
        functionName: 'transferFrom',
        args: [payer.address, stage.recipient, PRICE.nickel / 2n],
      });
      const approve = encodeFunctionData({
        abi: erc20Abi,
        functionName: 'approve',
        args: [MULTICALL3, PRICE.nickel],
      });
      await stage.send(payer, USDC, approve);
      const hash = await stage.send(payer, MULTICALL3, aggregate([part, part]));
      await mine(stage);
      const told = await stage.present(hash);
      assert.equal(told.text, '200', told.body);
      assert.equal((await stage.calls()).capturedMicros, await stage.moved());
      const audit = await stage.audit();
      assert.deepEqual([audit.findings, audit.unmatched], [[], []]);
      await stage.assertBooksBalance();
    } finally {
      await stage.close();
    }
  });
});

async function proveReorganised(settledBy: SettledBy): Promise<void> {
  const own = await startTestChain();
  const stage = await setStage({ chain: own, settledBy });
  try {
    const payer = await stage.wallet();
    const header = await stage.payment(payer, 'nickel', { validForSeconds: 3_000 });
    await own.client.mine({ blocks: 1 });
    const told = await stage.present(header);
    assert.equal(told.text, '200');
    await stage.assertProper(told);
    // Empty blocks may lie on the settlement's.
    for (let block = 0; block < 8 && (await stage.moved()) > 0n; block += 1)
      await own.client.request({ method: 'anvil_rollback', params: [1] } as never);
    assert.equal(await stage.moved(), 0n, 'the chain forgot it');
    const again = await stage.present(header);
    assert.deepEqual([again.text, again.body], ['200 again', told.body]);
    // On a busy machine a round may end before the node has answered.
    for (let round = 0; round < 8 || (round < 24 && (await stage.moved()) === 0n); round += 1) {
      stage.later(61_000);
      await own.client.increaseTime({ seconds: 61 });
      await own.client.mine({ blocks: 1 });
      await stage.resume();
      await stage.finish();
    }
    assert.equal(await stage.moved(), PRICE.nickel, 'it was not settled again');
    const last = await stage.present(header);
    assert.deepEqual([last.text, last.body], ['200 again', told.body]);
    await stage.assertProper(last);
    assert.equal(stage.script.runs, 1);
    const { capturedMicros } = await stage.calls();
    assert.equal(capturedMicros, PRICE.nickel);
    await stage.assertBooksBalance();
  } finally {
    await stage.close();
    await own.stop();
  }
}

/** The payer sends all its USDC away. */
async function emptied(stage: Stage, payer: PrivateKeyAccount): Promise<void> {
  await stage.transfer(payer, NOBODY, await stage.balanceOf(payer.address));
}

async function filled(stage: Stage, payer: PrivateKeyAccount): Promise<void> {
  await fund(stage.chain.url, payer.address, { usdcMicros: 1_000_000n, ethWei: 0n });
}

/** A facilitator that answers a settlement with 500, or refuses it, and carries it out when it is told to. */
async function startProcrastinator(behind: string, refuses: string | null = null) {
  let kept: { url: string; body: string } | null = null;
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const url = `${behind}${request.url}`;
    response.setHeader('content-type', 'application/json');
    if (request.url === '/settle') {
      if (refuses !== null) {
        kept = { url, body };
        response.end(JSON.stringify({ success: false, errorReason: refuses, transaction: '', network: '' }));
        return;
      }
      kept = { url, body };
      response.statusCode = 500;
      response.end('{}');
      return;
    }
    const reply = await fetch(url, {
      method: request.method ?? 'GET',
      headers: { 'content-type': 'application/json' },
      ...(request.method === 'POST' ? { body } : {}),
    });
    response.statusCode = reply.status;
    response.end(await reply.text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert(address !== null && typeof address === 'object');
  return {
    url: `http://127.0.0.1:${address.port}`,
    async doIt(): Promise<void> {
      assert(kept !== null, 'it was never asked to settle');
      await fetch(kept.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: kept.body,
      });
    },
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** `transferWithAuthorization` with v, r and s: what the server tries before it sends it. */
const TRANSFER_SELECTOR = '0xe3ee160e';
const MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11';
const CALLS = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable',
]);

function fieldOf(value: unknown, name: string): string {
  return typeof value === 'object' && value !== null ? String(Reflect.get(value, name)) : '';
}

function asHex(text: string): Hex {
  assert(isHex(text));
  return text;
}

/** The call by which anybody may settle a payment. */
function transferOf({ authorization, signature }: SignedPayment): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return encodeFunctionData({
    abi: CALLS,
    functionName: 'transferWithAuthorization',
    args: [
      asHex(from),
      asHex(to),
      BigInt(value),
      BigInt(validAfter),
      BigInt(validBefore),
      asHex(nonce),
      signature,
    ],
  });
}

function aggregate(calls: readonly Hex[]): Hex {
  return encodeFunctionData({
    abi: CALLS,
    functionName: 'aggregate3',
    args: [calls.map((callData) => ({ target: USDC, allowFailure: false, callData }))],
  });
}

async function cancellation(payer: PrivateKeyAccount, { authorization }: SignedPayment): Promise<Hex> {
  const nonce = asHex(authorization.nonce);
  const signature = await payer.signTypedData(cancelData({ authorizer: payer.address, nonce }));
  return encodeFunctionData({
    abi: CALLS,
    functionName: 'cancelAuthorization',
    args: [payer.address, nonce, signature],
  });
}

/** The signed payment inside a header. */
function paymentIn(header: string): SignedPayment {
  const { payload }: { payload: SignedPayment } = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  return payload;
}

/** Writes what a wallet holds into the asset's storage. @returns what stood there */
async function balanceSlot(stage: Stage, payer: PrivateKeyAccount, balance: bigint): Promise<bigint> {
  const slot = keccak256(
    encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [payer.address, 9n]),
  );
  const held = await stage.balanceOf(payer.address);
  await stage.chain.client.setStorageAt({
    address: USDC,
    index: slot,
    value: numberToHex(balance, { size: 32 }),
  });
  assert.equal(await stage.balanceOf(payer.address), balance);
  return held;
}
