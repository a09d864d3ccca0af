import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../http/problem.ts';
import { NotBegun, QueueFull } from '../../ledger/group-commit.ts';
import type { EventStream, Service } from '../../service/define.ts';
import type { Chains, OnChainPayment, Quote } from '../rail.ts';
import { CALL, SERVICE, saleOf, storeThat } from '../sale.fixture.ts';
import type { Sale } from '../sale.ts';
import type { CallToBegin, FinishOutcome, PricedCall } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import { CallerGone } from './outcome.ts';
import { notBegun } from './refusal.ts';
import { Reservations } from './reservations.ts';

const ANSWER = { status: 200, headers: {}, body: '{"it":"is"}' };
const AT = { transaction: '0xaa', blockNumber: 7n };

function reservationsWith(ends: FinishOutcome | Error) {
  const undelivered: (PricedCall & { retrievable: boolean })[] = [];
  const { calls, finished } = storeThat(ends);
  const reservations = new Reservations({
    calls,
    settlements: { lease: () => Promise.resolve(null) },
    receiptsUrl: 'http://localhost/receipts/',
    nowMs: () => 0,
    undelivered: (call) => void undelivered.push(call),
  });
  return { reservations, undelivered, finished };
}

/** Reservations over a store that begins calls so, on a clock that reads as given and then stands. */
function beginning(begin: CallStore['begin'], timesMs: number[] = []) {
  const { calls, finished } = storeThat({ status: 'done', availableMicros: 0n });
  const reservations = new Reservations({
    calls: { ...calls, begin },
    settlements: { lease: () => Promise.resolve(null) },
    receiptsUrl: 'http://localhost/receipts/',
    nowMs: () => timesMs.shift() ?? 0,
    undelivered: () => {},
  });
  return { reservations, finished };
}

test('a ledger that breaks off has perhaps reserved: it is given back, and nothing was charged', async () => {
  const { reservations, finished } = beginning(() => Promise.reject(new Error('the connection broke')));
  const sale = saleOf({ identity: 'key:k-1' });
  await assert.rejects(reservations.begin(CALL, sale, null), { status: 503, code: 'LEDGER_UNAVAILABLE' });
  assert.equal(sale.money.fate, 'free');
  assert.deepEqual(finished, [{ ...CALL, capture: false, outcome: 'BEGIN_UNKNOWN', answer: null }]);
});

/** Whether the begin of a sale may be lost. */
async function mayBeLost(sale: Sale): Promise<boolean> {
  const begun: CallToBegin[] = [];
  const { reservations } = beginning(
    (call) => {
      begun.push(call);
      return Promise.resolve({ status: 'running' });
    },
    [0, 1_000_000],
  );
  await reservations.begin(CALL, sale, null);
  return begun[0]?.mayBeLost === true;
}

/** A sale of a service that differs from the plain one. */
const saleWith = (
  how: Parameters<typeof saleOf>[0],
  more: Partial<Service>,
  quoted: Partial<Quote> = {},
): Sale => {
  const sale = saleOf(how);
  return { ...sale, quote: { ...sale.quote, service: { ...SERVICE, ...more }, ...quoted } };
};

test('only the begin of a read may be lost, of which nothing leaves and for which no money moves before a later commit', async () => {
  const named = { identity: 'key:k-1' };
  const paid = {
    ...named,
    onChain: { movedBefore: true } as OnChainPayment,
    chains: { canRefund: () => true } as unknown as Chains,
  };
  const stream = { form: 'events', field: 'live', timeoutMs: 1, async *run() {} } as unknown as EventStream;
  const streamed = saleWith(named, { stream });
  for (const [what, sale, expected] of [
    ['a read with a key', saleOf(named), true],
    ['a read that costs money, with a key', saleWith(named, { costsMoney: true }), true],
    ['a read paid on a chain', saleOf(paid), true],
    ['a write', saleWith(named, { effect: 'write' }), false],
    ['a write paid on a chain', saleWith(paid, { effect: 'write' }), false],
    ['a read whose unknown payer settles first', saleWith(paid, { costsMoney: true }), false],
    ['what settles first by its terms', saleWith(named, {}, { settlesFirst: true }), false],
    ['a metered read', saleWith(named, { metered: {} as NonNullable<Service['metered']> }), false],
    ['a stream that was not asked for', streamed, true],
    [
      'a stream',
      {
        ...streamed,
        input: { live: true },
        request: { ...streamed.request, openStream: () => assert.fail() },
      },
      false,
    ],
  ] as const)
    assert.equal(await mayBeLost(sale), expected, what);
});

test('a call that had no turn has reserved nothing, and gives nothing back', async () => {
  for (const error of [new NotBegun('locked'), new NotBegun('not sent'), new QueueFull()]) {
    const { reservations, finished } = beginning(() => Promise.reject(error));
    await assert.rejects(reservations.begin(CALL, saleOf({ identity: null }), null), error);
    assert.deepEqual(finished, []);
  }
});

