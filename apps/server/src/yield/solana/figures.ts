/** How figures are written in answers. */
const UNITS_IN_USDC = 1_000_000n;

/** USDC units as a decimal with six places, such as `99.500000`. */
export function usdcText(units: bigint): string {
  const part = String(units % UNITS_IN_USDC).padStart(6, '0');
  return `${units / UNITS_IN_USDC}.${part}`;
}

/** A time in milliseconds as ISO 8601. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
