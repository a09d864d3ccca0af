import { z } from 'zod';
import type { Service } from './define.ts';

/** A JSON Schema of draft 2020-12, without `$schema`. */
export type JsonSchema = { readonly [keyword: string]: unknown };

const inputs = new WeakMap<Service, JsonSchema>();
const outputs = new WeakMap<Service, JsonSchema>();

/** The JSON Schema of the body of a request for this service. Made once for each service. */
export function inputSchemaOf(service: Service): JsonSchema {
  return remembered(inputs, service, () => schemaOf(service.input, 'input'));
}

/**
 * The JSON Schema of the fields of this service's answer, without those that every answer has. Made once for each
 * service.
 */
export function outputSchemaOf(service: Service): JsonSchema {
  return remembered(outputs, service, () => schemaOf(service.output, 'output'));
}

/** The schema's required and optional fields without anything below them, short enough for a list of many services. */
export function outlineOf(schema: JsonSchema): JsonSchema {
  const fields = Object.entries(propertiesOf(schema)).map(([name, field]) => {
    const type = field.type ?? (Array.isArray(field.anyOf) ? typesOf(field.anyOf) : undefined);
    return [name, type === undefined ? {} : { type }];
  });
  return { properties: Object.fromEntries(fields) };
}

/** The fields that a body may and must have, with nothing below them. */
export function inputOutlineOf(schema: JsonSchema): JsonSchema {
  const { required } = schema;
  return { type: 'object', ...outlineOf(schema), ...(required === undefined ? {} : { required }) };
}

/** The named fields of an object's schema. */
export function propertiesOf(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
  return isObject(schema.properties) ? (schema.properties as Record<string, JsonSchema>) : {};
}

function remembered(
  cache: WeakMap<Service, JsonSchema>,
  service: Service,
  make: () => JsonSchema,
): JsonSchema {
  const known = cache.get(service);
  if (known !== undefined) return known;
  const made = make();
  cache.set(service, made);
  return made;
}

function schemaOf(schema: z.ZodObject, side: 'input' | 'output'): JsonSchema {
  const made = z.toJSONSchema(schema, { io: side, target: 'draft-2020-12', unrepresentable: 'any' });
  return withoutNoise(made);
}

/** Keywords whose value maps names to schemas: the names in it are not keywords. */
const MAPS_OF_SCHEMAS = new Set(['properties', 'patternProperties', '$defs']);
/** Keywords whose value is data, in which nothing may be changed. */
const DATA = new Set(['default', 'const', 'enum', 'examples', 'required']);

/**
 * Removes what carries no information: the dialect (the document names it), the bounds of safe integers, patterns that
 * repeat a `format`, and that names of properties are strings. `additionalProperties: false` is removed too, because
 * unknown fields of a request are ignored and answers may gain fields.
 */
function withoutNoise(schema: object): JsonSchema {
  const kept: Record<string, unknown> = {};
  const source = asList(schema as Record<string, unknown>);
  for (const [keyword, value] of Object.entries(source)) {
    if (keyword === '$schema' || keyword === 'propertyNames') continue;
    if (keyword === 'pattern' && typeof source.format === 'string') continue;
    if (keyword === 'minimum' && value === Number.MIN_SAFE_INTEGER) continue;
    if (keyword === 'maximum' && value === Number.MAX_SAFE_INTEGER) continue;
    if (keyword === 'additionalProperties' && (value === false || isEmpty(value))) continue;
    if (MAPS_OF_SCHEMAS.has(keyword) && isObject(value)) {
      kept[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, isObject(inner) ? withoutNoise(inner) : inner]),
      );
    } else if (DATA.has(keyword)) {
      kept[keyword] = value;
    } else if (Array.isArray(value)) {
      kept[keyword] = value.map((inner: unknown) => (isObject(inner) ? withoutNoise(inner) : inner));
    } else {
      kept[keyword] = isObject(value) ? withoutNoise(value) : value;
    }
  }
  return kept;
}

/**
 * A tuple as a list of as many items, each of them what any of the tuple's may be: readers of OpenAPI and generators of code
 * expect one schema for the items of a list. What the list does not say of a place in it, the service checks.
 */
function asList(schema: Record<string, unknown>): Record<string, unknown> {
  const { prefixItems, items: _rest, ...list } = schema;
  if (!Array.isArray(prefixItems)) return schema;
  const kinds = new Map(prefixItems.map((each: unknown) => [JSON.stringify(each), each]));
  const [first] = kinds.values();
  const isNumber = (each: unknown) => isObject(each) && (each.type === 'number' || each.type === 'integer');
  const items =
    kinds.size === 1
      ? first
      : [...kinds.values()].every(isNumber)
        ? { type: 'number' }
        : { anyOf: [...kinds.values()] };
  return { ...list, items, minItems: prefixItems.length, maxItems: prefixItems.length };
}

function typesOf(schemas: readonly unknown[]): string | string[] | undefined {
  const types = [...new Set(schemas.flatMap((schema) => (isObject(schema) ? schema.type : undefined)))];
  if (!types.every((type) => typeof type === 'string')) return undefined;
  return types.length === 1 ? types[0] : types;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmpty(value: unknown): boolean {
  return isObject(value) && Object.keys(value).length === 0;
}

/** A JSON Schema without texts for human readers, which make up most of a long one. */
export function withoutProse(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutProse);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([key, value]) =>
      !((key === 'description' || key === 'title' || key === '$schema') && typeof value === 'string'),
  );
  return Object.fromEntries(
    kept.map(([key, value]) => [key, key === 'examples' ? value : withoutProse(value)]),
  );
}
