import assert from 'node:assert/strict';
import test from 'node:test';
import { calculation, evaluate } from './arithmetic.ts';
import { answerTo } from './extractive.ts';

test('calculations follow the rules of precedence', () => {
  for (const [expression, value] of [
    ['2 + 3 * 4', 14],
    ['(2 + 3) * 4', 20],
    ['2 ^ 3 ^ 2', 512],
    ['-2 ^ 2', -4],
    ['10 - 4 - 3', 3],
    ['7 % 4 * 2', 6],
    ['.5 * 3', 1.5],
  ] as const) {
    assert.equal(evaluate(expression), value, expression);
  }
  for (const wrong of ['1 / 0', '2 +', '(2', '2 $ 3', '2 3']) assert.equal(evaluate(wrong), null, wrong);
  assert.equal(calculation('What is 12 × (3 + 4)?'), '12 * (3 + 4) = 84');
  assert.equal(calculation('Calculate: 1,200 / 4'), '1200 / 4 = 300');
  assert.equal(calculation('What is 2026?'), null);
});

const TEXT =
  'The harbour opened in 1901. Ships brought grain and timber to the harbour every week. The old lighthouse stands on a cliff. Grain ships still use the harbour today. A museum tells the story of the ships.';

test('a question is answered with the sentence that holds the answer', () => {
  assert.equal(answerTo(`When did the harbour open? ${TEXT}`), 'The harbour opened in 1901.');
  assert.equal(
    answerTo(`Where does the lighthouse stand?\n${TEXT}`),
    'The old lighthouse stands on a cliff.',
  );
});

test('a summary consists of sentences of the text, in their order, and is shorter', () => {
  const summary = answerTo(`Summarise this: ${TEXT}`);
  const sentences = summary.split(/(?<=\.) /);
  assert.ok(sentences.length === 3 && summary.length < TEXT.length);
  const places = sentences.map((sentence) => TEXT.indexOf(sentence));
  assert.deepEqual(
    places.toSorted((a, b) => a - b),
    places,
  );
  assert.ok(!places.includes(-1));
  assert.ok(summary.includes('harbour'), 'the sentences that most others resemble speak of the harbour');
});

test('it repeats, lists, and says when it has nothing to say', () => {
  assert.equal(answerTo('Repeat after me: "so be it"'), 'so be it');
  assert.equal(answerTo('List the fruits: apples, pears and plums.'), '- apples\n- pears\n- plums');
  assert.match(answerTo('Write a poem about the sea.'), /extractive engine/);
  assert.match(answerTo(''), /extractive engine/);
});
