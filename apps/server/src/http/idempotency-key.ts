/**
 * Reads the `Idempotency-Key` of a request, which names it to be the same when it comes again: printable ASCII without
 * spaces. How long one is depends on what it protects; what is said of one that is missing or unfit, too.
 *
 * @param length in characters
 * @returns null when none was sent; `unfit` when it came twice, or is not of that form
 */
export function idempotencyKeyOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  length: { least: number; most: number },
): { key: string } | 'unfit' | null {
  const value = headers['idempotency-key'];
  if (value === undefined) return null;
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) return 'unfit';
  return value.length >= length.least && value.length <= length.most ? { key: value } : 'unfit';
}
