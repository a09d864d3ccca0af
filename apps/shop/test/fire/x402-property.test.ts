/**
 * Random payers under random fire, for both ways to settle: two replicas on one database, payers who repeat, hang up,
 * ask for something else and run out of money, a facilitator and a node that fail in every way they can, a process that
 * dies and one that is restarted, a clock that goes on. Then everything comes to rest, and what each payer was told is
 * held against what moved on the chain, and that against the books.
 *
 * FIRE_SEED=<seed of a failure> makes the same choices again; how they interleave is up to the machine.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Hex, parseAbi } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { ServiceFailure } from '../../../../packages/core/src/words/failure.ts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { startTestChain } from '../chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { USDC } from '../x402.fixture.ts';
import { isDeep } from './depth.fixture.ts';
import { until } from './until.fixture.ts';
import type { NodeFault } from './x402-node.fixture.ts';
import { PRICE, type SettledBy, type Stage, setStage } from './x402-stage.fixture.ts';
import type { Told } from './x402-told.fixture.ts';

const PAYERS = 8;
/** In the first phase happens what takes one of our time-outs: each payer meets it once, and comes back later. */
const ACTS_IN_PHASE = [1, 4, 4];
const MAX_RESTING_ROUNDS = 12;
const REST_MS = 61_000;
/** After this the reconciler takes a call whose process has died. */
const CALL_LIFE_MS = 19_000;
const SHORTEST_VALIDITY_S = 20;
const SELF_MADE_VALIDITY_S = 180;
const LONGEST_VALIDITY_S = 300;
const NOBODY = '0x000000000000000000000000000000000000dEaD';
const SEND = 'eth_sendRawTransactionSync';
/** Selectors of `transferWithAuthorization`, with v, r and s and with one signature. */
const TRANSFER_SELECTORS = ['0xe3ee160e', '0xcf092995'];
const SENDING = [SEND, 'eth_sendRawTransaction'] as const;
const EVENTS = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
]);
const ASSET = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);

type Path = keyof typeof PRICE;
type Dice = ReturnType<typeof diceOf>;

/** The same throws for the same seed (mulberry32). */
function diceOf(seed: number) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    chance: (probability: number) => next() < probability,
    /** An integer, both ends included. */
    between: (least: number, most: number) => least + Math.floor(next() * (most - least + 1)),
    of<T>(choices: readonly T[]): T {
      const chosen = choices[Math.floor(next() * choices.length)];
      assert(chosen !== undefined, 'nothing to choose from');
      return chosen;
    },
    shuffled: <T>(cards: readonly T[]): T[] =>
      cards
        .map((card) => ({ card, at: next() }))
        .toSorted((a, b) => a.at - b.at)
        .map(({ card }) => card),
  };
}

// ------------------------------------------------------------------------------------------------- what goes wrong

