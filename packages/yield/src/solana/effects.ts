/**
 * Reads from a landed transaction what it did, as far as the portal is concerned. Nothing that a caller says is asked here: amounts are those of
 * the chain's balances, and instructions count by what they are, wherever a wallet's own stand between them.
 */
import type { Address } from '@solana/kit';
import { tokenAccountOf } from './address-bytes.ts';
import {
  COLLATERAL_MINT,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  TOKEN_PROGRAM,
  USDC_MINT,
  USDC_RESERVE,
} from './addresses.ts';
import {
  DEPOSIT_ACCOUNTS,
  DEPOSIT_RESERVE_LIQUIDITY,
  ownAccountsOf,
  REDEEM_ACCOUNTS,
  REDEEM_RESERVE_COLLATERAL,
} from './instructions.ts';
import type { WalletMove } from './moves.ts';
import type { Instruction, Landed } from './node.ts';

/** Brings interest up to date and moves nothing. */
const REFRESH_RESERVE = '02da8aeb4fc91966';
const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
/** Instructions of the token program, by their first byte, and where they have the accounts. */
const TRANSFERS: Readonly<Record<number, { to: number; authority: number }>> = {
  3: { to: 1, authority: 2 },
  12: { to: 2, authority: 3 },
};
const MINTS_TO: ReadonlySet<number> = new Set([7, 14]);
const BURNS: ReadonlySet<number> = new Set([8, 15]);
/** Less than this nobody pays for a deposit: the fee of the smallest one. */
const LEAST_FEE = 25_000n;

/** Why a transaction is no deposit that the portal credits. */
export interface NoDeposit {
  code: string;
  message: string;
}

/** USDC that a wallet paid to the treasury. */
export interface PaidFee {
  wallet: string;
  usdc: bigint;
}

/**
 * The deposit of a transaction that succeeded.
 *
 * @param treasuryAccount the treasury's token account for USDC
 * @returns or why it is none
 */
export function depositIn(landed: Landed, treasuryAccount: string): WalletMove | NoDeposit {
  const found = soleLending(landed, DEPOSIT_RESERVE_LIQUIDITY);
  if ('code' in found) return found;
  const { instruction, inner } = found;
  const { accounts, data } = instruction;
  const wallet = accounts[DEPOSIT_ACCOUNTS.owner];
  if (accounts[DEPOSIT_ACCOUNTS.reserve] !== USDC_RESERVE)
    return no('OTHER_RESERVE', 'It deposits into another reserve than this portal’s.');
  if (wallet === undefined || !landed.signers.includes(wallet))
    return no('NOT_A_DEPOSIT', 'The owner of the deposit has not signed the transaction.');
  const own = ownAccountsOf(wallet as Address);
  if (accounts[DEPOSIT_ACCOUNTS.collateral] !== own.collateral)
    return no(
      'OTHER_ACCOUNT',
      `The collateral went to another account than the wallet’s own, which is ${own.collateral}.`,
    );
  const held = landed.tokens.get(own.collateral);
  const vault = landed.tokens.get(LIQUIDITY_VAULT);
  if (held?.mint !== COLLATERAL_MINT || vault?.mint !== USDC_MINT)
    return no('NOT_A_DEPOSIT', 'Its balances show neither collateral nor the reserve’s vault.');
  const asked = amountIn(data);
  const paid = smaller(vault.after - vault.before, asked);
  const minted = amountOf(inner, MINTS_TO, { account: 1, is: own.collateral }) ?? held.after - held.before;
  if (paid <= 0n || minted <= 0n) return no('NOT_A_DEPOSIT', 'It brought the wallet no collateral.');
  return {
    signature: landed.signature,
    wallet,
    kind: 'deposit',
    slot: BigInt(landed.slot),
    atMs: landed.atMs,
    collateral: minted,
    usdc: paid,
    heldBefore: held.before,
    heldAfter: held.after,
    fee: gained(landed, treasuryAccount),
  };
}

/** The withdrawal of a transaction that succeeded; null: it is none. */
export function withdrawalIn(landed: Landed, treasuryAccount: string): WalletMove | null {
  const found = soleLending(landed, REDEEM_RESERVE_COLLATERAL);
  if ('code' in found) return null;
  const { instruction, inner } = found;
  const wallet = instruction.accounts[REDEEM_ACCOUNTS.owner];
  if (instruction.accounts[REDEEM_ACCOUNTS.reserve] !== USDC_RESERVE) return null;
  if (wallet === undefined || !landed.signers.includes(wallet)) return null;
  const { collateral } = ownAccountsOf(wallet as Address);
  const held = landed.tokens.get(collateral);
  const vault = landed.tokens.get(LIQUIDITY_VAULT);
  if (instruction.accounts[REDEEM_ACCOUNTS.collateral] !== collateral) return null;
  if (held?.mint !== COLLATERAL_MINT || vault?.mint !== USDC_MINT) return null;
  const burned = amountOf(inner, BURNS, { account: 0, is: collateral }) ?? held.before - held.after;
  const gross = vault.before - vault.after;
  if (burned <= 0n || gross <= 0n) return null;
  return {
    signature: landed.signature,
    wallet,
    kind: 'withdrawal',
    slot: BigInt(landed.slot),
    atMs: landed.atMs,
    collateral: burned,
    usdc: gross,
    heldBefore: held.before,
    heldAfter: held.after,
    fee: gained(landed, treasuryAccount),
  };
}

