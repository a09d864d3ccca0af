import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { configJsonSchema, configSchema } from './schema.ts';

type Json = { readonly [keyword: string]: unknown };

const route = (fields: object) => ({ routes: { 'GET /x': { upstream: 'x', ...fields } } });
const upstream = (fields: object) => ({ upstreams: { x: { url: 'http://127.0.0.1:9000', ...fields } } });
const fits = (value: unknown) => configSchema.safeParse(value).success;

describe('the schema of a configuration', () => {
  test('takes money as a text with at most six decimals alone', () => {
    for (const price of ['0.02', '1', '0.000001', '999999.999999', '0.10'])
      assert(fits(route({ price })), price);
    for (const price of [
      ...[0.02, 1, null, true, '', '.5', '1.', '01', '+1', '-1', '1e3', '0x10', '0.0000001'],
      ...['1,5', ' 1', '1 ', '1\n', '1000000', '0.02 USD', '$1', '٣'],
    ])
      assert(!fits(route({ price })), String(price));
  });

  test('takes secrets only by the names of environment variables', () => {
    const header = (value: string) =>
      fits(upstream({ headers: { authorization: value.replaceAll('@', '$') } }));
    for (const value of ['@{TOKEN}', 'Bearer @{TOKEN}', 'Basic @{a_1}']) assert(header(value), value);
    for (const value of [
      ...['Bearer abc', 'abc', '', 'Bearer @{}', 'Bearer @TOKEN', 'abc@{TOKEN}', '@{A}@{B}', '@{A} x'],
      ...['Bearer  @{A}', 'Bearer @{A}\n', 'Bearer @{A:-x}', 'a b @{A}'],
    ])
      assert(!header(value), value);
  });

  test('has bounds: 5,000 routes, and a length for every text, list and set of names', () => {
    const routes = (count: number) => ({
      routes: Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`GET /${index}`, { upstream: 'x', free: true }]),
      ),
    });
    assert(fits(routes(5_000)));
    assert(!fits(routes(5_001)));
    assert(!fits(route({ summary: 'x'.repeat(201) })));
    const unbounded = boundless(configJsonSchema(), '');
    // Schemas and examples of a seller have any form, and bounds of their own when they are loaded.
    assert.deepEqual(unbounded, []);
  });

  test('is strict: a name that it does not have is refused wherever it stands', () => {
    assert(!fits({ route: {} }));
    assert(!fits(route({ summry: 'x' })));
    assert(!fits(route({ success: { statuses: [200] } })));
    assert(fits({ $schema: './farebox.config.schema.json', ...route({ free: true }) }));
  });

  test('describes every field', () => {
    assert.deepEqual(undescribed(configJsonSchema(), ''), []);
  });

  test('is the published JSON Schema: npm run format writes it', () => {
    const path = join(import.meta.dirname, '../../farebox.config.schema.json');
    assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), configJsonSchema());
  });
});

function parts(schema: Json): [name: string, part: Json][] {
  const { properties = {}, additionalProperties, items, anyOf, propertyNames } = schema;
  const named = Object.entries(properties as Record<string, Json>);
  const list = (Array.isArray(anyOf) ? anyOf : []).map((each: Json): [string, Json] => ['', each]);
  const others: [string, unknown][] = [
    ['*', additionalProperties],
    ['[]', items],
    ['(names)', propertyNames],
  ];
  return [
    ...named,
    ...list,
    ...others.flatMap(([name, part]): [string, Json][] =>
      typeof part === 'object' && part !== null ? [[name, part as Json]] : [],
    ),
  ];
}

function boundless(schema: Json, at: string): string[] {
  const { type } = schema;
  const isBound =
    (type === 'string' && ('maxLength' in schema || 'enum' in schema || isFinitePattern(schema.pattern))) ||
    ((type === 'integer' || type === 'number') && 'minimum' in schema && 'maximum' in schema) ||
    (type === 'array' && 'maxItems' in schema) ||
    (type === 'object' && (schema.additionalProperties === false || 'maxProperties' in schema)) ||
    type === 'boolean' ||
    type === 'null' ||
    'const' in schema ||
    'anyOf' in schema;
  const isSellersOwn = /(example\/body|request\/(query|path|body)|response)(\/|$)/.test(at);
  return isSellersOwn
    ? []
    : [
        ...(isBound ? [] : [at]),
        ...parts(schema).flatMap(([name, part]) => boundless(part, `${at}/${name}`)),
      ];
}

/** Whether a pattern has no repetition without an end. */
function isFinitePattern(pattern: unknown): boolean {
  return (
    typeof pattern === 'string' && pattern.endsWith('$') && !/[+*]/.test(pattern.replace(/\[[^\]]*\]/g, ''))
  );
}

function undescribed(schema: Json, at: string): string[] {
  const { properties = {} } = schema;
  return [
    ...Object.entries(properties as Record<string, Json>).flatMap(([name, part]) =>
      'description' in part ? [] : [`${at}/${name}`],
    ),
    ...parts(schema).flatMap(([name, part]) => undescribed(part, `${at}/${name}`)),
  ];
}