const QUICK_FACILITATOR: readonly Record<string, unknown>[] = [
  { on: 'verify', fault: 'refuse', errorReason: 'invalid_exact_evm_insufficient_balance' },
  { on: 'verify', fault: 'throw-before-broadcast' },
  { on: 'verify', fault: 'drop-before' },
  { on: 'verify', fault: 'garbage' },
  { on: 'verify', fault: 'lie' },
  { on: 'verify', fault: 'late', delayMs: 400 },
  { on: 'settle', fault: 'refuse', errorReason: 'insufficient_funds' },
  { on: 'settle', fault: 'throw-after-broadcast' },
  { on: 'settle', fault: 'drop-after-broadcast' },
  { on: 'settle', fault: 'pending', broadcast: true },
  { on: 'settle', fault: 'late', delayMs: 600 },
];
/** We wait for up to 16 s before we say that we do not know. */
const SLOW_FACILITATOR: readonly Record<string, unknown>[] = [
  { on: 'verify', fault: 'never', broadcast: false },
  { on: 'settle', fault: 'throw-before-broadcast' },
  { on: 'settle', fault: 'drop-before' },
  { on: 'settle', fault: 'garbage' },
  { on: 'settle', fault: 'lie' },
  { on: 'settle', fault: 'pending', broadcast: false },
  { on: 'settle', fault: 'never', broadcast: false },
  { on: 'settle', fault: 'never', broadcast: true },
];
const ASKED_OF_NODE = [
  'eth_call',
  'eth_getBlockByNumber',
  'eth_getLogs',
  'eth_getTransactionReceipt',
  'eth_getTransactionCount',
];
const QUICK_NODE: readonly [string, NodeFault][] = [
  ...ASKED_OF_NODE.flatMap((method): [string, NodeFault][] => [
    [method, 'request lost'],
    [method, 'reply lost'],
    [method, 300],
  ]),
  [SEND, 'reply lost'],
  [SEND, 700],
  ...SENDING.flatMap((method): [string, NodeFault][] => [
    // It has passed the transaction on, or it has not; it says the same.
    [method, { did: true, says: { error: { code: -32_000, message: 'already known' } } }],
    [method, { did: false, says: { error: { code: -32_000, message: 'already known' } } }],
    [method, { did: true, says: { error: { code: -32_003, message: 'transaction rejected' } } }],
    [method, { did: true, says: { error: { code: -32_000, message: 'internal error' } } }],
  ]),
];
const SLOW_NODE: readonly [string, NodeFault][] = [
  [SEND, 'request lost'],
  [SEND, 'no answer'],
  [SEND, 'reply held'],
  ['eth_call', 'no answer'],
];

// ------------------------------------------------------------------------------------------------------ the payers

const ACTS = [
  'buy',
  'buy',
  'buy',
  'many',
  'transfer',
  'again',
  'again',
  'hang up',
  'poor',
  'self',
  'both',
] as const;

interface Payment {
  path: Path;
  header: string;
  /** How the chain knows it: `<payer>:<nonce>` of an authorization, the hash of a transfer. */
  mark: string;
  /** A transfer, or an authorization that its payer sends to the chain by itself. */
  isSelfMade: boolean;
  told: Told[];
  /** Requests that may still do something. */
  open: number;
  /** Told to pay again, by an answer after which nothing of this payment was on its way. */
  isRefused: boolean;
}

class Payer {
  readonly #stage: Stage;
  readonly #dice: Dice;
  readonly #wallet: PrivateKeyAccount;
  readonly payments: Payment[] = [];

  constructor(stage: Stage, dice: Dice, wallet: PrivateKeyAccount) {
    this.#stage = stage;
    this.#dice = dice;
    this.#wallet = wallet;
  }

  async #pay(aheadMs: number, how: 'signed' | 'transfer' | 'self' = 'signed'): Promise<Payment> {
    const [stage, dice, wallet] = [this.#stage, this.#dice, this.#wallet];
    const path = dice.of(['nickel', 'nickel', 'deed'] as const);
    const common = { path, told: [], open: 0, isRefused: false, isSelfMade: how !== 'signed' };
    let payment: Payment;
    if (how === 'transfer') {
      const hash = await stage.transfer(wallet, stage.recipient, PRICE[path]);
      payment = { ...common, header: hash, mark: hash.toLowerCase() };
    } else {
      const signed = await stage.sign(wallet, {
        valueUnits: PRICE[path],
        validForSeconds:
          Math.ceil(aheadMs / 1_000) +
          dice.between(how === 'self' ? SELF_MADE_VALIDITY_S : SHORTEST_VALIDITY_S, LONGEST_VALIDITY_S),
      });
      const { from, nonce } = signed.authorization;
      payment = {
        ...common,
        header: await stage.header(signed, path),
        mark: `${from}:${nonce}`.toLowerCase(),
      };
    }
    this.payments.push(payment);
    return payment;
  }

