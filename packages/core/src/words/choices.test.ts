import assert from 'node:assert/strict';
import { test } from 'node:test';
import { choicesIn } from './choices.ts';

const choice = (value: unknown, about = 'A thing') => ({ field: 'thing', value, about });

test('an error lists twenty at most, in their order', () => {
  const values = Array.from({ length: 10_000 }, (_, index) => `thing-${index}`);
  const { choices } = choicesIn(values.map((value) => choice(value)));
  assert.deepEqual(
    choices.map(({ value }) => value),
    values.slice(0, 20),
  );
});

test('what is listed is cleaned and bounded, at any depth of a value', () => {
  const written = `van\u202e\u0000${'x'.repeat(500)}`;
  const { choices } = choicesIn([choice([{ id: written }], `a\r\nb${written}`)]);
  const text = JSON.stringify(choices);
  assert.doesNotMatch(text, /\u202e|\\u|\\r|\\n/);
  assert.ok(text.length < 600, text);
});
