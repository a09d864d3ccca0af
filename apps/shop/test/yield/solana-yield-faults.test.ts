/**
 * What `confirm` and the keeper make of a deposit when the network fails, over the socket of the sandbox's Solana: what
 * landed is told from what failed, what never came and what cannot be asked about.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import {
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  getBase64Encoder,
  getTransactionDecoder,
  partiallySignTransaction,
} from '@solana/kit';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { type SolanaWallet, type SolanaYieldWorld, startSolanaYieldWorld } from './solana-yield.fixture.ts';

const AMOUNT = 100_000_000n;
const [FEE, NET] = [500_000n, 99_500_000n];
const SLOT_MS = 400;
const MINUTE_MS = 60_000;
const MANY = 1_000;

let database: TestDatabase;
let world: SolanaYieldWorld;
/** How far the server's clock is ahead. */
let aheadMs = 0;
before(async () => {
  database = await openTestDatabase();
  world = await startSolanaYieldWorld(database, {}, { nowMs: () => Date.now() + aheadMs });
});
after(async () => {
  await world?.stop();
  await database?.close();
});

/** Time passes for the server and for the chain. */
async function pass(ms: number): Promise<void> {
  aheadMs += ms;
  await world.node.pass(Math.ceil(ms / SLOT_MS));
}

async function order(...faults: object[]): Promise<void> {
  for (const fault of faults) await world.node.ask('sandbox_setFault', { count: MANY, ...fault });
}
const mend = () => world.node.ask('sandbox_clearFaults');
// What a row leaves behind strikes no other one.
afterEach(() => mend());

async function job(name: string): Promise<void> {
  const part = world.server.app.parts.find((each) => each.name === 'solana-yield');
  const found = part?.jobs?.find((each) => each.name === name);
  assert(found !== undefined, `there is no job ${name}`);
  await found.run();
}
/** A round of the keeper. */
async function keep(): Promise<void> {
  for (const name of ['solana-yield-settle', 'solana-yield-keep']) await job(name);
}

async function signed({ signer }: SolanaWallet, base64: string) {
  const transaction = getTransactionDecoder().decode(getBase64Encoder().encode(base64));
  const whole = await partiallySignTransaction([signer.keyPair], transaction);
  const signature = getBase58Decoder().decode(whole.signatures[signer.address] ?? new Uint8Array());
  return { wire: getBase64EncodedWireTransaction(whole), signature };
}

/** A wallet that has paid the fee of its bundle, and has signed the deposit that follows. */
async function aboutToDeposit() {
  const wallet = await world.wallet(Number(AMOUNT));
  const bundle = await world.answer('deposit-tx', { wallet: wallet.address, amount_raw: String(AMOUNT) });
  assert.deepEqual([bundle.warnings, bundle.feeRaw, bundle.depositRaw], [[], String(FEE), String(NET)]);
  const fee = await signed(wallet, bundle.transactions[0].base64);
  await world.node.send(fee.wire);
  return { wallet, fee, deposit: await signed(wallet, bundle.transactions[1].base64) };
}
type Deposit = Awaited<ReturnType<typeof aboutToDeposit>>;

async function confirm({ wallet, deposit }: Deposit) {
  const asked = { wallet: wallet.address, txSignature: deposit.signature };
  const response = await world.ask('confirm', asked);
  return { status: response.status, body: await jsonOf(response) };
}

async function assertPending(told: Awaited<ReturnType<typeof confirm>>, note: RegExp): Promise<void> {
  const { status, body } = told;
  assert.deepEqual(
    [status, body.onChainVerified, body.verificationStatus],
    [200, false, 'pending_verification'],
    JSON.stringify(body),
  );
  assert.match(body.verificationNote, note);
}

async function claimOf({ wallet, deposit }: Deposit) {
  const [row] = await database.sql<{ state: string; reason: string | null }[]>`
    SELECT state, reason FROM solana_yield_claims
    WHERE signature = ${deposit.signature} AND wallet = ${wallet.address}`;
  return { ...row };
}

/** What is credited to the wallet, in units of USDC. */
async function credited({ wallet }: Deposit): Promise<bigint[]> {
  const rows = await database.sql<{ usdc: bigint }[]>`
    SELECT usdc FROM solana_yield_moves WHERE wallet = ${wallet.address}`;
  return rows.map(({ usdc }) => usdc);
}

/** What has become of the fee: nothing, or how it is listed for refund. */
async function feeOf({ wallet, fee }: Deposit): Promise<{ status: string; reason: string | null } | null> {
  const { refunds } = await world.answer(`fee-refunds/${wallet.address}`);
  assert(refunds.length <= 1);
  if (refunds.length === 0) return null;
  assert.equal(refunds[0].feeTxSignature, fee.signature);
  return { status: refunds[0].status, reason: refunds[0].reason };
}

/** It is credited once, to the unit that the chain says, and nothing of it is due back. */
async function assertDeposited(one: Deposit): Promise<void> {
  const { status, body } = await confirm(one);
  assert.deepEqual([status, body.verificationStatus], [200, 'confirmed'], JSON.stringify(body));
  // The lending program may take up to two units less than it is given.
  const paid = NET - (await world.node.holds(one.wallet.address));
  assert(paid >= NET - 2n && paid <= NET, `the chain took ${paid}`);
  assert.equal(body.depositedRaw, String(paid));
  await pass(MINUTE_MS);
  await keep();
  await keep();
  assert.deepEqual(await credited(one), [paid]);
  assert.equal(await feeOf(one), null);
}

