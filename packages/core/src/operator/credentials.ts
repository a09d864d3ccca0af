import { createHash, timingSafeEqual } from 'node:crypto';
import { Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded } from '../http/rate-limit.ts';

/** Requests without a good token that are told so in a minute, by address; all others are told to wait. */
export const REFUSALS_PER_MINUTE = 10;

export interface OperatorToken {
  /** Stands as the actor in every act and in the ledger's notes. */
  name: string;
  /** At least 24 characters. */
  token: string;
}

export interface Operators {
  /**
   * Recognizes the operator who asks. A right token is always let in, whatever was tried from its address before: who can send bad
   * ones from there, or as if from there, must not be able to keep an operator out. So every token is compared, and what
   * keeps guessing hopeless is a token's length, which `declared.ts` sees to; what is bounded here is noise.
   *
   * @param authorization the request's header
   * @param address the caller's
   * @returns the operator's name
   * @throws Problem 401 without a good token; 429 instead at an address that has sent too many bad ones
   */
  admit(authorization: string | undefined, address: string): string;
}

/** Tells operators by their tokens, which may be others at any time. `refusalLimit` counts bad ones by address. */
export function createOperators(
  tokens: () => readonly OperatorToken[],
  parts: { refusalLimit: RateLimit },
): Operators {
  return {
    admit(authorization, address) {
      const presented = digestOf(/^Bearer\s+(\S+)\s*$/i.exec(authorization ?? '')?.[1] ?? '');
      // Every token is compared, whichever fits: how long it takes says nothing.
      const fitting = tokens().filter(({ token }) => timingSafeEqual(digestOf(token), presented));
      const [operator] = fitting;
      if (operator !== undefined) return operator.name;

      const verdict = parts.refusalLimit.take(address);
      if (!verdict.allowed) throw rateExceeded(verdict);
      throw new Problem(
        401,
        'OPERATOR_TOKEN_INVALID',
        authorization === undefined ? "Send an operator's token." : 'This token is not known here.',
        { headers: { 'www-authenticate': 'Bearer' } },
      );
    },
  };
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
