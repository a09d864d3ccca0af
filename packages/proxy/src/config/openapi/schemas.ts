/** Schemas of an OpenAPI document as JSON Schemas that stand alone: references are written out, and 3.0's own words translated. */
import { wrongSchema } from '../bounded-json.ts';
import { fieldOf, isObject, type Json, listOf, type OpenApiDocument, objectOf, pointed } from './document.ts';

const MOST_PARTS = 3_000;
const DEEPEST = 22;

/** Words of which the value is a schema, a list of schemas, or schemas by name. */
const ONE: ReadonlySet<string> = new Set([
  ...['items', 'not', 'additionalProperties', 'contains', 'propertyNames', 'if', 'then', 'else'],
  ...['unevaluatedItems', 'unevaluatedProperties', 'contentSchema'],
]);
const MANY: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const NAMED: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas']);
/** Words that are kept as they are. */
const PLAIN: ReadonlySet<string> = new Set([
  ...['type', 'enum', 'const', 'format', 'title', 'description', 'default', 'required', 'examples'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength'],
  ...['pattern', 'minItems', 'maxItems', 'uniqueItems', 'minContains', 'maxContains', 'minProperties'],
  ...['maxProperties', 'dependentRequired', 'contentEncoding', 'contentMediaType', 'deprecated'],
  ...['readOnly', 'writeOnly'],
]);

class Unfit extends Error {}

/** A schema that stands alone, or why there is none. */
export type StandingSchema = { schema: Json } | { why: string };

/** Makes a schema stand alone. */
export function standingSchema(document: OpenApiDocument, schema: unknown): StandingSchema {
  const budget = { left: MOST_PARTS };
  try {
    const made = standing(schema, { document, budget }, [], 0);
    if (!isObject(made)) return { why: 'its schema is no object' };
    const wrong = wrongSchema(made, false);
    return wrong === null ? { schema: made } : { why: `its schema ${wrong}` };
  } catch (error) {
    if (error instanceof Unfit) return { why: error.message };
    throw error;
  }
}

interface Standing {
  document: OpenApiDocument;
  budget: { left: number };
}

function standing(schema: unknown, by: Standing, within: readonly string[], depth: number): Json | boolean {
  by.budget.left -= 1;
  if (by.budget.left < 0) throw new Unfit('its schema is too large to be written out');
  if (depth > DEEPEST) throw new Unfit(`its schema is nested more than ${DEEPEST} times`);
  if (typeof schema === 'boolean') return schema;
  if (!isObject(schema)) throw new Unfit('a part of its schema is no object');
  const { $ref: reference } = schema;
  if (reference !== undefined) {
    if (typeof reference !== 'string') throw new Unfit('its schema has a reference that is no text');
    if (within.includes(reference)) throw new Unfit(`its schema refers to itself by ${reference}`);
    const meant = pointed(by.document.root, reference);
    if (meant === undefined)
      throw new Unfit(
        reference.startsWith('#')
          ? `its schema refers to ${reference}, which is not there`
          : `its schema refers to another document: ${reference}`,
      );
    return standing(meant, by, [...within, reference], depth);
  }
  const pairs = Object.entries(schema).flatMap(([word, value]): [string, unknown][] => {
    const into = (each: unknown) => standing(each, by, within, depth + 1);
    if (ONE.has(word)) return [[word, into(value)]];
    if (MANY.has(word)) return [[word, listOf(value).map(into)]];
    if (NAMED.has(word))
      return [
        [word, Object.fromEntries(Object.entries(objectOf(value)).map(([name, each]) => [name, into(each)]))],
      ];
    return PLAIN.has(word) ? [[word, value]] : [];
  });
  return translated(Object.fromEntries(pairs), schema, by.document.version);
}

/** The words that OpenAPI 3.0 has of its own, and `example`, in those of JSON Schema. */
function translated(made: Json, written: Json, version: '3.0' | '3.1'): Json {
  const { example, nullable } = written;
  const shown =
    example !== undefined && made.examples === undefined ? { ...made, examples: [example] } : made;
  if (version === '3.1') return shown;
  const { exclusiveMinimum, exclusiveMaximum, minimum, maximum, ...rest } = shown;
  const bounds = {
    ...(exclusiveMinimum === true ? { exclusiveMinimum: minimum } : { minimum }),
    ...(exclusiveMaximum === true ? { exclusiveMaximum: maximum } : { maximum }),
  };
  const bounded = { ...rest, ...withoutUndefined(bounds) };
  if (nullable !== true) return bounded;
  if (typeof rest.type === 'string') {
    const values =
      Array.isArray(rest.enum) && !rest.enum.includes(null) ? { enum: [...rest.enum, null] } : {};
    return { ...bounded, type: [rest.type, 'null'], ...values };
  }
  return { anyOf: [bounded, { type: 'null' }] };
}

function withoutUndefined(object: Json): Json {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

const NO_SAMPLE = Symbol('no sample');
export type Sample = { value: unknown } | null;

/** The example that a schema gives, put together of its parts' examples, defaults and choices; null: it gives none. */
export function sampleOf(schema: Json): Sample {
  const value = sample(schema, 0);
  return value === NO_SAMPLE ? null : { value };
}

function sample(schema: unknown, depth: number): unknown {
  if (!isObject(schema) || depth > DEEPEST) return NO_SAMPLE;
  const examples = listOf(schema.examples);
  if (examples.length > 0) return examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  const choices = listOf(schema.enum);
  if (choices.length > 0) return choices[0];
  if (schema.type !== 'object' && schema.properties === undefined) return NO_SAMPLE;
  const properties = objectOf(schema.properties);
  const needed = listOf(schema.required).filter((name) => typeof name === 'string');
  const pairs = Object.entries(properties)
    .filter(([name]) => fieldOf(objectOf(properties[name]), 'readOnly') !== true)
    .map(([name, each]): [string, unknown] => [name, sample(each, depth + 1)]);
  const known = pairs.filter(([, value]) => value !== NO_SAMPLE);
  const isWhole = needed.every((name) => known.some(([each]) => each === name));
  return isWhole && known.length > 0 ? Object.fromEntries(known) : NO_SAMPLE;
}
