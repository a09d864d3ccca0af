import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secretsOf } from '../../secrets/secrets.ts';
import { x402Door } from '../door.ts';
import { type Chains, type ChainVerdict, type OnChainPayment, PaymentRefused } from '../rail.ts';
import { CALL, SERVICE, saleOf, storeThat } from '../sale.fixture.ts';
import { createAnswerSeal } from '../sealed-answer.ts';
import type { Settlement } from '../settlements.ts';
import { Answers } from './answers.ts';
import type { CallToKeep, FinishOutcome, StoredAnswer } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import { OnChainSales } from './on-chain.ts';
import { Reservations } from './reservations.ts';

const AT = { transaction: '0xaa', blockNumber: 7n };
const PAYMENT: OnChainPayment = {
  identity: 'eip155:8453:0xa:0xb:0x1',
  network: 'eip155:8453',
  asset: '0xa',
  payer: '0xb',
  payTo: '0xc',
  amountUnits: 50_000n,
  deadAfterMs: 60_000,
  evidence: {},
};
const SETTLED: ChainVerdict = { status: 'settled', ...AT };
const REFUSED: ChainVerdict = {
  status: 'refused',
  refusal: new PaymentRefused('NO_FUNDS', 'none', 'fund it'),
};
const DEAD: ChainVerdict = { status: 'dead', refusal: new PaymentRefused('TOO_LATE', 'late', 'sign again') };
const DONE: FinishOutcome = { status: 'done', availableMicros: 0n };
const MADE = { headers: { 'content-type': 'application/json' }, body: '{"it":"is mine"}' };
const KEPT = { status: 200, headers: MADE.headers, body: '{"it":"came first"}', transaction: '0xaa' };

const answering = (verdict: ChainVerdict): Chains => ({
  verify: () => Promise.resolve(),
  balanceOf: () => Promise.resolve(0n),
  settle: () => Promise.resolve(verdict),
  look: () => Promise.resolve(verdict),
  finality: () => Promise.resolve('final'),
  canRefund: () => true,
  canEverRefund: () => true,
  refund: () => Promise.resolve(null),
});

/** A sale whose payment was kept, and what was written of it. */
function stage(how: {
  says: ChainVerdict;
  kept?: (StoredAnswer & { transaction: string | null }) | null;
  runs?: () => Promise<typeof MADE>;
  keep?: CallStore['keep'];
}) {
  const marks: string[] = [];
  const { calls: told, finished } = storeThat(DONE, how.kept ?? null);
  const calls = { ...told, keep: how.keep ?? told.keep };
  const receiptsUrl = 'http://localhost/receipts/';
  const nowMs = () => 0;
  const mark = (what: string) => () => {
    marks.push(what);
    return Promise.resolve();
  };
  const settlements = {
    lease: () => Promise.resolve(null),
    later: mark('later'),
    markRefused: mark('refused'),
    markSettled: mark('settled'),
  };
  const undelivered = () => {};
  const door = x402Door(() => ({ answer: () => assert.fail('nothing is asked for here') }));
  const sales = new OnChainSales({
    calls,
    settlements,
    answers: new Answers({ calls, seal: createAnswerSeal(secretsOf(['s'])), door, receiptsUrl, undelivered }),
    reservations: new Reservations({ calls, settlements, receiptsUrl, nowMs, undelivered }),
    runner: { beforeSettling: () => Promise.resolve(), run: how.runs ?? (() => Promise.resolve(MADE)) },
    streams: { sell: () => assert.fail('nothing streams here') },
    receiptsUrl,
    refundAfterMs: 900_000,
    nowMs,
  });
  const sale = saleOf({ identity: PAYMENT.identity, onChain: PAYMENT, chains: answering(how.says) });
  return { sales, sale, marks, finished };
}

const settlementOf = (more: Partial<Settlement>): Settlement => ({
  accountId: CALL.accountId,
  bucket: 0,
  callId: CALL.id,
  service: SERVICE.path,
  priceMicros: CALL.priceMicros,
  revenue: CALL.revenue,
  rail: 'x402',
  payment: PAYMENT,
  captured: false,
  answered: false,
  state: 'with_chain',
  transaction: null,
  blockNumber: null,
  attempts: 0,
  missed: 0,
  createdAtMs: 0,
  ...more,
});

