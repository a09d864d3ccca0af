import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GROUPS } from './groups.ts';
import { loadServices } from './registry.ts';

test('each service stands in one group of eight', async () => {
  const services = (await loadServices()).map(({ path }) => path).sort();
  assert.deepEqual(Object.values(GROUPS).flat().sort(), services);
  assert.equal(Object.keys(GROUPS).length, 8);
});
