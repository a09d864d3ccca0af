import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idempotencyKeyOf } from './idempotency-key.ts';

const LENGTH = { least: 3, most: 5 };
const read = (value: string | string[] | undefined) => idempotencyKeyOf({ 'idempotency-key': value }, LENGTH);

test('a key is what was sent, letter by letter, within its bounds', () => {
  assert.deepEqual([read('abc'), read('A~!-5')], [{ key: 'abc' }, { key: 'A~!-5' }]);
  assert.equal(read(undefined), null);
  assert.equal(idempotencyKeyOf({}, LENGTH), null);
});

test('one that is empty, too short, too long, sent twice, or not of printable ASCII is unfit', () => {
  for (const value of ['', 'ab', 'abcdef', 'a b c', 'ab\u0000', 'äöü', 'abc\n', ['abc', 'abd'], ['a', 'b']])
    assert.equal(read(value), 'unfit', JSON.stringify(value));
});

test('a quoted string is the text in it, so that both ways of writing a key name one request', () => {
  assert.deepEqual(
    [read('"abc"'), read('"a\\"b"'), read('"a\\\\b"')],
    [{ key: 'abc' }, { key: 'a"b' }, { key: 'a\\b' }],
  );
  assert.deepEqual(read('"abcde"'), { key: 'abcde' }, 'the quotes do not count');
  for (const value of ['""', '"ab"', '"a b"', '"abcdef"']) assert.equal(read(value), 'unfit', value);
  for (const value of ['"ab', 'ab"', '"a"b"', '"ab\\"'])
    assert.deepEqual(read(value), { key: value }, 'what is no quoted string is bare');
});
