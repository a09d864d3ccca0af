/** Checks what the portal stands on: the chain, the lending program and its accounts, which must be those that this code was written for. */

import { type Problem, unavailable } from '@farebox/core/http/problem';
import { type Address, address } from '@solana/kit';
import { addressAt, tokenAccountOf } from './address-bytes.ts';
import {
  COLLATERAL_MINT,
  COLLATERAL_VAULT,
  FEE_VAULT,
  GENESIS_HASH,
  LENDING_MARKET,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  TOKEN_PROGRAM,
  USDC_DECIMALS,
  USDC_MINT,
  USDC_RESERVE,
} from './addresses.ts';
import { accrue } from './model/interest.ts';
import { decodeMarket, decodeReserve, LayoutError, type Market, type Reserve } from './model/reserve.ts';
import { type Account, chainUnavailable, isOutage, type Node } from './node.ts';

/** The loaders that own programs, whichever way these were put on the chain. */
const LOADERS: ReadonlySet<string> = new Set([
  'BPFLoader1111111111111111111111111111111111',
  'BPFLoader2111111111111111111111111111111111',
  'BPFLoaderUpgradeab1e11111111111111111111111',
  'LoaderV411111111111111111111111111111111111',
]);
const MINT_BYTES = 82;
const TOKEN_BYTES = 165;
const WRONG_CHAIN_RETRY_MS = 60_000;
/** A check that failed is made again at the earliest after this. */
const CHECK_AGAIN_MS = 5_000;

/** A token account, as far as anybody here asks. */
interface TokenAccount {
  mint: string;
  owner: string;
  /** In units of the mint. */
  amount: bigint;
  isFrozen: boolean;
}

/** The reserve at a slot, with interest up to it. */
export interface ReserveNow {
  slot: bigint;
  reserve: Reserve;
  market: Market;
}

export interface Portal {
  treasury: Address;
  /** The treasury's token account for USDC, which fees are paid to. */
  treasuryAccount: Address;
  sinceSlot: number;
  /**
   * Says in what the chain differs from what this portal was made for; null: in nothing. Asked until it is null, and no more.
   *
   * @throws what the node's client throws
   */
  refusal(): Promise<string | null>;
  /**
   * The reserve, and other accounts at the same slot, once all that stands behind it has been checked.
   *
   * @param others at most 90 addresses
   * @throws Problem 503 while the chain is silent, or where it is not what this portal was made for
   */
  look(others?: readonly string[]): Promise<ReserveNow & { accounts: (Account | null)[] }>;
}

/** @param about.sinceSlot what happened before is none of the portal's */
export function openPortal(
  node: Node,
  about: { treasury: string; sinceSlot: number; nowMs(): number },
): Portal {
  const { sinceSlot, nowMs } = about;
  const treasury = address(about.treasury);
  const owned = tokenAccountOf(treasury, USDC_MINT);
  const check = untilPassed(async () => whyNot(node, treasury, owned), nowMs);
  return {
    treasury,
    treasuryAccount: owned,
    sinceSlot,
    refusal: check,
    async look(others = []) {
      try {
        const refusal = await check();
        if (refusal !== null) throw mismatch(refusal);
        const { slot, accounts } = await node.accounts([USDC_RESERVE, LENDING_MARKET, ...others]);
        const [reserve, market, ...rest] = accounts;
        return { ...reserveAt(slot, reserve ?? null, market ?? null), accounts: rest };
      } catch (error) {
        if (error instanceof LayoutError) throw mismatch(error.message);
        throw isOutage(error) ? chainUnavailable(error) : error;
      }
    },
  };
}

/** @returns null: the account is none of the token program's, or not open */
export function readTokenAccount(account: Account | null): TokenAccount | null {
  if (account === null || account.owner !== TOKEN_PROGRAM || account.data.length !== TOKEN_BYTES) return null;
  const bytes = Buffer.from(account.data);
  const state = bytes.readUInt8(108);
  if (state === 0) return null;
  return {
    mint: addressAt(bytes, 0),
    owner: addressAt(bytes, 32),
    amount: bytes.readBigUInt64LE(64),
    isFrozen: state === 2,
  };
}

