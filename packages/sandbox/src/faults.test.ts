import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFaults } from './faults.ts';

interface Fault {
  name: string;
  times: number;
}
const named = (name: string) => (fault: Fault) => fault.name === name;
const open = () =>
  openFaults('times', (body): Fault | string =>
    body === 'wrong' ? 'it is wrong' : { name: String(body), times: 2 },
  );

test('a fault strikes as often as it was ordered to, and in the order of the orders', () => {
  const faults = open();
  assert.deepEqual(faults.order('a', 'b'), faults.list());
  assert.equal(faults.take(named('b'))?.name, 'b');
  assert.equal(faults.take(() => true)?.name, 'a');
  assert.equal(faults.take(named('b'))?.times, 0);
  assert.equal(faults.take(named('b')), null);
  assert.deepEqual(faults.list(), [{ name: 'a', times: 1 }]);
  assert.deepEqual(
    faults.takeAll(() => true).map(({ name }) => name),
    ['a'],
  );
  assert.deepEqual(faults.list(), []);
});

test('if one of several orders is wrong, or there are too many, none is accepted', () => {
  const faults = open();
  assert.equal(faults.order('a', 'wrong'), 'it is wrong');
  assert.match(String(faults.order(...Array.from({ length: 101 }, () => 'a'))), /at most 100/);
  assert.deepEqual(faults.list(), []);
  assert.equal(faults.order(...Array.from({ length: 100 }, () => 'a')).length, 100);
  assert.match(String(faults.order('a')), /at most 100/);
  faults.clear();
  assert.deepEqual(faults.list(), []);
});

test('changing the listed faults does not change the faults that strike', () => {
  const faults = open();
  faults.order('a');
  Object.assign(faults.list(), { length: 0 });
  assert.equal(faults.take(named('a'))?.name, 'a');
});
