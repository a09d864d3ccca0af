/** What is typed behind the name of a service is what it gets: nothing else is paid for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inputOf } from './input.ts';
import { UsageError } from './io.ts';

const SCHEMA = {
  type: 'object',
  properties: {
    tokenAddress: { type: 'string' },
    lat: { type: 'number' },
    days: { type: ['integer', 'null'] },
    tags: { type: 'array' },
    exact: { type: 'boolean' },
  },
};

test('fields have the spelling and the types of the service', () => {
  const words = ['--token-address', '0x1', '--lat=-4.5', '--days', '7', '--tags', 'a,b', '--exact'];
  assert.deepEqual(inputOf(words, SCHEMA), {
    tokenAddress: '0x1',
    lat: -4.5,
    days: 7,
    tags: ['a', 'b'],
    exact: true,
  });
  assert.deepEqual(inputOf(['--lat', '-4.5'], SCHEMA), { lat: -4.5 });
  assert.throws(() => inputOf(['--lat', 'north'], SCHEMA), UsageError);
});

test('a field that the service does not take is refused, for it would be left out and paid for', () => {
  assert.throws(
    () => inputOf(['--latt', '1'], SCHEMA),
    (error: Error) => error instanceof UsageError && /--lat, .*no --latt/.test(error.message),
  );
  assert.throws(() => inputOf(['--constructor', '1'], SCHEMA), UsageError);
  assert.throws(() => inputOf(['--a', '1'], { type: 'object', properties: {} }), /no fields/);
  // Of a route of another server nobody knows all fields.
  assert.deepEqual(inputOf(['--any', '1'], { ...SCHEMA, additionalProperties: true }), { any: '1' });
  assert.deepEqual(inputOf(['--any', '1'], null), { any: '1' });
});
