/**
 * What the portal builds, signed and sent by clients as they are published and by a wallet that adds instructions of its own: a month
 * later everybody leaves with what the model of the lending program says, to the unit. And what is told meanwhile.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { getBase58Decoder } from '@solana/kit';
import { USDC_RESERVE } from '../../../../packages/yield/src/solana/addresses.ts';
import { accrue, cTokensFor, usdcFor } from '../../../../packages/yield/src/solana/model/interest.ts';
import { decodeReserve, type Reserve } from '../../../../packages/yield/src/solana/model/reserve.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { type SolanaYieldWorld, startSolanaYieldWorld } from './solana-yield.fixture.ts';

const USDC = 1_000_000n;
const MONTH_SLOTS = 6_480_000;
const MINUTE_MS = 60_000;
const EXAMPLE = join(import.meta.dirname, '../../../../examples/earn-on-solana.mjs');

let database: TestDatabase;
let world: SolanaYieldWorld;
/** How far the server's clock is ahead, so that nothing has to be waited for. */
let aheadMs = 0;
before(async () => {
  database = await openTestDatabase();
  world = await startSolanaYieldWorld(database, {}, { nowMs: () => Date.now() + aheadMs });
});
after(async () => {
  await world?.stop();
  await database?.close();
});

/** The reserve as its account is now, with interest up to when it was last touched. */
async function reserveNow(): Promise<Reserve> {
  const { value } = await world.node.ask<{ value: { owner: string; data: [string, string] } }>(
    'getAccountInfo',
    USDC_RESERVE,
    { encoding: 'base64', commitment: 'confirmed' },
  );
  return decodeReserve({ owner: value.owner, data: new Uint8Array(Buffer.from(value.data[0], 'base64')) });
}

/** The slot that a transaction landed in. */
async function slotOf(signature: string): Promise<bigint> {
  const { slot } = await world.node.ask<{ slot: number }>('getTransaction', signature, {
    commitment: 'confirmed',
    maxSupportedTransactionVersion: 0,
  });
  return BigInt(slot);
}

/** The reserve right before what happens to it in a slot. */
const atSlot = (reserve: Reserve, slot: bigint) => accrue(reserve, slot, 0);
const partOf = (units: bigint, bps: bigint) => (units * bps) / 10_000n;
const setFault = (fault: object) => world.node.ask('sandbox_setFault', fault);

