import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownOf } from './replies.ts';

test('of a card its network and last four digits may be shown, and nothing that is neither', () => {
  assert.deepEqual(shownOf({ brand: 'visa', last4: '4242' }), { brand: 'visa', last4: '4242' });
  assert.deepEqual(shownOf({ brand: 'cartes_bancaires', last4: '0001' }), {
    brand: 'cartes_bancaires',
    last4: '0001',
  });
  const refused = [
    { brand: null, last4: '4242' },
    { brand: 'visa', last4: null },
    { brand: 'visa', last4: '' },
    { brand: 'visa', last4: '424' },
    { brand: 'visa', last4: '4242424242424242' },
    { brand: 'visa', last4: '4242\n' },
    { brand: 'visa', last4: '٤٢٤٢' },
    { brand: '', last4: '4242' },
    { brand: 'Visa of J. Doe', last4: '4242' },
    { brand: '<b>visa</b>', last4: '4242' },
    { brand: 'v'.repeat(33), last4: '4242' },
  ];
  for (const card of refused) assert.equal(shownOf(card), null, JSON.stringify(card));
});
