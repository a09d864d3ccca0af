/**
 * Puts the double of the lending program on the chain, with its market and its USDC reserve as mainnet's stood in
 * November 2025. A chain of an earlier version gets them with its next start. Each start replaces the program; a market
 * and a reserve that are already there stay as they are.
 */
import { type Address, getAddressEncoder, lamports } from '@solana/kit';
import { getMintDecoder, getMintEncoder, getTokenEncoder } from '@solana-program/token';
import { signerOf } from '../accounts.ts';
import type { Bank } from '../bank.ts';
import { TOKEN_PROGRAM, USDC_DECIMALS, USDC_MINT } from '../programs.ts';
import {
  COLLATERAL_MINT,
  COLLATERAL_VAULT,
  FEE_VAULT,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  MARKET_ACCOUNT,
  MARKET_AUTHORITY,
  MARKET_AUTHORITY_BUMP,
  RESERVE_ACCOUNT,
} from './addresses.ts';
import {
  CURVE_POINTS,
  LAYOUT_VERSION,
  MARKET,
  MARKET_BYTES,
  MARKET_MARK,
  RESERVE,
  RESERVE_BYTES,
  RESERVE_MARK,
} from './layout.ts';
import { readProgram } from './program.ts';

const FRACTION_BITS = 60n;
const WORD = (1n << 64n) - 1n;
const INITIALIZED = 1;
const CURVE_POINT_BYTES = 8;

/** What a reserve begins with; amounts in base units. */
export interface ReserveState {
  slot: bigint;
  available: bigint;
  borrowed: bigint;
  protocolFees: bigint;
  collateralSupply: bigint;
  takePercent: number;
  hostRateBps: number;
  /** The last point is repeated until the program's curve is full. */
  curve: readonly (readonly [useBps: number, rateBps: number])[];
  depositLimit: bigint;
  borrowLimit: bigint;
}

/** The reserve's figures on mainnet, at slot 377,723,091. */
export const NOVEMBER_2025: Omit<ReserveState, 'slot'> = {
  available: 129_639_221_256_987n,
  borrowed: 458_163_294_490_000n,
  protocolFees: 291_829_480_000n,
  collateralSupply: 505_501_704_354_504n,
  takePercent: 10,
  hostRateBps: 0,
  curve: [
    [0, 0],
    [9_500, 475],
    [10_000, 3_000],
  ],
  depositLimit: 1_500_000_000_000_000n,
  borrowLimit: 1_200_000_000_000_000n,
};

/** Writes the program, and the accounts where there is no reserve yet. */
export async function placeLending(bank: Bank, seed: string): Promise<void> {
  bank.placeProgram(LENDING_PROGRAM, new Uint8Array(readProgram()));
  if (bank.account(RESERVE_ACCOUNT) !== null) return;
  const owner = (await signerOf(seed, 'borrower')).address;
  placeReserve(bank, owner, { ...NOVEMBER_2025, slot: BigInt(bank.clock.slot()) });
}

/**
 * Writes a market and a reserve with their mint and vaults, whose amounts agree with each other.
 *
 * @param owner may borrow without collateral
 */
export function placeReserve(bank: Bank, owner: Address, state: ReserveState): void {
  const write = (address: Address, programAddress: Address, data: Uint8Array) =>
    bank.setAccount({
      address,
      programAddress,
      data,
      lamports: lamports(bank.rentExemptLamports(data.length)),
      executable: false,
      space: BigInt(data.length),
    });
  write(MARKET_ACCOUNT, LENDING_PROGRAM, marketBytes(owner));
  write(RESERVE_ACCOUNT, LENDING_PROGRAM, reserveBytes(state));
  const mint = { decimals: USDC_DECIMALS, isInitialized: true, freezeAuthority: null };
  const collateral = { ...mint, mintAuthority: MARKET_AUTHORITY, supply: state.collateralSupply };
  write(COLLATERAL_MINT, TOKEN_PROGRAM, new Uint8Array(getMintEncoder().encode(collateral)));
  for (const [address, held, amount] of [
    [LIQUIDITY_VAULT, USDC_MINT, state.available],
    [FEE_VAULT, USDC_MINT, 0n],
    // The lenders that the reserve begins with: their collateral lies in this vault, as if they borrowed against it.
    [COLLATERAL_VAULT, COLLATERAL_MINT, state.collateralSupply],
  ] as const)
    write(address, TOKEN_PROGRAM, tokenBytes(held, amount));
  const usdc = bank.account(USDC_MINT);
  if (usdc === null) throw new Error('the chain has no USDC yet');
  const { mintAuthority, freezeAuthority, supply } = getMintDecoder().decode(usdc.data);
  const more = { ...mint, mintAuthority, freezeAuthority, supply: supply + state.available };
  write(USDC_MINT, TOKEN_PROGRAM, new Uint8Array(getMintEncoder().encode(more)));
}

