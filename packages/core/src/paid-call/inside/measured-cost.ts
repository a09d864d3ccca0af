import type { Quote } from '../rail.ts';

/**
 * Checks the cost that an answer tells of itself. Undefined where its price was known before, as it is where nothing was reserved.
 *
 * @throws Error for a metered answer that says none, or more than was reserved: nothing is taken for it
 */
export function checkedCost(
  { service, priceMicros }: Quote,
  costMicros: bigint | undefined,
): bigint | undefined {
  if (service.metered === null || priceMicros === 0n) return undefined;
  if (costMicros === undefined || costMicros < 0n || costMicros > priceMicros)
    throw new Error(`${service.path} costs ${costMicros}, of ${priceMicros} that are reserved`);
  return costMicros;
}
