/** What is left of a service's price once the operator has paid for the call. */
import { priceInUsd, usdToMicros } from '../ledger/money.ts';
import type { Service } from '../service/define.ts';
import type { MeasuredCost } from '../service/sources.ts';

/** What one call costs the operator, as they declared it. */
export interface DeclaredCost {
  service: string;
  costMicros: bigint;
}

export interface Margin {
  costUsd: string | null;
  /**
   * Who says it: an operator, or the service itself, which asks no source that costs money (`declared`); or replies of its sources
   * (`measured`). Null: it is not known.
   */
  costFrom: 'declared' | 'measured' | null;
  marginUsd: string | null;
  marginPercent: number | null;
}

/**
 * Cost and margin of one call at a price, in USD, and the margin as a part of the price in percent.
 *
 * @param price in USD, as it is in force; null: the service is not sold
 * @param costs what operators declared counts before what was measured
 * @returns null for what is not known: the cost of a service that asks a source which costs money, of which nobody declared and
 *   no reply told it
 */
export function marginOf(
  service: Pick<Service, 'path' | 'costsMoney' | 'needs'>,
  price: string | null,
  costs: { declared: readonly DeclaredCost[]; measured: readonly MeasuredCost[] },
): Margin {
  const { cost, costFrom } = costOf(service, costs);
  if (cost === null) return { costUsd: null, costFrom, marginUsd: null, marginPercent: null };
  const costUsd = priceInUsd(cost);
  if (price === null) return { costUsd, costFrom, marginUsd: null, marginPercent: null };
  const full = usdToMicros(price);
  const left = full - cost;
  return {
    costUsd,
    costFrom,
    marginUsd: priceInUsd(left),
    marginPercent: full === 0n ? null : Number((left * 1_000n) / full) / 10,
  };
}

/** What a call costs: a request to each source that costs money, at what such a request has cost so far, rounded up. */
function costOf(
  { path, costsMoney, needs }: Pick<Service, 'path' | 'costsMoney' | 'needs'>,
  { declared, measured }: { declared: readonly DeclaredCost[]; measured: readonly MeasuredCost[] },
): { cost: bigint | null; costFrom: Margin['costFrom'] } {
  const named = declared.find(({ service }) => service === path);
  if (named !== undefined) return { cost: named.costMicros, costFrom: 'declared' };
  if (!costsMoney) return { cost: 0n, costFrom: 'declared' };
  const asked = measured.filter(({ source }) => needs.flat().includes(source));
  if (asked.length === 0) return { cost: null, costFrom: null };
  const each = asked.map(({ costMicros, requests }) => (costMicros + requests - 1n) / requests);
  return { cost: each.reduce((sum, cost) => sum + cost, 0n), costFrom: 'measured' };
}
