/** The check of what is handed out, as a wallet makes it before it signs: by a reader that knows nothing of the vault. */
import type { Address, Hex } from 'viem';
import type { SigningCheck } from '../signing-check.ts';

/** Checks a transaction on the vault's chain; null where the node cannot be asked. */
export type CheckCall = (call: {
  from: Address;
  to: Address;
  value: bigint;
  data: Hex;
}) => Promise<SigningCheck | null>;

interface HandedOut {
  warnings: readonly { code: string }[];
  steps: readonly { action: string; to: Address; data: Hex | null }[];
}

/**
 * Adds the check to each step of an answer. A deposit that needs its approval first, or USDC that the wallet lacks, would only be
 * seen to fail, and one without its signature is no transaction yet: their check is null.
 *
 * @param check null: this server checks nothing
 */
export async function withChecks<Answer extends HandedOut>(
  answer: Answer,
  wallet: Address,
  check: CheckCall | null,
) {
  const has = (code: string) => answer.warnings.some((warning) => warning.code === code);
  const isDepositComplete = has('ALREADY_APPROVED') && !has('INSUFFICIENT_USDC');
  const steps = await Promise.all(
    answer.steps.map(async (step) => {
      const isComplete = step.action !== 'deposit' || isDepositComplete;
      const preflight =
        check === null || step.data === null || !isComplete
          ? null
          : await check({ from: wallet, to: step.to, value: 0n, data: step.data });
      return { ...step, preflight };
    }),
  );
  return { ...answer, steps };
}
