/** A route's call as a JSON object, for doors that have no HTTP request: the tools of MCP, A2A, and `/x402/`. */
import type { SentRequest } from '@farebox/core/service/route';
import { invalidInput } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { JsonSchema, Route } from '../config/proxy-config.ts';
import { parametersOf } from '../config/route-key.ts';

const MOST_FIELDS = 100;
const MOST_PARAMETER_CHARACTERS = 200;
/** Made once: there may be thousands of routes. */
const PARAMETER = z.union([z.string().max(2_000), z.number(), z.boolean()]);

const QUERY = z
  .record(z.string().max(100), z.string().max(2_000))
  .optional()
  .describe('Parameters of the address');
const ANY_BODY = z.unknown().optional().describe('The JSON body of the request');

/** The schemas of routes of which nothing is told but their address: those with the same parameters share one. */
const UNDESCRIBED = new Map<string, z.ZodObject>();
const MOST_UNDESCRIBED = 1_000;

/** Where each field of the object goes. */
export interface RouteFields {
  /** The object's schema. */
  readonly schema: z.ZodObject;
  readonly path: readonly string[];
  /** Parameters of the query that have a field of their own; null: they stand in `query`. */
  readonly query: readonly string[] | null;
  /** Top fields of the JSON body that have a field of their own; null: the whole body stands in `body`. */
  readonly body: readonly string[] | null;
  readonly hasBody: boolean;
}

/**
 * Lays a route's parameters and body out as one flat object, where their names differ. Otherwise, and where the route tells no
 * schema, the parameters stand in `query` and the body in `body`.
 */
export function fieldsOf(route: Route): RouteFields {
  const hasBody = route.method !== 'GET' && route.method !== 'DELETE';
  const path = parametersOf(route.path);
  const ofQuery = namesIn(route.request.query);
  const ofBody = hasBody ? namesIn(route.request.body) : null;
  const names = [...path, ...(ofQuery ?? ['query']), ...(hasBody ? (ofBody ?? ['body']) : [])];
  const isFlat = new Set(names).size === names.length;
  const query = isFlat ? ofQuery : null;
  const body = isFlat ? ofBody : null;
  if (!isFlat && path.some((name) => name === 'query' || name === 'body'))
    throw new Error(`${route.key}: a parameter of the path needs another name than query or body here`);
  const isTold = Object.values(route.request).some((told) => told !== null);
  // Of a route of which nothing is told but its address, these say all that its schema does.
  const key = isTold ? null : `${hasBody} ${path.join(' ')}`;
  const known = key === null ? undefined : UNDESCRIBED.get(key);
  if (known !== undefined) return { schema: known, path, query, body, hasBody };
  const shape: Record<string, z.ZodType> = {};
  for (const name of path) shape[name] = parameterOf(route.request.path, name, true);
  if (query === null) shape.query = QUERY;
  else for (const name of query) shape[name] = parameterOf(route.request.query, name, false);
  if (hasBody && body === null) shape.body = wholeBody(route.request.body);
  for (const name of body ?? []) shape[name] = bodyField(route.request.body, name);
  const schema = z.object(shape);
  if (key !== null) {
    if (UNDESCRIBED.size >= MOST_UNDESCRIBED) UNDESCRIBED.clear();
    UNDESCRIBED.set(key, schema);
  }
  return { schema, path, query, body, hasBody };
}

/** The names that an object's schema lists; null if it lists none, or more than are useful. */
function namesIn(schema: JsonSchema | null): string[] | null {
  if (schema === null || !isObject(schema.properties)) return null;
  const names = Object.keys(schema.properties);
  return names.length === 0 || names.length > MOST_FIELDS || names.includes('__proto__') ? null : names;
}

function parameterOf(schema: JsonSchema | null, name: string, isRequired: boolean): z.ZodType {
  const told = fieldOf(schema, name);
  const described = told === null ? PARAMETER : PARAMETER.meta({ ...told });
  return isRequired || requires(schema, name) ? described : described.optional();
}

function wholeBody(schema: JsonSchema | null): z.ZodType {
  return schema === null ? ANY_BODY : z.unknown().meta({ ...schema });
}

function bodyField(schema: JsonSchema | null, name: string): z.ZodType {
  const told = fieldOf(schema, name);
  const field = told === null ? z.unknown() : z.unknown().meta({ ...told });
  return requires(schema, name)
    ? field.refine((value) => value !== undefined, 'is missing')
    : field.optional();
}

function fieldOf(schema: JsonSchema | null, name: string): JsonSchema | null {
  const fields = schema?.properties;
  if (!isObject(fields)) return null;
  const field = fields[name];
  return isObject(field) ? field : null;
}

function requires(schema: JsonSchema | null, name: string): boolean {
  return Array.isArray(schema?.required) && schema.required.includes(name);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** A call as the request would be written that asks for the same. */
export interface WrittenCall extends SentRequest {
  rawBody: Buffer | undefined;
}

/** Writes the request of an object that fits `fields.schema`. */
export function requestOf(
  route: Route,
  fields: RouteFields,
  input: Readonly<Record<string, unknown>>,
): WrittenCall {
  const segments = route.path.segments.map((segment) =>
    segment.kind === 'literal' ? segment.text : encodedSegment(segment.name, input[segment.name]),
  );
  const query = new URLSearchParams();
  const given =
    fields.query === null ? input.query : Object.fromEntries(fields.query.map((name) => [name, input[name]]));
  for (const [name, value] of Object.entries(isObject(given) ? given : {}))
    if (isPlain(value)) query.append(name, String(value));
  const search = query.size === 0 ? '' : `?${query}`;
  const body = bodyOf(fields, input);
  return {
    url: `/${segments.join('/')}${search}`,
    rawHeaders: body === undefined ? [] : ['content-type', 'application/json'],
    rawBody: body === undefined ? undefined : Buffer.from(JSON.stringify(body)),
  };
}

function bodyOf(fields: RouteFields, input: Readonly<Record<string, unknown>>): unknown {
  if (!fields.hasBody) return undefined;
  if (fields.body === null) return input.body;
  const present = fields.body.filter((name) => input[name] !== undefined);
  return present.length === 0 ? undefined : Object.fromEntries(present.map((name) => [name, input[name]]));
}

function encodedSegment(name: string, value: unknown): string {
  const text = isPlain(value) ? String(value) : '';
  if (text === '' || text.length > MOST_PARAMETER_CHARACTERS)
    throw invalidInput(name, `${name} must have 1 to ${MOST_PARAMETER_CHARACTERS} characters.`);
  return encodeURIComponent(text);
}

/** The example of a route in the form of the object; empty if it has none. */
export function exampleOf({ example }: Route, fields: RouteFields): Record<string, unknown> {
  if (example === null) return {};
  const { params, query, body } = example;
  const shown: Record<string, unknown> = { ...params };
  if (fields.query === null) {
    if (Object.keys(query).length > 0) shown.query = query;
  } else Object.assign(shown, query);
  if (fields.body === null) {
    if (body !== undefined) shown.body = body;
  } else if (isObject(body)) Object.assign(shown, body);
  return shown;
}
