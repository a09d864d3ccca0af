/** Deposits and withdrawals on the sandbox's Solana, by wallets that sign what the portal hands out and nothing else. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import {
  type Address,
  generateKeyPairSigner,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  type KeyPairSigner,
  partiallySignTransaction,
} from '@solana/kit';
import { SEED, signerOf } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { type SolanaChain, startSolana } from '../../../../packages/sandbox/src/solana/solana.ts';
import { tokenAccountOf } from '../../../../packages/yield/src/solana/address-bytes.ts';
import {
  COLLATERAL_MINT,
  LENDING_MARKET,
  USDC_MINT,
  USDC_RESERVE,
} from '../../../../packages/yield/src/solana/addresses.ts';
import { accrue, cTokensFor, usdcFor } from '../../../../packages/yield/src/solana/model/interest.ts';
import { decodeMarket, decodeReserve } from '../../../../packages/yield/src/solana/model/reserve.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { solanaNode } from '../solana.fixture.ts';

const USD = 1_000_000;
const MONTH_SECONDS = 30 * 86_400;
/** Where the reserve has its deposit limit, its emergency mode, what is available and its cap on withdrawals. */
const [DEPOSIT_LIMIT, EMERGENCY, AVAILABLE, WITHDRAWAL_CAP] = [5_016, 4_864, 224, 5_416];

let database: TestDatabase;
let chain: SolanaChain;
let node: ReturnType<typeof solanaNode>;
let servers: TestServer[];
let clockMs = 0;
before(async () => {
  database = await openTestDatabase();
  chain = await startSolana({ seed: SEED, stateDir: null });
  node = solanaNode(chain.url);
  const { address: treasury } = await signerOf('treasury');
  const environment = {
    UPSTREAM_SOLANA_BASE_URL: chain.url,
    SOLANA_YIELD_TREASURY: treasury,
    SOLANA_YIELD_SINCE_SLOT: '0',
  };
  const nowMs = () => Date.now() + clockMs;
  servers = await Promise.all([1, 2].map(() => startTestServer({ pools: database, environment, nowMs })));
});
after(async () => {
  for (const server of servers) await server.close();
  await chain.stop();
  await database.close();
});

