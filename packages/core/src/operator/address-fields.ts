import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readParameters } from '../http/parameters.ts';

const MOST_ID = 2n ** 63n - 1n;

/** The number of a row, as it stands in an address. */
export const id = z
  .string()
  .regex(/^\d{1,19}$/, 'must be a number')
  .transform(BigInt)
  .refine((value) => value <= MOST_ID, 'must be a number');

/** Reads the account that an address names. @throws Problem 400 */
export function accountOf(request: FastifyRequest): bigint {
  return readParameters(z.object({ account: id }), request.params).account;
}
