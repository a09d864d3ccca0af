import assert from 'node:assert/strict';
import { it } from 'node:test';
import { pricedAnswer, statisticAnswer } from './figures.ts';

const method = 'As the test says.';

it('states no more digits than are meant, at any depth', () => {
  const fields = { weights: [0.35000000000000003, -0.10000000000000002], beta: { value: 1.052735197876347 } };
  assert.deepEqual(statisticAnswer(fields, { method }).fields, {
    weights: [0.35, -0.1],
    beta: { value: 1.0527352 },
  });
});

it('keeps whole numbers, texts, null and the cents of large amounts', () => {
  const fields = { block: 12_345_678_901, raw: '0.123456789012345', none: null, usd: 2_581_064_429.460583 };
  assert.deepEqual(statisticAnswer(fields, { method }).fields, { ...fields, usd: 2_581_064_429.46 });
});

it('keeps the digits of what is small', () => {
  const prices = [0.0000047123456789, 1e-12, 3_062.55249954321, 0];
  assert.deepEqual(pricedAnswer(prices, { method }).fields, [0.000004712345679, 1e-12, 3_062.5525, 0]);
  assert.deepEqual(statisticAnswer([0.00000471234567891], { method }).fields, [0.0000047123457]);
});

it('leaves what is told of the answer as it is', () => {
  const { fields, ...rest } = statisticAnswer({ a: 1 }, { method, notes: ['A note.'] });
  assert.deepEqual([fields, rest], [{ a: 1 }, { method, sources: [], notes: ['A note.'] }]);
});
