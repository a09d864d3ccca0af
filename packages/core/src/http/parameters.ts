import type { z } from 'zod';
import { invalidRequest } from './problem.ts';

/**
 * Reads what stands in an address: parts of its path, or its query.
 *
 * @throws Problem 400 with what is wrong
 */
export function readParameters<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.') ?? '';
  const message = issue?.message ?? 'is invalid';
  throw invalidRequest(`${field || 'address'}: ${message}`, [{ field, message }]);
}
