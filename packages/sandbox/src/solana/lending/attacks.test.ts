/** What the lending program's double refuses: wrong accounts and impossible amounts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccountRole, type Address, address, generateKeyPairSigner, type Instruction } from '@solana/kit';
import {
  COLLATERAL_MINT,
  COLLATERAL_VAULT,
  FEE_VAULT,
  LENDING_MARKET,
  LIQUIDITY_VAULT,
  MARKET_AUTHORITY,
  USDC_MINT,
  USDC_RESERVE,
} from '../../../../yield/src/solana/addresses.ts';
import {
  DEPOSIT_ACCOUNTS,
  depositReserveLiquidity,
  REDEEM_ACCOUNTS,
  redeemReserveCollateral,
} from '../../../../yield/src/solana/instructions.ts';
import { sandboxInstruction } from './borrower.ts';
import { lendingWorld } from './lending.fixture.ts';
import { NOVEMBER_2025 } from './place.ts';

const U64_MAX = (1n << 64n) - 1n;

/** The instruction with another account in this place, in the role of the account that it replaces unless one is given. */
function swapped(instruction: Instruction, place: number, by: Address, role?: AccountRole): Instruction {
  const accounts = (instruction.accounts ?? []).map((one, index) =>
    index === place ? { address: by, role: role ?? one.role } : one,
  );
  return { ...instruction, accounts };
}

function withRole(instruction: Instruction, place: number, role: AccountRole): Instruction {
  return swapped(instruction, place, instruction.accounts?.[place]?.address ?? USDC_MINT, role);
}

