/**
 * Corrects the verdicts of the reference library: a payment counts as refused only when something really refused it.
 */
import type { x402Facilitator } from '@x402/core/facilitator';
import type { SettleResponse, VerifyResponse } from '@x402/core/types';
import { newAttempt, withAttempt } from './attempt.ts';
import type { PaymentRequest } from './payment-request.ts';

const MAX_MESSAGE_CHARACTERS = 500;

/** The chain's node did not answer and nothing was sent, so there is no verdict. */
export class NodeUnreachable extends Error {}

/** The library failed on its input, and nothing was sent. */
export class InvalidPayload extends Error {}

/** Both methods may throw NodeUnreachable and InvalidPayload. */
export interface Verdicts {
  verify(request: PaymentRequest): Promise<VerifyResponse>;
  /**
   * Puts the payment on the chain and waits until it is there. A payment that was sent but not seen confirmed gives
   * `settlement_pending` with the transaction; `blind` causes this on purpose.
   */
  settle(request: PaymentRequest, blind: boolean): Promise<SettleResponse>;
}

export function openVerdicts(facilitator: x402Facilitator): Verdicts {
  return {
    async verify({ payload, requirements }) {
      const attempt = newAttempt(false);
      const verdict = await withAttempt(attempt, () =>
        facilitator.verify(payload, requirements).catch((error: unknown) => messageOf(error)),
      );
      if (typeof verdict === 'object' && verdict.isValid) return verdict;
      if (attempt.nodeFailure !== null) throw new NodeUnreachable(cut(attempt.nodeFailure));
      if (typeof verdict === 'string') throw new InvalidPayload(verdict);
      return verdict;
    },

    async settle({ payload, requirements }, blind) {
      const attempt = newAttempt(blind);
      const outcome = await withAttempt(attempt, () =>
        facilitator.settle(payload, requirements).catch((error: unknown) => messageOf(error)),
      );
      if (typeof outcome === 'object' && outcome.success) return outcome;
      if (attempt.settlement === null) {
        if (attempt.nodeFailure !== null) throw new NodeUnreachable(cut(attempt.nodeFailure));
        if (typeof outcome === 'string') throw new InvalidPayload(outcome);
      }
      const { network } = requirements;
      const failure: SettleResponse =
        typeof outcome === 'object'
          ? outcome
          : { success: false, errorReason: outcome, transaction: attempt.settlement ?? '', network };
      if (attempt.settlement !== null && attempt.unconfirmed) {
        // The library of the first generation reports this as a failure and omits the transaction.
        return { ...failure, errorReason: 'settlement_pending', transaction: attempt.settlement };
      }
      return withReasonCode(failure);
    },
  };
}

/** The library of the first generation returns a node's whole text as the reason; a reason must be a code. */
function withReasonCode(failure: SettleResponse): SettleResponse {
  const { errorReason = '', network } = failure;
  if (/^[a-z0-9_]+$/.test(errorReason)) return failure;
  const family = network.startsWith('solana') ? 'svm' : 'evm';
  return {
    ...failure,
    errorReason: `invalid_exact_${family}_transaction_failed`,
    errorMessage: cut(errorReason),
  };
}

function messageOf(error: unknown): string {
  return cut(error instanceof Error ? error.message : String(error));
}

function cut(text: string): string {
  return text.slice(0, MAX_MESSAGE_CHARACTERS);
}
