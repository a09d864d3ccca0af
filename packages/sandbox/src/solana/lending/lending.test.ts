/** The lending program's double: from what it was built, and how a node that has it behaves to clients. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Address, generateKeyPairSigner, type Instruction, type KeyPairSigner } from '@solana/kit';
import { signTransaction as signedWire } from '../../../../../apps/shop/test/solana.fixture.ts';
import {
  COLLATERAL_MINT,
  COLLATERAL_VAULT,
  LENDING_MARKET,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  USDC_MINT,
  USDC_RESERVE,
} from '../../../../yield/src/solana/addresses.ts';
import {
  createTokenAccount,
  depositReserveLiquidity,
  ownAccountsOf,
  redeemReserveCollateral,
} from '../../../../yield/src/solana/instructions.ts';
import {
  accrue,
  cTokensFor,
  supplyAprAndApy,
  toNumber,
  usdcFor,
  utilizationSf,
} from '../../../../yield/src/solana/model/interest.ts';
import { decodeReserve, type Reserve } from '../../../../yield/src/solana/model/reserve.ts';
import { SEED } from '../../accounts.fixture.ts';
import { askSolana } from '../ask.ts';
import { openBank } from '../bank.ts';
import { bringIntoBeing } from '../genesis.ts';
import { newClockState, SLOT_MS } from '../slots.ts';
import { startSolana } from '../solana.ts';
import { openStateFile } from '../state-file.ts';
import { compile, findClang } from './compile.ts';
import { lendingWorld } from './lending.fixture.ts';
import { NOVEMBER_2025 } from './place.ts';
import { readManifest, readProgram, sha256, sourceSha256 } from './program.ts';

const CONFIRMED = { commitment: 'confirmed', encoding: 'base64', maxSupportedTransactionVersion: 0 };
const DAY_SECONDS = 86_400;

interface Landed {
  slot: number;
  meta: { err: unknown; logMessages: string[] };
}

/** A node, and what tests do with it. */
async function nodeFor(context: TestContext, stateDir: string | null = null) {
  const chain = await startSolana({ seed: SEED, stateDir });
  context.after(() => chain.stop());
  const ask = <Result>(method: string, ...params: unknown[]) =>
    askSolana<Result>(chain.url, method, ...params);
  const bytesOf = async (address: Address) => {
    const { value } = await ask<{ value: { owner: string; data: [string] } }>(
      'getAccountInfo',
      address,
      CONFIRMED,
    );
    return { owner: value.owner, data: new Uint8Array(Buffer.from(value.data[0], 'base64')) };
  };
  const sign = async (signer: KeyPairSigner, instructions: readonly Instruction[]) => {
    const { value } = await ask<{ value: { blockhash: string } }>('getLatestBlockhash', CONFIRMED);
    const terms = { feePayer: signer.address, blockhash: value.blockhash, signers: [signer] };
    return (await signedWire(instructions, terms)).wire;
  };
  return {
    chain,
    ask,
    bytesOf,
    sign,
    reserve: async (): Promise<Reserve> => decodeReserve(await bytesOf(USDC_RESERVE)),
    amountIn: async (account: Address) =>
      BigInt((await ask<{ value: { amount: string } }>('getTokenAccountBalance', account)).value.amount),
    async wallet(usdcUnits: number) {
      const signer = await generateKeyPairSigner();
      await ask('sandbox_fund', signer.address, { lamports: 1_000_000_000, usdcUnits });
      return { ...(await ownAccountsOf(signer.address)), signer };
    },
    async send(signer: KeyPairSigner, ...instructions: readonly Instruction[]): Promise<Landed> {
      const wire = await sign(signer, instructions);
      const signature = await ask('sendTransaction', wire, { encoding: 'base64', skipPreflight: true });
      const landed = await ask<Landed | null>('getTransaction', signature, CONFIRMED);
      assert.ok(landed !== null);
      return landed;
    },
  };
}
type Node = Awaited<ReturnType<typeof nodeFor>>;
type Wallet = Awaited<ReturnType<Node['wallet']>>;

function makingAccount({ owner, collateral }: Wallet): Instruction {
  return createTokenAccount(owner, { owner, mint: COLLATERAL_MINT, account: collateral });
}

function deposit(node: Node, wallet: Wallet, amountRaw: bigint): Promise<Landed> {
  return node.send(wallet.signer, makingAccount(wallet), depositReserveLiquidity(wallet, amountRaw));
}

