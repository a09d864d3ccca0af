import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadServices } from '../../../../catalogue/src/services/registry.ts';
import { Problem } from '../../http/problem.ts';
import type { Service } from '../../service/define.ts';
import { inputSchemaOf, type JsonSchema, propertiesOf } from '../../service/json-schema.ts';
import { fingerprintOf, readInput } from '../request-body.ts';
import { withoutNulls } from './null-as-absent.ts';

const services = await loadServices();
const read = (service: Service, body: unknown) => readInput(service, Buffer.from(JSON.stringify(body)));
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value as strict function calling makes a model write it: whatever is not there is null. */
function filled(value: unknown, schema: JsonSchema): unknown {
  const { items } = schema;
  if (Array.isArray(value)) return isRecord(items) ? value.map((each) => filled(each, items)) : value;
  if (!isRecord(value)) return value;
  const fields = Object.entries(propertiesOf(schema));
  const absent = fields.map(([name]) => [name, null] as const);
  const known = Object.fromEntries(fields);
  const given = Object.entries(value).map(([name, each]) => [name, filled(each, known[name] ?? {})] as const);
  return Object.fromEntries([...absent, ...given]);
}

test('each service reads the same input where all that is absent is null, and a payment is bound to the same', () => {
  let nulls = 0;
  for (const service of services) {
    const written = filled(service.example, inputSchemaOf(service));
    nulls += JSON.stringify(written).split(':null').length - 1;
    const plain = read(service, service.example);
    assert.deepEqual(read(service, written), plain, service.path);
    assert.deepEqual(fingerprintOf(service, read(service, written)), fingerprintOf(service, plain));
  }
  assert.ok(nulls > services.length, `${nulls} fields were null`);
});

test('another spelling of a field counts where the first is null, and a null by another spelling is nothing', () => {
  const { path } = service('token-price');
  const given = { symbol: null, tokenAddress: null, token_address: `0x${'1'.repeat(40)}`, chain: 'base' };
  const { token_address: tokenAddress, chain } = given;
  assert.deepEqual(read(service(path), given), read(service(path), { tokenAddress, chain }));
  assert.deepEqual(
    read(service(path), { symbol: 'ETH', token_address: null, unheardOf: null }),
    read(service(path), { symbol: 'ETH' }),
  );
});

test('a null for a required field is refused, and so is one where nothing else was given', () => {
  for (const [path, body] of [
    ['air-quality', { lat: null, lon: 8 }],
    ['token-price', { symbol: null, tokenAddress: null, chain: null }],
  ] as const)
    assert.throws(
      () => read(service(path), body),
      (error) => error instanceof Problem && error.status === 400,
      path,
    );
});

test('what takes null keeps it, and so do lists, objects of any fields, and what is too deep', () => {
  const text = { type: 'string' };
  const schema = {
    type: 'object',
    properties: {
      nullable: { anyOf: [text, { type: 'null' }] },
      typed: { type: ['string', 'null'] },
      named: { enum: ['a', null] },
      must: text,
      may: text,
      list: { type: 'array', items: text },
      any: { type: 'object', additionalProperties: true },
      either: { anyOf: [text, { type: 'object', properties: { inner: text } }] },
    },
    required: ['must'],
    anyOf: [{ required: ['may'] }, { required: ['typed'] }],
  };
  const kept = { nullable: null, typed: null, named: null, must: null, list: [null], any: { of: null } };
  assert.deepEqual(withoutNulls({ ...kept, may: null, either: { inner: null } }, schema), {
    ...kept,
    either: {},
  });
  const hostile = JSON.parse('{"__proto__": {"may": null}, "constructor": null, "may": null}');
  assert.deepEqual(Object.keys(Object(withoutNulls(hostile, schema))), ['__proto__', 'constructor']);
  let deep: unknown = null;
  for (let level = 0; level < 50_000; level += 1) deep = [deep];
  assert.equal(withoutNulls({ list: deep }, schema) === null, false);
});

function service(path: string): Service {
  return services.find((each) => each.path === path) ?? assert.fail(path);
}

test('what lies deeper than any input is left as it is', () => {
  const properties: Record<string, JsonSchema> = { a: { type: 'string' } };
  const node: JsonSchema = { type: 'object', properties };
  properties.in = node;
  const nested = (depth: number): unknown => (depth === 0 ? { a: null } : { in: nested(depth - 1) });
  const without = (depth: number): unknown => (depth === 0 ? {} : { in: without(depth - 1) });
  assert.deepEqual(withoutNulls(nested(20), node), without(20));
  assert.deepEqual(withoutNulls(nested(21), node), nested(21));
});
