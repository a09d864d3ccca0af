/** How amounts are told: as decimal strings, and beside them in the units of the chain. */
import { formatUnits, type Hex, numberToHex } from 'viem';

const USDC_DECIMALS = 6;

/** USDC units as a decimal string with six places. */
export function usdcText(units: bigint): string {
  const text = formatUnits(units, USDC_DECIMALS);
  const [whole = '0', part = ''] = text.split('.');
  return `${whole}.${part.padEnd(USDC_DECIMALS, '0')}`;
}

/** Basis points as percent: `0.5`. */
export function percentOf(bps: number): number {
  return bps / 100;
}

/** A time in milliseconds as ISO 8601. */
export function timeText(atMs: number): string {
  return new Date(atMs).toISOString();
}

export function gasHex(gas: bigint): Hex {
  return numberToHex(gas);
}
