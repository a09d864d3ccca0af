/** How figures are told in answers, on either chain. */
import { formatUnits } from 'viem';

const USDC_DECIMALS = 6;

/** USDC units as a decimal string with six places, such as `99.500000`. */
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