/** @throws LayoutError where it is not the reserve that everything else here names */
function reserveAt(slot: number, reserveAccount: Account | null, marketAccount: Account | null): ReserveNow {
  if (reserveAccount === null) throw new LayoutError('there is no reserve');
  if (marketAccount === null) throw new LayoutError('there is no lending market');
  const reserve = decodeReserve(reserveAccount);
  const market = decodeMarket(marketAccount);
  const expected: readonly (readonly [what: string, found: string | number, wanted: string | number])[] = [
    ['market', reserve.market, LENDING_MARKET],
    ['mint', reserve.liquidityMint, USDC_MINT],
    ['decimals', reserve.mintDecimals, USDC_DECIMALS],
    ['token program', reserve.liquidityTokenProgram, TOKEN_PROGRAM],
    ['vault', reserve.liquidityVault, LIQUIDITY_VAULT],
    ['fee vault', reserve.feeVault, FEE_VAULT],
    ['collateral mint', reserve.collateralMint, COLLATERAL_MINT],
    ['collateral vault', reserve.collateralVault, COLLATERAL_VAULT],
  ];
  for (const [what, found, wanted] of expected)
    if (found !== wanted) throw new LayoutError(`the reserve’s ${what} is ${found} and not ${wanted}`);
  const at = BigInt(slot) > reserve.lastUpdateSlot ? BigInt(slot) : reserve.lastUpdateSlot;
  return { slot: at, market, reserve: accrue(reserve, at, market.referralFeeBps) };
}

/**
 * Says in what the chain differs from what this portal was made for; null: in nothing.
 *
 * @throws what the node's client throws
 */
async function whyNot(node: Node, treasury: Address, treasuryAccount: Address): Promise<string | null> {
  const genesis = await node.genesisHash();
  if (genesis !== GENESIS_HASH)
    return `the node is of another chain than mainnet-beta: its genesis hash is ${genesis}`;
  const { accounts } = await node.accounts([LENDING_PROGRAM, USDC_MINT, COLLATERAL_MINT, treasuryAccount]);
  const [program = null, usdc = null, collateral = null, receiver = null] = accounts;
  if (program === null || !program.executable || !LOADERS.has(program.owner))
    return `there is no program at ${LENDING_PROGRAM}`;
  for (const [mint, account] of [
    [USDC_MINT, usdc],
    [COLLATERAL_MINT, collateral],
  ] as const)
    if (!isMint(account)) return `${mint} is no mint of the token program with ${USDC_DECIMALS} places`;
  const token = readTokenAccount(receiver);
  if (token === null || token.mint !== USDC_MINT || token.owner !== treasury)
    return `the treasury ${treasury} has no token account for USDC (${treasuryAccount}): its operator must open it`;
  return token.isFrozen ? `the treasury’s token account ${treasuryAccount} is frozen` : null;
}

function isMint(account: Account | null): boolean {
  if (account === null || account.owner !== TOKEN_PROGRAM || account.data.length !== MINT_BYTES) return false;
  const [decimals, isInitialized] = account.data.subarray(44, 46);
  return decimals === USDC_DECIMALS && isInitialized === 1;
}

function mismatch(reason: string): Problem {
  return unavailable(
    'SOLANA_YIELD_NOT_READY',
    `The portal builds and verifies nothing, since ${reason}.`,
    WRONG_CHAIN_RETRY_MS,
    { success: false, reason },
  );
}

/** A check that is made until it passes, by one at a time, and then no more. What it throws is not kept. */
function untilPassed(check: () => Promise<string | null>, nowMs: () => number): () => Promise<string | null> {
  let last: { refusal: string | null; atMs: number } | null = null;
  let running: Promise<string | null> | null = null;
  return async () => {
    if (last !== null && (last.refusal === null || nowMs() - last.atMs < CHECK_AGAIN_MS)) return last.refusal;
    running ??= check()
      .then((refusal) => {
        last = { refusal, atMs: nowMs() };
        return refusal;
      })
      .finally(() => {
        running = null;
      });
    return running;
  };
}