test('unmodified clients deposit, and leave a month later with what the model says, to the unit', async () => {
  const wallets = await Promise.all([1_000n, 250n, 61n].map((usd) => world.wallet(Number(usd * USDC))));
  const [byKit, byWeb3, meddling] = wallets;
  assert(byKit && byWeb3 && meddling);
  const people = [
    { who: '@solana/kit', wallet: byKit, send: world.byKit(byKit), amount: 1_000n * USDC },
    { who: '@solana/web3.js', wallet: byWeb3, send: world.byWeb3(byWeb3), amount: 250n * USDC },
    { who: 'a wallet that adds', wallet: meddling, send: world.byMeddler(meddling), amount: 60_123_457n },
  ];
  const began = await world.node.holds(world.treasury);
  let paidToTreasury = 0n;
  const deposits = new Map<string, { collateral: bigint; paid: bigint; left: bigint }>();
  for (const { who, wallet, send, amount } of people) {
    const before = await reserveNow();
    const held = await world.node.holds(wallet.address);
    const bundle = await world.answer('deposit-tx', {
      wallet: wallet.address,
      amount_raw: String(amount),
      idempotency_key: randomUUID(),
    });
    assert.deepEqual(bundle.warnings, [], who);
    const signatures: string[] = [];
    for (const { base64 } of bundle.transactions) signatures.push(await send(base64));
    const last = signatures.at(-1) ?? '';
    const told = await world.answer('confirm', { wallet: wallet.address, txSignature: last });
    const fee = partOf(amount, 50n);
    const { cTokensRaw, paidRaw } = cTokensFor(atSlot(before, await slotOf(last)), amount - fee);
    assert.deepEqual(
      [told.verificationStatus, told.onChainVerified, told.depositedRaw, told.collateralRaw],
      ['confirmed', true, String(paidRaw), String(cTokensRaw)],
      who,
    );
    const left = await world.node.holds(wallet.address);
    assert.equal(left, held - fee - paidRaw, who);
    paidToTreasury += fee;
    deposits.set(who, { collateral: cTokensRaw, paid: paidRaw, left });
  }
  assert.equal(await world.node.holds(world.treasury), began + paidToTreasury);

  await world.node.pass(MONTH_SLOTS);
  for (const { who, wallet, send } of people) {
    const { collateral, paid, left } = deposits.get(who) ?? assert.fail(who);
    const before = await reserveNow();
    const shown = await world.answer(`position/${wallet.address}`);
    const value = usdcFor(atSlot(before, BigInt(shown.readAt.slot)), collateral);
    const { position } = shown;
    assert.deepEqual(
      [position.status, position.collateralBalanceRaw, position.depositedRaw, position.currentValueRaw],
      ['earning', String(collateral), String(paid), String(value)],
      who,
    );
    assert(value > paid, `${who} earned nothing`);
    const fees = partOf(value, 50n) + partOf(value - paid, 1_500n);
    assert.equal(position.leavingNow.receivesRaw, String(value - fees), who);

    const exit = await world.answer('withdraw-tx', { wallet: wallet.address, amount: 'MAX' });
    const offered = usdcFor(atSlot(before, BigInt(exit.at_slot)), collateral);
    const fee = partOf(offered, 50n) + partOf(offered - paid, 1_500n);
    assert.deepEqual(
      [exit.grossRaw, exit.feeRaw, exit.net_raw],
      [offered, fee, offered - fee].map(String),
      who,
    );
    const signature = await send(exit.transactions[0].base64);
    const gross = usdcFor(atSlot(before, await slotOf(signature)), collateral);
    assert.equal(await world.node.holds(wallet.address), left + gross - fee, who);
    paidToTreasury += fee;
    const after = await world.answer(`position/${wallet.address}`);
    assert.deepEqual([after.position.status, after.next_action[0].action], ['empty', 'deposit'], who);
  }
  assert.equal(await world.node.holds(world.treasury), began + paidToTreasury);
});

test('rates, stats and the manifest are of one slot, and say so; a younger blockhash is to be had', async () => {
  const response = await world.ask('rates');
  const rates = await jsonOf(response);
  assert.equal(response.status, 200, JSON.stringify(rates));
  assert.match(response.headers.get('link') ?? '', /\/api\/solana-yield\/manifest>; rel="manifest"/);
  assert.match(response.headers.get('x-agent-tip') ?? '', /deposit-tx/);
  assert.equal(rates.program, undefined, 'no sandbox was named to this server');
  assert(rates.usdc.apyPct > 0 && rates.usdc.apyPct < 20, JSON.stringify(rates.usdc));
  assert.equal(rates.usdc.slotMs, 400);
  assert.match(rates.comparison.base.reason, /offers no vault on Base/);
  const { stats, health, readAt } = await world.answer('stats');
  assert.equal(readAt.slot, rates.readAt.slot);
  assert.deepEqual(health, { depositsOpen: true, withdrawalsOpen: true, reasons: [] });
  assert(Number(stats.availableUsdc) > 0 && stats.utilizationPct > 50);
  const manifest = await world.answer('manifest');
  assert.deepEqual([manifest.version, manifest.limits.min_deposit_usdc], ['1.0.0', 5]);
  const { blockhash } = await world.answer('blockhash');
  const { value } = await world.node.ask<{ value: boolean }>('isBlockhashValid', blockhash, {
    commitment: 'processed',
  });
  assert.equal(value, true);
  for (const path of ['position/nobody', 'transaction/short', `position/${USDC_RESERVE}x`])
    assert.equal((await world.ask(path)).status, 400, path);
  const unknown = await world.answer(`transaction/${'1'.repeat(64)}`);
  assert.equal(unknown.status, 'unknown');
});