/**
 * The fee that a wallet paid to the treasury for a deposit, in this transaction or another; null: nothing. What a withdrawal pays is part of it,
 * and no fee of a deposit.
 */
export function feeIn(landed: Landed, treasuryAccount: string): PaidFee | null {
  const lends = [...landed.instructions, ...[...landed.inner.values()].flat()].some(
    (each) => each.program === LENDING_PROGRAM && discriminatorOf(each) === REDEEM_RESERVE_COLLATERAL,
  );
  const usdc = gained(landed, treasuryAccount);
  if (lends || usdc < LEAST_FEE) return null;
  let payer: string | null = null;
  let paid = 0n;
  for (const { program, accounts, data } of landed.instructions) {
    const transfer = program === TOKEN_PROGRAM ? TRANSFERS[data[0] ?? 0] : undefined;
    const wallet = transfer === undefined ? undefined : accounts[transfer.authority];
    if (transfer === undefined || wallet === undefined) continue;
    if (accounts[transfer.to] !== treasuryAccount || !landed.signers.includes(wallet)) continue;
    // A wallet may pay in several transfers. What another one pays in the same transaction is not told apart, and stays.
    payer ??= wallet;
    if (payer === wallet) paid += amountIn(data, 1);
  }
  return payer === null ? null : { wallet: payer, usdc: smaller(paid, usdc) };
}

/**
 * Whether the treasury sent fees back: to the wallet's own account, at least as much as all that the memos name.
 *
 * @param fees.usdc of all fees of this wallet that the memos name
 */
export function refundsFees(
  landed: Landed,
  treasury: { owner: string; account: string },
  fees: PaidFee,
): boolean {
  if (!landed.signers.includes(treasury.owner)) return false;
  const to = tokenAccountOf(fees.wallet as Address, USDC_MINT);
  return gained(landed, to) >= fees.usdc && gained(landed, treasury.account) <= -fees.usdc;
}

/** The signatures that a transaction's memos name. */
export function memosIn({ instructions }: Landed): string[] {
  return instructions
    .filter(({ program }) => program === MEMO_PROGRAM)
    .flatMap(
      ({ data }) =>
        Buffer.from(data)
          .toString('utf8')
          .match(/[1-9A-HJ-NP-Za-km-z]{64,88}/g) ?? [],
    );
}

/** Whether it tried to deposit, whatever became of it. */
export function triesDeposit({ instructions }: Landed): boolean {
  return instructions.some(
    (each) => each.program === LENDING_PROGRAM && discriminatorOf(each) === DEPOSIT_RESERVE_LIQUIDITY,
  );
}

/**
 * The one instruction by which a transaction moves funds of the lending program. Beside another one, or called by another program,
 * nobody can tell whose the balances are.
 */
function soleLending(
  { instructions, inner }: Landed,
  discriminator: string,
): { instruction: Instruction; inner: readonly Instruction[] } | NoDeposit {
  const moves = (each: Instruction) =>
    each.program === LENDING_PROGRAM && discriminatorOf(each) !== REFRESH_RESERVE;
  const index = instructions.findIndex((each) => moves(each) && discriminatorOf(each) === discriminator);
  const all = instructions.filter(moves).length;
  const called = [...inner.values()].flat().filter(moves).length;
  const instruction = instructions[index];
  if (instruction === undefined)
    return called > 0
      ? no('CALLED_BY_PROGRAM', 'Another program called the lending program; the wallet must do it itself.')
      : no('NOT_A_DEPOSIT', 'It does not deposit into the lending program.');
  if (all + called > 1)
    return no('SEVERAL_AT_ONCE', 'It does more with the lending program than one deposit.');
  return { instruction, inner: inner.get(index) ?? [] };
}

/** The amount that the token program was told to mint or burn at an account; null: nothing is shown. */
function amountOf(
  inner: readonly Instruction[],
  kinds: ReadonlySet<number>,
  { account, is }: { account: number; is: string },
): bigint | null {
  const found = inner.filter(
    ({ program, accounts, data }) =>
      program === TOKEN_PROGRAM && kinds.has(data[0] ?? 0) && accounts[account] === is,
  );
  return found.length === 0 ? null : found.reduce((sum, { data }) => sum + amountIn(data, 1), 0n);
}

/** The u64 behind an instruction's first bytes; 0 where there is none. */
function amountIn(data: Uint8Array, from = 8): bigint {
  return data.length < from + 8 ? 0n : Buffer.from(data).readBigUInt64LE(from);
}

function discriminatorOf({ data }: Instruction): string {
  return Buffer.from(data.subarray(0, 8)).toString('hex');
}

/** The increase of a token account's balance. */
function gained({ tokens }: Landed, account: string): bigint {
  const token = tokens.get(account);
  return token === undefined ? 0n : token.after - token.before;
}

function no(code: string, message: string): NoDeposit {
  return { code, message };
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}
