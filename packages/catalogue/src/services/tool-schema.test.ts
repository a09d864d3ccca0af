import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { inputSchemaOf } from '../../../core/src/service/json-schema.ts';
import { eitherOr, toolFormOf, toolSchemaOf } from '../../../core/src/service/tool-schema.ts';
import { loadServices } from './registry.ts';

const services = await loadServices();

test('a tuple becomes a list of its length, and alternatives become one type or stand alone', () => {
  const bbox = { type: 'array', prefixItems: [{ type: 'number' }, { type: 'integer' }], items: false };
  const form = toolFormOf({
    type: 'object',
    properties: {
      bbox: { description: 'A box', ...bbox, minItems: 2, maxItems: 2 },
      day: { description: 'A day', anyOf: [{ type: 'string', format: 'date' }, { type: 'string' }] },
      window: { description: 'Days', anyOf: [{ enum: [7, 30] }, { enum: ['7d', '30d'] }] },
      asset: { description: 'Either', type: ['string', 'object'], properties: { a: { type: 'string' } } },
      gone: { description: 'Not taken' },
      any: { type: 'array', items: {} },
    },
    required: ['bbox'],
    anyOf: [{ required: ['day'] }, { required: ['asset', 'window'] }],
  });
  assert.deepEqual(form, {
    type: 'object',
    properties: {
      bbox: { description: 'A box', type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 2 },
      day: { description: 'A day', type: 'string' },
      window: { description: 'Days', type: 'string', enum: ['7d', '30d'] },
      asset: {
        anyOf: [
          { type: 'string', description: 'Either' },
          { type: 'object', properties: { a: { type: 'string' } } },
        ],
      },
      any: { type: 'array', items: { type: 'string' } },
    },
    required: ['bbox'],
  });
});

test('fields that must come together are named in words', () => {
  assert.equal(
    eitherOr({ anyOf: [{ required: ['tokenAddress', 'chain'] }, { required: ['symbol'] }] }),
    'Needs tokenAddress and chain, or symbol.',
  );
  assert.equal(eitherOr({ type: 'object' }), null);
  assert.equal(eitherOr({ anyOf: [{ type: 'string' }] }), null);
});

for (const service of services)
  test(`${service.path}: its example fits its tool`, () => {
    const schema = toolSchemaOf(service);
    const fits = z
      .fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
      .safeParse(service.example);
    assert.ok(fits.success, fits.error?.message);
    assert.deepEqual(
      (schema.required as unknown) ?? [],
      inputSchemaOf(service).required ?? [],
      'what is required stays so',
    );
  });
