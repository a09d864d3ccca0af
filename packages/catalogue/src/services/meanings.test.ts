import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import type { Service } from '../../../core/src/service/define.ts';
import { inputSchemaOf, type JsonSchema, outputSchemaOf } from '../../../core/src/service/json-schema.ts';
import { answer } from '../../../core/src/words/answer.ts';
import { defineService } from './define.ts';
import { loadServices } from './registry.ts';

/** The fields of a schema without a description, by their path, including those of items and alternatives. */
function unexplained(schema: JsonSchema, path = ''): string[] {
  const nested = (inner: unknown, at: string) => unexplained(inner as JsonSchema, at);
  const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  return [
    ...fields.flatMap(([name, field]) => {
      const described = field.description ?? (field.items as JsonSchema | undefined)?.description;
      const at = path === '' ? name : `${path}.${name}`;
      return [...(String(described ?? '').trim() === '' ? [at] : []), ...unexplained(field, at)];
    }),
    ...(typeof schema.items === 'object' ? nested(schema.items, `${path}[]`) : []),
    ...[schema.anyOf, schema.oneOf].flatMap((choices) =>
      Array.isArray(choices) ? choices.flatMap((choice) => nested(choice, path)) : [],
    ),
  ];
}

test('every field of every request and answer has a description', async () => {
  for (const service of await loadServices()) {
    assert.deepEqual(unexplained(outputSchemaOf(service)), [], `answer of ${service.path}`);
    assert.deepEqual(unexplained(inputSchemaOf(service)), [], `request of ${service.path}`);
  }
});

test('a field without a description is found at any depth', () => {
  const service: Service = defineService({
    path: 'silent',
    name: 'Silent',
    tag: 'Discovery',
    priceUsd: '0.10',
    summary: 'Says little.',
    input: z.object({}),
    output: z.object({
      plain: z.string(),
      told: z
        .array(z.object({ deep: z.number().nullable(), known: z.number().describe('A number') }))
        .describe('Some'),
      perhaps: z.object({ within: z.boolean() }).nullable().describe('Perhaps'),
    }),
    example: {},
    run: async () => answer({ plain: '', told: [], perhaps: null }, { method: 'none' }),
  });
  assert.deepEqual(unexplained(outputSchemaOf(service)), ['plain', 'told[].deep', 'perhaps.within']);
});