test('the program that is committed was built of this source', () => {
  const manifest = readManifest();
  const remedy = 'write it anew with npm run sandbox:build-solana-program';
  assert.equal(sourceSha256(), manifest.sourceSha256, remedy);
  assert.equal(sha256(readProgram()), manifest.programSha256, remedy);
  const clang = findClang(process.env);
  // Without this compiler, only the hashes can be compared.
  if (clang?.version === manifest.compiler)
    assert.equal(sha256(compile(clang.path)), manifest.programSha256, remedy);
});

test('the accounts agree with each other, and borrowing makes rates', async (context) => {
  const node = await nodeFor(context);
  const reserve = await node.reserve();
  assert.equal(await node.amountIn(LIQUIDITY_VAULT), reserve.availableRaw);
  assert.equal(await node.amountIn(COLLATERAL_VAULT), reserve.collateralSupplyRaw);
  const supplyOf = async (mint: Address) =>
    BigInt((await node.ask<{ value: { amount: string } }>('getTokenSupply', mint)).value.amount);
  assert.equal(await supplyOf(COLLATERAL_MINT), reserve.collateralSupplyRaw);
  assert.ok((await supplyOf(USDC_MINT)) > reserve.availableRaw);
  const use = toNumber(utilizationSf(reserve));
  assert.ok(use > 0.7 && use < 0.86, `${use}`);
  const { supplyApy } = supplyAprAndApy(reserve, SLOT_MS);
  assert.ok(supplyApy > 0.02 && supplyApy < 0.06, `${supplyApy}`);
  const { value } = await node.ask<{ value: { executable: boolean } }>(
    'getAccountInfo',
    LENDING_PROGRAM,
    CONFIRMED,
  );
  assert.equal(value.executable, true);
});

test('a deposit earns while time passes for what is lent alone, and says that a double did it', async (context) => {
  const node = await nodeFor(context);
  const wallet = await node.wallet(1_000_000_000);
  const before = await node.reserve();
  const { slot, meta } = await deposit(node, wallet, 995_000_000n);
  assert.equal(meta.err, null);
  assert.ok(
    meta.logMessages.includes('Program log: Sandbox lending double: deposit '),
    `${meta.logMessages}`,
  );
  const { cTokensRaw, paidRaw } = cTokensFor(accrue(before, BigInt(slot), 0), 995_000_000n);
  assert.equal(await node.amountIn(wallet.collateral), cTokensRaw);
  assert.equal(await node.amountIn(wallet.usdc), 1_000_000_000n - paidRaw);

  const slotBefore = await node.ask<number>('getSlot', CONFIRMED);
  const passed = await node.ask<number>('sandbox_passInterest', 30 * DAY_SECONDS);
  assert.equal(passed, 6_480_000);
  const slots = (await node.ask<number>('getSlot', CONFIRMED)) - slotBefore;
  assert.ok(slots < 100_000, `the chain went on by ${slots} slots`);
  const later = await node.reserve();
  const leaving = await node.send(wallet.signer, redeemReserveCollateral(wallet, cTokensRaw));
  assert.equal(leaving.meta.err, null);
  const paid = (await node.amountIn(wallet.usdc)) - (1_000_000_000n - paidRaw);
  assert.equal(paid, usdcFor(accrue(later, BigInt(leaving.slot), 0), cTokensRaw));
  const earned = Number(paid - paidRaw) / 1e6;
  assert.ok(earned > 1.5 && earned < 5, `${earned} USDC in 30 days`);
});

test('years pass one after another, further back than the chain has slots', async (context) => {
  const node = await nodeFor(context);
  const before = await node.reserve();
  for (let times = 0; times < 2; times += 1) await node.ask('sandbox_passInterest', 3_650 * DAY_SECONDS);
  const after = await node.reserve();
  const grown = Number(after.cumulativeBorrowRateSf) / Number(before.cumulativeBorrowRateSf);
  // 20 years at some 4.9 %.
  assert.ok(grown > 2 && grown < 4, `${grown}`);
});