  /** Presents it, and keeps what is told; null when nobody heard. */
  async present(
    payment: Payment,
    name = 'a',
    on = this.#replica(),
    signal?: AbortSignal,
  ): Promise<Told | null> {
    payment.isRefused = false;
    payment.open += 1;
    let told: Told;
    try {
      const asking = { path: payment.path, body: { name }, on, ...(signal === undefined ? {} : { signal }) };
      told = await this.#stage.present(payment.header, asking);
    } catch {
      // The server may go on with it: it stays open until the phase ends.
      return null;
    }
    payment.open -= 1;
    payment.told.push(told);
    payment.isRefused = told.status === 402 && payment.open === 0;
    return told;
  }

  #replica() {
    return this.#dice.chance(0.5) ? this.#stage.here : this.#stage.there;
  }

  async act(aheadMs: number, others: readonly Payment[], isSlow: boolean): Promise<void> {
    const [stage, dice] = [this.#stage, this.#dice];
    switch (isSlow ? dice.of(['once', 'once', 'many'] as const) : dice.of(ACTS)) {
      case 'once':
        await this.present(await this.#pay(aheadMs));
        return;
      case 'buy': {
        const payment = await this.#pay(aheadMs);
        const told = await this.present(payment);
        if (told?.status !== 200 && dice.chance(0.5)) await this.present(payment);
        return;
      }
      case 'many': {
        const payment = await this.#pay(aheadMs);
        await Promise.all(Array.from({ length: dice.between(2, 6) }, () => this.present(payment)));
        return;
      }
      case 'transfer': {
        const payment = await this.#pay(aheadMs, 'transfer');
        await stage.chain.client.mine({ blocks: 1 });
        await Promise.all(Array.from({ length: dice.between(1, 3) }, () => this.present(payment)));
        return;
      }
      case 'again':
        if (others.length > 0) await this.present(dice.of(others), dice.of(['a', 'a', 'b']));
        return;
      case 'hang up': {
        const payment = await this.#pay(aheadMs);
        await this.present(payment, 'a', this.#replica(), AbortSignal.timeout(dice.between(5, 400)));
        if (dice.chance(0.5)) await this.present(payment);
        return;
      }
      case 'poor': {
        const payment = await this.#pay(aheadMs);
        const asked = this.present(payment);
        await sleep(dice.between(0, 150));
        await stage
          .transfer(this.#wallet, NOBODY, await stage.balanceOf(this.#wallet.address))
          .catch(() => {});
        await asked;
        if (dice.chance(0.3)) await this.present(payment);
        await fund(stage.chain.url, this.#wallet.address, { usdcMicros: 3_000_000n, ethWei: 0n });
        if (dice.chance(0.5)) await this.present(payment);
        return;
      }
      case 'self': {
        const payment = await this.#pay(aheadMs, 'self');
        const asked = dice.chance(0.5) ? this.present(payment) : null;
        await this.#settleBySelf(payment);
        await asked;
        await this.present(payment);
        return;
      }
      case 'both': {
        const payment = await this.#pay(aheadMs);
        await Promise.all([this.present(payment, 'a'), this.present(payment, 'b')]);
        return;
      }
    }
  }

  /** Sends the authorization to the chain itself; in vain when somebody was faster. */
  async #settleBySelf(payment: Payment): Promise<void> {
    const { payload }: { payload: Awaited<ReturnType<Stage['sign']>> } = JSON.parse(
      Buffer.from(payment.header, 'base64').toString('utf8'),
    );
    const { from, to, value, validAfter, validBefore, nonce } = payload.authorization;
    const { client } = this.#stage.chain;
    try {
      const hash = await client.writeContract({
        account: this.#wallet,
        address: USDC,
        abi: ASSET,
        functionName: 'transferWithAuthorization',
        args: [
          from as Hex,
          to as Hex,
          BigInt(value),
          BigInt(validAfter),
          BigInt(validBefore),
          nonce as Hex,
          payload.signature,
        ],
        gas: 150_000n,
      });
      await client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
    } catch {
      // Its wallet may be empty, or the authorization used.
    }
  }
}

// ------------------------------------------------------------------------------------------------------- the fire

let home: TestDatabase;
before(async () => {
  home = await openTestDatabase();
  process.env.TEST_DATABASE_URL ??= home.url;
});
after(() => home?.close());

/** Fires of each kind, one after another. */
const FIRES = isDeep ? 200 : 1;

describe('whatever happens, each payment buys one answer or comes back', { concurrency: 2 }, () => {
  for (const settledBy of ['facilitator', 'own settler'] as const) {
    test(settledBy, async (t) => {
      for (let fire = 0; fire < FIRES; fire += 1) await burn(settledBy, t);
    });
  }
});

async function burn(settledBy: SettledBy, t: TestContext): Promise<void> {
  const seed = Number(process.env.FIRE_SEED ?? randomInt(2 ** 31));
  t.diagnostic(`FIRE_SEED=${seed}`);
  const dice = diceOf(seed);
  const chain = await startTestChain();
  const stage = await setStage({ chain, settledBy });
  let aheadMs = 0;
  /** Clocks go on: the chain's and the replicas'. */
  async function pass(ms: number): Promise<void> {
    await chain.client.increaseTime({ seconds: Math.ceil(ms / 1_000) });
    await chain.client.mine({ blocks: 1 });
    stage.later(ms);
    aheadMs += ms;
  }
  async function jobs(on = stage.here): Promise<void> {
    await stage.resume(on);
    await on.app.reconciler.run();
    await on.app.settlementFinisher.run();
  }
  async function clearFaults(): Promise<void> {
    stage.node.mend();
    await fetch(`${stage.facilitatorUrl}/__control`, { method: 'DELETE' });
    stage.script.during = async () => {};
  }

  try {
    const refundsBefore = await stage.balanceOf(stage.refunds);
    const payers: Payer[] = [];
    for (let count = 0; count < PAYERS; count += 1)
      payers.push(new Payer(stage, diceOf(dice.between(0, 2 ** 31)), await stage.wallet()));
    const payments = () => payers.flatMap((payer) => payer.payments);

    for (let phase = 0; phase < ACTS_IN_PHASE.length; phase += 1) {
      const isSlow = phase === 0;
      await setFire(stage, dice, isSlow);
      const shared = payments();
      let acting = true;
      const acts = payers.map(async (payer) => {
        for (let count = 0; count < (ACTS_IN_PHASE[phase] ?? 0); count += 1)
          await payer.act(aheadMs, shared, isSlow);
      });
      const meanwhile = (async () => {
        await sleep(dice.between(50, 500));
        if (isSlow || dice.chance(0.5)) await stage.crash();
        // Whoever waits for a call of the dead need not wait longer.
        await pass(CALL_LIFE_MS);
        for (let round = 0; acting; round += 1) {
          // Together with the first time less than the lease of a settlement that goes on.
          if (!isSlow && round === 8) await pass(CALL_LIFE_MS);
          await jobs(stage.there).catch(() => {});
          await sleep(200);
        }
      })();
      const ended = await Promise.allSettled(acts);
      acting = false;
      await meanwhile;
      for (const each of ended) if (each.status === 'rejected') throw each.reason;
      await until(
        'the last calls to end',
        () => stage.here.app.paidCall.running + stage.there.app.paidCall.running === 0,
      );
      for (const payment of payments()) payment.open = 0;
      await clearFaults();
      if (dice.chance(0.5)) await stage.restart();
      await pass(CALL_LIFE_MS);
      await Promise.all([jobs(stage.here), jobs(stage.there)]);
      const moved = await movements(stage);
      // Whoever sent the money without us comes while the authorization is good.
      for (const payer of payers)
        for (const payment of payer.payments)
          if (payment.isSelfMade && moved.has(payment.mark) && !isEnded(payment))
            await payer.present(payment);
      await pass(dice.of([1_000, 20_000, 50_000]));
      await Promise.all([jobs(stage.here), jobs(stage.there)]);
    }
    await rest();
    // Only what has moved by now ever will.
    await pass((LONGEST_VALIDITY_S + 60) * 1_000);
    await rest();
    const moved = await movements(stage);
    await Promise.all(
      payers.map(async (payer) => {
        for (const payment of payer.payments) await judge(stage, payer, payment, moved.has(payment.mark));
      }),
    );
    await rest();
    await compare(stage, refundsBefore);
    const seen: Record<string, number> = { payments: payments().length, moved: moved.size };
    for (const { text } of payments().flatMap(({ told }) => told)) seen[text] = (seen[text] ?? 0) + 1;
    t.diagnostic(JSON.stringify(seen));
    // A fire that burns nothing proves nothing.
    const unknown = payments().flatMap(({ told }) => told.filter(({ status }) => status === 503));
    assert(moved.size >= 20 && unknown.length >= 5, JSON.stringify(seen));
  } finally {
    await stage.close();
    await chain.stop();
  }

  /** Lets the jobs finish what they can, until every payment is decided. */
  async function rest(): Promise<void> {
    await clearFaults();
    let left = 1;
    for (let round = 0; left > 0; round += 1) {
      assert(round < MAX_RESTING_ROUNDS, `${left} calls or refunds never came to their end`);
      await pass(REST_MS);
      await jobs();
      const [row] = await stage.database.sql<{ left: number }[]>`
        select (select count(*) from calls where state in (0, 3))::integer
             + (select count(*) from refunds where state = 0)::integer as left`;
      left = row?.left ?? 0;
    }
  }
}

/** A node that says of every payment that it would pass, and finds out otherwise when it is sent. */
function saysThatAllPass(method: string, [call]: unknown[]): unknown {
  const { data } = (call ?? {}) as { data?: unknown };
  if (method !== 'eth_call' || typeof data !== 'string') return undefined;
  return TRANSFER_SELECTORS.some((selector) => data.startsWith(selector)) ? '0x' : undefined;
}

/** Orders what goes wrong in a phase, and lets the services fail now and then. */
async function setFire(stage: Stage, dice: Dice, isSlow: boolean): Promise<void> {
  const some = <T>(faults: readonly T[], count: number) => dice.shuffled(faults).slice(0, count);
  if (stage.settledBy === 'facilitator') {
    const faults = isSlow
      ? [...some(SLOW_FACILITATOR, 4), ...some(QUICK_FACILITATOR, 2)]
      : some(QUICK_FACILITATOR, 8);
    await stage.facilitatorFaults(dice.shuffled(faults));
  }
  const befalls = isSlow ? [...SLOW_NODE, ...some(QUICK_NODE, 2)] : some(QUICK_NODE, 12);
  for (const [method, fault] of dice.shuffled(befalls)) stage.node.next(method, fault);
  if (dice.chance(0.5)) stage.node.answerWith(saysThatAllPass);
  stage.script.during = async () => {
    if (dice.chance(0.3)) await sleep(dice.between(20, 300));
    if (dice.chance(0.15))
      throw new ServiceFailure({ status: 503, code: 'SOURCE_DOWN', message: 'The source is down.' });
    if (dice.chance(0.05)) throw new Error('something of its own');
  };
}

// ------------------------------------------------------------------------------------------------------ the verdict

/** Every movement of money to the recipient, by the mark of its payment, as the chain's own logs tell. */
async function movements({ chain, recipient }: Stage): Promise<Map<string, bigint>> {
  const [transfers, used] = await Promise.all([
    chain.client.getLogs({ address: USDC, event: EVENTS[0], args: { to: recipient }, fromBlock: 0n }),
    chain.client.getLogs({ address: USDC, event: EVENTS[1], fromBlock: 0n }),
  ]);
  const marks = new Map(
    used.map(({ transactionHash, args }) => [
      transactionHash,
      `${args.authorizer}:${args.nonce}`.toLowerCase(),
    ]),
  );
  const moved = new Map<string, bigint>();
  for (const { transactionHash, args } of transfers) {
    const mark = marks.get(transactionHash) ?? transactionHash.toLowerCase();
    assert(!moved.has(mark), `${mark} moved money twice`);
    moved.set(mark, args.value ?? 0n);
  }
  return moved;
}

/** Takes the request's id out of an answer: a refund's names the request that asks; a bought answer is repeated byte for byte, and names none. */
const withoutRequestId = (body: string) => body.replace(/"requestId":"[^"]*"/, '');

const isEnded = ({ told }: Payment) => told.some(({ status }) => status === 200 || status === 410);

/** Whether the payer got what it paid for, and only that. Everything is at rest, and every authorization is over. */
async function judge(stage: Stage, payer: Payer, payment: Payment, hasMoved: boolean): Promise<void> {
  const about = `${payment.isSelfMade ? 'self-made ' : ''}payment ${payment.mark} for ${payment.path}`;
  assert(
    !(hasMoved && payment.isRefused && !payment.isSelfMade),
    `${about}: its payer was told to pay again, never came back, and has paid`,
  );
  const asked = async (name: string, on = stage.here) => {
    const told = await payer.present(payment, name, on);
    assert(told !== null, `${about}: nobody answered`);
    return told;
  };
  const [a, b] = [await asked('a'), await asked('b', stage.there)];
  const said = () => `${about}: ${payment.told.map(({ text }) => text).join(', ')}`;
  if (hasMoved) {
    const [mine, others] = a.status === 409 ? [b, a] : [a, b];
    assert.equal(others.status, 409, said());
    assert([200, 410].includes(mine.status), said());
    await asked(mine === a ? 'a' : 'b', stage.there);
    const answers = payment.told.filter(({ status }) => status === 200 || status === 410);
    assert.equal(
      new Set(answers.map(({ status, body }) => `${status} ${withoutRequestId(body)}`)).size,
      1,
      said(),
    );
  } else {
    assert.deepEqual([a.status, b.status, isEnded(payment)], [402, 402, false], said());
  }
  for (const told of payment.told) await stage.assertProper(told);
}

/** The chain against the books. */
async function compare(stage: Stage, refundsBefore: bigint): Promise<void> {
  const { sql } = stage.database;
  const [refunds] = await sql<{ paid: number; micros: bigint }[]>`
    select count(*)::integer as paid, coalesce(sum(amount_micros), 0)::bigint as micros from refunds where state = 1`;
  assert(refunds !== undefined);
  const sent = await stage.chain.client.getLogs({
    address: USDC,
    event: EVENTS[0],
    args: { from: stage.refunds },
    fromBlock: 0n,
  });
  assert.equal(sent.length, refunds.paid, 'refunds on the chain');
  const refunded = refundsBefore - (await stage.balanceOf(stage.refunds));
  const received = await stage.moved();
  const { capturedMicros, ...calls } = await stage.calls();
  assert.deepEqual([calls.open, calls.withChain], [0, 0]);
  assert.equal(received - refunded, capturedMicros - refunds.micros, 'what moved is not what was sold');
  assert.equal(refunded, refunds.micros, 'what was sent back is not what was owed');
  const [twice] = await sql`
    select payment_key from calls where state = 1 group by payment_key having count(*) > 1`;
  assert.equal(twice, undefined, 'a payment bought two calls');
  await stage.assertBooksBalance();

  const audit = await stage.audit();
  assert.deepEqual([audit.findings, audit.unmatched], [[], []]);
  assert.equal(
    audit.received.reduce((sum, { units }) => sum + units, 0n),
    received,
    'the audit counted something else',
  );
}