test('documents lead to the portal where there is one', async () => {
  const read = async (path: string) => (await fetch(world.server.url + path)).text();
  assert.match(await read('/llms.txt'), /\[Yield on Solana\]\(http:\S+\/api\/solana-yield\/manifest\)/);
  const { links } = JSON.parse(await read('/.well-known/agent-instructions.json'));
  assert.match(links.yieldOnSolana, /\/api\/solana-yield\/manifest$/);
  const elsewhere = await startTestServer({ pools: database });
  try {
    for (const path of ['/llms.txt', '/.well-known/agent-instructions.json']) {
      const text = await (await fetch(elsewhere.url + path)).text();
      assert.doesNotMatch(text, /api\/solana-yield/, path);
    }
  } finally {
    await elsewhere.close();
  }
});

test('the program of the README deposits, waits a month and leaves', async () => {
  const { address, keypair } = await world.wallet(Number(100n * USDC));
  const earn = async (...words: string[]) => {
    const { stdout } = await promisify(execFile)(process.execPath, [EXAMPLE, ...words], {
      env: {
        ...SURROUNDINGS,
        SOLANA_KEY: getBase58Decoder().decode(keypair.secretKey),
        SOLANA_RPC_URL: world.chain.url,
        FAREBOX_URL: world.server.url,
      },
    });
    return stdout;
  };
  const deposited = await earn('deposit', '50');
  assert.match(deposited, /^deposited: confirmed, in transaction \w{64,88}$/m);
  assert.match(deposited, /status: 'earning',\s+depositedUsdc: '49\.7\d{5}'/);
  await world.node.pass(MONTH_SLOTS);
  assert.match(await earn('withdraw', 'MAX'), /^withdrawn: 49\.\d{6} USDC at least[\s\S]*status: 'empty'/m);
  const held = await world.node.holds(address);
  assert(held > 99n * USDC && held < 100n * USDC, `${held}`);
});

test('figures are kept for a minute and told for ten; then a chain that is away is said to be', async () => {
  const seen = async () => {
    const response = await world.ask('rates');
    await response.arrayBuffer();
    return `${response.status} ${response.headers.get('x-cache')}`;
  };
  aheadMs += 20 * MINUTE_MS;
  assert.equal(await seen(), '200 MISS');
  assert.equal(await seen(), '200 HIT');
  aheadMs += MINUTE_MS;
  assert.equal(await seen(), '200 STALE');
  await until('a fresh rate', async () => (await seen()) === '200 HIT', 180_000);

  await setFault({ fault: 'status', method: 'getMultipleAccounts', count: 1_000_000 });
  aheadMs += 2 * MINUTE_MS;
  assert.equal(await seen(), '200 STALE');
  aheadMs += 10 * MINUTE_MS;
  const { address } = await world.wallet(Number(USDC));
  for (const path of ['rates', 'stats', `position/${address}`]) {
    const response = await world.ask(path);
    const { code } = await jsonOf(response);
    assert.deepEqual([response.status, code], [503, 'CHAIN_UNAVAILABLE'], path);
    assert(Number(response.headers.get('retry-after')) > 0, path);
  }
  const manifest = await world.answer('manifest');
  assert.equal(manifest.currentAPY.apyPct, null);
  assert.match(manifest.currentAPY.reason, /cannot be read/);

  await world.node.ask('sandbox_clearFaults');
  aheadMs += MINUTE_MS;
  assert.equal(await seen(), '200 MISS');
});

test('a node that says nothing is given up in time, and a rate that nobody tells is null', async () => {
  const { address } = await world.wallet(Number(USDC));
  await setFault({ fault: 'delay', method: 'getMultipleAccounts', count: 1, delayMs: 60_000 });
  const response = await world.ask(`position/${address}`);
  assert.deepEqual([response.status, (await jsonOf(response)).code], [503, 'CHAIN_UNAVAILABLE']);

  await setFault({ fault: 'refuse', method: 'getRecentPerformanceSamples', count: 1 });
  aheadMs += 20 * MINUTE_MS;
  const { usdc, onChain } = await world.answer('rates');
  assert.equal(usdc.apyPct, null);
  assert.match(usdc.reason, /how long slots last/);
  assert(Number(onChain.depositTvlUsdc) > 0);
  await world.node.ask('sandbox_clearFaults');
});
