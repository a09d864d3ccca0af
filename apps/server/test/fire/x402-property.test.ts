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
import { createX402Rail } from '../../src/rails/x402/x402.ts';
import { ServiceFailure } from '../../src/services/failure.ts';
import { startTestChain } from '../chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { USDC } from '../x402.fixture.ts';
import { until } from './until.fixture.ts';
import type { NodeFault } from './x402-node.fixture.ts';
import { fund, PRICE, type SettledBy, type Stage, setStage, type Told } from './x402-stage.fixture.ts';

const PAYERS = 8;
/** In the first phase everything that takes one of our time-outs happens, at once. */
const PHASES = 4;
const ACTS_IN_PHASE = 3;
const MAX_RESTING_ROUNDS = 12;
const REST_MS = 61_000;
const SHORTEST_VALIDITY_S = 20;
const LONGEST_VALIDITY_S = 300;
const NOBODY = '0x000000000000000000000000000000000000dEaD';
const SEND = 'eth_sendRawTransactionSync';
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
];
const SLOW_NODE: readonly [string, NodeFault][] = [
  [SEND, 'request lost'],
  [SEND, 'no answer'],
  [SEND, 'reply held'],
  ['eth_call', 'no answer'],
];

// ------------------------------------------------------------------------------------------------------ the payers

interface Payment {
  path: Path;
  header: string;
  /** How the chain knows it: `<payer>:<nonce>` of an authorization, the hash of a transfer. */
  mark: string;
  isTransfer: boolean;
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

  async #pay(aheadMs: number, isTransfer: boolean): Promise<Payment> {
    const [stage, dice, wallet] = [this.#stage, this.#dice, this.#wallet];
    const path = dice.of(['nickel', 'nickel', 'deed'] as const);
    const common = { path, told: [], open: 0, isRefused: false, isTransfer };
    let payment: Payment;
    if (isTransfer) {
      const hash = await stage.transfer(wallet, stage.recipient, PRICE[path]);
      payment = { ...common, header: hash, mark: hash.toLowerCase() };
    } else {
      const signed = await stage.sign(wallet, {
        valueUnits: PRICE[path],
        validForSeconds:
          Math.ceil(aheadMs / 1_000) + dice.between(SHORTEST_VALIDITY_S, LONGEST_VALIDITY_S),
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
  async present(payment: Payment, name = 'a', on = this.#replica(), signal?: AbortSignal): Promise<Told | null> {
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

  async act(aheadMs: number, others: readonly Payment[]): Promise<void> {
    const [stage, dice] = [this.#stage, this.#dice];
    switch (dice.of(['buy', 'buy', 'buy', 'many', 'transfer', 'again', 'hang up', 'poor', 'self', 'both'] as const)) {
      case 'buy': {
        const payment = await this.#pay(aheadMs, false);
        const told = await this.present(payment);
        if (told?.status !== 200 && dice.chance(0.5)) await this.present(payment);
        return;
      }
      case 'many': {
        const payment = await this.#pay(aheadMs, false);
        await Promise.all(Array.from({ length: dice.between(2, 6) }, () => this.present(payment)));
        return;
      }
      case 'transfer': {
        const payment = await this.#pay(aheadMs, true);
        await stage.chain.client.mine({ blocks: 1 });
        await Promise.all(Array.from({ length: dice.between(1, 3) }, () => this.present(payment)));
        return;
      }
      case 'again':
        if (others.length > 0) await this.present(dice.of(others), dice.of(['a', 'a', 'b']));
        return;
      case 'hang up': {
        const payment = await this.#pay(aheadMs, false);
        await this.present(payment, 'a', this.#replica(), AbortSignal.timeout(dice.between(5, 400)));
        if (dice.chance(0.5)) await this.present(payment);
        return;
      }
      case 'poor': {
        const payment = await this.#pay(aheadMs, false);
        const asked = this.present(payment);
        await sleep(dice.between(0, 150));
        await stage.transfer(this.#wallet, NOBODY, await stage.balanceOf(this.#wallet.address)).catch(() => {});
        await asked;
        if (dice.chance(0.3)) await this.present(payment);
        await fund(stage.chain.url, this.#wallet.address, { usdcMicros: 3_000_000n, ethWei: 0n });
        if (dice.chance(0.5)) await this.present(payment);
        return;
      }
      case 'self': {
        const payment = await this.#pay(aheadMs, false);
        const asked = dice.chance(0.5) ? this.present(payment) : null;
        await this.#settleBySelf(payment);
        await asked;
        await this.present(payment);
        return;
      }
      case 'both': {
        const payment = await this.#pay(aheadMs, false);
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

describe('whatever happens, each payment buys one answer or comes back', { concurrency: 2 }, () => {
  for (const settledBy of ['facilitator', 'own settler'] as const)
    test(settledBy, (t) => burn(settledBy, t));
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

    for (let phase = 0; phase < PHASES; phase += 1) {
      const isSlow = phase === 0;
      await setFire(stage, dice, isSlow);
      const shared = payments();
      let acting = true;
      const acts = payers.map(async (payer) => {
        for (let count = 0; count < ACTS_IN_PHASE; count += 1) await payer.act(aheadMs, shared);
      });
      const meanwhile = (async () => {
        await sleep(dice.between(50, 500));
        if (isSlow || dice.chance(0.5)) await stage.crash();
        await pass(dice.between(1_000, 11_000));
        while (acting) {
          await jobs(stage.there).catch(() => {});
          await sleep(200);
        }
      })();
      await Promise.all(acts);
      acting = false;
      await meanwhile;
      await until('the last calls to end', () => stage.here.app.paidCall.running + stage.there.app.paidCall.running === 0);
      for (const payment of payments()) payment.open = 0;
      await clearFaults();
      // Whoever has sent the money itself must come before its authorization is over.
      for (const payment of await unanswered(payments()))
        if (dice.chance(0.3)) await payers[0]?.present(payment);
      if (dice.chance(0.5)) await stage.restart();
      await pass(dice.of([3_000, 20_000, 50_000, 70_000]));
      await Promise.all([jobs(stage.here), jobs(stage.there)]);
    }
    await rest();
    const moved = await movements(stage);
    for (const payer of payers)
      for (const payment of payer.payments) await judge(payer, payment, moved.has(payment.mark));
    await rest();
    const seen = await compare(stage, refundsBefore);
    const told = payments().flatMap((payment) => payment.told.map(({ text }) => text));
    const counts: Record<string, number> = {};
    for (const text of told) counts[text] = (counts[text] ?? 0) + 1;
    t.diagnostic(JSON.stringify({ payments: payments().length, ...seen, ...counts }));
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