test('what is not as it should be is refused by its number, and changes nothing', async () => {
  const world = await lendingWorld(NOVEMBER_2025);
  const wallet = await world.wallet(1_000_000_000n);
  const victim = await world.wallet(1_000_000_000n);
  assert.equal(await world.tried(wallet.signer, depositReserveLiquidity(wallet, 500_000_000n)), null);
  assert.equal(await world.tried(victim.signer, depositReserveLiquidity(victim, 500_000_000n)), null);
  const deposit = depositReserveLiquidity(wallet, 10_000_000n);
  const redeem = redeemReserveCollateral(wallet, 10_000_000n);
  const copy = async (of: Address) => {
    const found = world.bank.account(of);
    assert.ok(found !== null);
    const { address: at } = await generateKeyPairSigner();
    return { ...found, address: at, data: new Uint8Array(found.data) };
  };
  // Two false reserves: `foreign` has the right data but does not belong to the program; `otherMarket` belongs to the
  // program but names another market.
  const foreign = { ...(await copy(USDC_RESERVE)), programAddress: wallet.owner };
  world.bank.setAccount(foreign);
  const otherMarket = await copy(USDC_RESERVE);
  otherMarket.data.set((await copy(USDC_MINT)).data.subarray(0, 32), 32);
  world.bank.setAccount(otherMarket);
  const before = world.reserve();
  const nobody = (await generateKeyPairSigner()).address;
  const data = (hex: string) => ({ ...deposit, data: new Uint8Array(Buffer.from(hex, 'hex')) });
  const table: [what: string, Instruction, error: unknown][] = [
    ['an owner who did not sign', swapped(deposit, 0, victim.owner, AccountRole.READONLY), 3_010],
    ['a reserve of another program', swapped(deposit, 1, foreign.address), 3_007],
    ['a reserve of another market', swapped(deposit, 1, otherMarket.address), 2_001],
    ['a market in the reserve’s place', swapped(deposit, 1, LENDING_MARKET), 3_002],
    ['a reserve in the market’s place', swapped(deposit, 2, USDC_RESERVE), 3_002],
    ['a reserve that may not be written', withRole(deposit, 1, AccountRole.READONLY), 2_000],
    ['another authority', swapped(deposit, 3, nobody), 2_006],
    ['another mint', swapped(deposit, 4, COLLATERAL_MINT), 2_012],
    ['another vault', swapped(deposit, 5, FEE_VAULT), 2_012],
    ['another mint of collateral', swapped(deposit, 6, USDC_MINT, AccountRole.WRITABLE), 2_012],
    ['the vault as the depositor’s account', swapped(deposit, 7, LIQUIDITY_VAULT), 6_006],
    ['collateral for the collateral’s vault', swapped(deposit, 8, COLLATERAL_VAULT), 6_006],
    ['cTokens in place of USDC', swapped(deposit, 7, wallet.collateral), 2_014],
    ['USDC in place of cTokens', swapped(deposit, 8, wallet.usdc), 2_014],
    ['an account that is not there', swapped(deposit, 8, nobody, AccountRole.WRITABLE), 3_012],
    ['somebody else’s USDC', swapped(deposit, DEPOSIT_ACCOUNTS.usdc, victim.usdc), 4],
    ['another token program', swapped(deposit, 10, address('11111111111111111111111111111111')), 3_008],
    ['another sysvar', swapped(deposit, 11, nobody), 2_012],
    ['too few accounts', { ...deposit, accounts: deposit.accounts?.slice(0, 11) ?? [] }, 3_005],
    ['an instruction that there is not', data('0102030405060708ffffffffffffffff'), 101],
    ['no instruction', data('a9c91e'), 101],
    ['an amount that is cut off', data('a9c91e7e06cd664401020304'), 102],
    ['nothing', depositReserveLiquidity(wallet, 0n), 6_003],
    ['all that there can be', depositReserveLiquidity(wallet, U64_MAX), 6_090],
    ['more than is held', depositReserveLiquidity(wallet, 500_000_001n), 1],
    ['a redemption of nothing', redeemReserveCollateral(wallet, 0n), 6_003],
    ['a redemption of more than is held', redeemReserveCollateral(wallet, 500_000_000n), 1],
    [
      'a redemption of all that there can be',
      redeemReserveCollateral(wallet, U64_MAX),
      'ProgramFailedToComplete',
    ],
    ['somebody else’s cTokens', swapped(redeem, REDEEM_ACCOUNTS.collateral, victim.collateral), 4],
    ['a payout to somebody else', swapped(redeem, REDEEM_ACCOUNTS.usdc, victim.usdc), 2_015],
    ['a payout to the vault', swapped(redeem, REDEEM_ACCOUNTS.usdc, LIQUIDITY_VAULT), 6_006],
    ['the authority as the owner', swapped(redeem, 0, MARKET_AUTHORITY, AccountRole.READONLY), 3_010],
    ['borrowing by who does not own the market', sandboxInstruction('borrow', wallet, 1n), 2_001],
    ['paying back by who does not own the market', sandboxInstruction('repay', wallet, 1n), 2_001],
  ];
  for (const [what, instruction, error] of table)
    assert.deepEqual([what, await world.tried(wallet.signer, instruction)], [what, error]);
  assert.deepEqual(world.reserve(), before);
});

test('flags of the reserve and of the market stop what they say', async () => {
  const world = await lendingWorld(NOVEMBER_2025);
  const wallet = await world.wallet(1_000_000_000n);
  assert.equal(await world.tried(wallet.signer, depositReserveLiquidity(wallet, 500_000_000n)), null);
  const table: [at: Address, offset: number, value: number, deposit: unknown, redeem: unknown][] = [
    [LENDING_MARKET, 122, 1, 6_042, 6_042],
    [USDC_RESERVE, 4_856, 1, 6_082, null],
    [USDC_RESERVE, 4_862, 1, 6_132, null],
    [USDC_RESERVE, 8, 2, 6_073, 6_073],
  ];
  for (const [at, offset, value, deposit, redeem] of table) {
    const account = world.bank.account(at);
    assert.ok(account !== null);
    const was = account.data[offset] ?? 0;
    const write = (byte: number) => {
      const now = world.bank.account(at) ?? account;
      const data = new Uint8Array(now.data);
      data[offset] = byte;
      world.bank.setAccount({ ...now, data });
    };
    write(value);
    assert.equal(await world.tried(wallet.signer, depositReserveLiquidity(wallet, 1_000_000n)), deposit);
    assert.equal(await world.tried(wallet.signer, redeemReserveCollateral(wallet, 1_000_000n)), redeem);
    write(was);
  }
  assert.equal(await world.tried(wallet.signer, depositReserveLiquidity(wallet, 1_000_000n)), null);
});
