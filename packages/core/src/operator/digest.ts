import { createHash } from 'node:crypto';

/** SHA-256 of texts, by which a request is known again without being stored. */
export function digestOf(texts: readonly (string | null)[]): Buffer {
  return createHash('sha256').update(JSON.stringify(texts)).digest();
}
