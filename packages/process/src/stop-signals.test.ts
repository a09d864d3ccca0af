import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { listenForStop } from './stop-signals.ts';

test('one wish to stop that arrives several times is one, and a later signal another', async () => {
  const source = new EventEmitter();
  let nowMs = 50_000;
  const signals = listenForStop(source, () => nowMs);
  let isToldAgain = false;
  void signals.toldAgain.then(() => {
    isToldAgain = true;
  });
  source.emit('SIGTERM');
  assert.equal(await signals.told, 'SIGTERM');
  nowMs += 999;
  source.emit('SIGTERM');
  source.emit('disconnect');
  await Promise.resolve();
  assert.equal(isToldAgain, false, 'a supervisor signals the group, and the parent passes it on');
  assert.equal(
    source.listenerCount('SIGTERM'),
    1,
    'without a listener the next one would end the process at once',
  );
  nowMs += 1;
  source.emit('SIGINT');
  await signals.toldAgain;
  assert.equal(isToldAgain, true);
  assert.deepEqual(
    ['SIGINT', 'SIGTERM', 'disconnect'].map((name) => source.listenerCount(name)),
    [0, 0, 0],
  );
});
