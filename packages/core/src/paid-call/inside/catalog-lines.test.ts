import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineService } from '../../service/define.ts';
import { catalogLines } from './catalog-lines.ts';

const service = defineService({
  path: 'blocks',
  name: 'Blocks',
  tag: 'Chains',
  priceUsd: '0.01',
  summary: 'Tells the newest block.',
  keywords: 'block',
  input: z.object({}),
  output: z.object({}),
  example: {},
  run: () => Promise.reject(new Error('it is not run')),
});

test('a line is kept while it stays the same, and follows what is on sale and which chains can be read', () => {
  const now: { available: boolean; chains: ('ethereum' | 'base')[] } = { available: true, chains: ['base'] };
  const lineOf = catalogLines(() => ({ ...now, chains: [...now.chains] }));
  const first = lineOf(service);
  assert.deepEqual(
    [first.path, first.priceUsd, first.available, first.chains, first.aliasOf],
    ['blocks', '0.01', true, ['base'], null],
  );
  assert.equal(lineOf(service), first);
  now.chains = ['ethereum', 'base'];
  assert.deepEqual(lineOf(service).chains, ['ethereum', 'base']);
  now.available = false;
  assert.equal(lineOf(service).available, false);
  assert.equal(first.available, true, 'what was handed out does not change');
  now.available = true;
  assert.equal(lineOf(service).available, true);
});
