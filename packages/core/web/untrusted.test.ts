/** Pages name and fence outsiders' text as the server does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineService } from '../../catalogue/src/services/define.ts';
import { outsiderObject, outsiderText } from '../src/service/fields.ts';
import * as server from '../src/service/untrusted.ts';

const page: {
  untrustedIn(paths: readonly string[], answer: unknown): string[];
  fencedText(answer: unknown, paths: readonly string[]): string;
} = await import(new URL('./untrusted.js', import.meta.url).href);

const service = defineService({
  path: 'it',
  name: 'It',
  tag: 'Discovery',
  priceUsd: '0.01',
  summary: 'What it is.',
  input: z.object({}),
  example: {},
  output: z.object({
    name: outsiderText(50).nullable(),
    pools: z.array(z.object({ label: outsiderText(50) })),
    'a/b~c': outsiderText(50).optional(),
    free: outsiderObject(50).optional(),
  }),
  run: async () => assert.fail('it is not run'),
});
const paths = server.untrustedPathsOf(service);
const WORD = /untrusted-[0-9a-f]{12}/g;

test('the same paths are named, and the same texts fenced', () => {
  for (const answer of [
    { name: 'x', pools: [{ label: 'a' }, { label: '' }], 'a/b~c': 'y', free: { deep: ['z', 1] } },
    { name: null, pools: [], provenance: { notes: ['of a pool'] } },
    { name: '', price: 1 },
    { code: 'NOT_FOUND' },
  ]) {
    const named = server.untrustedIn(service, answer);
    assert.deepEqual(page.untrustedIn(paths, answer), named);
    const [ours, theirs] = [server.fencedText(JSON.stringify(answer), named), page.fencedText(answer, named)];
    assert.equal(theirs.replaceAll(WORD, 'w'), ours.replaceAll(WORD, 'w'));
    assert.equal(new Set(theirs.match(WORD) ?? []).size, named.length === 0 ? 0 : 1);
  }
});
