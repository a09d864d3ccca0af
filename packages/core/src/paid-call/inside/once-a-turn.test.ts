import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onceATurn } from './once-a-turn.ts';

test('who asks in the same turn gets the same, and who asks in the next one gets it made anew', async () => {
  let made = 0;
  const asked = onceATurn(() => [++made]);
  const first = asked();
  await Promise.resolve();
  assert.equal(asked(), first);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([asked(), made], [[2], 2]);
});

test('what could not be made is tried again at once', () => {
  let fails = true;
  const asked = onceATurn(() => {
    if (fails) throw new Error('not yet');
    return [1];
  });
  assert.throws(asked, /not yet/);
  fails = false;
  assert.deepEqual(asked(), [1]);
});
