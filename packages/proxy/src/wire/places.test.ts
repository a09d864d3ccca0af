import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Places } from './places.ts';

describe('places', () => {
  test('are as many as there are, and so many may wait, in their order', () => {
    const places = new Places(2, 2);
    const got: string[] = [];
    const leaves = new Map<string, () => void>();
    const take = (name: string) =>
      places.take((leave) => {
        got.push(name);
        leaves.set(name, leave);
      });
    for (const name of ['a', 'b', 'c', 'd']) assert.notEqual(take(name), null);
    assert.deepEqual(got, ['a', 'b']);
    assert.equal(take('e'), null);
    leaves.get('a')?.();
    leaves.get('a')?.();
    assert.deepEqual(got, ['a', 'b', 'c'], 'a place is left once');
    for (const name of ['b', 'c', 'd']) leaves.get(name)?.();
    assert.deepEqual(got, ['a', 'b', 'c', 'd']);
    assert.deepEqual([places.taken, places.waiting], [0, 0]);
  });

  test('are not given to who has stopped waiting', () => {
    const places = new Places(1, 2);
    const got: string[] = [];
    let leaveFirst = () => {};
    places.take((leave) => {
      leaveFirst = leave;
    });
    const stop = places.take(() => got.push('gone'));
    places.take(() => got.push('next'));
    stop?.();
    assert.equal(places.waiting, 1);
    leaveFirst();
    assert.deepEqual(got, ['next']);
    stop?.();
    assert.deepEqual([places.taken, places.waiting], [1, 0]);
  });
});
