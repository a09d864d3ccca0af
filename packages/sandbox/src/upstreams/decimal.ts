/** A number as a decimal string without an exponent, as APIs with prices in strings write it. */
export function decimal(value: number): string {
  const text = String(value);
  return text.includes('e') ? value.toFixed(20).replace(/0+$/, '').replace(/\.$/, '') : text;
}
