/** What is left of a service's price once the operator has paid for the call. */
import { priceInUsd, usdToMicros } from '../ledger/money.ts';
import type { Service } from '../service/define.ts';

/** What one call costs the operator, as they declared it. */
export interface DeclaredCost {
  service: string;
  costMicros: bigint;
}

/**
 * Cost and margin of one call at a price, in USD, and the margin as a part of the price in percent.
 *
 * @param price in USD, as it is in force; null: the service is not sold
 * @returns null for what is not known: the cost of a service that asks a source which costs money and that nobody declared
 */
export function marginOf(
  { path, costsMoney }: Pick<Service, 'path' | 'costsMoney'>,
  price: string | null,
  declared: readonly DeclaredCost[],
): { costUsd: string | null; marginUsd: string | null; marginPercent: number | null } {
  const named = declared.find(({ service }) => service === path)?.costMicros;
  const cost = named ?? (costsMoney ? null : 0n);
  if (cost === null) return { costUsd: null, marginUsd: null, marginPercent: null };
  const costUsd = priceInUsd(cost);
  if (price === null) return { costUsd, marginUsd: null, marginPercent: null };
  const full = usdToMicros(price);
  const left = full - cost;
  return {
    costUsd,
    marginUsd: priceInUsd(left),
    marginPercent: full === 0n ? null : Number((left * 1_000n) / full) / 10,
  };
}
