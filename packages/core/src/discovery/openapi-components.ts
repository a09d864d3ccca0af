/** The components that an OpenAPI document states once and refers to: which fields are worth a name, and which names are in use. */
import type { Service } from '../service/define.ts';
import { inputSchemaOf, type JsonSchema, outputSchemaOf, propertiesOf } from '../service/json-schema.ts';

export function schemaNamed(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

type Components = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/**
 * The components that a document uses: those that it refers to, those that these refer to, and the security schemes that an
 * operation or the document requires. A part of the document has operations of one tag, and is to carry nothing for others.
 */
export function usedComponents<T extends Components>(all: T, document: object): T {
  const used = new Set<string>();
  const open: unknown[] = [document];
  while (open.length > 0) {
    for (const [, name = ''] of JSON.stringify(open.pop()).matchAll(/"#\/components\/([^"]+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      const [kind = '', key = ''] = name.split('/');
      open.push(all[kind]?.[key] ?? null);
    }
  }
  for (const scheme of schemesOf(document)) used.add(`securitySchemes/${scheme}`);
  const kept = Object.entries(all).map(([kind, components]) => [
    kind,
    Object.fromEntries(Object.entries(components).filter(([key]) => used.has(`${kind}/${key}`))),
  ]);
  return Object.fromEntries(kept);
}

/** The security schemes that stand in any `security` of a document. */
function schemesOf(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) =>
    key === 'security' && Array.isArray(value) ? value.flatMap(Object.keys) : schemesOf(value),
  );
}

/** The shortest schema that gets a name; a shorter one is written where it stands: a name for each number would make generated types hard to read. */
const SHORTEST_NAMED = 90;

/** A generated type of such a name would hide what the generated code itself means by it. */
const NAMES_OF_LANGUAGES = [
  'array',
  'date',
  'error',
  'file',
  'map',
  'object',
  'record',
  'request',
  'response',
];

export interface SharedFields {
  components: Readonly<Record<string, JsonSchema>>;
  /** The schema with each shared part replaced by a reference. */
  apply(schema: JsonSchema): JsonSchema;
}

/**
 * Finds fields, and items of lists, that are declared alike so often that naming them once makes the document smaller.
 *
 * @param names that schemas of the document have already
 */
export function sharedFields(services: readonly Service[], names: readonly string[]): SharedFields {
  const uses = new Map<string, { name: string; schema: JsonSchema; count: number }>();
  for (const service of services) {
    const note = (schema: JsonSchema, name: string): JsonSchema => {
      const text = JSON.stringify(schema);
      const use = uses.get(text) ?? { name, schema, count: 0 };
      use.count += 1;
      uses.set(text, use);
      return mapParts(schema, note, name);
    };
    mapParts(inputSchemaOf(service), note);
    mapParts(outputSchemaOf(service), note);
  }
  const nameOf = new Map<string, string>();
  // Generators of code write names in a case of their own: two that differ by case alone would become one.
  const taken = new Set([...names.map((each) => each.toLowerCase()), ...NAMES_OF_LANGUAGES]);
  for (const [text, use] of uses) {
    let name = use.name;
    for (let n = 2; taken.has(name.toLowerCase()); n++) name = `${use.name}${n}`;
    const references = use.count * JSON.stringify(schemaNamed(name)).length;
    if (text.length < SHORTEST_NAMED || references + name.length + text.length >= use.count * text.length)
      continue;
    nameOf.set(text, name);
    taken.add(name.toLowerCase());
  }
  function apply(schema: JsonSchema): JsonSchema {
    return mapParts(schema, (part) => {
      const name = nameOf.get(JSON.stringify(part));
      return name === undefined ? apply(part) : schemaNamed(name);
    });
  }
  const components: Record<string, JsonSchema> = {};
  for (const [text, name] of nameOf) {
    const schema = uses.get(text)?.schema;
    if (schema !== undefined) components[name] = apply(schema);
  }
  return { components, apply };
}

/**
 * The schema with its fields, the items of its list and what else it may be, if it has any, replaced by what `change` makes
 * of them.
 *
 * @param own the schema's own name, which its alternatives have too
 */
function mapParts(
  schema: JsonSchema,
  change: (part: JsonSchema, name: string) => JsonSchema,
  own = 'value',
): JsonSchema {
  const { items, anyOf, properties } = schema;
  const changed: Record<string, unknown> = { ...schema };
  if (properties !== undefined)
    changed.properties = Object.fromEntries(
      Object.entries(propertiesOf(schema)).map(([name, part]) => [name, change(part, name)]),
    );
  if (isSchema(items)) changed.items = change(items, own === 'value' ? 'item' : `${own}Item`);
  // An alternative without a type says which fields come together, and is no part by itself.
  if (Array.isArray(anyOf))
    changed.anyOf = anyOf.map((each: unknown) =>
      isSchema(each) && each.type !== undefined ? change(each, own) : each,
    );
  return changed;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
