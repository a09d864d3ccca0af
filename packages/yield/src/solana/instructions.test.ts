import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { type Address, address, getAddressEncoder, getProgramDerivedAddress } from '@solana/kit';
import { tokenAccountOf } from './address-bytes.ts';
import {
  COLLATERAL_MINT,
  COLLATERAL_VAULT,
  FEE_VAULT,
  LENDING_MARKET,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  MARKET_AUTHORITY,
  USDC_MINT,
} from './addresses.ts';
import {
  createTokenAccount,
  DEPOSIT_ACCOUNTS,
  DEPOSIT_RESERVE_LIQUIDITY,
  depositReserveLiquidity,
  ownAccountsOf,
  REDEEM_ACCOUNTS,
  REDEEM_RESERVE_COLLATERAL,
  redeemReserveCollateral,
  setUnitLimit,
  setUnitPrice,
  transferUsdc,
} from './instructions.ts';

const OWNER = address('9B5XszUGdMaxCZ7uSQhPzdks5ZQSmWxrmzCSvtJ6Ns6g');

/** An instruction on a line: each account's role as kit counts them, and the data as hex. */
function shown({ accounts = [], data }: ReturnType<typeof transferUsdc>): string {
  const roles = accounts.map(({ role }) => role).join('');
  return `${roles} ${Buffer.from(data ?? []).toString('hex')}`;
}

test('the market’s addresses follow from the program, the market and the mint', async () => {
  const encode = getAddressEncoder().encode;
  const derived = async (seed: string, ...keys: Address[]) => {
    const seeds = [Buffer.from(seed), ...keys.map((key) => encode(key))];
    return (await getProgramDerivedAddress({ programAddress: LENDING_PROGRAM, seeds }))[0];
  };
  assert.equal(await derived('lma', LENDING_MARKET), MARKET_AUTHORITY);
  assert.equal(await derived('reserve_liq_supply', LENDING_MARKET, USDC_MINT), LIQUIDITY_VAULT);
  assert.equal(await derived('fee_receiver', LENDING_MARKET, USDC_MINT), FEE_VAULT);
  assert.equal(await derived('reserve_coll_mint', LENDING_MARKET, USDC_MINT), COLLATERAL_MINT);
  assert.equal(await derived('reserve_coll_supply', LENDING_MARKET, USDC_MINT), COLLATERAL_VAULT);
});

test('an instruction of the lending program begins with the hash of its name', () => {
  const hashed = (name: string) => createHash('sha256').update(`global:${name}`).digest('hex').slice(0, 16);
  assert.equal(DEPOSIT_RESERVE_LIQUIDITY, hashed('deposit_reserve_liquidity'));
  assert.equal(REDEEM_RESERVE_COLLATERAL, hashed('redeem_reserve_collateral'));
});

test('instructions are laid out as their programs read them', () => {
  const own = ownAccountsOf(OWNER);
  assert.equal(tokenAccountOf(OWNER, USDC_MINT), own.usdc);
  const deposit = depositReserveLiquidity(own, 995_000_000n);
  assert.equal(shown(deposit), '210001111000 a9c91e7e06cd6644c07e4e3b00000000');
  assert.equal(deposit.accounts?.[DEPOSIT_ACCOUNTS.usdc]?.address, own.usdc);
  assert.equal(deposit.accounts?.[DEPOSIT_ACCOUNTS.collateral]?.address, own.collateral);
  const redeem = redeemReserveCollateral(own, (1n << 64n) - 1n);
  assert.equal(shown(redeem), '201001111000 ea75b57db98edc1dffffffffffffffff');
  assert.equal(redeem.accounts?.[REDEEM_ACCOUNTS.usdc]?.address, own.usdc);
  assert.equal(redeem.accounts?.[REDEEM_ACCOUNTS.collateral]?.address, own.collateral);
  const making = createTokenAccount(OWNER, { owner: OWNER, mint: COLLATERAL_MINT, account: own.collateral });
  assert.equal(shown(making), '310000 01');
  const transfer = transferUsdc({ owner: OWNER, from: own.usdc, to: LIQUIDITY_VAULT, amountRaw: 256n });
  assert.equal(shown(transfer), '1012 0c000100000000000006');
  assert.equal(shown(setUnitLimit(200_000)), ' 02400d0300');
  assert.equal(shown(setUnitPrice(1_000n)), ' 03e803000000000000');
  assert.throws(() => depositReserveLiquidity(own, -1n), RangeError);
  assert.throws(() => redeemReserveCollateral(own, 1n << 64n), RangeError);
});
