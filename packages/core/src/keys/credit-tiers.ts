/** The credit tiers of the interface: the amounts that one purchase can have. */

export interface CreditTier {
  amountUsd: number;
  label: string;
  /** About how many calls it buys, in words. */
  approximateCalls: string;
}

export const CREDIT_TIERS: readonly CreditTier[] = [
  { amountUsd: 5, label: 'Intro', approximateCalls: '80-100' },
  { amountUsd: 10, label: 'Starter', approximateCalls: 'about 200' },
  { amountUsd: 25, label: 'Growth', approximateCalls: 'about 500' },
  { amountUsd: 100, label: 'Pro', approximateCalls: 'about 2000' },
];

/**
 * The cap on what a card's direct charge buys at first: credit that is spent a part a day, until a theft of the card would have been
 * noticed. Told before the charge, wherever it is offered.
 */
export const NEW_CUSTOMER_CAP = {
  usdPerDay: 25,
  days: 7,
  rule: 'Credit from a card that is charged without a person on a payment page: at most 25 USD of it can be spent a day, until a card payment of the account is 7 days old. Credit that is paid on a payment page has no such limit.',
} as const;

/** How much of what a card bought can be spent in a day, by the way in which it was paid; null: all of it. */
export const DAILY_LIMITS = { hosted_checkout: null, direct_card: NEW_CUSTOMER_CAP } as const;

/** The tier of exactly this amount: a number, not a text that looks like one. Undefined: there is none. */
export function tierOf(amountUsd: unknown): CreditTier | undefined {
  return CREDIT_TIERS.find((tier) => tier.amountUsd === amountUsd);
}

/** Tiers as an answer lists them. */
export function shownTiers() {
  return CREDIT_TIERS.map(({ amountUsd, label, approximateCalls }) => ({
    amountUsd,
    tier: label,
    description: `${approximateCalls} calls`,
  }));
}
