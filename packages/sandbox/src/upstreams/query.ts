/** Reads the parameters in the query string of a request. */

export type Query = Readonly<Record<string, string | string[] | undefined>>;

/** The value of a parameter, or its last value if it is repeated; undefined if it is absent or empty. */
export function textOf(query: Query, name: string): string | undefined {
  const raw = query[name];
  const value = Array.isArray(raw) ? raw.at(-1) : raw;
  return value === undefined || value === '' ? undefined : value;
}

/** The number of a parameter; undefined if it is absent or empty, null if it is no finite number. */
export function numberOf(query: Query, name: string): number | null | undefined {
  const value = textOf(query, name);
  if (value === undefined) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** The flag of a parameter, `true` or `false`; undefined for anything else. */
export function flagOf(query: Query, name: string): boolean | undefined {
  const value = textOf(query, name)?.toLowerCase();
  return value === 'true' ? true : value === 'false' ? false : undefined;
}

/** The parts of a comma-separated list, at most `maximum` of them, without empty ones. */
export function listOf(value: string | undefined, maximum: number): string[] {
  return (value ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .slice(0, maximum);
}

/** A whole number between two bounds. A number outside is moved to the nearer bound; `fallback` stands for what is no number. */
export function countOf(
  query: Query,
  name: string,
  fallback: number,
  minimum: number,
  maximum: number,
): number {
  const number = numberOf(query, name);
  if (number === undefined || number === null) return fallback;
  return Math.max(minimum, Math.min(maximum, Math.trunc(number)));
}
