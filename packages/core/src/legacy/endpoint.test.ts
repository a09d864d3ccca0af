import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import pingService from '../../../catalogue/src/services/discovery/ping.ts';
import { runContext } from '../../../catalogue/src/services/run-context.fixture.ts';
import { defineContentService } from '../service/define.ts';
import { content } from '../words/answer.ts';
import { defineEndpoint } from './endpoint.ts';

const table = defineContentService({
  path: 'table',
  name: 'Table',
  tag: 'Discovery',
  priceUsd: '0.01',
  summary: '',
  contentType: 'text/csv',
  input: z.object({}),
  example: {},
  run: async () => content('a,b', { method: 'By hand.' }),
});
const plain = defineEndpoint({ path: 'old-table', service: 'table', priceUsd: '0.02' });

test('an endpoint of a service whose answer is not JSON passes that answer on', async () => {
  const sold = plain.made(table, new Map());
  assert.deepEqual(
    [sold.path, sold.priceUsd, sold.contentType],
    ['gpt/old-table', '0.02', 'text/csv; charset=utf-8'],
  );
  assert.equal((await sold.run({}, runContext({}))).content, 'a,b');
});

test('only JSON answers can be reshaped by an endpoint', () => {
  assert.throws(() => plain.made(pingService, new Map()), /shapes nothing of application\/json/);
  const shaping = defineEndpoint({
    path: 'old-table',
    service: 'table',
    priceUsd: null,
    reads: z.object({}),
    shape: async () => ({}),
  });
  assert.throws(() => shaping.made(table, new Map()), /cannot shape text\/csv/);
});
