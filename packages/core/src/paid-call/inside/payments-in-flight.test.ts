/** What a payer has in flight counts against its balance, whoever begins its calls, and however they end. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { connectPools, endPools, type Pools } from '../../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import type { SettlementStore } from '../settlements.ts';
import type { BeginOutcome, CallToBegin, PaymentInFlight } from './call-steps.ts';
import { type CallStore, createCallStore } from './calls.ts';
import { createSettlementStore } from './settlement-store.ts';

const ACCOUNT = HOUSE_ACCOUNTS.chain_clearing;
const NETWORK = 'eip155:8453';
const ASSET = '0xaa';
const DAY_MS = 86_400_000;
const AT = { transaction: '0xbb', blockNumber: 7n };

let database: TestDatabase;
let elsewhere: Pools;
let stores: readonly [CallStore, CallStore];
let settlements: SettlementStore;
let nowMs = Date.parse('2026-11-21T10:00:00Z');
let payers = 0;

before(async () => {
  database = await openTestDatabase();
  elsewhere = connectPools(database.url, 4);
  const options = { nowMs: () => nowMs, answerTtlMs: DAY_MS };
  stores = [createCallStore(database, options), createCallStore(elsewhere, options)];
  settlements = createSettlementStore(database.sql, () => nowMs);
});
after(async () => {
  if (elsewhere !== undefined) await endPools(elsewhere, 1);
  await database?.close();
});

function newPayer(): string {
  payers += 1;
  return `0x${payers.toString(16).padStart(40, '0')}`;
}

interface Bought {
  call: CallToBegin & { inFlight: PaymentInFlight };
  outcome: BeginOutcome;
}

/** A payment of this many units by this payer. */
function payment(payer: string, units: bigint, more: Partial<PaymentInFlight> = {}): Bought['call'] {
  const id = newTransferId(nowMs);
  const inFlight = { network: NETWORK, asset: ASSET, payer, amountUnits: units };
  const plain = { costsMoney: false, onlyOneOfUnknown: false, balance: null };
  return {
    id,
    accountId: ACCOUNT,
    bucket: 0,
    keyId: null,
    rail: 'x402',
    service: 'nickel',
    priceMicros: units,
    revenue: 'revenue_x402' as const,
    identity: id,
    onChainIdentity: id,
    ttlMs: 60_000,
    fingerprint: randomBytes(32),
    inFlight: { ...inFlight, ...plain, ...more },
  };
}

/** Begins a call as a request does: reads the balance when it is asked for, and once more when it was too little. */
async function begin(store: CallStore, call: Bought['call'], holds: () => bigint): Promise<BeginOutcome> {
  for (let reading = 0; ; reading++) {
    const outcome = await store.begin(call);
    if (outcome.status !== 'balance_needed' && outcome.status !== 'balance_exceeded') return outcome;
    if (reading > 1) return outcome;
    call.inFlight.balance = { units: holds(), since: outcome.since };
  }
}

async function keep(store: CallStore, call: Bought['call'], answered = true): Promise<void> {
  const { network, asset, payer, amountUnits } = call.inFlight;
  const kept = await store.keep({
    id: call.id,
    accountId: ACCOUNT,
    bucket: 0,
    rail: 'x402',
    leaseMs: 1_000,
    payment: {
      identity: call.id,
      network,
      asset,
      payer,
      amountUnits,
      payTo: '0xcc',
      evidence: {},
      deadAfterMs: nowMs + 60_000,
    },
    answer: answered ? { status: 200, headers: {}, body: '{}' } : null,
  });
  assert.equal(kept.status, 'kept');
}

const end = (store: CallStore, call: Bought['call'], how: { settled?: typeof AT | null; capture: boolean }) =>
  store.finish({ ...call, outcome: how.capture ? 'answered' : 'FAILED', answer: null, ...how });

async function capture(store: CallStore, call: Bought['call']): Promise<void> {
  await keep(store, call);
  assert.equal((await end(store, call, { capture: true, settled: AT })).status, 'done');
}

