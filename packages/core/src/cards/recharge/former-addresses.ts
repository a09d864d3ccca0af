/**
 * Addresses that mail about a kept card was moved away from. Whoever holds the key may move it, and the card's owner must not
 * be left in the dark by that: for 30 days the address before hears of each charge too.
 */
import { Problem } from '../../http/problem.ts';

const TOLD_FOR_MS = 30 * 86_400_000;
/** No more are kept at once. The next move is refused instead, so that none can be pushed out. */
const MAX_FORMER = 5;

export interface FormerAddress {
  email: string;
  /** Hears of charges until then, in milliseconds since 1970. */
  untilMs: number;
}

/** Those that still hear of charges. */
export function stillTold(former: readonly FormerAddress[], nowMs: number): FormerAddress[] {
  return former.filter(({ untilMs }) => untilMs > nowMs);
}

/**
 * The addresses that hear of charges besides the present one, once the mail was moved.
 *
 * @throws Problem 409 ADDRESS_MOVED_TOO_OFTEN
 */
export function afterMove(
  kept: { email: string | null; formerAddresses: readonly FormerAddress[] },
  to: string | null,
  nowMs: number,
): FormerAddress[] {
  const from = kept.email;
  const former = stillTold(kept.formerAddresses, nowMs);
  if (from === to) return former;
  const others = former.filter(({ email }) => email !== from && email !== to);
  if (from === null) return others;
  if (others.length >= MAX_FORMER) {
    throw new Problem(
      409,
      'ADDRESS_MOVED_TOO_OFTEN',
      `autoRecharge.email was moved ${MAX_FORMER} times in 30 days. Nothing was changed: move it again once an earlier move is 30 days old.`,
      {
        details: {
          fields: [{ field: 'autoRecharge.email', message: 'was moved too often' }],
          charged: false,
        },
      },
    );
  }
  return [...others, { email: from, untilMs: nowMs + TOLD_FOR_MS }];
}
