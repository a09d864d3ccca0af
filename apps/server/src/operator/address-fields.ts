import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { invalidRequest } from '../http/problem.ts';

const MOST_ID = 2n ** 63n - 1n;

/** The number of a row, as it stands in an address. */
export const id = z
  .string()
  .regex(/^\d{1,19}$/, 'must be a number')
  .transform(BigInt)
  .refine((value) => value <= MOST_ID, 'must be a number');

/** Whose account an address names. @throws Problem 400 */
export function accountOf(request: FastifyRequest): bigint {
  return read(z.object({ account: id }), request.params).account;
}

/** Reads what stands in an address. @throws Problem 400 with what is wrong */
export function read<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.') ?? '';
  throw invalidRequest(`${field || 'address'}: ${issue?.message ?? 'is invalid'}`);
}
