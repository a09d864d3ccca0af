import { Problem } from '@farebox/core/http/problem';

type Refusal = 'PRICE_DECIDED_TWICE' | 'PRICE_NOT_PLAIN' | 'PRICE_UNKNOWN';

/**
 * The 400 for a request whose price cannot be told. It names no price, and nothing was charged.
 *
 * @param field what decides the price, such as `options.size`, `?days` or `x-quality`
 * @param message the rest of a sentence that begins with the field
 */
export function priceRefused(
  code: Refusal,
  field: string,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
): Problem {
  return new Problem(400, code, `${field} ${message}.`, {
    details: { fields: [{ field, message }], ...details, charged: false },
  });
}

/**
 * The part of a name or value that lenient programs compare: without case, width, and the signs and spaces that some of them drop,
 * and only up to a NUL, at which some of them end. Two texts with the same likeness could be taken for each other.
 */
export function likeness(text: string): string {
  const [before = ''] = text.split('\0', 1);
  return before
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[\s_-]/g, '');
}
