import { Problem } from '../http/problem.ts';
import { presentedApiKey } from './api-key.ts';
import type { KeyRecord, Keys } from './keys.ts';

/**
 * The key whose account a request wants to add credit to. One that is frozen for a debt is taken: the credit pays it.
 *
 * @returns null when the request presents none: it buys a new key
 * @throws Problem 401 or 403 for a key that nobody could spend the credit with; nothing was charged
 */
export async function readKeyToCredit(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  { keys, nowMs }: { keys: Keys; nowMs(): number },
): Promise<KeyRecord | null> {
  const presented = presentedApiKey(headers);
  if (presented === null) return null;
  const known = await keys.find(presented);
  const record = known === null ? null : await keys.record(known.id);
  const hint = 'Send the key that is to be credited, or none to buy a new one.';
  if (record === null) throw refused(401, 'API_KEY_INVALID', 'This API key is not known here.', hint);
  if (record.status === 'revoked')
    throw refused(401, 'API_KEY_REVOKED', 'This API key was revoked or rotated.', hint);
  if (record.expiresAt !== null && record.expiresAt.getTime() <= nowMs())
    throw refused(401, 'API_KEY_EXPIRED', 'This API key has expired.', hint);
  if (record.status === 'frozen' && (await keys.freezes(record.accountId)).includes('operator')) {
    const message = 'This API key is frozen by the operator.';
    throw refused(403, 'API_KEY_FROZEN', message, 'Ask the operator why.');
  }
  return record;
}

function refused(status: number, code: string, message: string, hint: string): Problem {
  return new Problem(status, code, message, { details: { hint, charged: false } });
}
