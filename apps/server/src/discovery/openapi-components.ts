/** What an OpenAPI document says once and refers to: which fields are worth a name, and which names are in use. */
import type { Service } from '../services/define.ts';
import { inputSchemaOf, type JsonSchema, propertiesOf } from '../services/json-schema.ts';

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
    mapParts(inputSchemaOf(service), function note(schema, name): JsonSchema {
      const text = JSON.stringify(schema);
      const use = uses.get(text) ?? { name, schema, count: 0 };
      use.count += 1;
      uses.set(text, use);
      return mapParts(schema, note);
    });
  }
  const nameOf = new Map<string, string>();
  for (const [text, use] of uses) {
    const taken = new Set([...names, ...nameOf.values()]);
    let name = use.name;
    for (let n = 2; taken.has(name); n++) name = `${use.name}${n}`;
    const references = use.count * JSON.stringify(schemaNamed(name)).length;
    if (references + name.length + text.length < use.count * text.length) nameOf.set(text, name);
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

/** The schema with its fields and the items of its list, if it has any, replaced by what `change` makes of them. */
function mapParts(schema: JsonSchema, change: (part: JsonSchema, name: string) => JsonSchema): JsonSchema {
  const { items } = schema;
  return {
    ...schema,
    ...(schema.properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(propertiesOf(schema)).map(([name, part]) => [name, change(part, name)]),
          ),
        }),
    ...(isSchema(items) ? { items: change(items, 'item') } : {}),
  };
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
