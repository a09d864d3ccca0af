/**
 * The input of a service in the form that providers of models accept as a tool's: one flat object, each field of one type.
 * It takes no more than the service takes; what it leaves out stands in words, and the service takes it all the same.
 */
import type { Service } from './define.ts';
import { inputSchemaOf, type JsonSchema, propertiesOf } from './json-schema.ts';

export type ToolSchema = { readonly type: 'object' } & JsonSchema;

const made = new WeakMap<Service, ToolSchema>();

/** Keywords that say the same of a field whatever its type is. */
const WORDS: ReadonlySet<string> = new Set(['description', 'title']);
/** Keywords that say something of one type alone. */
const OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'minItems', 'maxItems', 'uniqueItems'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
};

/** The schema of the arguments of this service's tool. Made once for each service. */
export function toolSchemaOf(service: Service): ToolSchema {
  const known = made.get(service);
  if (known !== undefined) return known;
  const schema = toolFormOf(inputSchemaOf(service));
  made.set(service, schema);
  return schema;
}

/** The form of a schema of an object that tools take. */
export function toolFormOf(schema: JsonSchema): ToolSchema {
  const { anyOf: _either, oneOf: _one, allOf: _all, not: _not, enum: _of, ...flat } = schema;
  return { ...formOf(flat), type: 'object' };
}

/** Which fields must come together, in words, for a schema that requires one of several sets; null for any other. */
export function eitherOr({ anyOf }: JsonSchema): string | null {
  if (!Array.isArray(anyOf)) return null;
  const sets = anyOf.map(({ required }: JsonSchema) => namesIn(required));
  if (sets.some((names) => names.length === 0)) return null;
  return `Needs ${sets.map((names) => names.join(' and ')).join(', or ')}.`;
}

function namesIn(required: unknown): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function formOf(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.anyOf)) return ofAlternatives(schema, schema.anyOf);
  if (Array.isArray(schema.type)) return ofAlternatives(schema, schema.type.map(onlyOf(schema)));
  const kept: Record<string, unknown> = { ...schema };
  if (schema.type === 'object') {
    // A field of no type is one that the service names only to refuse it.
    const taken = Object.entries(propertiesOf(schema)).filter(([, field]) => isTyped(field));
    if (schema.properties !== undefined)
      kept.properties = Object.fromEntries(taken.map(([name, field]) => [name, formOf(field)]));
    if (isSchema(schema.additionalProperties))
      kept.additionalProperties = formOf(schema.additionalProperties);
  }
  if (schema.type === 'array') {
    delete kept.prefixItems;
    kept.items = itemOf(schema);
  }
  return kept;
}

const isTyped = ({ type, anyOf }: JsonSchema) => type !== undefined || anyOf !== undefined;

/** One schema for all items. Those of no type are said in words. */
function itemOf({ items, prefixItems }: JsonSchema): JsonSchema {
  const all: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : [items];
  const forms = all.filter(isSchema).filter(isTyped).map(formOf);
  const [first = { type: 'string' }, ...others] = forms;
  if (others.every((each) => JSON.stringify(each) === JSON.stringify(first))) return first;
  const areNumbers = forms.every(({ type }) => type === 'number' || type === 'integer');
  return areNumbers ? { type: 'number' } : { anyOf: forms };
}

/** What of a schema of several types is about one of them. */
function onlyOf(schema: JsonSchema) {
  return (type: unknown): JsonSchema => {
    const name = type === 'integer' ? 'number' : type;
    const keywords = typeof name === 'string' ? (OF_TYPE[name] ?? []) : [];
    const own = Object.entries(schema).filter(([keyword]) => keywords.includes(keyword));
    return { type, ...Object.fromEntries(own) };
  };
}

/**
 * One schema where the alternatives are of one type. Otherwise `anyOf` with nothing beside it, because some providers take it
 * only so: the words move into the first.
 */
function ofAlternatives(schema: JsonSchema, alternatives: readonly unknown[]): JsonSchema {
  const words = Object.fromEntries(Object.entries(schema).filter(([keyword]) => WORDS.has(keyword)));
  const named = alternatives.filter(isSchema).filter((each) => Array.isArray(each.enum));
  if (named.length === alternatives.length) {
    const texts = named.flatMap(({ enum: values }) => values as readonly unknown[]).filter(isText);
    return { ...words, type: 'string', enum: [...new Set(texts)] };
  }
  const forms = alternatives.filter(isSchema).map(formOf);
  const texts = forms.filter(({ type }) => type === 'string');
  if (texts.length === forms.length && forms.every((each) => each.enum === undefined))
    return { ...words, type: 'string' };
  const [first, ...others] = forms;
  return { anyOf: [{ ...first, ...words }, ...others] };
}

const isText = (value: unknown) => typeof value === 'string';

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
