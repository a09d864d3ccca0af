/**
 * Reads the `Idempotency-Key` of a request, which names it to be the same when it comes again: printable ASCII without
 * spaces, bare or as the quoted string of draft-ietf-httpapi-idempotency-key-header (RFC 8941, section 3.3.3): `"k-1"` is
 * `k-1`. How long one is depends on what it protects; what is said of one that is missing or unfit, too.
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
  const key = typeof value === 'string' ? unquoted(value) : '';
  if (!/^[\x21-\x7e]+$/.test(key)) return 'unfit';
  return key.length >= length.least && key.length <= length.most ? { key } : 'unfit';
}

/** The text in a quoted string. Anything else stays as it is. */
function unquoted(value: string): string {
  const [, inner] = /^"((?:[^"\\]|\\["\\])*)"$/.exec(value) ?? [];
  return inner === undefined ? value : inner.replaceAll(/\\(["\\])/g, '$1');
}
