/** What a caller asks for: a wallet, an amount. Whatever is wrong is told with the field and what would be right. */
import { type Address, isAddress, isOffCurveAddress } from '@solana/kit';
import { type FieldIssue, Problem } from '../../http/problem.ts';

/** A 400 that says what to change and shows what is right. */
export function badRequest(
  message: string,
  fields: readonly FieldIssue[],
  example: object | string,
): Problem {
  return new Problem(400, 'INVALID_REQUEST', message, { details: { success: false, fields, example } });
}

/**
 * A wallet that can sign: 32 bytes in base58, on the curve.
 *
 * @throws Problem 400
 */
export function readWallet(value: unknown, example: object | string): Address {
  const refuse = (message: string) =>
    badRequest(`wallet ${message}`, [{ field: 'wallet', message }], example);
  if (typeof value !== 'string' || value === '')
    throw refuse('is missing: give the address of the wallet in base58.');
  if (!isAddress(value)) throw refuse('must be one address of Solana: 32 bytes in base58.');
  if (isOffCurveAddress(value))
    throw refuse(
      'is no wallet: nobody has a key for this address, so nobody can sign for it. Give the owner of the token account.',
    );
  return value;
}