function tokenBytes(mint: Address, amount: bigint): Uint8Array {
  const token = {
    mint,
    owner: MARKET_AUTHORITY,
    amount,
    delegate: null,
    state: INITIALIZED,
    isNative: null,
    delegatedAmount: 0n,
    closeAuthority: null,
  };
  return new Uint8Array(getTokenEncoder().encode(token));
}

function marketBytes(owner: Address): Uint8Array {
  const bytes = Buffer.alloc(MARKET_BYTES);
  bytes.write(MARKET_MARK, 'hex');
  bytes.writeBigUInt64LE(BigInt(LAYOUT_VERSION), MARKET.version);
  bytes.writeBigUInt64LE(BigInt(MARKET_AUTHORITY_BUMP), MARKET.bump);
  bytes.set(getAddressEncoder().encode(owner), MARKET.owner);
  bytes.write('USD', MARKET.currency);
  bytes.write('Main Market', MARKET.name);
  return new Uint8Array(bytes);
}

function reserveBytes(state: ReserveState): Uint8Array {
  const bytes = Buffer.alloc(RESERVE_BYTES);
  const u64 = (at: number, value: bigint) => bytes.writeBigUInt64LE(value, at);
  const fraction = (at: number, whole: bigint) => {
    const value = whole << FRACTION_BITS;
    u64(at, value & WORD);
    u64(at + 8, value >> 64n);
  };
  const key = (at: number, value: Address) => bytes.set(getAddressEncoder().encode(value), at);
  bytes.write(RESERVE_MARK, 'hex');
  u64(RESERVE.version, BigInt(LAYOUT_VERSION));
  u64(RESERVE.slot, state.slot);
  key(RESERVE.market, MARKET_ACCOUNT);
  key(RESERVE.mint, USDC_MINT);
  key(RESERVE.vault, LIQUIDITY_VAULT);
  key(RESERVE.feeVault, FEE_VAULT);
  u64(RESERVE.available, state.available);
  fraction(RESERVE.borrowed, state.borrowed);
  u64(RESERVE.mintDecimals, BigInt(USDC_DECIMALS));
  fraction(RESERVE.growth, 1n);
  fraction(RESERVE.protocolFees, state.protocolFees);
  key(RESERVE.tokenProgram, TOKEN_PROGRAM);
  key(RESERVE.collateralMint, COLLATERAL_MINT);
  u64(RESERVE.collateralSupply, state.collateralSupply);
  key(RESERVE.collateralVault, COLLATERAL_VAULT);
  bytes.writeUInt16LE(state.hostRateBps, RESERVE.hostRateBps);
  bytes.writeUInt8(state.takePercent, RESERVE.takePercent);
  for (let index = 0; index < CURVE_POINTS; index++) {
    const [useBps, rateBps] = state.curve[Math.min(index, state.curve.length - 1)] ?? [0, 0];
    bytes.writeUInt32LE(useBps, RESERVE.curve + index * CURVE_POINT_BYTES);
    bytes.writeUInt32LE(rateBps, RESERVE.curve + index * CURVE_POINT_BYTES + 4);
  }
  u64(RESERVE.depositLimit, state.depositLimit);
  u64(RESERVE.borrowLimit, state.borrowLimit);
  bytes.write('USDC', RESERVE.tokenName);
  return new Uint8Array(bytes);
}
