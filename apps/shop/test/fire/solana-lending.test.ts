/**
 * The model against the program: random deposits, redemptions, borrowing, paying back and time, each run by the
 * sandbox's double of the lending program and reckoned by the model, which must agree to the raw unit and the last bit.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Instruction } from '@solana/kit';
import fc from 'fast-check';
import { sandboxInstruction } from '../../../../packages/sandbox/src/solana/lending/borrower.ts';
import {
  type LendingWorld,
  lendingWorld,
  type Wallet,
} from '../../../../packages/sandbox/src/solana/lending/lending.fixture.ts';
import { NOVEMBER_2025, type ReserveState } from '../../../../packages/sandbox/src/solana/lending/place.ts';
import { COLLATERAL_MINT, LIQUIDITY_VAULT } from '../../../../packages/yield/src/solana/addresses.ts';
import {
  depositReserveLiquidity,
  redeemReserveCollateral,
} from '../../../../packages/yield/src/solana/instructions.ts';
import {
  accrue,
  cTokensFor,
  depositRoomRaw,
  freeLiquidityRaw,
  supplySf,
  usdcFor,
} from '../../../../packages/yield/src/solana/model/interest.ts';
import type { Reserve } from '../../../../packages/yield/src/solana/model/reserve.ts';
import { isDeep } from './depth.fixture.ts';

const ROUNDS = isDeep ? 2_000 : 4;
/** Transactions of a round, of up to four acts each. */
const GROUPS = 100;
const PARTS = 1_000_000n;
const U64_MAX = (1n << 64n) - 1n;
const I64 = { least: -(1n << 63n), most: (1n << 63n) - 1n };
/** More than the reserve still takes, so that its limit is met too. */
const HELD = 500_000_000_000_000n;
const ERRORS = { tokens: 1, zero: 6_003, overflow: 6_007, liquidity: 6_008, limit: 6_090 };

const NOVEMBER_2024: Omit<ReserveState, 'slot'> = {
  ...NOVEMBER_2025,
  available: 10_143_494_880_000n,
  borrowed: 62_009_300_890_000n,
  protocolFees: 185_416_100_000n,
  collateralSupply: 65_988_021_918_314n,
  takePercent: 20,
  hostRateBps: 100,
  curve: [
    [0, 1],
    [8_000, 300],
    [8_500, 670],
    [9_000, 1_500],
    [9_500, 3_354],
    [10_000, 7_500],
  ],
  depositLimit: 900_000_000_000_000n,
};

type Act = 'deposit' | 'redeem' | 'borrow' | 'repay';
const amounts = fc.oneof(
  fc.bigInt(0n, 400n),
  fc.bigInt(1n, 10_000_000_000n),
  fc.bigInt(1n, HELD),
  fc.constant(U64_MAX),
);
const slots = fc.oneof(
  fc.constantFrom(0, 1, 2, 3, 4, 5, 100, 5_000, 216_000, 3_000_000),
  fc.integer({ min: 0, max: 20_000 }),
);
/** Whether a redemption is of a part of what is held, in millionths: then it can be paid. */
const parts = fc.option(fc.integer({ min: 1, max: 1_000_000 }), { nil: null });
const oneStep = fc.record({
  act: fc.constantFrom<Act>('deposit', 'deposit', 'redeem', 'redeem', 'borrow', 'repay'),
  who: fc.nat(1),
  amount: amounts,
  part: parts,
});
const groups = fc.record({ slots, steps: fc.array(oneStep, { minLength: 1, maxLength: 4 }) });
type Step = typeof oneStep extends fc.Arbitrary<infer One> ? One : never;
/** The acts of one transaction, after so many slots. */
type Group = typeof groups extends fc.Arbitrary<infer One> ? One : never;

function alone(act: Act, amount: bigint, more: Partial<Step> = {}, slots = 1): Group {
  return { slots, steps: [{ act, amount, who: 0, part: null, ...more }] };
}

