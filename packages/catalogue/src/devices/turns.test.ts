import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTurns } from './turns.ts';

test('of a crowd a few begin in a turn, in the order in which they came, and who has left does not', async () => {
  const begun: Socket[] = [];
  const turns = createTurns({ each: 3, waitMs: 60_000 }, (socket) => void begun.push(socket));
  const crowd = Array.from({ length: 8 }, () => new Socket());
  for (const socket of crowd) turns.wait(socket);
  assert.deepEqual(begun, [], 'nothing in the turn in which they come');
  crowd[4]?.destroy(new Error('reset by its peer'));
  for (const expected of [3, 5, 7]) {
    await nextTurn();
    assert.equal(begun.length, expected);
  }
  await nextTurn();
  assert.deepEqual(
    begun,
    crowd.filter((_, index) => index !== 4),
  );
  const late = new Socket();
  turns.wait(late);
  await nextTurn();
  await nextTurn();
  assert.equal(begun.at(-1), late, 'a crowd that is over stops nobody');
});

test('who has waited too long, or waits when all ends, is ended and does not begin', async () => {
  const begun: Socket[] = [];
  const impatient = createTurns({ each: 1, waitMs: -1 }, (socket) => void begun.push(socket));
  const [first, second] = [new Socket(), new Socket()];
  impatient.wait(first);
  await nextTurn();
  await nextTurn();
  assert(first.destroyed);
  const turns = createTurns({ each: 1, waitMs: 60_000 }, (socket) => void begun.push(socket));
  turns.wait(second);
  turns.close();
  assert(second.destroyed);
  await nextTurn();
  assert.deepEqual(begun, []);
});
