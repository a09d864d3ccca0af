/**
 * How the lending program's accounts and instructions are laid out (bytes from the start, little-endian), and the errors
 * that it answers with. The double is compiled with these names as numbers, and the accounts are written with them.
 */
import { createHash } from 'node:crypto';
import { type Address, getAddressEncoder } from '@solana/kit';
import { TOKEN_PROGRAM } from '../programs.ts';
import { INSTRUCTIONS_SYSVAR } from './addresses.ts';

export const RESERVE_BYTES = 8_624;
export const MARKET_BYTES = 4_664;
export const LAYOUT_VERSION = 1;
/** First 8 bytes of the accounts, hex. */
export const RESERVE_MARK = '2bf2ccca1af73b7f';
export const MARKET_MARK = 'f6723262489d1c78';
export const CURVE_POINTS = 11;

export const RESERVE = {
  version: 8,
  slot: 16,
  stale: 24,
  market: 32,
  mint: 128,
  vault: 160,
  feeVault: 192,
  available: 224,
  borrowed: 232,
  mintDecimals: 272,
  growth: 296,
  protocolFees: 344,
  referrerFees: 360,
  pendingFees: 376,
  tokenProgram: 408,
  collateralMint: 2_560,
  collateralSupply: 2_592,
  collateralVault: 2_600,
  status: 4_856,
  hostRateBps: 4_858,
  collateralBlocked: 4_862,
  takePercent: 4_870,
  curve: 4_920,
  depositLimit: 5_016,
  borrowLimit: 5_024,
  tokenName: 5_032,
  capCapacity: 5_416,
  capTotal: 5_424,
  capStart: 5_432,
  capSeconds: 5_440,
  queued: 6_968,
} as const;

export const MARKET = {
  version: 8,
  bump: 16,
  owner: 24,
  currency: 88,
  referralBps: 120,
  emergency: 122,
  name: 3_248,
} as const;

/** The last two are the sandbox's own: the market's owner borrows without collateral, and pays back. */
export const INSTRUCTIONS = {
  deposit: 'deposit_reserve_liquidity',
  redeem: 'redeem_reserve_collateral',
  borrow: 'sandbox_borrow',
  repay: 'sandbox_repay',
} as const;

/** Below 6000 those that every program made with the Anchor framework has. */
const ERRORS = {
  unknownInstruction: 101,
  badArguments: 102,
  notWritable: 2_000,
  otherMarket: 2_001,
  otherAuthority: 2_006,
  otherAddress: 2_012,
  otherMint: 2_014,
  otherTokenOwner: 2_015,
  badAccountKind: 3_002,
  tooFewAccounts: 3_005,
  otherProgramsAccount: 3_007,
  otherProgram: 3_008,
  notSigned: 3_010,
  noAccount: 3_012,
  zeroAmount: 6_003,
  badAccount: 6_006,
  overflow: 6_007,
  noLiquidity: 6_008,
  emergency: 6_042,
  capReached: 6_064,
  clockWentBack: 6_065,
  oldVersion: 6_073,
  obsolete: 6_082,
  depositLimit: 6_090,
  vaultMismatch: 6_095,
  collateralBlocked: 6_132,
} as const;

/** The first 8 bytes of an instruction's data. */
export function instructionMark(name: string): Buffer {
  return createHash('sha256').update(`global:${name}`).digest().subarray(0, 8);
}

/** All names that the program's source leaves open, and their values, as C has them. */
export function definitions(): Record<string, string> {
  const u64 = (bytes: Uint8Array, at = 0) => `0x${Buffer.from(bytes).readBigUInt64LE(at).toString(16)}UL`;
  const key = (of: Address) => {
    const bytes = new Uint8Array(getAddressEncoder().encode(of));
    return [0, 8, 16, 24].map((at) => u64(bytes, at)).join(',');
  };
  const named = (prefix: string, values: Readonly<Record<string, number>>) =>
    Object.entries(values).map(([name, value]) => [constant(prefix, name), String(value)]);
  return Object.fromEntries([
    ...named('RESERVE', { ...RESERVE, bytes: RESERVE_BYTES }),
    ...named('MARKET', { ...MARKET, bytes: MARKET_BYTES }),
    ...named('ERROR', ERRORS),
    ...Object.entries(INSTRUCTIONS).map(([name, full]) => [constant('DO', name), u64(instructionMark(full))]),
    ['RESERVE_MARK', u64(Buffer.from(RESERVE_MARK, 'hex'))],
    ['MARKET_MARK', u64(Buffer.from(MARKET_MARK, 'hex'))],
    ['LAYOUT_VERSION', String(LAYOUT_VERSION)],
    ['CURVE_POINTS', String(CURVE_POINTS)],
    ['TOKEN_PROGRAM', key(TOKEN_PROGRAM)],
    ['INSTRUCTIONS_SYSVAR', key(INSTRUCTIONS_SYSVAR)],
  ]);
}

/** `hostRateBps` of `RESERVE` is `RESERVE_HOST_RATE_BPS`. */
function constant(prefix: string, name: string): string {
  return `${prefix}_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}
