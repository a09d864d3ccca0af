/**
 * Writes a column of values as PostgreSQL's array literal, to be cast in the statement: `${…}::text::bigint[]`. The
 * driver would guess an array's type from its first element, which fails for empty ones, nulls and booleans.
 * https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
 */
export function arrayLiteral(values: readonly (string | number | bigint | boolean | null)[]): string {
  let literal = '{';
  for (const [index, value] of values.entries()) {
    if (index > 0) literal += ',';
    if (value === null) literal += 'NULL';
    else if (typeof value === 'string') literal += `"${value.replace(/["\\]/g, '\\$&')}"`;
    else literal += String(value);
  }
  return `${literal}}`;
}
