/** Reads the input of a call from what stands behind its name: `--symbol ETH`, `--symbol=ETH`, or JSON. */
import { isRecord, parsed, recordOf } from '../json.ts';
import { UsageError } from './io.ts';

/**
 * @param words such as `--symbol`, `ETH`
 * @param schema of the service's input: it says which values are numbers, and which fields there are
 * @throws UsageError for a field that the service does not take
 */
export function inputOf(words: readonly string[], schema: unknown): Record<string, unknown> {
  const { properties: said, additionalProperties = false } = recordOf(schema);
  const properties = recordOf(said);
  // What a service does not know it leaves out, and the call is paid for all the same.
  const isClosed = isRecord(said) && additionalProperties === false;
  const names = Object.keys(properties)
    .map((each) => `--${each}`)
    .join(', ');
  const input: Record<string, unknown> = {};
  for (let at = 0; at < words.length; at += 1) {
    const [, name = '', value] = /^--([A-Za-z_][\w-]*)(?:=(.*))?$/s.exec(words[at] ?? '') ?? [];
    if (name === '')
      throw new UsageError(`fields are written as --name value: ${(words[at] ?? '').slice(0, 60)}`);
    const field = fieldOf(name, properties);
    if (isClosed && !Object.hasOwn(properties, field))
      throw new UsageError(`it takes ${names === '' ? 'no fields' : names}, and no --${name.slice(0, 60)}`);
    const isFlag =
      value === undefined && (at + 1 === words.length || /^--[A-Za-z]/.test(words[at + 1] ?? ''));
    if (isFlag) input[field] = true;
    else {
      const text = value ?? words[++at] ?? '';
      input[field] = valueIn(text, recordOf(properties[field]), field);
    }
  }
  return input;
}

/** @throws UsageError when it is no object */
export function inputOfJson(text: string): Record<string, unknown> {
  const input = parsed(text);
  if (!isRecord(input)) throw new UsageError('the input must be an object of JSON');
  return input;
}

/** The service's own spelling: `--token-address` is `tokenAddress`. */
function fieldOf(name: string, properties: Record<string, unknown>): string {
  if (Object.hasOwn(properties, name)) return name;
  const plain = (text: string) => text.replaceAll(/[-_]/g, '').toLowerCase();
  return Object.keys(properties).find((each) => plain(each) === plain(name)) ?? name;
}

function valueIn(text: string, schema: Record<string, unknown>, field: string): unknown {
  const types = new Set([schema.type, ...(Array.isArray(schema.type) ? schema.type : [])]);
  const takesText = types.has('string') || Array.isArray(schema.enum);
  if (takesText || schema.type === undefined) return text;
  if (types.has('array') && !text.trimStart().startsWith('[')) return text.split(',');
  const value = parsed(text);
  if (value === undefined) throw new UsageError(`--${field} must be a value of JSON, and is not`);
  return value;
}
