/** A wallet says that it has deposited. It is believed when the chain says so too. */

import { Problem, unavailable } from '@farebox/core/http/problem';
import type { RateLimit } from '@farebox/core/http/rate-limit';
import { getBase58Encoder } from '@solana/kit';
import { timeText, usdcText } from '../figures.ts';
import { badRequest, readUnits } from './asked.ts';
import type { Claims } from './claims.ts';
import type { WalletMove } from './moves.ts';
import type { Verify } from './verify.ts';

const base58 = getBase58Encoder();
const SIGNATURE_BYTES = 64;
/** When the keeper asks again, first. */
const FIRST_LOOK_MS = 5_000;
const BUSY_RETRY_MS = 60_000;

/** So many claims a minute may one address leave open: those who send random signatures fill no more than their own part. */
export const CLAIMS_PER_MINUTE = 100;

export interface ConfirmParts {
  verify: Verify;
  claims: Claims;
  /** The bound on claims that are left open, by the caller's address. */
  claimLimit: Pick<RateLimit, 'take'>;
  nowMs(): number;
}

/** @throws Problem 400 unless it is 64 bytes in base58 */
export function readSignature(value: unknown, example: object): string {
  const refuse = (message: string) =>
    badRequest(`txSignature ${message}`, [{ field: 'txSignature', message }], example);
  if (typeof value !== 'string' || value === '')
    throw refuse('is missing: give the signature of the deposit transaction, the last of the bundle.');
  if (!/^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(value) || base58.encode(value).length !== SIGNATURE_BYTES)
    throw refuse('must be one signature: 64 bytes in base58.');
  return value;
}

/** Reads the amount that the caller says was deposited; null: nothing was said. @throws Problem 400 */
export function readClaimed(value: unknown, example: object): bigint | null {
  return value === undefined || value === null ? null : readUnits(value, 'amountUsdcRaw', example);
}

/**
 * `POST /api/solana-yield/confirm`
 *
 * @param asked.claimed compared with what the chain says, and never believed
 * @throws Problem 400 or 403 when the transaction is no deposit of the wallet's; 503 when too many wait for the chain
 */
export async function confirmDeposit(
  { verify, claims, claimLimit, nowMs }: ConfirmParts,
  asked: { wallet: string; signature: string; claimed: bigint | null; address: string },
) {
  const { wallet, signature, claimed, address } = asked;
  const verdict = await verify(signature, wallet);
  if (verdict.status === 'confirmed') {
    return confirmedView(verdict.deposit, claimed, await claims.confirm({ signature, wallet }));
  }
  if (verdict.status === 'refused') {
    const { httpStatus, code, message, onChainError } = verdict;
    await claims.end({ signature, wallet }, 'refused', code);
    throw new Problem(httpStatus, code, message, {
      details: { success: false, txSignature: signature, onChainVerified: false, onChainError },
    });
  }
  const isKept =
    claimLimit.take(address).allowed &&
    (await claims.keep({ signature, wallet, claimed_usdc: claimed, nextMs: nowMs() + FIRST_LOOK_MS }));
  if (!isKept)
    throw unavailable(
      'TOO_MANY_PENDING',
      'Too many transactions wait for the chain. Send this one again later; a deposit whose fee was paid is found without.',
      BUSY_RETRY_MS,
      { success: false, txSignature: signature },
    );
  return pendingView(signature, wallet, verdict.status);
}

function confirmedView(deposit: WalletMove, claimed: bigint | null, feeSignature: string | null) {
  const { signature, wallet, usdc, collateral, slot, atMs } = deposit;
  const matches = claimed === null ? null : claimed === usdc;
  return {
    success: true,
    message: `${usdcText(usdc)} USDC are deposited.`,
    txSignature: signature,
    wallet,
    onChainVerified: true,
    verificationStatus: 'confirmed',
    verificationNote:
      matches === false
        ? `The amount is the chain’s: ${usdc} units, not the ${claimed} that were sent along.`
        : 'Wallet and amount are those of the chain.',
    depositedUsdc: usdcText(usdc),
    depositedRaw: String(usdc),
    collateralRaw: String(collateral),
    amountMatches: matches,
    slot: String(slot),
    depositedAt: atMs === null ? null : timeText(atMs),
    feeTxSignature: feeSignature,
  };
}

function pendingView(signature: string, wallet: string, status: 'unseen' | 'silent') {
  const because =
    status === 'silent'
      ? 'Solana cannot be asked at the moment. It is asked again until it answers.'
      : 'Solana does not know this transaction yet. It is looked up again until it is known, for 10 minutes.';
  return {
    success: true,
    message: 'Not verified yet.',
    txSignature: signature,
    wallet,
    onChainVerified: false,
    verificationStatus: 'pending_verification',
    verificationNote: `${because} Nothing is credited before; sending this again is safe.`,
  };
}