/** Each leaves the portal without an answer about a transaction that has landed. */
const SILENT = {
  'answers every call with an error of its own': [{ fault: 'status', httpStatus: 500 }],
  'turns every call away': [{ fault: 'status', httpStatus: 429 }],
  'breaks the connection': ['getTransaction', 'getSignatureStatuses'].map((method) => ({
    fault: 'drop-reply',
    method,
  })),
  'says that it is behind': ['getTransaction', 'getSignatureStatuses'].map((method) => ({
    fault: 'refuse',
    method,
  })),
  'never replies': [{ fault: 'delay', method: 'getTransaction', delayMs: 60_000 }],
};

for (const [what, faults] of Object.entries(SILENT))
  test(`the node takes the deposit and then ${what}: it is pending however long, and confirmed once the node answers`, async () => {
    const one = await aboutToDeposit();
    await world.node.send(one.deposit.wire);
    await order(...faults);
    await assertPending(await confirm(one), /cannot be asked at the moment/);
    // A day of silence is no verdict.
    await pass(24 * 60 * MINUTE_MS);
    await job('solana-yield-settle');
    assert.deepEqual(await claimOf(one), { state: 'pending', reason: null });
    assert.deepEqual(await credited(one), []);
    await mend();
    await pass(10 * MINUTE_MS);
    await job('solana-yield-settle');
    assert.deepEqual(await claimOf(one), { state: 'confirmed', reason: null });
    await assertDeposited(one);
  });

test('the wallet hears an error though the deposit landed, and sends it again: it is one deposit', async () => {
  const one = await aboutToDeposit();
  await order({ fault: 'drop-reply', method: 'sendTransaction', count: 1 });
  await assert.rejects(world.node.send(one.deposit.wire));
  assert.equal((await confirm(one)).body.verificationStatus, 'confirmed');
  assert.equal(await world.node.send(one.deposit.wire), one.deposit.signature);
  await assertDeposited(one);
});

test('the network loses the deposit until its blockhash is over: it is given up, and its fee is due back', async () => {
  const one = await aboutToDeposit();
  await order({ fault: 'never-lands' });
  assert.equal(await world.node.send(one.deposit.wire), one.deposit.signature);
  await assertPending(await confirm(one), /does not know this transaction yet/);
  await keep();
  assert.deepEqual(await claimOf(one), { state: 'pending', reason: null });
  // It is waited for longer than its blockhash lives.
  await pass(MINUTE_MS);
  await keep();
  assert.deepEqual(await claimOf(one), { state: 'pending', reason: null });
  assert.equal((await feeOf(one))?.status, 'waiting_for_deposit');
  await mend();
  await pass(11 * MINUTE_MS);
  await keep();
  assert.deepEqual(await claimOf(one), { state: 'given_up', reason: 'NOT_SEEN' });
  const due = await feeOf(one);
  assert.equal(due?.status, 'refund_due');
  assert.match(due?.reason ?? '', /No deposit followed/);
  // Nor does it come when it is sent again.
  await world.node.send(one.deposit.wire);
  await assertPending(await confirm(one), /does not know this transaction yet/);
  assert.equal(await world.node.holds(one.wallet.address), NET);
  assert.deepEqual(await credited(one), []);
});

test('the deposit simulates well and fails on the chain: it is refused with the chain’s error, and its fee is due back', async () => {
  const one = await aboutToDeposit();
  await order({ fault: 'fails-landing', count: 1 });
  assert.equal(await world.node.send(one.deposit.wire), one.deposit.signature);
  const { status, body } = await confirm(one);
  assert.deepEqual([status, body.error, body.onChainVerified], [400, 'TRANSACTION_FAILED', false]);
  assert.ok(body.onChainError?.InstructionError, JSON.stringify(body));
  await pass(MINUTE_MS);
  await keep();
  assert.equal((await feeOf(one))?.status, 'waiting_for_deposit', 'another one may follow');
  await pass(11 * MINUTE_MS);
  await keep();
  const due = await feeOf(one);
  assert.equal(due?.status, 'refund_due');
  assert.match(due?.reason ?? '', /failed on the chain/);
  assert.equal(await world.node.holds(one.wallet.address), NET);
  assert.deepEqual(await credited(one), []);
});

test('the node that is asked fell behind before the deposit landed: it gives nothing up, and confirms once it is up again', async () => {
  const one = await aboutToDeposit();
  await order({ fault: 'behind' });
  await world.node.ask('sendTransaction', one.deposit.wire, { encoding: 'base64', skipPreflight: true });
  await assertPending(await confirm(one), /does not know this transaction yet/);
  // The chain goes on for an hour, of which this node sees nothing.
  await pass(60 * MINUTE_MS);
  await keep();
  assert.deepEqual(await claimOf(one), { state: 'pending', reason: null }, 'the node has stood still since');
  assert.notEqual((await feeOf(one))?.status, 'refund_due');
  await mend();
  await pass(10 * MINUTE_MS);
  await keep();
  assert.deepEqual(await claimOf(one), { state: 'confirmed', reason: null });
  await assertDeposited(one);
});
