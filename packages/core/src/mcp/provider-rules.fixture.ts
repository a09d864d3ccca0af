/**
 * Rules of what providers of models accept as a tool. One tool that breaks a rule makes some of them refuse the whole request, and with
 * it every other tool.
 */
import type { JsonSchema } from '../service/json-schema.ts';

export interface AnyTool {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: object;
}

/** Refused at the top of a schema; below it all of them but `anyOf` are refused too. */
const COMBINATORS = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref', 'if'] as const;
const REFUSED = [
  ...['oneOf', 'allOf', 'not', 'if', 'const', '$ref', '$defs', 'prefixItems', 'contains'],
  ...['patternProperties', 'propertyNames', 'dependentRequired', 'unevaluatedProperties'],
];
const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array'];
/** The longest description of a function that is accepted everywhere. */
const MAX_DESCRIPTION = 1_024;
const MAX_DEPTH = 10;

/** The rules that a tool breaks, each with its place. */
export function breaches({ name, description = '', inputSchema }: AnyTool): string[] {
  const found: string[] = [];
  const schema = inputSchema as JsonSchema;
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) found.push('its name');
  if (description.length === 0 || description.length > MAX_DESCRIPTION) found.push('its description');
  if (schema.type !== 'object') found.push('/ is no object');
  for (const keyword of COMBINATORS) if (keyword in schema) found.push(`/ has ${keyword}`);
  return [...found, ...withinSchema(schema, '', 0)].map((each) => `${name}: ${each}`);
}

function withinSchema(schema: JsonSchema, place: string, depth: number): string[] {
  const at = (what: string) => `${place || '/'} ${what}`;
  if (depth > MAX_DEPTH) return [at('is too deep')];
  const found = REFUSED.filter((keyword) => keyword in schema).map((keyword) => at(`has ${keyword}`));
  const { type, anyOf, items, properties = {}, additionalProperties } = schema;
  if (anyOf !== undefined) {
    if (Object.keys(schema).length > 1) found.push(at('has anyOf and more beside it'));
    const alternatives = Array.isArray(anyOf) ? anyOf : [];
    return [...found, ...alternatives.flatMap((each, n) => below(each, `${place}/anyOf/${n}`, depth))];
  }
  if (typeof type !== 'string' || !TYPES.includes(type)) found.push(at('has not one type'));
  if (Array.isArray(schema.enum) && !schema.enum.every((value) => typeof value === 'string'))
    found.push(at('has an enum of other than texts'));
  if (type === 'array') found.push(...below(items, `${place}/items`, depth));
  const fields = Object.entries(properties as Record<string, unknown>);
  for (const [field, each] of fields) {
    if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(field)) found.push(at(`has a field ${field}`));
    found.push(...below(each, `${place}/${field}`, depth));
  }
  for (const field of (schema.required ?? []) as string[])
    if (!fields.some(([known]) => known === field)) found.push(at(`requires ${field}, which it lacks`));
  if (typeof additionalProperties === 'object')
    found.push(...below(additionalProperties, `${place}/*`, depth));
  return found;
}

function below(schema: unknown, place: string, depth: number): string[] {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    return [`${place} is no schema`];
  return withinSchema(schema as JsonSchema, place, depth + 1);
}

/** The keywords that a strict schema may not hold beside its structure. */
const NOT_STRICT = ['minLength', 'maxLength', 'default', 'title', 'examples', 'uniqueItems'];

/**
 * The schema as strict function calling takes it: every field required, those that were optional may be null, no other fields.
 *
 * @returns null when an object in it takes any field, which has no strict form
 */
export function strictForm(schema: JsonSchema): JsonSchema | null {
  if (Array.isArray(schema.anyOf)) {
    const forms = schema.anyOf.map((each: JsonSchema) => strictForm(each));
    return forms.includes(null) ? null : { ...schema, anyOf: forms };
  }
  const kept = Object.fromEntries(
    Object.entries(schema).filter(([keyword]) => !NOT_STRICT.includes(keyword)),
  );
  if (schema.type === 'array') {
    const items = strictForm(schema.items as JsonSchema);
    return items === null ? null : { ...kept, items };
  }
  if (schema.type !== 'object') return kept;
  const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  if (isFreeForm(schema, fields.length)) return null;
  const required = (schema.required ?? []) as readonly string[];
  const forms: Record<string, JsonSchema> = {};
  for (const [name, field] of fields) {
    const form = strictForm(field);
    if (form === null) return null;
    forms[name] = required.includes(name) ? form : { anyOf: [form, { type: 'null' }] };
  }
  return { ...kept, properties: forms, required: Object.keys(forms), additionalProperties: false };
}

/** At the top no fields at all means no arguments, which is strict. */
function isFreeForm({ additionalProperties, properties }: JsonSchema, fields: number): boolean {
  if (additionalProperties !== undefined && additionalProperties !== false) return true;
  return fields === 0 && properties === undefined;
}
