/** Tests what owners get of the price when readings of their devices are sold: with the capture, and gone again with the price. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newTransferId, transferIdFor } from '../../../../packages/core/src/ledger/transfer-id.ts';
import {
  type CallShares,
  createCallShares,
} from '../../../../packages/core/src/paid-call/inside/call-shares.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { post, register } from '../devices.fixture.ts';
import { accountOf, assertBooksClosed } from '../fire/money.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

let database: TestDatabase;
let server: TestServer;
let shares: CallShares;
let owner: string;
let ownerId: bigint;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({
    pools: database,
    environment: { TRIAL_ALLOW_INTERNAL: 'true', DEVICE_OWNER_SHARE_PERCENT: '40' },
  });
  shares = createCallShares(database, { ledger: server.app.ledger, nowMs: Date.now, cardHoldMs: 0 });
  owner = await server.key('1');
  ownerId = await accountOf(database.sql, owner);
  const device = await register(server, owner, { deviceId: 'earner-1' });
  await post(server, device, { at: new Date().toISOString(), values: { temperature: 1 } });
});
after(async () => {
  await server.close();
  await database.close();
});

/** Buys a reading for 0.05 USD. @returns the call */
async function buy(key: string): Promise<string> {
  const answer = await server.call('iot-sensor-reading', key, { deviceId: 'earner-1' });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.headers.get('x-call-id') ?? '';
}
const EARNED = {
  calls: 3,
  earnedMicros: 60_000n,
  paidMicros: 0n,
  dueMicros: 0n,
  heldMicros: 0n,
  heldFor: [],
};
const earned = () => shares.earned(ownerId);
const giveBack = (accountId: bigint, call: string) =>
  server.app.ledger.transfer({
    id: transferIdFor(`back ${call}`),
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'revenue_credits',
    amountMicros: 50_000n,
    code: 'call_refund',
    note: `undelivered call ${call}`,
  });

test('a share of each call is set aside with its price, and paid out after its time', async () => {
  const stranger = await server.key('1');
  for (let nth = 0; nth < 3; nth++) await buy(stranger);
  assert.deepEqual(await earned(), { ...EARNED, dueMicros: 60_000n });
  await assertBooksClosed(database.sql);
  assert.equal(await shares.payOut(3_600_000, 10), 0);
  // Two processes at once pay it once.
  await Promise.all([shares.payOut(-1, 10), shares.payOut(-1, 10)]);
  assert.deepEqual(await earned(), { ...EARNED, paidMicros: 60_000n });
  const list = await jsonOf(fetch(`${server.url}/api/devices`, { headers: { 'x-api-key': owner } }));
  assert.equal(list.earnings.paidUsd, '0.060000');
  const { balanceMicros } = await server.app.ledger.balance(ownerId);
  assert.equal(balanceMicros, 1_060_000n);
  await assertBooksClosed(database.sql);
});

test('nothing is shared of trial credit, of the owner’s own calls, and of calls that are not answered', async () => {
  const earlier = await earned();
  const { apiKey: trial } = await jsonOf(
    fetch(`${server.url}/api/m2m/credits/trial`, { headers: { 'user-agent': 'test' } }),
  );
  await buy(trial);
  await buy(owner);
  const stranger = await server.key('1');
  assert.equal(
    (await server.call('iot-sensor-reading', stranger, { deviceId: 'earner-1', sensorType: 'co2' })).status,
    422,
  );
  assert.deepEqual(await earned(), earlier);
  // Bought credit comes after the trial's 5 USD: from then on it is shared.
  const trialId = await accountOf(database.sql, trial);
  await database.sql`
    update call_spending set spent_micros = spent_micros + 4950000 where account_id = ${String(trialId)}`;
  await buy(trial);
  assert.equal((await earned()).calls, earlier.calls + 1);
  await database.sql`
    update call_spending set spent_micros = spent_micros - 4950000 where account_id = ${String(trialId)}`;
  await assertBooksClosed(database.sql);
});

test('a share goes back with the price of its call, from later ones if it was paid out', async () => {
  const stranger = await server.key('1');
  const strangerId = await accountOf(database.sql, stranger);
  await shares.payOut(-1, 10);
  const earlier = await earned();
  const first = await buy(stranger);
  await giveBack(strangerId, first);
  await giveBack(strangerId, first);
  assert.deepEqual(await earned(), earlier);
  const second = await buy(stranger);
  await shares.payOut(-1, 10);
  await giveBack(strangerId, second);
  assert.equal((await earned()).dueMicros, -20_000n);
  await assertBooksClosed(database.sql);
  await buy(stranger);
  assert.equal((await earned()).dueMicros, 0n);
  assert.equal(await shares.payOut(-1, 10), 0);
  await buy(stranger);
  await shares.payOut(-1, 10);
  const { paidMicros, dueMicros } = await earned();
  assert.deepEqual([paidMicros - earlier.paidMicros, dueMicros], [40_000n, 0n]);
  await assertBooksClosed(database.sql);
});

test('a call that a chain pays is shared when it is captured, and no more when the chain takes its money back', async () => {
  const earlier = await earned();
  const { calls, ledger } = server.app;
  const nowMs = Date.now();
  const call = {
    id: newTransferId(nowMs),
    accountId: 5n,
    bucket: 0,
    service: 'iot-sensor-reading',
    priceMicros: 50_000n,
    revenue: 'revenue_x402',
  } as const;
  const identity = `test:${call.id}`;
  await calls.begin({
    ...call,
    keyId: null,
    rail: 'x402',
    identity,
    onChainIdentity: identity,
    fingerprint: Buffer.alloc(32),
    ttlMs: 60_000,
  });
  const payer = { by: 'signature', network: 'eip155:8453', address: '0x1' } as const;
  await shares.note({ callId: call.id, payer, beneficiary: ownerId, partPerMillion: 400_000n });
  const payment = {
    identity,
    network: 'eip155:8453',
    asset: '0x2',
    payer: '0x1',
    payTo: '0x3',
    amountUnits: 50_000n,
    deadAfterMs: nowMs + 60_000,
    evidence: {},
  };
  await calls.keep({
    id: call.id,
    accountId: 5n,
    bucket: 0,
    rail: 'x402',
    payment,
    answer: null,
    leaseMs: 60_000,
  });
  assert.deepEqual(await earned(), earlier);
  const settled = { transaction: '0xaa', blockNumber: 1n };
  await calls.finish({ ...call, capture: true, outcome: 'answered', answer: null, settled });
  assert.equal((await earned()).dueMicros, earlier.dueMicros + 20_000n);
  await assertBooksClosed(database.sql);
  await ledger.transfer({
    id: transferIdFor(`lost:${call.id}`),
    accountId: 5n,
    phase: 'posted',
    side: 'credit',
    house: 'settlement_losses',
    amountMicros: 50_000n,
    code: 'settlement_lost',
    note: `lost settlement of call ${call.id}`,
  });
  assert.equal((await earned()).dueMicros, earlier.dueMicros);
  const [held] = await database.sql<{ net: bigint }[]>`
    select sum(case when credit_account = 13 then amount_micros else -amount_micros end)::bigint as net
    from ledger_transfers where 13 in (debit_account, credit_account)`;
  assert.equal(held?.net, earlier.dueMicros);
});
