/** Amounts arrive as decimal strings and are counted in whole micro-USD, so that no cent is lost on the way. */

/** Micro-USD of a decimal string such as "4.750000". */
export function microsOf(usd) {
  const match = /^(-?)(\d+)(?:\.(\d{1,6})\d*)?$/.exec(String(usd));
  if (match === null) throw new Error(`not an amount: ${usd}`);
  const [, sign, whole, places = ''] = match;
  const micros = BigInt(whole + places.padEnd(6, '0'));
  return sign === '-' ? -micros : micros;
}

/** "$4.75": two places, and more only where they are not zero. */
export function formatMicros(micros) {
  const negative = micros < 0n;
  const digits = (negative ? -micros : micros).toString().padStart(7, '0');
  const whole = digits.slice(0, -6).replace(/\B(?=(\d{3})+$)/g, ',');
  const places = digits.slice(-6).replace(/0{1,4}$/, '');
  return `${negative ? '−' : ''}$${whole}.${places}`;
}

/** The same from a decimal string. */
export function formatUsd(usd) {
  return formatMicros(microsOf(usd));
}

/** The amount in cents, for where it stands large: never more than there is, and whole where it is below a cent. */
export function formatCents(usd) {
  const micros = microsOf(usd);
  const cents = (micros / 10_000n) * 10_000n;
  return formatMicros(cents === 0n ? micros : cents);
}
