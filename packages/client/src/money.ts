/** Money of a buyer: a whole number of micro-USD, 1 USD = 1,000,000. The client runs without the server's code. */

/**
 * Reads a decimal string of USD, such as `0.25`.
 *
 * @returns micro-USD; null for what is no such amount, or has more than six places
 */
export function microsOf(usd: string): bigint | null {
  const [, whole, fraction = ''] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(usd) ?? [];
  return whole === undefined ? null : BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'));
}

/** Writes an amount with two places, and with as many more as it has. */
export function inUsd(micros: bigint): string {
  const fraction = (micros % 1_000_000n).toString().padStart(6, '0');
  return `${micros / 1_000_000n}.${fraction.slice(0, 2)}${fraction.slice(2).replace(/0+$/, '')}`;
}