test('a payer alone is not asked for its balance; beside what is in flight it must hold all of it', async () => {
  const [here, there] = stores;
  const payer = newPayer();
  const first = payment(payer, 40n);
  assert.equal((await here.begin(first)).status, 'authorized');
  assert.equal((await there.begin(payment(payer, 40n))).status, 'balance_needed');
  const exceeded = await begin(there, payment(payer, 40n), () => 79n);
  assert.equal(exceeded.status, 'balance_exceeded');
  assert.ok(exceeded.status === 'balance_exceeded' && exceeded.inFlightUnits === 40n);
  assert.equal((await begin(there, payment(payer, 40n), () => 80n)).status, 'authorized');
  // Another asset, another network and another payer are other money.
  for (const other of [{ asset: '0xab' }, { network: 'eip155:1' }, { payer: newPayer() }])
    assert.equal((await there.begin(payment(payer, 40n, other))).status, 'authorized');
  // The same call again changes nothing: its first attempt may not have been heard.
  assert.equal((await here.begin(first)).status, 'authorized');
});

test('what was released counts no more; what was refused counts until it is dead', async () => {
  const [here] = stores;
  const payer = newPayer();
  const released = payment(payer, 40n);
  await here.begin(released);
  await end(here, released, { capture: false });
  const refused = payment(payer, 40n);
  assert.equal((await here.begin(refused)).status, 'authorized');
  await keep(here, refused);
  const row = { accountId: ACCOUNT, callId: refused.id, payment: { deadAfterMs: nowMs + 60_000 } };
  await settlements.markRefused(row as Parameters<SettlementStore['markRefused']>[0], 'POOR');
  assert.equal((await begin(here, payment(payer, 40n), () => 40n)).status, 'balance_exceeded');
  await end(here, refused, { capture: false, settled: null });
  const left = await database.sql`
    select 1 from payments_in_flight where call_id in (${released.id}, ${refused.id})`;
  assert.equal(left.length, 0, 'nothing else would ever forget it');
  assert.equal((await begin(here, payment(payer, 40n), () => 40n)).status, 'authorized');
});

test('money that has moved counts only against balances that were read before', async () => {
  const [here, there] = stores;
  for (const how of ['captured', 'settled before its service runs']) {
    const payer = newPayer();
    const first = payment(payer, 40n);
    await here.begin(first);
    const next = payment(payer, 40n);
    const asked = await there.begin(next);
    assert.ok(asked.status === 'balance_needed');
    // The balance is read now, and the first payment moves after that.
    next.inFlight.balance = { units: 40n, since: asked.since };
    if (how === 'captured') await capture(here, first);
    else {
      await keep(here, first, false);
      await settlements.markSettled({ accountId: ACCOUNT, callId: first.id }, AT, 1_000);
    }
    const exceeded = await there.begin(next);
    assert.ok(exceeded.status === 'balance_exceeded', how);
    next.inFlight.balance = { units: 40n, since: exceeded.since };
    assert.equal((await there.begin(next)).status, 'authorized');
  }
});

test('a payer is known by a payment that was captured in the last 90 days, and by nothing else', async () => {
  const [here, there] = stores;
  const payer = newPayer();
  const costly = (more: Partial<PaymentInFlight> = {}) => payment(payer, 1n, { costsMoney: true, ...more });
  const knows = async () => {
    const call = costly();
    const outcome = await begin(here, call, () => 1_000n);
    await end(here, call, { capture: false });
    assert.ok(outcome.status === 'authorized');
    return outcome.isKnownPayer;
  };
  const released = costly();
  await here.begin(released);
  await keep(here, released);
  assert.equal(await knows(), false);
  await end(here, released, { capture: false, settled: null });
  assert.equal(await knows(), false);
  // Paid first, its service never ran, and the money goes back.
  const refunded = costly();
  await begin(here, refunded, () => 1_000n);
  await keep(here, refunded, false);
  await settlements.markSettled({ accountId: ACCOUNT, callId: refunded.id }, AT, 1_000);
  assert.equal(await knows(), false);
  const ended = { capture: true, outcome: 'REFUNDED', answer: null, settled: AT };
  const { status } = await here.finish({ ...refunded, ...ended });
  assert.equal(status, 'done');
  assert.equal(await knows(), false);
  // What costs nothing is in flight beside it.
  assert.equal((await begin(here, payment(payer, 1n), () => 1_000n)).status, 'authorized');
  const one = costly({ onlyOneOfUnknown: true });
  assert.equal((await begin(here, one, () => 1_000n)).status, 'authorized');
  for (const asset of [ASSET, '0xab'])
    assert.equal(
      (await there.begin(costly({ asset, onlyOneOfUnknown: true }))).status,
      'one_at_a_time',
      'in whatever it pays',
    );
  // What costs nothing is not bounded so.
  assert.equal((await begin(there, payment(payer, 1n), () => 1_000n)).status, 'authorized');
  await capture(here, one);
  assert.equal(await knows(), true);
  const two = [1, 2].map(() => costly({ onlyOneOfUnknown: true }));
  for (const call of two) assert.equal((await begin(there, call, () => 1_000n)).status, 'authorized');
  nowMs += 89 * DAY_MS;
  assert.equal(await knows(), true);
  nowMs += 2 * DAY_MS;
  assert.equal(await knows(), false);
});