test('the same request that runs elsewhere for longer than it may is still running, and is not begun twice', async () => {
  let asked = 0;
  const begin = () => {
    asked += 1;
    return Promise.resolve({ status: 'running' } as const);
  };
  const { reservations } = beginning(begin, [0, 1_000_000]);
  const sale = saleOf({ identity: 'key:k-1' });
  const begun = await reservations.begin(CALL, sale, null);
  assert.deepEqual([begun, asked], [{ status: 'running' }, 1]);
  const refusal = await notBegun(sale, { status: 'running' });
  assert(refusal instanceof Problem);
  assert.deepEqual([refusal.status, refusal.code, sale.report.outcome], [503, 'STILL_RUNNING', 'conflict']);
});

test('an unknown end of a charge: who can ask again is told to, and who cannot is given the price back', async () => {
  for (const [identity, fate] of [
    [null, 'given back'],
    ['key:k-1', 'open'],
  ] as const) {
    const { reservations, undelivered } = reservationsWith(new Error('the connection broke'));
    const sale = saleOf({ identity });
    await assert.rejects(reservations.capture(sale, CALL, ANSWER), { status: 503, code: 'OUTCOME_UNKNOWN' });
    assert.equal(sale.money.fate, fate);
    assert.deepEqual(undelivered, [{ ...CALL, retrievable: identity !== null }]);
  }
});

test('an unknown end after a chain has moved the money gives nothing back, and names the transaction', async () => {
  const { reservations, undelivered } = reservationsWith(new Error('the connection broke'));
  const sale = saleOf({ identity: 'x402:1' });
  sale.money.fate = 'taken';
  await assert.rejects(reservations.capture(sale, CALL, ANSWER, AT), (error: unknown) => {
    assert(error instanceof Problem);
    assert.deepEqual([error.code, error.details.transaction], ['OUTCOME_UNKNOWN', '0xaa']);
    return true;
  });
  assert.deepEqual([sale.money.fate, undelivered], ['taken', []]);
});

test('a call that another process released was not charged, unless a chain has moved its money', async () => {
  for (const [settled, fate] of [
    [undefined, 'free'],
    [AT, 'open'],
  ] as const) {
    const { reservations } = reservationsWith({ status: 'not_open' });
    const sale = saleOf({ identity: null });
    sale.money.fate = 'taken';
    await assert.rejects(reservations.capture(sale, CALL, ANSWER, settled), { code: 'TOOK_TOO_LONG' });
    assert.equal(sale.money.fate, fate);
  }
});

test('a call that its follower withdrew, or cannot ask about, is released before it is charged', async () => {
  const asks: [() => Promise<boolean>, outcome: string, thrown: object][] = [
    [() => Promise.resolve(false), 'TAKEN_BACK', CallerGone],
    [() => Promise.reject(new Error('nobody is there')), 'FAILED', /nobody is there/],
  ];
  for (const [stillWanted, outcome, thrown] of asks) {
    const { reservations, finished } = reservationsWith({ status: 'done', availableMicros: 0n });
    const sale = saleOf({ identity: null });
    sale.money.fate = 'open';
    sale.request.follow = { verified() {}, stillWanted };
    await assert.rejects(reservations.assertWanted(sale, CALL), thrown);
    assert.equal(sale.money.fate, 'free');
    assert.deepEqual(finished, [{ ...CALL, capture: false, outcome, answer: null }]);
  }
});

test('what a call measured is taken of its price; nothing measured is a release, and its answer is not kept', async () => {
  for (const { takenMicros, end } of [
    {
      takenMicros: 7n,
      end: { ...CALL, takenMicros: 7n, capture: true, outcome: 'answered', answer: ANSWER },
    },
    { takenMicros: 0n, end: { ...CALL, capture: false, outcome: 'MEASURED_NOTHING', answer: null } },
  ]) {
    const { reservations, finished } = reservationsWith({ status: 'done', availableMicros: 3n });
    const sale = saleOf({ identity: 'key:k-1' });
    const captured = await reservations.capture(sale, { ...CALL, takenMicros }, ANSWER);
    assert.equal(captured.availableMicros, 3n);
    assert.deepEqual(finished, [end]);
  }
});

test('a release of nothing that is not heard, or came too late, leaves the answer free', async () => {
  for (const end of [new Error('the connection broke'), { status: 'not_open' } as const]) {
    const { reservations, undelivered } = reservationsWith(end);
    const sale = saleOf({ identity: null });
    const captured = await reservations.capture(sale, { ...CALL, takenMicros: 0n }, null);
    assert.deepEqual([captured.availableMicros, undelivered], [null, []]);
  }
});
