/** Money is a whole number of micro-USD: 1 USD = 1,000,000. It is a `bigint` everywhere but at the JSON edge. */

const MICROS_PER_USD = 1_000_000n;

/**
 * Reads a decimal string of USD, such as `0.25`.
 *
 * @returns micro-USD
 * @throws when it is not a plain decimal with at most six places: nothing is ever rounded
 *
 * @example
 * ```ts
 * import { usdToMicros } from '@farebox/core/ledger/money';
 *
 * usdToMicros('0.25'); // 250_000n
 * ```
 */
export function usdToMicros(usd: string): bigint {
  const match = /^(-?)(\d{1,12})(?:\.(\d{1,6}))?$/.exec(usd);
  if (match === null) throw new RangeError(`not an amount in USD with at most six places: ${usd}`);
  const [, sign, whole = '0', fraction = ''] = match;
  const micros = BigInt(whole) * MICROS_PER_USD + BigInt(fraction.padEnd(6, '0'));
  return sign === '-' ? -micros : micros;
}

/** Writes a price: two places, and as many more as it has. Nothing is cut. */
export function priceInUsd(micros: bigint): string {
  return microsToUsd(micros).replace(/(?<=\.\d{2}\d*?)0+$/, '');
}

/** Writes micro-USD as a decimal string with a fixed number of places; digits beyond them are cut, not rounded. */
export function microsToUsd(micros: bigint, places: 2 | 4 | 6 = 6): string {
  const absolute = micros < 0n ? -micros : micros;
  const fraction = (absolute % MICROS_PER_USD).toString().padStart(6, '0').slice(0, places);
  return `${micros < 0n ? '-' : ''}${absolute / MICROS_PER_USD}.${fraction}`;
}