test('whatever payers begin at once, on two replicas, never more than they hold is in flight', async () => {
  const [here, there] = stores;
  const step = fc.oneof(
    fc.record({ at: fc.constant('begin' as const), payer: fc.nat(1), units: fc.bigInt(1n, 40n) }),
    fc.record({ at: fc.constantFrom('capture' as const, 'release' as const), which: fc.nat() }),
    fc.record({ at: fc.constant('fund' as const), payer: fc.nat(1), units: fc.bigInt(1n, 40n) }),
  );
  const round = fc.array(step, { minLength: 1, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.bigInt(0n, 100n), { minLength: 2, maxLength: 2 }),
      fc.array(round, { minLength: 1, maxLength: 6 }),
      async (holdings, rounds) => {
        const wallets = holdings.map((units) => ({ payer: newPayer(), units }));
        const walletAt = (index: number) => wallets[index] ?? assert.fail();
        let open: Bought['call'][] = [];
        for (const steps of rounds) {
          const ending = new Set<Bought['call']>();
          const before = new Map(wallets.map(({ payer, units }) => [payer, units]));
          // Everything in a round happens at once.
          const begun = await Promise.all(
            steps.map(async (one, index) => {
              const store = index % 2 === 0 ? here : there;
              if (one.at === 'fund') walletAt(one.payer).units += one.units;
              else if (one.at === 'begin') {
                const wallet = walletAt(one.payer);
                const call = payment(wallet.payer, one.units);
                const outcome = await begin(store, call, () => wallet.units);
                return outcome.status === 'authorized' ? [call] : [];
              } else {
                const call = open[one.which % Math.max(open.length, 1)];
                if (call === undefined || ending.has(call)) return [];
                ending.add(call);
                const wallet = wallets.find(({ payer }) => payer === call.inFlight.payer) ?? assert.fail();
                const canPay = wallet.units >= call.inFlight.amountUnits;
                if (one.at === 'capture' && canPay) {
                  // The chain moves the money first.
                  wallet.units -= call.inFlight.amountUnits;
                  await capture(store, call);
                } else await end(store, call, { capture: false });
              }
              return [];
            }),
          );
          open = [...open.filter((call) => !ending.has(call)), ...begun.flat()];
          for (const { payer, units } of wallets) {
            const own = open.filter(({ inFlight }) => inFlight.payer === payer);
            const sum = own.reduce((total, { inFlight }) => total + inFlight.amountUnits, 0n);
            // One alone is held to the balance by the chain's own simulation.
            const most = units > (before.get(payer) ?? 0n) ? units : (before.get(payer) ?? 0n);
            assert.ok(own.length <= 1 || sum <= most, `${sum} in flight of ${units}`);
          }
        }
        for (const call of open) await end(here, call, { capture: false });
      },
    ),
    { numRuns: 60 },
  );
});

test('what has moved is forgotten after a while, and what is in flight is not', async () => {
  const [here] = stores;
  const payer = newPayer();
  const [moved, open] = [payment(payer, 1n), payment(payer, 1n)];
  await here.begin(moved);
  await capture(here, moved);
  await here.begin(open);
  await database.sql`
    update payments_in_flight set moved_at = moved_at - interval '1 hour' where call_id = ${moved.id}`;
  for (let dropped = 1; dropped > 0; ) dropped = await settlements.dropMoved(100);
  const left = await database.sql<{ call_id: string }[]>`
    select call_id from payments_in_flight where payer = ${payer}`;
  assert.deepEqual(
    left.map((row) => row.call_id),
    [open.id],
  );
});
