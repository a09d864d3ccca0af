import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../http/problem.ts';
import { type Fate, tellFate } from './fate.ts';

const TOLD: [Fate, status: number, charged: boolean | null, says: RegExp][] = [
  ['free', 503, false, /Nothing was charged\.$/],
  ['not looked', 400, false, /Nothing was charged\.$/],
  ['not looked', 429, null, /not known yet whether this payment was charged.* no new one/],
  ['not looked', 503, null, /not known yet whether this payment was charged.* no new one/],
  ['open', 503, null, /not known yet whether this payment was charged.* no new one/],
  ['given back', 503, null, /If it was, its price is given back\.$/],
  ['taken', 422, true, /The payment was taken\. Send the same request with the same payment again/],
  ['spent', 409, true, /charged when it was answered\.$/],
  ['refunded', 410, false, /sent back\.$/],
];

for (const [fate, status, charged, says] of TOLD) {
  test(`${fate}, ${status}: \`charged\` and the words say the same, whatever the code that threw claimed`, () => {
    for (const believed of [true, false, null]) {
      const thrown = new Problem(status, 'CODE', 'It failed.', {
        details: { charged: believed, retryAfter: 1 },
      });
      const { message, details, code } = tellFate(thrown, fate);
      assert.match(message, says);
      assert.deepEqual([code, details], ['CODE', { charged, retryAfter: 1 }]);
      assert.equal(/Nothing was charged/.test(message), charged === false && fate !== 'refunded');
    }
  });
}
