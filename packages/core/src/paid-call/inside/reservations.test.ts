import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../http/problem.ts';
import { CALL, saleOf, storeThat } from '../sale.fixture.ts';
import type { FinishOutcome, PricedCall } from './call-steps.ts';
import { CallerGone } from './outcome.ts';
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
