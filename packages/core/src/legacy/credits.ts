/** The legacy family's unit: one credit is a tenth of a dollar. The books know only dollars. */
import { microsToUsd, priceInUsd } from '../ledger/money.ts';

/** The interface's "1 credit = 0.10 USD". */
const CREDIT_MICROS = 100_000n;

/**
 * A price in credits, rounded up as the interface does: 1.25 USD are 13 credits. What is charged is the price in USD.
 */
export function creditsOf(priceMicros: bigint): number {
  return Number((priceMicros + CREDIT_MICROS - 1n) / CREDIT_MICROS);
}

export interface CreditPackage {
  id: 'starter' | 'pro' | 'enterprise';
  name: string;
  /** The price that the card is charged. */
  priceMicros: bigint;
  /** The credit that the key gets: more than the price, except in the smallest package. */
  creditMicros: bigint;
}

/** The packages of the interface ("Legacy credit packages"). */
export const CREDIT_PACKAGES: readonly CreditPackage[] = [
  packageOf('starter', 'Starter', 10n, 100n),
  packageOf('pro', 'Pro', 50n, 600n),
  packageOf('enterprise', 'Enterprise', 200n, 3_000n),
];

function packageOf(id: CreditPackage['id'], name: string, priceUsd: bigint, credits: bigint): CreditPackage {
  return { id, name, priceMicros: priceUsd * 1_000_000n, creditMicros: credits * CREDIT_MICROS };
}

/** A package as documents show it. */
export function shownPackage({ id, name, priceMicros, creditMicros }: CreditPackage) {
  const priceUSD = Number(microsToUsd(priceMicros));
  const credits = creditsOf(creditMicros);
  const savingPercent = Math.round(100 - (100 * Number(priceMicros)) / Number(creditMicros));
  return {
    id,
    name,
    price: `$${priceUSD}`,
    priceUSD,
    credits,
    pricePerCredit: Math.round((1_000 * priceUSD) / credits) / 1_000,
    savingPercent,
    balanceUSD: Number(microsToUsd(creditMicros)),
    description: `${credits} credits: ${priceInUsd(creditMicros)} USD to spend for ${priceInUsd(priceMicros)} USD`,
  };
}
