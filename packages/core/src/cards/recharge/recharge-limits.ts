/** How often, and how much, a kept card may be charged. */
import { mostPerDayMicros } from './agreement.ts';
import type { RechargeSettings } from './recharge-settings.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const SPACING_MS = MINUTE_MS;
const MAX_DECLINES_PER_DAY = 3;
/** Card networks fine a merchant for more attempts than this on a card that declines, in so many days. */
const MAX_DECLINES = 15;
/** The time back for which attempts count. */
export const ATTEMPTS_COUNTED_MS = 30 * DAY_MS;

/** The thing that a due account waits for: see `nextAttemptAt`. */
export type WaitingFor = 'decline' | 'spacing' | 'daily_limit' | 'thaw';

/** An earlier order of an account, for the limits. */
export interface Attempt {
  atMs: number;
  amountMicros: bigint;
  /** Whether it ended without a payment. */
  failed: boolean;
  paymentMethodId: string | null;
}

/** An obstacle between a due account and the charge. */
export type Obstacle = { untilMs: number; waitingFor: WaitingFor } | { off: string };

/**
 * The limits: so many charges and so much money in 24 hours, a minute between two, and not again and again on a card
 * that declines. A limit is waited for; only a card that keeps declining is given up.
 *
 * @param attempts of the last 30 days
 * @returns null: charge
 */
export function limitOf(
  attempts: readonly Attempt[],
  kept: { topUpMicros: bigint; agreed: RechargeSettings; paymentMethodId: string | null },
  maxPerDay: number,
  nowMs: number,
): Obstacle | null {
  const declinesOfCard = attempts.filter(
    (each) => each.failed && each.paymentMethodId === kept.paymentMethodId,
  );
  if (declinesOfCard.length >= MAX_DECLINES) return { off: 'declined_too_often' };

  const today = attempts.filter(({ atMs }) => atMs > nowMs - DAY_MS);
  const charges = today.filter(({ failed }) => !failed);
  const declines = today.filter(({ failed }) => failed);
  const charged = charges.reduce((sum, { amountMicros }) => sum + amountMicros, 0n);
  const whenOldestIsADayOld = (group: readonly Attempt[]) =>
    Math.min(...group.map(({ atMs }) => atMs)) + DAY_MS;
  if (charges.length >= maxPerDay || charged + kept.topUpMicros > mostPerDayMicros(kept.agreed, maxPerDay))
    return { untilMs: whenOldestIsADayOld(charges), waitingFor: 'daily_limit' };
  if (declines.length >= MAX_DECLINES_PER_DAY)
    return { untilMs: whenOldestIsADayOld(declines), waitingFor: 'decline' };

  const nextMs = Math.max(...today.map(({ atMs }) => atMs)) + SPACING_MS;
  return nextMs > nowMs ? { untilMs: nextMs, waitingFor: 'spacing' } : null;
}