test('what was lent is there after a restart, and a chain from before gets the program', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-solana-lending-'));
  const older = openBank({ clock: newClockState(), rest: null });
  await bringIntoBeing(older, SEED);
  const file = openStateFile(folder, () => older.state());
  file.changed();
  await file.close();
  assert.equal(older.account(USDC_RESERVE), null);

  const first = await nodeFor(context, folder);
  const wallet = await first.wallet(20_000_000);
  assert.equal((await deposit(first, wallet, 10_000_000n)).meta.err, null);
  const held = await first.amountIn(wallet.collateral);
  const { collateralSupplyRaw } = await first.reserve();
  await first.chain.stop();

  const second = await nodeFor(context, folder);
  // Runs after the nodes are stopped, because a node then writes its last state.
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  assert.equal(await second.amountIn(wallet.collateral), held);
  assert.equal((await second.reserve()).collateralSupplyRaw, collateralSupplyRaw);
  const leaving = await second.send(wallet.signer, redeemReserveCollateral(wallet, held));
  assert.equal(leaving.meta.err, null);
});

test('a transaction that was simulated well fails when it lands', async (context) => {
  const node = await nodeFor(context);
  const wallet = await node.wallet(20_000_000);
  await node.ask('sandbox_setFault', { fault: 'fails-landing' });
  const wire = await node.sign(wallet.signer, [
    makingAccount(wallet),
    depositReserveLiquidity(wallet, 5_000_000n),
  ]);
  const simulated = await node.ask<{ value: { err: unknown } }>('simulateTransaction', wire, CONFIRMED);
  assert.equal(simulated.value.err, null);
  // Sent with preflight: the node simulates the transaction once more.
  const signature = await node.ask('sendTransaction', wire, CONFIRMED);
  const landed = await node.ask<Landed>('getTransaction', signature, CONFIRMED);
  assert.deepEqual(landed.meta.err, { InstructionError: [1, { Custom: 6_042 }] });
  assert.equal(await node.amountIn(wallet.usdc), 20_000_000n);
  assert.equal((await deposit(node, wallet, 6_000_000n)).meta.err, null);
});

test('a node that fell behind knows nothing of what came after', async (context) => {
  const node = await nodeFor(context);
  const wallet = await node.wallet(20_000_000);
  const reserve = await node.reserve();
  await node.ask('sandbox_setFault', { fault: 'behind', count: 1_000 });
  const slot = await node.ask<number>('getSlot', CONFIRMED);
  await node.ask('sandbox_advanceSlots', 50);
  const wire = await node.sign(wallet.signer, [
    makingAccount(wallet),
    depositReserveLiquidity(wallet, 5_000_000n),
  ]);
  const signature = await node.ask('sendTransaction', wire, { ...CONFIRMED, skipPreflight: true });
  assert.equal(await node.ask('getTransaction', signature, CONFIRMED), null);
  assert.equal(await node.ask<number>('getSlot', CONFIRMED), slot);
  assert.deepEqual(await node.reserve(), reserve);
  const tooFar = { ...CONFIRMED, minContextSlot: slot + 50 };
  await assert.rejects(node.ask('getMultipleAccounts', [USDC_RESERVE], tooFar), /Minimum context slot/);
  await node.ask('sandbox_clearFaults');
  assert.equal((await node.ask<Landed>('getTransaction', signature, CONFIRMED)).meta.err, null);
});

test('a drill writes bytes that lie within an account, and no others', async (context) => {
  const node = await nodeFor(context);
  const write = (address: Address, offset: number, hex: string) =>
    node.ask('sandbox_writeAccount', address, { offset, hex });
  await write(LENDING_MARKET, 122, '01');
  const wallet = await node.wallet(20_000_000);
  const refused = await deposit(node, wallet, 5_000_000n);
  assert.deepEqual(refused.meta.err, { InstructionError: [1, { Custom: 6_042 }] });
  await assert.rejects(write(LENDING_MARKET, 4_664, '01'), /within the account/);
  await assert.rejects(write(LENDING_MARKET, 4_663, '0101'), /within the account/);
  await assert.rejects(write(LENDING_MARKET, 0, 'no'), /within the account/);
  await assert.rejects(write(wallet.collateral, 0, '00'), /could not find account/);
});

test('a transaction is of the slot that its programs read, even when the next one begins meanwhile', async (context) => {
  const { bank, run, wallet, reserve } = await lendingWorld(NOVEMBER_2025);
  const own = await wallet(1_000_000_000n);
  const slot = bank.clock.slot.bind(bank.clock);
  const { mock } = context.mock.method(bank.clock, 'slot', () => {
    bank.clock.advance(1);
    return slot();
  });
  const landed = await run(own.signer, depositReserveLiquidity(own, 500_000_000n));
  mock.restore();
  assert.equal(landed.err, null);
  assert.equal(BigInt(landed.slot), reserve().lastUpdateSlot);
});
