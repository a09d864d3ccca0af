/**
 * The harness of the fault tables: a fault is a row, and a rail is a stage that rows are played on. A row says what the
 * payer holds after each request, how often the service ran, how much money moved, and what the books say once all is at
 * rest. Rows that every rail must pass stand here; those of one rail beside it.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceFailure } from '../../../../packages/core/src/words/failure.ts';
import type { TestServer } from '../server.fixture.ts';
import { until } from './until.fixture.ts';
import type { NodeWire } from './x402-node.fixture.ts';

/** The answer that the payer holds after one request. */
export interface Told {
  status: number;
  /** `200`, `200 again` for a stored answer, or the status and the machine-readable reason. */
  text: string;
  body: string;
  headers: Headers;
}

export interface Asking {
  path?: string;
  body?: Record<string, unknown> | string;
  on?: TestServer;
  signal?: AbortSignal;
  /** How it gets there, when it is not sent to the address of the service as it stands. */
  send?: typeof fetch;
}

/** A shop of its own: a database, two replicas, and one way to pay. `Payer` is who holds the money there. */
export interface FaultStage<Payer> {
  /** The replica that may be restarted, and the one that stays. */
  readonly here: TestServer;
  readonly there: TestServer;
  /** The service's script; a row may make it fail or wait. `runs` counts from the row's beginning. */
  readonly script: { runs: number; during(run: number): Promise<void> };
  /** Somebody new with money. */
  wallet(usd?: number): Promise<Payer>;
  /** A payment of theirs, as it is presented. */
  pay(payer: Payer, path?: string): Promise<string>;
  present(payment: string, asking?: Asking): Promise<Told>;
  /** A new process on the same database. */
  restart(more?: Record<string, string>): Promise<void>;
  /** Lets the jobs do what is left to do. */
  rest(): Promise<void>;
  priceOf(path: string): bigint;
  /** The income since the row began, in millionths of a dollar. */
  moved(): Promise<bigint>;
  /** The sum that went back to payers since we exist; absent where nothing does. */
  sentBack?(): Promise<bigint>;
  /** The payer's balance. */
  held(payer: Payer): Promise<bigint>;
  /** The row's calls in each state, and what the captured ones cost. */
  calls(): Promise<Calls & { capturedMicros: bigint }>;
  /** The receipt in an answer, which tells where the money moved. */
  receiptOf(told: Told): string | null;
  /** Asserts what must hold of every answer, whatever happened. */
  assertProper(told: Told): Promise<void> | void;
  assertBooksBalance(): Promise<void>;
  /** Undoes what a row did to the shop, and counts from here. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** A stage whose money a chain moves. */
export interface ChainStage<Payer> extends FaultStage<Payer> {
  readonly node: NodeWire;
  /** The environment that makes it pay somebody else from the next start on. */
  readonly otherRecipient: Record<string, string>;
  /** The environment in which it reaches nobody but the node who could settle. */
  readonly nobodyElse: Record<string, string>;
}

interface Calls {
  open: number;
  captured: number;
  released: number;
  withChain: number;
}

export interface Row<Stage extends FaultStage<Payer>, Payer, Variant extends string = never> {
  fault: string;
  /** The one way to settle that it is about; absent: each. */
  only?: Variant;
  service?: string;
  /** It sits out a time-out of ours, so it starts with the first. */
  waits?: boolean;
  /** Very many requests come at once. */
  crowd?: true;
  /** It is played on a stage, or on a chain, that nobody else has before or after. */
  alone?: 'stage' | 'chain';
  /** It lets the process believe that it is later. */
  setsClock?: true;
  /** The money that is put into the wallet before it pays; 5 USD unless said otherwise. */
  usd?: number;
  /** The payment; the stage's usual one unless said otherwise. */
  pay?(stage: Stage, payer: Payer): Promise<string>;
  /** Does something to the shop before the payer comes. */
  given?(stage: Stage, payer: Payer): Promise<void> | void;
  /** Plays the payer, and returns all that it is told, in order. Presents its payment once unless said otherwise. */
  play?(stage: Stage, payment: string, payer: Payer): Promise<readonly Told[]>;
  /** The answers, in order, as `text` of `Told`; `|` stands between what may be told. */
  told: readonly string[];
  /** The answer that the same payment gets once everything is at rest. */
  atRest: string;
  runs: number;
  /** How many prices have come to us. */
  paid: number;
  /** The base units that came and were too little to buy anything. */
  givenAway?: bigint;
  /** How many prices have gone back to the payer. */
  refunded?: number;
  /** Calls of the books; those not named are none. */
  books: Partial<Calls>;
}

export const ONE_SALE = { atRest: '200 again', runs: 1, paid: 1, books: { captured: 1 } } as const;
export const UNKNOWN = '503 SETTLEMENT_UNKNOWN';

/** Fails as a service does whose source does not answer. */
export async function fails(): Promise<void> {
  throw new ServiceFailure({ status: 503, code: 'SOURCE_DOWN', message: 'The source is down.' });
}

const inOrder = (told: readonly Told[]) => told.toSorted((a, b) => a.text.localeCompare(b.text));

/** So many copies of a payment at once, on two replicas. */
export async function copies<Payer>(
  stage: FaultStage<Payer>,
  payment: string,
  count: number,
  path?: string,
): Promise<Told[]> {
  const asked = Array.from({ length: count }, (_, i) =>
    stage.present(payment, {
      on: i % 2 === 0 ? stage.here : stage.there,
      ...(path === undefined ? {} : { path }),
    }),
  );
  return inOrder(await Promise.all(asked));
}

/** @param except the run that does not */
function firstRun<Payer>(stage: FaultStage<Payer>, does: () => Promise<void>): void {
  stage.script.during = (run) => (run === 1 ? does() : Promise.resolve());
}

/** The faults that any rail must stand, wherever its money is. */
export function rowsOfAnyRail<Stage extends FaultStage<Payer>, Payer>(): Row<Stage, Payer>[] {
  return [
    { fault: 'none', told: ['200'], ...ONE_SALE },
    {
      fault: '50 copies at once, on two replicas',
      crowd: true,
      play: (stage, payment) => copies(stage, payment, 50),
      told: ['200', ...Array.from({ length: 49 }, () => '200 again')],
      ...ONE_SALE,
    },
    {
      fault: 'the same payment again after success, on both replicas and after a restart',
      play: async (stage, payment) => {
        const told = [await stage.present(payment), await stage.present(payment)];
        told.push(await stage.present(payment, { on: stage.there }));
        await stage.restart();
        return [...told, await stage.present(payment)];
      },
      told: ['200', '200 again', '200 again', '200 again'],
      ...ONE_SALE,
    },
    {
      fault: 'the same payment for another body',
      play: async (stage, payment) => [
        await stage.present(payment),
        await stage.present(payment, { body: { name: 'b' } }),
      ],
      told: ['200', '409 IDEMPOTENCY_KEY_REUSED'],
      ...ONE_SALE,
    },
    {
      fault: 'the same payment for two bodies at once',
      play: async (stage, payment) => {
        const both = await Promise.all([
          stage.present(payment),
          stage.present(payment, { body: { name: 'b' }, on: stage.there }),
        ]);
        return both.toSorted((a, b) => a.status - b.status);
      },
      told: ['200', '409 IDEMPOTENCY_KEY_REUSED'],
      ...ONE_SALE,
      // Whichever came first: the row's last request is for the first body.
      atRest: '200 again|409 IDEMPOTENCY_KEY_REUSED',
    },
    {
      fault: 'the client hangs up while the service runs',
      play: async (stage, payment) => {
        const hold = Promise.withResolvers<void>();
        stage.script.during = () => hold.promise;
        const gone = new AbortController();
        const asked = stage.present(payment, { signal: gone.signal });
        await until('the service to run', () => stage.script.runs === 1);
        gone.abort();
        await assert.rejects(asked);
        hold.resolve();
        await until('the call to end', () => stage.here.app.paidCall.running === 0);
        return [];
      },
      told: [],
      ...ONE_SALE,
    },
    {
      fault: 'the service fails once',
      given: (stage) => firstRun(stage, fails),
      play: async (stage, payment) => [await stage.present(payment), await stage.present(payment)],
      told: ['503 SOURCE_DOWN', '200'],
      ...ONE_SALE,
      runs: 2,
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
      given: (stage) =>
        firstRun(stage, async () => {
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
      waits: true,
      given: (stage) => firstRun(stage, () => sleep(4_000)),
      told: ['503 DEADLINE_EXCEEDED'],
      atRest: '200',
      runs: 2,
      paid: 1,
      books: { captured: 1, released: 1 },
    },
    {
      fault: 'a body that does not fit',
      play: async (stage, payment) => [await stage.present(payment, { body: { name: 7 } })],
      told: ['400 INVALID_REQUEST'],
      atRest: '200',
      runs: 1,
      paid: 1,
      books: { captured: 1 },
    },
  ];
}

/** The faults that any rail must stand whose money a chain moves. */
export function rowsOfAnyChain<Stage extends ChainStage<Payer>, Payer>(): Row<Stage, Payer>[] {
  return [
    {
      fault: 'the same payment again while neither node nor facilitator answers, after a restart',
      play: async (stage, payment) => {
        const first = await stage.present(payment);
        stage.node.cut();
        await stage.restart(stage.nobodyElse);
        const again = await stage.present(payment);
        stage.node.mend();
        await stage.restart();
        return [first, again];
      },
      told: ['200', '200 again'],
      ...ONE_SALE,
    },
    {
      fault: 'the same payment again after the operator changed the recipient',
      play: async (stage, payment) => {
        const first = await stage.present(payment);
        await stage.restart(stage.otherRecipient);
        const again = await stage.present(payment);
        await stage.restart();
        return [first, again];
      },
      told: ['200', '200 again'],
      ...ONE_SALE,
    },
    {
      fault: 'the node is down',
      play: async (stage, payment) => {
        stage.node.cut();
        const told = await stage.present(payment);
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
      fault: 'the node goes down between verify and settle',
      waits: true,
      play: async (stage, payment) => {
        stage.script.during = async () => stage.node.cut();
        const told = await stage.present(payment);
        stage.node.mend();
        return [told];
      },
      told: [UNKNOWN],
      ...ONE_SALE,
    },
  ];
}

/**
 * Many payments at once, on two replicas, from a wallet that holds fewer prices: the service never runs more often than
 * the wallet can pay.
 */
export async function proveBeyondMeans<Payer>(
  stage: FaultStage<Payer>,
  { prices, payments }: { prices: number; payments: number },
): Promise<void> {
  const price = stage.priceOf('nickel');
  // Half of a price is left over, since a fee may be taken from the same money.
  const payer = await stage.wallet((Number(price) * (prices + 0.5)) / 1e6);
  const signed = await Promise.all(Array.from({ length: payments }, () => stage.pay(payer)));
  const told = await Promise.all(
    signed.map((payment, n) => stage.present(payment, { on: n % 2 === 0 ? stage.here : stage.there })),
  );
  const texts = told.map(({ text }) => text);
  assert.ok(
    stage.script.runs <= prices,
    `${stage.script.runs} runs for ${prices} prices: ${texts.join(', ')}`,
  );
  const sold = texts.filter((text) => text === '200').length;
  assert.ok(sold >= 1 && sold <= prices, texts.join(', '));
  for (const each of told) await stage.assertProper(each);
  await stage.rest();
  assert.equal(await stage.moved(), price * BigInt(sold));
  const { captured, open, withChain } = await stage.calls();
  assert.deepEqual({ captured, open, withChain }, { captured: sold, open: 0, withChain: 0 });
  await stage.assertBooksBalance();
}

/** Those that sit out a time-out of ours, which may wait beside each other; a crowd, which needs the machine; all others. */
export function byNeed<R extends { waits?: boolean; crowd?: boolean }>(
  rows: readonly R[],
): { waiting: R[]; busy: R[]; crowded: R[] } {
  return {
    waiting: rows.filter(({ waits }) => waits === true),
    busy: rows.filter(({ waits, crowd }) => waits !== true && crowd !== true),
    crowded: rows.filter(({ crowd }) => crowd === true),
  };
}

/** Plays a row, and holds what came of it to what the row says. */
export async function prove<Stage extends FaultStage<Payer>, Payer>(
  row: Row<Stage, Payer, string>,
  stage: Stage,
): Promise<void> {
  const path = row.service ?? 'nickel';
  const payer = await stage.wallet(row.usd ?? 5);
  const payment = await (row.pay?.(stage, payer) ?? stage.pay(payer, path));
  const [heldBefore, backBefore] = [await stage.held(payer), await stage.sentBack?.()];
  await row.given?.(stage, payer);
  const told = await (row.play?.(stage, payment, payer) ??
    stage.present(payment, { path }).then((only) => [only]));
  assert.deepEqual(
    told.map(({ text }, i) => (row.told[i]?.split('|').includes(text) ? row.told[i] : text)),
    row.told,
    [...told.map(({ body }) => body), ...stage.here.log.filter((line) => line.includes('"err"'))].join('\n'),
  );
  await stage.rest();
  const last = await stage.present(payment, { path });
  assert(row.atRest.split('|').includes(last.text), `at rest it gets ${last.text}: ${last.body}`);
  for (const each of [...told, last]) await stage.assertProper(each);
  // A payment has one answer, and one receipt, to the byte.
  const answers = [...told, last].filter(({ status }) => status === 200);
  assert(new Set(answers.map(({ body }) => body)).size <= 1, 'the same payment got two answers');
  const receipts = new Set(answers.map((answer) => stage.receiptOf(answer)));
  assert(receipts.size <= 1, 'the same payment got two receipts');

  const price = stage.priceOf(path);
  const bought = (await stage.moved()) - (row.givenAway ?? 0n);
  assert.equal(stage.script.runs, row.runs, 'runs of the service');
  assert.equal(bought, price * BigInt(row.paid), 'money moved');
  if (row.paid === 0 && row.runs === 0 && row.given === undefined)
    assert.equal(await stage.held(payer), heldBefore, 'the payer lost something');
  const back = await stage.sentBack?.();
  if (back !== undefined && backBefore !== undefined)
    assert.equal(back - backBefore, price * BigInt(row.refunded ?? 0), 'money sent back');
  const { capturedMicros, ...calls } = await stage.calls();
  assert.deepEqual(calls, { open: 0, captured: 0, released: 0, withChain: 0, ...row.books });
  assert.equal(capturedMicros, bought, 'what moved is not what was captured');
  await stage.assertBooksBalance();
}

/**
 * Stages that rows take turns on. Setting one up takes longer than most rows do, and what a row leaves behind is undone;
 * one on which a row failed, or left money with a chain, is not used again.
 */
export function stagePool<Stage extends FaultStage<Payer>, Payer>(
  set: (alone: Row<Stage, Payer>['alone']) => Promise<Stage>,
) {
  const idle: Stage[] = [];
  return {
    async prove(row: Row<Stage, Payer, string>): Promise<void> {
      const stage = (row.alone === undefined ? idle.pop() : undefined) ?? (await set(row.alone));
      let isAtRest = false;
      try {
        await stage.reset();
        await prove(row, stage);
        isAtRest = row.alone === undefined && row.books.withChain === undefined;
      } finally {
        if (isAtRest) idle.push(stage);
        else await stage.close();
      }
    },
    async close(): Promise<void> {
      await Promise.all(idle.splice(0).map((stage) => stage.close()));
    },
  };
}
