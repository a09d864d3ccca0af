/** Bounds of JSON that a seller writes into a configuration: examples and schemas. */

const MOST_BYTES = 32_768;
const DEEPEST = 24;

/** @returns what is wrong with a value that is published as JSON; null: nothing */
export function wrongJson(value: unknown): string | null {
  if (!isJson(value, 0)) return `must be plain JSON, nested at most ${DEEPEST} times`;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > MOST_BYTES ? `must be at most ${MOST_BYTES} bytes of JSON; it is ${bytes}` : null;
}

function isJson(value: unknown, depth: number): boolean {
  if (depth > DEEPEST) return false;
  if (value === null || typeof value === 'boolean') return true;
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0');
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every((each) => isJson(each, depth + 1));
  if (typeof value !== 'object') return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return Object.entries(value).every(([name, each]) => isJson(name, depth) && isJson(each, depth + 1));
}

/** @returns what is wrong with a JSON Schema; null: nothing. It may refer to parts of itself alone */
export function wrongSchema(schema: unknown, mustBeObject: boolean): string | null {
  const wrong = wrongJson(schema);
  if (wrong !== null) return wrong;
  if (mustBeObject && (schema as { type?: unknown }).type !== 'object')
    return 'must have type: object, with the parameters as its properties';
  const outside = referencesOf(schema).find((each) => typeof each !== 'string' || !each.startsWith('#'));
  return outside === undefined ? null : 'refers to another document: write that part into it';
}

function referencesOf(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    name === '$ref' || name === '$dynamicRef' ? [each] : referencesOf(each),
  );
}