async function post(path: string, body: object, replica = 0) {
  const response = await fetch(`${servers[replica]?.url}/api/solana-yield/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await jsonOf(response) };
}

/** The answer, which must be a 200. */
async function built(path: string, body: object) {
  const answer = await post(path, body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

async function wallet(usd: number): Promise<KeyPairSigner> {
  const signer = await generateKeyPairSigner();
  await node.give(signer.address, { usdcUnits: usd * USD, lamports: 1_000_000_000 });
  return signer;
}

/** Signs what was handed out as it was handed out, and sends it. @returns its signature */
async function send(signer: KeyPairSigner, base64: string): Promise<string> {
  const transaction = getTransactionDecoder().decode(getBase64Encoder().encode(base64));
  const signed = await partiallySignTransaction([signer.keyPair], transaction);
  await node.send(getBase64EncodedWireTransaction(signed));
  return getBase58Decoder().decode(signed.signatures[signer.address] ?? new Uint8Array());
}

async function shown(signature: string) {
  const found = await node.ask<{ slot: number; meta: { err: unknown } } | null>('getTransaction', signature, {
    commitment: 'confirmed',
    maxSupportedTransactionVersion: 0,
  });
  assert.equal(found?.meta.err, null, `${signature}: ${JSON.stringify(found?.meta.err)}`);
  return { slot: BigInt(found?.slot ?? 0) };
}

/** The reserve as it stands, to be brought to any later slot. */
async function reserveNow() {
  const { value } = await node.ask<{ value: { owner: string; data: [string] }[] }>(
    'getMultipleAccounts',
    ...[[USDC_RESERVE, LENDING_MARKET], { encoding: 'base64' }],
  );
  const [reserve, market] = value.map(({ owner, data }) => ({
    owner,
    data: new Uint8Array(Buffer.from(data[0], 'base64')),
  }));
  assert(reserve !== undefined && market !== undefined);
  const { referralFeeBps } = decodeMarket(market);
  const at = decodeReserve(reserve);
  return (slot: bigint) => accrue(at, slot, referralFeeBps);
}

async function collateralOf(owner: Address): Promise<bigint> {
  const account = tokenAccountOf(owner, COLLATERAL_MINT);
  const found = await node
    .ask<{ value: { amount: string } }>('getTokenAccountBalance', account)
    .catch(() => null);
  return BigInt(found?.value.amount ?? 0);
}

/** Deposits and confirms. @returns the answer of `confirm` */
async function deposit(signer: KeyPairSigner, usd: number) {
  const bundle = await built('deposit-tx', { wallet: signer.address, amount_usdc: usd });
  assert.deepEqual(bundle.warnings, []);
  await send(signer, bundle.transactions[0].base64);
  const txSignature = await send(signer, bundle.transactions[1].base64);
  await shown(txSignature);
  return built('confirm', { wallet: signer.address, txSignature });
}

/** One of an account's figures is another one for a while. */
async function withAccount(
  account: Address,
  { offset, hex }: { offset: number; hex: string },
  work: () => Promise<void>,
): Promise<void> {
  const { value } = await node.ask<{ value: { data: [string] } }>('getAccountInfo', account, {
    encoding: 'base64',
  });
  const was = Buffer.from(value.data[0], 'base64').subarray(offset, offset + hex.length / 2);
  await node.ask('sandbox_writeAccount', account, { offset, hex });
  try {
    await work();
  } finally {
    await node.ask('sandbox_writeAccount', account, { offset, hex: was.toString('hex') });
  }
}

const withReserve = (offset: number, hex: string, work: () => Promise<void>) =>
  withAccount(USDC_RESERVE, { offset, hex }, work);

test('a wallet deposits, waits a month and leaves with what was told, to the unit', async () => {
  const signer = await wallet(1_000);
  const bundle = await built('deposit-tx', { wallet: signer.address, amount_usdc: 1_000 });
  assert.deepEqual(
    [bundle.feeRaw, bundle.depositRaw, bundle.warnings, bundle.simulation.done],
    ['5000000', '995000000', [], true],
  );
  const [feeTransaction, depositTransaction] = bundle.transactions;
  assert.deepEqual([feeTransaction.action, depositTransaction.action], ['fee', 'deposit']);
  assert.equal(Buffer.from(feeTransaction.base64, 'base64').length, 333);
  assert.equal(Buffer.from(depositTransaction.base64, 'base64').length, 645);
  for (const { preflight } of bundle.transactions)
    assert(preflight !== null && preflight.verdict !== 'danger', JSON.stringify(preflight));

  const reserve = await reserveNow();
  const feeSignature = await send(signer, feeTransaction.base64);
  const txSignature = await send(signer, depositTransaction.base64);
  await shown(feeSignature);
  const { slot: depositedAt } = await shown(txSignature);
  const fee = await post('confirm', { wallet: signer.address, txSignature: feeSignature });
  assert.deepEqual([fee.status, fee.body.error], [400, 'FEE_TRANSACTION']);

  const confirmed = await built('confirm', { wallet: signer.address, txSignature });
  assert.equal(confirmed.verificationStatus, 'confirmed');
  assert.equal(confirmed.collateralRaw, String(await collateralOf(signer.address)));
  const { paidRaw, cTokensRaw } = cTokensFor(reserve(depositedAt), 995_000_000n);
  assert.deepEqual(
    [confirmed.slot, confirmed.collateralRaw, confirmed.depositedRaw],
    [depositedAt, cTokensRaw, paidRaw].map(String),
  );
  // What buys no whole unit of collateral stays in the wallet; how much that is depends on the interest until then.
  const change = 995_000_000n - paidRaw;
  assert.equal(await node.holds(signer.address), change);

  await node.ask('sandbox_passInterest', MONTH_SECONDS);
  const leaving = await built('withdraw-tx', { wallet: signer.address, amount: 'MAX' });
  const { fee_breakdown, grossRaw, feeRaw, net_raw, at_slot, collateralRaw, simulation } = leaving;
  assert.equal(collateralRaw, confirmed.collateralRaw);
  const gross = usdcFor((await reserveNow())(BigInt(at_slot)), BigInt(collateralRaw));
  const earned = gross - BigInt(confirmed.depositedRaw);
  assert(earned > 1_000_000n, `${earned} in a month`);
  const performanceFee = (earned * 15n) / 100n;
  const flatFee = (gross * 50n) / 10_000n;
  const text = (units: bigint) => `${units / 1_000_000n}.${String(units % 1_000_000n).padStart(6, '0')}`;
  assert.deepEqual(fee_breakdown, {
    flat_fee_usdc: text(flatFee),
    perf_fee_usdc: text(performanceFee),
    yield_earned_usdc: text(earned),
    total_fee_usdc: text(flatFee + performanceFee),
  });
  assert.deepEqual(
    [grossRaw, feeRaw, net_raw],
    [gross, flatFee + performanceFee, gross - flatFee - performanceFee].map(String),
  );
  const simulated = usdcFor((await reserveNow())(BigInt(simulation.slot)), BigInt(collateralRaw));
  assert.equal(simulation.received_raw, String(simulated - BigInt(feeRaw)));

  const { address: treasury } = await signerOf('treasury');
  const treasuryHeld = await node.holds(treasury);
  const before = await reserveNow();
  const left = await send(signer, leaving.transactions[0].base64);
  const { slot: leftAt } = await shown(left);
  const paid = usdcFor(before(leftAt), BigInt(collateralRaw));
  assert.equal(await node.holds(signer.address), change + paid - BigInt(feeRaw));
  assert((await node.holds(signer.address)) >= BigInt(net_raw), 'never less than was told');
  assert.equal((await node.holds(treasury)) - treasuryHeld, BigInt(feeRaw));
  assert.equal(await collateralOf(signer.address), 0n);
});

test('part of a position leaves with its part of the yield, and the rest stays', async () => {
  const signer = await wallet(200);
  const { depositedRaw, collateralRaw: held } = await deposit(signer, 200);
  await node.ask('sandbox_passInterest', MONTH_SECONDS);
  const part = await built('withdraw-tx', { wallet: signer.address, amount_usdc: 50 });
  assert.equal(part.requestedRaw, '50000000');
  const gross = BigInt(part.grossRaw);
  assert(gross >= 50_000_000n && gross <= 50_000_002n, `${gross}: what was asked for, or a unit more`);
  const cost = (BigInt(depositedRaw) * BigInt(part.collateralRaw) + BigInt(held) - 1n) / BigInt(held);
  const earned = gross - cost;
  assert.equal(part.feeRaw, String((gross * 50n) / 10_000n + (earned * 15n) / 100n));
  await shown(await send(signer, part.transactions[0].base64));
  assert.equal(await collateralOf(signer.address), BigInt(held) - BigInt(part.collateralRaw));
});

test('the three forms of the amount, and which of them counts', async () => {
  const { address } = await generateKeyPairSigner();
  for (const [body, raw] of [
    [{ amount_usdc: 5 }, '5000000'],
    [{ amount_usdc: 25.5 }, '25500000'],
    [{ amount_usdc: 5.000001 }, '5000001'],
    [{ amount_usdc: '12.34' }, '12340000'],
    [{ amount_raw: '5000000' }, '5000000'],
    [{ amount_raw: '7000000', amount_usdc: 100, amount: 9 }, '7000000'],
    [{ amount_usdc: 6, amount: 9 }, '6000000'],
    [{ amount: 9_999 }, '9999000000'],
    [{ amount: 9.5 }, '9500000'],
    [{ amount: 5_000_000 }, '5000000'],
    [{ amount_raw: null, amount_usdc: 8 }, '8000000'],
  ] as const) {
    const { amountRaw, feeRaw, depositRaw } = await built('deposit-tx', { wallet: address, ...body });
    assert.equal(amountRaw, raw, JSON.stringify(body));
    assert.deepEqual(
      [feeRaw, BigInt(feeRaw) + BigInt(depositRaw)],
      [...[String((BigInt(raw) * 50n) / 10_000n), BigInt(raw)]],
    );
  }
  for (const [field, body] of [
    ['amount_usdc', {}],
    ['amount_usdc', { amount_usdc: 4.999999 }],
    ['amount_usdc', { amount_usdc: -5 }],
    ['amount_usdc', { amount_usdc: 1e-7 }],
    ['amount_usdc', { amount_usdc: 5.0000001 }],
    ['amount_usdc', { amount_usdc: 1e21 }],
    ['amount_usdc', { amount_usdc: 'all' }],
    ['amount_raw', { amount_raw: '4999999' }],
    ['amount_raw', { amount_raw: '5e6', amount_usdc: 5 }],
    ['amount_raw', { amount_raw: '99999999999999999999' }],
    ['amount', { amount: 10_000 }],
    ['amount', { amount: 10_000.5 }],
    ['amount', { amount: true }],
  ] as const) {
    const { status, body: answer } = await post('deposit-tx', { wallet: address, ...body });
    assert.deepEqual(
      [status, answer.fields?.[0]?.field, answer.success],
      [400, field, false],
      JSON.stringify(body),
    );
  }
});

test('a wallet that cannot sign is refused, and one without funds gets its bundle with warnings', async () => {
  const { address } = await generateKeyPairSigner();
  for (const bad of [
    undefined,
    '',
    '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    address.slice(2),
    `${address}\u0000`,
    [address],
    tokenAccountOf(address, COLLATERAL_MINT),
  ]) {
    const { status, body } = await post('deposit-tx', { wallet: bad, amount_usdc: 10 });
    assert.deepEqual([status, body.fields?.[0]?.field], [400, 'wallet'], String(bad));
  }
  const bundle = await built('deposit-tx', { wallet: address, amount_usdc: 10 });
  assert.deepEqual(
    bundle.warnings.map(({ code }: { code: string }) => code),
    ['INSUFFICIENT_USDC', 'INSUFFICIENT_SOL'],
  );
  assert.equal(bundle.simulation.done, false);
  // It is good once the wallet has what it lacked.
  await node.give(address, { usdcUnits: 10 * USD, lamports: 1_000_000_000 });
  assert.deepEqual((await built('deposit-tx', { wallet: address, amount_usdc: 10 })).warnings, []);
});

test('a wallet whose USDC is frozen, and one that cannot pay for a transaction, get no bundle', async () => {
  const signer = await wallet(20);
  const ask = (address: string) => post('deposit-tx', { wallet: address, amount_usdc: 10 });
  const [state, isFrozen] = [108, '02'];
  const usdc = tokenAccountOf(signer.address, USDC_MINT);
  await withAccount(usdc, { offset: state, hex: isFrozen }, async () => {
    const { status, body } = await ask(signer.address);
    assert.deepEqual([status, body.error, body.transactions], [409, 'ACCOUNT_FROZEN', undefined]);
  });
  assert.equal((await ask(signer.address)).status, 200, 'once it is thawed');
  // A mint is on the curve, like a wallet, and belongs to the token program.
  const { status, body } = await ask(USDC_MINT);
  assert.deepEqual([status, body.error, body.transactions], [409, 'WALLET_CANNOT_PAY', undefined]);
});

test('what is told of a bundle’s life is true', async () => {
  const signer = await wallet(10);
  const { blockhash, last_valid_block_height, ...bundle } = await built('deposit-tx', {
    wallet: signer.address,
    amount_usdc: 10,
  });
  for (const { base64 } of bundle.transactions) {
    const transaction = getTransactionDecoder().decode(getBase64Encoder().encode(base64));
    const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
    assert.deepEqual([message.version, message.lifetimeToken], [0, blockhash]);
    assert.deepEqual(Object.values(transaction.signatures), [null]);
  }
  const height = await node.ask<number>('getBlockHeight', { commitment: 'confirmed' });
  assert(last_valid_block_height - height <= 150 && last_valid_block_height > height);
  const lastsMs = Date.parse(bundle.blockhash_expires_at) - Date.now() - clockMs;
  assert(lastsMs > 0 && lastsMs <= 150 * 600, `${lastsMs} ms`);
  const isOpenMs = Date.parse(bundle.bundle_expires_at) - Date.now() - clockMs;
  assert(isOpenMs > 60_000 && isOpenMs <= 120_000, `${isOpenMs} ms`);
});

test('of two replicas that are asked at once with one key, one builds; another amount or wallet is another intent', async () => {
  const signer = await wallet(100);
  const body = { wallet: signer.address, amount_usdc: 50, idempotency_key: randomUUID() };
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) => post('deposit-tx', body, index % 2)),
  );
  const made = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status === 409);
  assert.deepEqual([made.length, refused.length], [1, 9]);
  for (const { body: told } of refused)
    assert.deepEqual(
      [told.error, told.existing_intent_id, told.bundle_expires_at, told.success],
      ['DUPLICATE_INTENT', made[0]?.body.intent_id, made[0]?.body.bundle_expires_at, false],
    );
  assert.equal((await post('deposit-tx', { ...body, amount_usdc: 51 })).status, 200);
  const other = await wallet(100);
  assert.equal((await post('deposit-tx', { ...body, wallet: other.address })).status, 200);
  // Written in another form it is the same amount, and the same key.
  const again = { ...body, amount_raw: '50000000', idempotency_key: body.idempotency_key.toUpperCase() };
  assert.equal((await post('deposit-tx', again)).status, 409);
  clockMs += 120_001;
  assert.equal((await post('deposit-tx', body)).status, 200);
  const bad = await post('deposit-tx', { ...body, idempotency_key: 'mine' });
  assert.deepEqual([bad.status, bad.body.fields[0].field], [400, 'idempotency_key']);
});

test('a key whose bundle could not be built is free at once', async () => {
  const signer = await wallet(100);
  const body = { wallet: signer.address, amount_usdc: 50, idempotency_key: randomUUID() };
  await node.ask('sandbox_setFault', {
    fault: 'status',
    method: 'getLatestBlockhash',
    httpStatus: 503,
    count: 1,
  });
  const silent = await post('deposit-tx', body);
  assert.deepEqual([silent.status, silent.body.error], [503, 'CHAIN_UNAVAILABLE']);
  assert.equal((await post('deposit-tx', body, 1)).status, 200);
});

test('nothing is handed out that the reserve would not take, and the answer says what it would', async () => {
  const signer = await wallet(100);
  const ask = () => post('deposit-tx', { wallet: signer.address, amount_usdc: 100 });
  await withReserve(DEPOSIT_LIMIT, '0000000000000000', async () => {
    const { status, body } = await ask();
    assert.deepEqual([status, body.error, body.max_deposit_usdc], [409, 'DEPOSIT_LIMIT', '0.000000']);
  });
  await withReserve(EMERGENCY, '01', async () => {
    const { status, body } = await ask();
    assert.deepEqual([status, body.error], [503, 'RESERVE_CLOSED']);
    assert.match(body.reason, /emergency/);
  });
  // A layout that this code was not written for is no reserve.
  await withReserve(8, '02', async () => {
    const { status, body } = await ask();
    assert.deepEqual([status, body.error], [503, 'SOLANA_YIELD_NOT_READY']);
  });
  assert.equal((await ask()).status, 200);
});

test('a withdrawal that cannot be paid out says how much can', async () => {
  const signer = await wallet(100);
  const none = await post('withdraw-tx', { wallet: signer.address, amount: 'MAX' });
  assert.deepEqual([none.status, none.body.error], [409, 'NOTHING_TO_WITHDRAW']);
  await deposit(signer, 100);
  const much = await post('withdraw-tx', { wallet: signer.address, amount_usdc: 1_000 });
  assert.deepEqual([much.status, much.body.error], [409, 'EXCEEDS_POSITION']);
  assert.match(much.body.max_usdc, /^99\.\d{6}$/);
  for (const [field, body] of [
    ['amount_usdc', {}],
    ['amount_usdc', { amount_usdc: 0 }],
    ['amount', { amount: 50 }],
  ] as const) {
    const { status, body: answer } = await post('withdraw-tx', { wallet: signer.address, ...body });
    assert.deepEqual([status, answer.fields?.[0]?.field], [400, field], JSON.stringify(body));
  }
  // Ten USDC are left; the rest is lent out.
  await withReserve(AVAILABLE, '8096980000000000', async () => {
    const { status, body } = await post('withdraw-tx', { wallet: signer.address, amount: 'MAX' });
    assert.deepEqual([status, body.error], [409, 'INSUFFICIENT_LIQUIDITY'], JSON.stringify(body));
    assert.match(body.available_usdc, /^9\.9999\d\d$/);
    // Whoever can have some of it is told the same, and so is whoever asks for the position.
    const few = await built('withdraw-tx', { wallet: signer.address, amount_usdc: 1 });
    const { position } = await jsonOf(
      fetch(`${servers[0]?.url}/api/solana-yield/position/${signer.address}`),
    );
    for (const told of [few.available_usdc, position.leavingNow.availableUsdc])
      assert(Math.abs(Number(told) - Number(body.available_usdc)) < 0.0001 && Number(told) < 10, told);
    // What is told can be had, and by a wallet that takes its time: a redemption is worth more in a later slot.
    const some = await built('withdraw-tx', {
      wallet: signer.address,
      amount_usdc: Number(body.available_usdc),
    });
    const later = (await reserveNow())(BigInt(some.at_slot) + 400n);
    const paid = usdcFor(later, BigInt(some.collateralRaw));
    assert(paid > 9_999_000n && paid <= 10_000_000n, `${paid}`);
    const all = await post('withdraw-tx', { wallet: signer.address, amount_usdc: 10 });
    assert.equal(all.body.error, 'INSUFFICIENT_LIQUIDITY', JSON.stringify(all.body));
  });
});

test('a withdrawal above the reserve’s cap of an interval is refused with what it lets out', async () => {
  const signer = await wallet(100);
  await deposit(signer, 100);
  const u64 = (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(value));
    return bytes.toString('hex');
  };
  // The chain's clock is behind this one.
  const startedS = Math.floor((Date.now() + clockMs) / 1_000) - 3_600;
  // Five USDC may leave in a year that began an hour ago, and one has left.
  const cap = [5 * USD, USD, startedS, 365 * 86_400].map(u64).join('');
  await withReserve(WITHDRAWAL_CAP, cap, async () => {
    const { status, body } = await post('withdraw-tx', { wallet: signer.address, amount: 'MAX' });
    assert.deepEqual([status, body.error], [409, 'WITHDRAWAL_CAP'], JSON.stringify(body));
    // Collateral is worth a little less or just as much, by the interest of the moment.
    const available = Number(body.available_usdc);
    assert(available > 3.9999 && available <= 4, body.available_usdc);
    assert.equal(body.transactions, undefined);
    const some = { wallet: signer.address, amount_usdc: Number(body.available_usdc) };
    const paid = await post('withdraw-tx', some);
    assert.equal(paid.status, 200, JSON.stringify(paid.body));
  });
  assert.equal((await post('withdraw-tx', { wallet: signer.address, amount: 'MAX' })).status, 200);
});

test('collateral from elsewhere bears no performance fee, whether it came before or after a deposit', async () => {
  const [giver, taker] = [await wallet(300), await wallet(100)];
  await deposit(giver, 300);
  const { depositedRaw, collateralRaw } = await deposit(taker, 100);
  const half = (await collateralOf(giver.address)) / 2n;
  await giveCollateral(giver, taker.address, half);
  await node.ask('sandbox_passInterest', MONTH_SECONDS);
  const leaving = await built('withdraw-tx', { wallet: taker.address, amount: 'MAX' });
  const gross = BigInt(leaving.grossRaw);
  const own = (gross * BigInt(collateralRaw)) / BigInt(leaving.collateralRaw);
  const earned = own - BigInt(depositedRaw);
  assert(earned > 0n);
  const perf = (earned * 15n) / 100n;
  assert.equal(leaving.feeRaw, String((gross * 50n) / 10_000n + perf));
  // Who gave half away has paid for the other half.
  const left = await built('withdraw-tx', { wallet: giver.address, amount: 'MAX' });
  const basis = 298_500_000n / 2n;
  const told = Number(left.fee_breakdown.yield_earned_usdc) * USD;
  assert(Math.abs(told - Number(BigInt(left.grossRaw) - basis)) <= 3, `${told}`);
});

async function giveCollateral(from: KeyPairSigner, to: Address, amount: bigint): Promise<void> {
  const { createTokenAccount } = await import('../../../../packages/yield/src/solana/instructions.ts');
  const { getTransferCheckedInstruction } = await import('@solana-program/token');
  const { signTransaction } = await import('../solana.fixture.ts');
  const [source, destination] = [from.address, to].map((owner) => tokenAccountOf(owner, COLLATERAL_MINT));
  assert(source !== undefined && destination !== undefined);
  const { wire, signature } = await signTransaction(
    [
      createTokenAccount(from.address, { owner: to, mint: COLLATERAL_MINT, account: destination }),
      getTransferCheckedInstruction({
        source,
        destination,
        mint: COLLATERAL_MINT,
        authority: from,
        amount,
        decimals: 6,
      }),
    ],
    { feePayer: from.address, blockhash: await node.blockhash(), signers: [from] },
  );
  await node.send(wire);
  await shown(signature ?? '');
}
