/** The instructions that the portal's transactions are made of, written by hand: few, and laid out for good. */
import { AccountRole, type Address, type Instruction } from '@solana/kit';
import { tokenAccountOf } from './address-bytes.ts';
import {
  ATA_PROGRAM,
  COLLATERAL_MINT,
  COMPUTE_BUDGET_PROGRAM,
  INSTRUCTIONS_SYSVAR,
  LENDING_MARKET,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  MARKET_AUTHORITY,
  SYSTEM_PROGRAM,
  TOKEN_PROGRAM,
  USDC_DECIMALS,
  USDC_MINT,
  USDC_RESERVE,
} from './addresses.ts';

/** First 8 bytes of an instruction of the lending program, hex: of SHA-256 of `global:<name>`. */
export const DEPOSIT_RESERVE_LIQUIDITY = 'a9c91e7e06cd6644';
export const REDEEM_RESERVE_COLLATERAL = 'ea75b57db98edc1d';
/** First bytes of the others, each of its own program. */
const CREATE_IDEMPOTENT = 1;
const TRANSFER_CHECKED = 12;
const SET_UNIT_LIMIT = 2;
const SET_UNIT_PRICE = 3;

/** Where a deposit has its accounts, for those who look at a transaction that landed. */
export const DEPOSIT_ACCOUNTS = { owner: 0, reserve: 1, usdc: 7, collateral: 8 } as const;
/** The same of a redemption. */
export const REDEEM_ACCOUNTS = { owner: 0, reserve: 2, collateral: 7, usdc: 8 } as const;

/** An owner's token accounts that a deposit or a redemption touches. */
export interface OwnAccounts {
  owner: Address;
  /** Holds USDC. */
  usdc: Address;
  /** Holds cTokens. */
  collateral: Address;
}

/** The accounts that belong to an owner by the rule that all wallets follow. */
export function ownAccountsOf(owner: Address): OwnAccounts {
  return {
    owner,
    usdc: tokenAccountOf(owner, USDC_MINT),
    collateral: tokenAccountOf(owner, COLLATERAL_MINT),
  };
}

/** Lends up to this much USDC: its cTokens are minted to the owner's own account, which must be there. */
export function depositReserveLiquidity(
  { owner, usdc, collateral }: OwnAccounts,
  amountRaw: bigint,
): Instruction {
  return {
    programAddress: LENDING_PROGRAM,
    accounts: [
      { address: owner, role: AccountRole.READONLY_SIGNER },
      writable(USDC_RESERVE),
      readonly(LENDING_MARKET),
      readonly(MARKET_AUTHORITY),
      readonly(USDC_MINT),
      writable(LIQUIDITY_VAULT),
      writable(COLLATERAL_MINT),
      writable(usdc),
      writable(collateral),
      readonly(TOKEN_PROGRAM),
      readonly(TOKEN_PROGRAM),
      readonly(INSTRUCTIONS_SYSVAR),
    ],
    data: withAmount(Buffer.from(DEPOSIT_RESERVE_LIQUIDITY, 'hex'), amountRaw),
  };
}

/** Gives cTokens back: what they are worth is paid to the owner's USDC account, which must be there. */
export function redeemReserveCollateral(
  { owner, usdc, collateral }: OwnAccounts,
  cTokensRaw: bigint,
): Instruction {
  return {
    programAddress: LENDING_PROGRAM,
    accounts: [
      { address: owner, role: AccountRole.READONLY_SIGNER },
      readonly(LENDING_MARKET),
      writable(USDC_RESERVE),
      readonly(MARKET_AUTHORITY),
      readonly(USDC_MINT),
      writable(COLLATERAL_MINT),
      writable(LIQUIDITY_VAULT),
      writable(collateral),
      writable(usdc),
      readonly(TOKEN_PROGRAM),
      readonly(TOKEN_PROGRAM),
      readonly(INSTRUCTIONS_SYSVAR),
    ],
    data: withAmount(Buffer.from(REDEEM_RESERVE_COLLATERAL, 'hex'), cTokensRaw),
  };
}

/** Makes the owner's account for a mint where it is not there yet; the payer lays out its rent. */
export function createTokenAccount(
  payer: Address,
  { owner, mint, account }: { owner: Address; mint: Address; account: Address },
): Instruction {
  return {
    programAddress: ATA_PROGRAM,
    accounts: [
      { address: payer, role: AccountRole.WRITABLE_SIGNER },
      writable(account),
      readonly(owner),
      readonly(mint),
      readonly(SYSTEM_PROGRAM),
      readonly(TOKEN_PROGRAM),
    ],
    data: Uint8Array.of(CREATE_IDEMPOTENT),
  };
}

/** Sends USDC from one token account to another. */
export function transferUsdc(terms: {
  owner: Address;
  from: Address;
  to: Address;
  amountRaw: bigint;
}): Instruction {
  const data = withAmount(Uint8Array.of(TRANSFER_CHECKED), terms.amountRaw);
  return {
    programAddress: TOKEN_PROGRAM,
    accounts: [
      writable(terms.from),
      readonly(USDC_MINT),
      writable(terms.to),
      { address: terms.owner, role: AccountRole.READONLY_SIGNER },
    ],
    data: Uint8Array.of(...data, USDC_DECIMALS),
  };
}

/** The most compute units that a transaction may use: its priority fee is reckoned on them. */
export function setUnitLimit(units: number): Instruction {
  const data = Buffer.alloc(5);
  data.writeUInt8(SET_UNIT_LIMIT);
  data.writeUInt32LE(units, 1);
  return { programAddress: COMPUTE_BUDGET_PROGRAM, data: new Uint8Array(data) };
}

/** The priority fee. @param microLamports for each compute unit */
export function setUnitPrice(microLamports: bigint): Instruction {
  return {
    programAddress: COMPUTE_BUDGET_PROGRAM,
    data: withAmount(Uint8Array.of(SET_UNIT_PRICE), microLamports),
  };
}

/** @throws RangeError if it is no u64 */
function withAmount(head: Uint8Array, amount: bigint): Uint8Array {
  const data = Buffer.alloc(head.length + 8);
  data.set(head);
  data.writeBigUInt64LE(amount, head.length);
  return new Uint8Array(data);
}

function readonly(address: Address) {
  return { address, role: AccountRole.READONLY };
}

function writable(address: Address) {
  return { address, role: AccountRole.WRITABLE };
}
