import { createHash } from 'node:crypto';
import { readJson } from '../http/json-text.ts';
import { type FieldIssue, invalidRequest } from '../http/problem.ts';
import type { Service } from '../service/define.ts';
import { inputSchemaOf } from '../service/json-schema.ts';
import type { ReadCall } from '../service/route.ts';
import { choicesIn } from '../words/choices.ts';
import { withoutNulls } from './inside/null-as-absent.ts';

const MAX_ISSUES = 20;

/**
 * Reads the body of a paid request into the service's input. It parses JSON, renames the spellings that existing
 * clients send, then applies the service's own schema. An empty body counts as `{}`. Unknown fields are ignored, and so is a
 * null where a field may be left out.
 *
 * @throws Problem 400 with each field that is wrong and what would be right
 */
export function readInput(service: Service, rawBody: Buffer | undefined): unknown {
  const body = bodyOf(service, rawBody);
  const parsed = service.input.safeParse(service.adapt === undefined ? body : service.adapt(body));
  if (parsed.success) return parsed.data;
  const fields: FieldIssue[] = parsed.error.issues.slice(0, MAX_ISSUES).map((issue) => ({
    field: issue.path.join('.'),
    message: issue.message,
  }));
  const first = fields[0];
  throw invalidRequest(
    `The body does not fit ${service.path}: ${first === undefined ? 'invalid' : `${first.field || 'body'}: ${first.message}`}.`,
    fields,
    service.choices.length === 0 ? {} : choicesIn(service.choices),
  );
}

/** The body by the interface's names, and without what it says is absent. */
function bodyOf(service: Service, rawBody: Buffer | undefined): Record<string, unknown> {
  const sent = bodyObject(rawBody);
  if (rawBody?.includes('null') !== true) return withCanonicalNames(service, sent);
  const schema = inputSchemaOf(service);
  // Before the spellings are joined too: an absent field must not stand before the same field by another name.
  const named = withCanonicalNames(service, withoutNulls(sent, schema, true) as Record<string, unknown>);
  return withoutNulls(named, schema, true) as Record<string, unknown>;
}

/** The body as it was sent. @throws Problem 400 unless it is a JSON object or empty */
export function bodyObject(rawBody: Buffer | undefined): Record<string, unknown> {
  const value = readJson(rawBody);
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidRequest('The body must be a JSON object.');
  }
  return value as Record<string, unknown>;
}

/**
 * Renames fields to the interface's names: snake case to camel case and back, then the service's aliases. Where both
 * spellings were sent, the canonical one wins.
 */
function withCanonicalNames(service: Service, body: Record<string, unknown>): Record<string, unknown> {
  const shape = service.input.shape;
  const result: Record<string, unknown> = {};
  const others: [string, unknown][] = [];
  for (const [name, value] of Object.entries(body)) {
    if (Object.hasOwn(shape, name)) result[name] = value;
    else others.push([name, value]);
  }
  for (const [name, value] of others) {
    const candidates = [camelCase(name), snakeCase(name)];
    const canonical =
      candidates.find((candidate) => Object.hasOwn(shape, candidate)) ??
      [name, ...candidates]
        .map((candidate) => aliasOf(service, candidate))
        .find((found) => found !== undefined);
    if (canonical === undefined) {
      // Unknown fields are kept for `adapt`; the schema ignores them. JSON may carry `__proto__`, which must never be
      // assigned.
      if (name !== '__proto__') result[name] = value;
    } else if (!Object.hasOwn(result, canonical)) result[canonical] = value;
  }
  return result;
}

function aliasOf(service: Service, name: string): string | undefined {
  return Object.hasOwn(service.aliases, name) ? service.aliases[name] : undefined;
}

function camelCase(name: string): string {
  return name.replace(/[_-]+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The input of a call. @throws Problem 400, unless its service's route has read it */
export function inputOf(
  called: ReadCall | null,
  { service, rawBody }: { service: Service; rawBody: Buffer | undefined },
): unknown {
  return called === null ? readInput(service, rawBody) : called.input;
}

/** The digest that a payment for a call is bound to. */
export function fingerprintOfCall(called: ReadCall | null, service: Service, input: unknown): Buffer {
  return called === null ? fingerprintOf(service, input) : called.fingerprint;
}

/** The digest that a payment is bound to: the service and its input, independent of spelling and field order. */
export function fingerprintOf(service: Service, input: unknown): Buffer {
  return createHash('sha256')
    .update(`POST ${service.path}\n${canonicalJson(input)}`)
    .digest();
}

/** The same digest, bound to a claim as well. `boughtBy` in `settlements.ts` builds it in SQL from the same parts. */
export function claimedFingerprint(fingerprint: Buffer, claim: Buffer | null): Buffer {
  return claim === null ? fingerprint : createHash('sha256').update(fingerprint).update(claim).digest();
}

function canonicalJson(value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`;
}
