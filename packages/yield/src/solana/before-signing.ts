/** The check of what is handed out, as a wallet makes it before it signs: by a reader that knows nothing of the portal. */
import type { SigningCheck } from '../signing-check.ts';

/** Checks an unsigned transaction (base64); null where the node cannot be asked. */
export type CheckTransaction = (base64: string, signer: string) => Promise<SigningCheck | null>;

interface HandedOut {
  simulation: { done: boolean };
  transactions: readonly { base64: string }[];
}

/**
 * Adds the check to each transaction of an answer. One that the wallet cannot pay for yet would only be seen to fail: its check is
 * null.
 *
 * @param check null: this server checks nothing
 */
export async function withChecks<Answer extends HandedOut>(
  answer: Answer,
  wallet: string,
  check: CheckTransaction | null,
) {
  const transactions = await Promise.all(
    answer.transactions.map(async (each) => ({
      ...each,
      preflight: check === null || !answer.simulation.done ? null : await check(each.base64, wallet),
    })),
  );
  return { ...answer, transactions };
}