/** Every round begins with these. */
const FIRST: readonly Group[] = [
  alone('deposit', 995_000_000n),
  alone('deposit', 0n),
  alone('deposit', U64_MAX),
  alone('deposit', HELD, { who: 1 }),
  alone('redeem', 0n, { part: 500_000 }, 6_480_000),
  alone('borrow', 1_000_000_000_000n),
  alone('repay', 1_000_000_000n, {}, 5),
  alone('redeem', 2n * HELD),
  alone('redeem', 900_000_000n),
  alone('redeem', U64_MAX),
];

interface Expected {
  error: number | string | null;
  reserve: Reserve;
  /** The increase of the actor's USDC and cTokens, in base units. */
  usdc: bigint;
  collateral: bigint;
}

/** Tells what by the model becomes of an act in this slot. @param held base units of the one who acts */
function expected(
  before: Reserve,
  slot: bigint,
  { act, amount }: { act: Act; amount: bigint },
  held: { usdc: bigint; collateral: bigint },
): Expected {
  const refused = (error: number | string): Expected => ({
    error,
    reserve: before,
    usdc: 0n,
    collateral: 0n,
  });
  const now: Reserve = { ...accrue(before, slot, 0), isStale: true };
  if (amount === 0n) return refused(ERRORS.zero);
  if (act === 'deposit') {
    const { cTokensRaw, paidRaw } = cTokensFor(now, amount);
    if (paidRaw > depositRoomRaw(now)) return refused(ERRORS.limit);
    if (paidRaw > held.usdc) return refused(ERRORS.tokens);
    const reserve = moved(now, paidRaw, cTokensRaw);
    return { error: null, reserve, usdc: -paidRaw, collateral: cTokensRaw };
  }
  if (act === 'redeem') {
    const paidRaw = usdcFor(now, amount);
    if (paidRaw > U64_MAX) return refused('ProgramFailedToComplete');
    if (paidRaw > freeLiquidityRaw(now)) return refused(ERRORS.liquidity);
    if (amount > now.collateralSupplyRaw) return refused(ERRORS.overflow);
    if (amount > held.collateral) return refused(ERRORS.tokens);
    return { error: null, reserve: moved(now, -paidRaw, -amount), usdc: paidRaw, collateral: -amount };
  }
  if (act === 'borrow') {
    if (amount > freeLiquidityRaw(now)) return refused(ERRORS.liquidity);
    const reserve = { ...now, availableRaw: now.availableRaw - amount };
    return {
      error: null,
      usdc: amount,
      collateral: 0n,
      reserve: { ...reserve, borrowedSf: now.borrowedSf + (amount << 60n) },
    };
  }
  const owed = now.borrowedSf >> 60n;
  const paid = amount < owed ? amount : owed;
  if (paid > held.usdc) return refused(ERRORS.tokens);
  const reserve = { ...now, availableRaw: now.availableRaw + paid };
  return {
    error: null,
    usdc: -paid,
    collateral: 0n,
    reserve: { ...reserve, borrowedSf: now.borrowedSf - (paid << 60n) },
  };
}

/** The reserve when USDC came in and cTokens were made, or the other way round. */
function moved(reserve: Reserve, usdc: bigint, collateral: bigint): Reserve {
  const total = reserve.withdrawalCap.totalRaw - usdc;
  const totalRaw = total < I64.least ? I64.least : total > I64.most ? I64.most : total;
  return {
    ...reserve,
    availableRaw: reserve.availableRaw + usdc,
    collateralSupplyRaw: reserve.collateralSupplyRaw + collateral,
    withdrawalCap: { ...reserve.withdrawalCap, totalRaw },
  };
}

function instructionOf(wallet: Wallet, act: Act, amount: bigint) {
  if (act === 'deposit') return depositReserveLiquidity(wallet, amount);
  if (act === 'redeem') return redeemReserveCollateral(wallet, amount);
  return sandboxInstruction(act, wallet, amount);
}

