import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPlainText, readJson, refuseUnkeepableAddress } from './json-text.ts';
import { Problem } from './problem.ts';

/** The fields that a refusal names. */
function refused(act: () => unknown): string[] {
  try {
    act();
  } catch (error) {
    assert(error instanceof Problem && error.status === 400, String(error));
    assert.equal(error.details.charged, false);
    return (error.details.fields as { field: string }[]).map(({ field }) => field);
  }
  throw new Error('it was not refused');
}
const body = (json: string) => () => readJson(Buffer.from(json));

test('text that nothing can keep is refused with its path, however deep, in names too', () => {
  assert.deepEqual(refused(body(String.raw`{"a":"x\u0000"}`)), ['a']);
  assert.deepEqual(refused(body(String.raw`{"a":[{"b":"\ud800"},{"b":"\uDFFFx"}]}`)), ['a.0.b', 'a.1.b']);
  assert.deepEqual(refused(body(String.raw`{"a":{"b\u0000":1}}`)), [String.raw`a.b\u0000`]);
  assert.deepEqual(refused(body(String.raw`{"\uD800":"\u0000"}`)), [String.raw`\ud800`, String.raw`\ud800`]);
  assert.deepEqual(refused(body(String.raw`"\u0000"`)), ['']);
  // As deep as a body can be: to write the path of each value on the way takes minutes, of which nobody else gets one.
  const deep = `${'['.repeat(130_000)}"\\u0000"${']'.repeat(130_000)}`;
  assert.deepEqual(refused(body(deep)), [`${'0.'.repeat(64)}…`], 'no stack is deep enough to hide in');
  const many = JSON.stringify(Array.from({ length: 100 }, () => '\0'));
  assert.equal(refused(body(many)).length, 20);
});

test('all other text goes through as it is', () => {
  for (const text of ['', 'plain', '😀', '\u0001\n', 'ÿ', '\\u0000 spelled', '\uFFFD'])
    assert.deepEqual(readJson(Buffer.from(JSON.stringify({ text }))), { text });
  // As Python spells it.
  assert.deepEqual(body(String.raw`{"text":"\ud83d\ude00"}`)(), { text: '😀' });
  assert.equal(readJson(undefined), undefined);
  assert.equal(readJson(Buffer.from(' \n')), undefined);
  assert.deepEqual(
    [isPlainText('😀'), isPlainText('\0'), isPlainText('😀'.slice(0, 1))],
    [true, false, false],
  );
});

test('what is no UTF-8 or no JSON is refused, and not replaced by something like it', () => {
  for (const raw of [Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), Buffer.from([0x22, 0xff, 0x22])])
    assert.throws(() => readJson(raw), /not UTF-8/);
  for (const text of ['{', 'NaN', '"\0"', '{"a":1}x']) assert.throws(body(text), /not JSON/, text);
});

test('an address is refused with the name of its parameter', () => {
  assert.deepEqual(
    refused(() => refuseUnkeepableAddress('/a?q=%00&r=1&s=a%00')),
    ['q', 's'],
  );
  assert.deepEqual(
    refused(() => refuseUnkeepableAddress('/a%00/b?q=1')),
    ['address'],
  );
  assert.doesNotThrow(() => refuseUnkeepableAddress('/a?q=%2500&r=0'));
});
