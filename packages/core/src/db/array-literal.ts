/**
 * Writes a column of values as PostgreSQL's array literal, to be cast in the statement: `${…}::text::bigint[]`. The
 * driver would guess an array's type from its first element, which fails for empty ones, nulls and booleans.
 * https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
 */
export function arrayLiteral(values: readonly (string | number | bigint | boolean | null)[]): string {
  let literal = '';
  // Every call comes by here some twenty times: no pairs are made, and text is copied only where it has to be.
  for (const value of values) {
    literal += literal === '' ? '{' : ',';
    if (typeof value === 'string')
      literal += `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`;
    else literal += value === null ? 'NULL' : String(value);
  }
  return literal === '' ? '{}' : `${literal}}`;
}
