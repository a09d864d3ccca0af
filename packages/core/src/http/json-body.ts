import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { readJson } from './json-text.ts';
import { invalidRequest } from './problem.ts';

/**
 * Reads the JSON body of a request that costs nothing.
 *
 * @throws Problem 400 with the fields that are wrong
 */
export function readJsonBody<T>(request: FastifyRequest, schema: z.ZodType<T>): T {
  const value = readJson(request.body instanceof Buffer ? request.body : undefined);
  const parsed = schema.safeParse(value === undefined ? {} : value);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues
    .slice(0, 20)
    .map((issue) => ({ field: issue.path.join('.'), message: issue.message }));
  const first = fields[0];
  throw invalidRequest(`${first?.field || 'body'}: ${first?.message ?? 'invalid'}`, fields);
}