/** Asserts what holds whatever was done. */
function checkBooks({ bank, reserve, heldBy }: LendingWorld): void {
  const now = reserve();
  assert.equal(heldBy(LIQUIDITY_VAULT), now.availableRaw);
  const supply = Buffer.from(bank.account(COLLATERAL_MINT)?.data ?? []).readBigUInt64LE(36);
  assert.equal(supply, now.collateralSupplyRaw);
  assert.ok(supplySf(now) > 0n);
}

/**
 * Does acts in one transaction by the program and by the model, and compares all that either changed.
 *
 * @returns the acts that were done, or the one that failed and with it all, with its error
 */
async function act(
  world: LendingWorld,
  wallets: readonly Wallet[],
  { slots, steps }: Group,
): Promise<string[]> {
  world.bank.advance(slots);
  const slot = BigInt(world.bank.clock.slot());
  const all = [...wallets, world.borrower];
  const read = () => ({
    reserve: world.reserve(),
    held: new Map(
      all.flatMap(({ usdc, collateral }) => [usdc, collateral]).map((at) => [at, world.heldBy(at)]),
    ),
  });
  const before = read();
  let { reserve } = before;
  const held = new Map(before.held);
  const by: Wallet[] = [];
  const instructions: Instruction[] = [];
  const done: string[] = [];
  let error: number | string | null = null;
  for (const step of steps) {
    const who =
      (step.act === 'borrow' || step.act === 'repay' ? undefined : wallets[step.who]) ?? world.borrower;
    const own = { usdc: held.get(who.usdc) ?? 0n, collateral: held.get(who.collateral) ?? 0n };
    const isPart = step.act === 'redeem' && step.part !== null && own.collateral > 0n;
    const amount = isPart ? (own.collateral * BigInt(step.part ?? 0)) / PARTS : step.amount;
    by.push(who);
    instructions.push(instructionOf(who, step.act, amount));
    if (error !== null) continue;
    const foretold = expected(reserve, slot, { act: step.act, amount }, own);
    error = foretold.error;
    reserve = foretold.reserve;
    held.set(who.usdc, own.usdc + foretold.usdc).set(who.collateral, own.collateral + foretold.collateral);
    done.push(`${step.act} ${error ?? 'done'}`);
  }
  const [first = world.borrower, ...others] = by;
  assert.equal(
    await world.tried([first.signer, ...others.map(({ signer }) => signer)], ...instructions),
    error,
  );
  assert.deepEqual(read(), error === null ? { reserve, held } : before);
  return error === null ? done : done.slice(-1);
}

for (const [name, state] of [
  ['November 2025', NOVEMBER_2025],
  ['November 2024, with a host’s fee and six points', NOVEMBER_2024],
] as const)
  test(`the program does what the model says, from ${name} on`, async () => {
    const done = new Set<string>();
    const sequences = fc.array(groups, { minLength: GROUPS, maxLength: GROUPS });
    const property = fc.asyncProperty(sequences, async (sequence) => {
      const world = await lendingWorld(state);
      const wallets = [await world.wallet(HELD), await world.wallet(HELD / 1_000n)];
      await world.give(world.borrower.owner, HELD);
      for (const group of [...FIRST, ...sequence])
        for (const one of await act(world, wallets, group)) done.add(one);
      checkBooks(world);
    });
    await fc.assert(property, { numRuns: ROUNDS });
    // What every round begins with sees to it that each of these was met.
    for (const met of ['deposit done', 'redeem done', 'borrow done', 'repay done', 'deposit 6003'])
      assert.ok(done.has(met), `${met} is not among ${[...done]}`);
    for (const met of [
      'redeem 6008',
      'deposit 6090',
      'deposit 1',
      'redeem 1',
      'redeem ProgramFailedToComplete',
    ])
      assert.ok(done.has(met), `${met} is not among ${[...done]}`);
  });
