import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProbe } from './probe.ts';

test('what does not answer in time is not well, and is asked once for all who ask meanwhile', async () => {
  let asked = 0;
  let answer = Promise.withResolvers<void>();
  const probe = createProbe(() => {
    asked += 1;
    return answer.promise;
  }, 20);
  assert.deepEqual(await Promise.all([probe(), probe(), probe()]), [false, false, false]);
  assert.equal(await probe(), false);
  assert.equal(asked, 1);
  answer.resolve();
  await answer.promise;
  answer = Promise.withResolvers();
  answer.resolve();
  assert.equal(await probe(), true);
  answer = Promise.withResolvers();
  answer.reject(new Error('gone'));
  assert.equal(await probe(), false);
});
