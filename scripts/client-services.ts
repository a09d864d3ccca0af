/** Renders the types of the client's services from the registry: one flat interface, which costs a compiler next to nothing. */
import { loadServices } from '../packages/catalogue/src/services/registry.ts';
import type { Service } from '../packages/core/src/service/define.ts';
import { inputSchemaOf, type JsonSchema, outputSchemaOf } from '../packages/core/src/service/json-schema.ts';

const HEAD = `/** The services that Farebox ships with: what each takes, answers and costs in USD. Rendered from the registry by \`npm run format\`. */

/** Stands in every answer that is JSON. */
export interface Answered {
  success: true;
  service: string;
}

export interface Services {
`;
const TAIL = `}

export type ServiceName = keyof Services;
`;

/** @returns the text of the file that declares them */
export async function clientServices(): Promise<string> {
  const services = [...(await loadServices())].sort((a, b) => (a.path < b.path ? -1 : 1));
  return HEAD + services.map(entryOf).join('') + TAIL;
}

function entryOf(service: Service): string {
  const isJson = service.mediaType === 'application/json';
  const output = isJson ? `${typeOf(outputSchemaOf(service))} & Answered` : 'Uint8Array';
  return [
    `  /** ${service.summary.replaceAll('*/', '* /').replaceAll(/\s+/g, ' ')} */`,
    `  '${service.path}': {`,
    `    in: ${typeOf(inputSchemaOf(service))};`,
    `    out: ${output};`,
    `    usd: '${service.priceUsd}';`,
    '  };',
    '',
  ].join('\n');
}

function typeOf(schema: unknown, defs: JsonSchema = {}): string {
  if (schema === true || !isSchema(schema)) return 'unknown';
  const all = { ...defs, ...(isSchema(schema.$defs) ? schema.$defs : {}) };
  const inner = (each: unknown) => typeOf(each, all);
  if (typeof schema.$ref === 'string') return inner(all[schema.$ref.split('/').at(-1) ?? '']);
  if ('const' in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map((each) => JSON.stringify(each)).join(' | ');
  for (const [word, between] of [
    ['anyOf', ' | '],
    ['oneOf', ' | '],
    ['allOf', ' & '],
  ] as const) {
    const parts = schema[word];
    if (Array.isArray(parts)) return [...new Set(parts.map((each) => `(${inner(each)})`))].join(between);
  }
  if (Array.isArray(schema.type)) return schema.type.map((type) => inner({ ...schema, type })).join(' | ');
  return plainType(schema, inner);
}

function plainType(schema: JsonSchema, inner: (each: unknown) => string): string {
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'number':
    case 'integer':
      return 'number';
    case 'array':
      return Array.isArray(schema.prefixItems)
        ? `[${schema.prefixItems.map(inner).join(', ')}]`
        : `(${inner(schema.items)})[]`;
    case 'object':
      return objectType(schema, inner);
    default:
      return 'unknown';
  }
}

function objectType(schema: JsonSchema, inner: (each: unknown) => string): string {
  const required = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(isSchema(schema.properties) ? schema.properties : {}).map(
    ([name, field]) => `${nameOf(name)}${required.includes(name) ? '' : '?'}: ${inner(field)}`,
  );
  if (fields.length > 0) return `{ ${fields.join('; ')} }`;
  return `{ [field: string]: ${isSchema(schema.additionalProperties) ? inner(schema.additionalProperties) : 'unknown'} }`;
}

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const nameOf = (name: string) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
