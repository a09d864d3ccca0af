/**
 * The house's own accounts, with the side on which each grows. A customer's account is money we owe: it is credited
 * when credit is granted or bought, and debited when a call is captured. A migration opens each; a test compares the two lists.
 */
export const HOUSE_ACCOUNTS = {
  /** Calls sold for prepaid credits. Grows by credits. */
  revenue_credits: 1n,
  /** Credit given away in trials. Grows by debits. */
  trial_grants: 2n,
  /** Trial credit that ran out unused. Grows by credits. */
  trial_expired: 3n,
  /** Credit given by an operator, the first start's sandbox key among it. Grows by debits. */
  operator_grants: 4n,
  /**
   * Money received on chains, less refunds. Grows by debits. One account whatever the rail: a payment that two
   * rails can read must be claimed in one place.
   */
  chain_clearing: 5n,
  revenue_x402: 6n,
  revenue_mpp: 7n,
  /** Payments that a chain took back after the answer had left, or a bank took back twice. Grows by debits. */
  settlement_losses: 8n,
  /** Money received by card, less refunds and disputes. Grows by debits. */
  card_clearing: 9n,
  /** Credit beyond what was paid for it. Grows by debits. */
  promotions: 10n,
  /** Debts of customers: payments that were taken back after their credit was spent. Grows by debits. */
  receivables: 11n,
  /** Shares of calls that were set aside for others, and not yet paid out to them. Grows by credits. */
  shares_owed: 13n,
} as const;

export type HouseAccount = keyof typeof HOUSE_ACCOUNTS;

/** The name of a house account, or null for a customer's. */
export function houseAccountName(id: bigint): HouseAccount | null {
  for (const [name, known] of Object.entries(HOUSE_ACCOUNTS)) if (known === id) return name as HouseAccount;
  return null;
}

/** Whether an account is the house's: those have the numbers below 1000, by a constraint of the database. */
export function isHouseAccount(id: bigint): boolean {
  return id < 1_000n;
}
