/**
 * An example answer for documents, in the form that a service's schema describes: every field that is always present,
 * and one entry in each list. The values are placeholders and come from no source.
 */
import type { Service } from './define.ts';
import { type JsonSchema, outputSchemaOf, propertiesOf } from './json-schema.ts';

const MOMENT = '2026-01-31T12:00:00.000Z';
const BY_FORMAT: Readonly<Record<string, string>> = {
  'date-time': MOMENT,
  date: MOMENT.slice(0, 10),
  uri: 'https://example.com/',
  email: 'somebody@example.com',
  uuid: '00000000-0000-4000-8000-000000000000',
};
/** Values that fit our patterns, the shortest first. */
const FOR_PATTERNS = ['1', '0.25', '0x0', `0x${'0'.repeat(40)}`, `0x${'0'.repeat(64)}`];

const examples = new WeakMap<Service, Readonly<Record<string, unknown>>>();

/** The service's own fields of such an answer. Made once for each service. */
export function exampleAnswerOf(service: Service): Readonly<Record<string, unknown>> {
  const known = examples.get(service);
  if (known !== undefined) return known;
  const made = valueFor(outputSchemaOf(service)) as Record<string, unknown>;
  examples.set(service, made);
  return made;
}

function valueFor(schema: JsonSchema): unknown {
  if ('const' in schema) return schema.const;
  for (const list of [schema.examples, schema.enum]) if (Array.isArray(list)) return list[0];
  const branches = [schema.anyOf, schema.oneOf].find((each) => Array.isArray(each));
  // The first branch describes a value; null comes last.
  if (Array.isArray(branches)) return valueFor((branches[0] ?? {}) as JsonSchema);
  if (Array.isArray(schema.allOf))
    return Object.assign({}, ...schema.allOf.map((each) => valueFor(each as JsonSchema)));
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  switch (type) {
    case 'object':
      return objectOf(schema);
    case 'array':
      return arrayOf(schema);
    case 'string':
      return textOf(schema);
    case 'integer':
    case 'number':
      return numberOf(schema);
    case 'boolean':
      return true;
    default:
      return null;
  }
}

function objectOf(schema: JsonSchema): Record<string, unknown> {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(
    Object.entries(propertiesOf(schema)).flatMap(([name, field]) =>
      required.includes(name) ? [[name, valueFor(field)]] : [],
    ),
  );
}

function arrayOf(schema: JsonSchema): unknown[] {
  if (Array.isArray(schema.prefixItems))
    return schema.prefixItems.map((each) => valueFor(each as JsonSchema));
  const { items, minItems } = schema;
  if (typeof items !== 'object' || items === null) return [];
  return Array.from({ length: Math.max(1, typeof minItems === 'number' ? minItems : 1) }, () =>
    valueFor(items as JsonSchema),
  );
}

function textOf({ format, pattern, minLength }: JsonSchema): string {
  if (typeof format === 'string' && BY_FORMAT[format] !== undefined) return BY_FORMAT[format];
  if (typeof pattern === 'string')
    return FOR_PATTERNS.find((each) => new RegExp(pattern, 'u').test(each)) ?? '…';
  return '…'.padEnd(typeof minLength === 'number' ? minLength : 1, '…');
}

function numberOf({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }: JsonSchema): number {
  const least = typeof minimum === 'number' ? minimum : 1;
  const above = typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : least;
  const wanted = Math.max(1, least, above);
  if (typeof maximum === 'number' && wanted > maximum) return maximum;
  return typeof exclusiveMaximum === 'number' && wanted >= exclusiveMaximum
    ? (above + exclusiveMaximum) / 2
    : wanted;
}
