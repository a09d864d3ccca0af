/** A number as a decimal string without an exponent, as APIs write prices that they answer as strings. */
export function decimal(value: number): string {
  const text = String(value);
  return text.includes('e') ? value.toFixed(20).replace(/0+$/, '').replace(/\.$/, '') : text;
}
