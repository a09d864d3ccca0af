import { createHash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { claimantOf } from '../http/caller-address.ts';
import { Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded } from '../http/rate-limit.ts';

/** Requests without a good token that one address may make in a minute. */
export const REFUSALS_PER_MINUTE = 10;
const MAX_CLOSED_ADDRESSES = 10_000;

export interface OperatorToken {
  /** Stands as the actor in every act and in the ledger's notes. */
  name: string;
  /** At least 24 characters. */
  token: string;
}

export interface Operators {
  /**
   * Who it is that asks.
   *
   * @param authorization the request's header
   * @param address the caller's; IPv6 counts by /64
   * @returns the operator's name
   * @throws Problem 401 without a good token; 429 for everybody at an address that sent too many bad ones
   */
  admit(authorization: string | undefined, address: string): string;
}

/** Tells operators by their tokens. `refusalLimit` counts bad ones by address. */
export function createOperators(
  tokens: readonly OperatorToken[],
  parts: { refusalLimit: RateLimit; nowMs(): number },
): Operators {
  const known = tokens.map(({ name, token }) => ({ name, digest: digestOf(token) }));
  const closedUntilMs = new LRUCache<string, number>({ max: MAX_CLOSED_ADDRESSES });

  return {
    admit(authorization, address) {
      const caller = claimantOf(address);
      const closedForMs = (closedUntilMs.get(caller) ?? 0) - parts.nowMs();
      if (closedForMs > 0) {
        const resetSeconds = Math.ceil(closedForMs / 1_000);
        throw rateExceeded({ allowed: false, limit: REFUSALS_PER_MINUTE, remaining: 0, resetSeconds });
      }
      const presented = digestOf(/^Bearer\s+(\S+)\s*$/i.exec(authorization ?? '')?.[1] ?? '');
      // Every token is compared, whichever fits: how long it takes says nothing.
      const fitting = known.filter(({ digest }) => timingSafeEqual(digest, presented));
      const [operator] = fitting;
      if (operator !== undefined) return operator.name;

      const verdict = parts.refusalLimit.take(caller);
      if (verdict.remaining === 0) closedUntilMs.set(caller, parts.nowMs() + verdict.resetSeconds * 1_000);
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
