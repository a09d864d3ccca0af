/** Turns what the schema finds into sentences that say what to write instead. */
import { nearest } from '@farebox/core/words/nearest';
import type { z } from 'zod';
import type { FieldPath } from './problem.ts';
import { configJsonSchema, configSchema } from './schema.ts';

export interface FieldProblem {
  path: FieldPath;
  message: string;
}

type Issue = z.core.$ZodIssue;
type Json = { readonly [keyword: string]: unknown };

/**
 * Holds a value against the schema.
 *
 * @param numberText the number at a path as it was written; null where none stands
 * @returns the configuration, or all that is wrong
 */
export function fitToSchema(
  value: unknown,
  numberText: (path: FieldPath) => string | null,
): { config: z.output<typeof configSchema> } | { problems: FieldProblem[] } {
  const parsed = configSchema.safeParse(value);
  if (parsed.success) return { config: parsed.data };
  return { problems: parsed.error.issues.flatMap((issue) => told(issue, [], value, numberText)) };
}

function told(
  issue: Issue,
  within: FieldPath,
  value: unknown,
  numberText: (path: FieldPath) => string | null,
): FieldProblem[] {
  const path = [...within, ...issue.path.filter((each) => typeof each !== 'symbol')];
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key], message: unknownKey(key, path) }));
  if (issue.code === 'invalid_union') {
    // The branch that fits best is the one that was meant.
    const [best = []] = [...issue.errors].sort((a, b) => mismatch(a) - mismatch(b));
    return best.flatMap((each) => told(each, path, value, numberText));
  }
  return [{ path, message: sentence(issue, path, value, numberText) }];
}

function mismatch(issues: readonly Issue[]): number {
  return issues.some(({ path, code }) => path.length === 0 && code !== 'unrecognized_keys')
    ? 1_000
    : issues.length;
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object with fields',
  record: 'an object with fields',
  array: 'a list',
};

function sentence(
  issue: Issue,
  path: FieldPath,
  value: unknown,
  numberText: (path: FieldPath) => string | null,
): string {
  if (issue.code === 'invalid_type') {
    const written = numberText(path);
    if (issue.expected === 'string' && written !== null)
      return `write it in quotes: "${written}" (without them it is a number, which may lose digits)`;
    return valueAt(value, path) === undefined
      ? `is missing: write ${KINDS[issue.expected] ?? issue.expected}`
      : `must be ${KINDS[issue.expected] ?? issue.expected}`;
  }
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? 'this name cannot be used';
  if (issue.code === 'invalid_value')
    return issue.values.length === 1
      ? `must be ${JSON.stringify(issue.values[0])}, or be left out`
      : `must be one of ${issue.values.map((each) => JSON.stringify(each)).join(', ')}`;
  if (issue.code === 'too_big') return `must be at most ${String(issue.maximum)}${counted(issue.origin)}`;
  if (issue.code === 'too_small') return `must be at least ${String(issue.minimum)}${counted(issue.origin)}`;
  return issue.message;
}

function counted(origin: string): string {
  if (origin === 'string') return ' characters long';
  return origin === 'array' ? ' entries long' : '';
}

function valueAt(value: unknown, path: FieldPath): unknown {
  return path.reduce<unknown>(
    (at, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name)
        ? (at as Record<string | number, unknown>)[name]
        : undefined,
    value,
  );
}

let published: Json | null = null;

function unknownKey(key: string, path: FieldPath): string {
  published ??= configJsonSchema();
  const names = Object.keys(fieldsAt(published, path)).filter((name) => name !== '$schema');
  const [best] = nearest(key, names, 1);
  return best === undefined ? 'there is no such field' : `there is no such field; did you mean "${best}"?`;
}

/** The fields that the JSON Schema has for an object at a path. */
function fieldsAt(schema: Json, path: FieldPath): Record<string, Json> {
  const [first, ...rest] = path;
  const options = Array.isArray(schema.anyOf) ? (schema.anyOf as Json[]) : [schema];
  const fields = Object.assign({}, ...options.map(({ properties }) => properties ?? {})) as Record<
    string,
    Json
  >;
  if (first === undefined) return fields;
  const inside =
    fields[first] ??
    options.map(({ additionalProperties, items }) => additionalProperties ?? items).find(Boolean);
  return typeof inside === 'object' && inside !== null ? fieldsAt(inside as Json, rest) : {};
}
