import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { answer } from '../words/answer.ts';
import { defineService } from './define.ts';
import { chainName, isoDate, limit } from './fields.ts';
import { inputSchemaOf, outlineOf, outputSchemaOf } from './json-schema.ts';

const service = defineService({
  path: 'sample',
  name: 'Sample',
  tag: 'Discovery',
  priceUsd: '0.25',
  summary: 'A sample.',
  input: z.object({
    chain: chainName,
    limit: limit(10, 50),
    day: isoDate.optional(),
    count: z.int().optional(),
    // Names that are also keywords of JSON Schema, and a default that looks like noise.
    pattern: z.object({ format: z.string(), $schema: z.string() }).optional(),
    options: z.looseObject({}).default({ pattern: 'kept', minimum: -9007199254740991 }),
  }),
  output: z.object({
    rows: z.array(z.object({ value: z.number().nullable() })),
    total: z.number().nullable(),
  }),
  example: { chain: 'base' },
  run: async () => answer({ rows: [], total: null }, { method: 'none' }),
});

test('the input schema says what a caller may send, and nothing that says nothing', () => {
  assert.deepEqual(inputSchemaOf(service), {
    type: 'object',
    properties: {
      chain: {
        description: 'Chain name, such as "base"',
        type: 'string',
        enum: ['ethereum', 'base', 'polygon', 'arbitrum', 'optimism', 'bsc', 'solana'],
      },
      limit: {
        description: 'How many to return: 1 to 50, 10 unless given',
        type: 'integer',
        minimum: 1,
        maximum: 50,
      },
      day: { type: 'string', format: 'date', description: 'Day in UTC, YYYY-MM-DD' },
      count: { type: 'integer' },
      pattern: {
        type: 'object',
        properties: { format: { type: 'string' }, $schema: { type: 'string' } },
        required: ['format', '$schema'],
      },
      options: {
        default: { pattern: 'kept', minimum: -9007199254740991 },
        type: 'object',
        properties: {},
      },
    },
    required: ['chain'],
  });
  assert.equal(inputSchemaOf(service), inputSchemaOf(service));
});

test('the output schema keeps what may be null; its outline keeps names and types only', () => {
  const schema = outputSchemaOf(service);
  assert.deepEqual(schema.required, ['rows', 'total']);
  assert.deepEqual(outlineOf(schema), {
    properties: { rows: { type: 'array' }, total: { type: ['number', 'null'] } },
  });
});

test('a tuple is a list of as many items, each what any of its places takes', () => {
  const point = z.tuple([z.number().min(-90), z.int().max(7)]);
  const box = z.tuple([z.number().min(-180), z.number().min(-180)]);
  const pair = z.tuple([z.string(), z.number()]);
  const { properties } = inputSchemaOf({ ...service, input: z.object({ point, box, pair }) });
  assert.deepEqual(properties, {
    point: { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 2 },
    box: { type: 'array', items: { type: 'number', minimum: -180 }, minItems: 2, maxItems: 2 },
    pair: {
      type: 'array',
      items: { anyOf: [{ type: 'string' }, { type: 'number' }] },
      minItems: 2,
      maxItems: 2,
    },
  });
});