/** The keep of a sale whose chain is this one, and the money of which nobody moves. */
async function keepOf(chains: Partial<Chains>, isKnownPayer = true): Promise<CallToKeep> {
  const keeps: CallToKeep[] = [];
  const { sales, sale } = stage({
    says: { status: 'unknown' },
    keep: (call) => {
      keeps.push(call);
      return Promise.resolve({ status: 'not_open' });
    },
  });
  Object.assign(sale.rail.chains ?? {}, chains);
  await assert.rejects(sales.sell(sale, CALL, PAYMENT, isKnownPayer), { code: 'TOOK_TOO_LONG' });
  const [kept] = keeps;
  assert(kept !== undefined);
  return kept;
}

test('a keep may be lost only with its answer, where the commit that moves the money asks for it', async () => {
  assert.equal((await keepOf({ asksIfKept: () => true })).mayBeLost, true);
  assert.equal((await keepOf({ asksIfKept: () => false })).mayBeLost, false);
  assert.equal((await keepOf({})).mayBeLost, false);
  const settlesFirst = await keepOf({ asksIfKept: () => true }, false);
  assert.deepEqual([settlesFirst.answer, settlesFirst.mayBeLost], [null, false]);
});

test('a payment has one answer: a process whose answer came second delivers the one that was stored first', async () => {
  const { sales, sale, finished } = stage({ says: SETTLED, kept: KEPT });
  const answer = await sales.proceed(sale, settlementOf({}));
  assert.deepEqual([answer.body, answer.headers['idempotent-replayed']], ['{"it":"came first"}', 'true']);
  assert.deepEqual(
    finished.map(({ capture, settled }) => [capture, settled]),
    [[true, AT]],
  );
});

test('a process whose own answer was stored delivers it for the first time', async () => {
  for (const kept of [{ ...KEPT, body: MADE.body }, null]) {
    const { sales, sale, marks } = stage({ says: SETTLED, kept });
    const answer = await sales.proceed(sale, settlementOf({}));
    assert.deepEqual([answer.body, answer.headers['idempotent-replayed']], [MADE.body, undefined]);
    assert.equal(answer.headers['x-transaction'], AT.transaction);
    assert.deepEqual([sale.money.fate, marks], ['taken', ['settled']]);
  }
});

test('money that moved before is not moved again: a settlement that stands as settled asks no chain', async () => {
  const { sales, sale } = stage({ says: { status: 'unknown' } });
  const answer = await sales.proceed(sale, settlementOf({ state: 'settled', ...AT }));
  assert.equal(answer.body, MADE.body);
});

test('what a chain says decides what is told of the money', async () => {
  const attempts = 1;
  const cases: [ChainVerdict, Partial<Settlement>, code: string, fate: string, marks: string[]][] = [
    [REFUSED, {}, 'NO_FUNDS', 'free', ['refused']],
    // An earlier attempt may still reach the chain.
    [REFUSED, { attempts }, 'SETTLEMENT_UNKNOWN', 'open', ['later']],
    [DEAD, { attempts }, 'TOO_LATE', 'free', []],
    [{ status: 'unknown' }, {}, 'SETTLEMENT_UNKNOWN', 'open', ['later']],
    [{ status: 'open' }, {}, 'SETTLEMENT_UNKNOWN', 'open', ['later']],
  ];
  for (const [says, how, code, fate, expected] of cases) {
    const { sales, sale, marks, finished } = stage({ says });
    sale.money.fate = 'taken';
    await assert.rejects(sales.proceed(sale, settlementOf(how)), { code });
    assert.deepEqual([sale.money.fate, marks], [fate, expected]);
    const ends: unknown[] = says === DEAD ? [[false, 'TOO_LATE', null]] : [];
    assert.deepEqual(
      finished.map(({ capture, outcome, settled }) => [capture, outcome, settled]),
      ends,
    );
  }
});

test('a service that fails after the money has moved leaves the payment to be tried again, and names its refund', async () => {
  const { sales, sale, marks, finished } = stage({
    says: SETTLED,
    runs: () => Promise.reject(new Error('it broke')),
  });
  const refund = { dueAt: '1970-01-01T00:15:00.000Z', receipt: `http://localhost/receipts/${CALL.id}` };
  await assert.rejects(sales.proceed(sale, settlementOf({})), (error: { details?: { refund?: unknown } }) => {
    assert.deepEqual(error.details?.refund, refund);
    return true;
  });
  assert.deepEqual([sale.money.fate, marks, finished], ['taken', ['settled', 'later'], []]);
});
