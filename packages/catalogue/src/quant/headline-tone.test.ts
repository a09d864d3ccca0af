import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { headlineTone } from './headline-tone.ts';

/** Written for this test; the first ones are of the kinds that general word lists are known to get wrong. */
const HEADLINES: readonly (readonly [headline: string, sign: -1 | 0 | 1])[] = [
  ['Profit fell in the third quarter', -1],
  ['Analyst is not bullish on the stock', -1],
  ['Chip maker beats estimates, raises guidance', 1],
  ['Net loss narrowed on lower costs', 1],
  ['Unemployment falls to a record low', 1],
  ['Debt rises as deficit widens', -1],
  ['Bridge drained of funds in exploit', -1],
  ['Token rallies after listing', 1],
  ['Bitcoin outflows increased for a third week', -1],
  ['ETF inflows surged', 1],
  ['Retailer cuts outlook, shares slump', -1],
  ['Court did not approve the merger', -1],
  ['Stablecoin depegs amid fears', -1],
  ['Euro strengthens as inflation slows', 1],
  ['Company holds its annual meeting', 0],
  ['', 0],
];

describe('the tone of a headline', () => {
  for (const [headline, sign] of HEADLINES) {
    it(`${sign === 0 ? 'knows nothing of' : sign > 0 ? 'is good' : 'is bad'}: ${headline}`, () => {
      const tone = headlineTone(headline);
      if (sign === 0) assert.equal(tone, null);
      else assert.equal(Math.sign(tone ?? 0), sign, String(tone));
    });
  }

  it('stays between its bounds, however much is shouted', () => {
    const tone = headlineTone('hack '.repeat(10_000)) ?? 0;
    assert(tone < -0.9 && tone >= -1);
    assert.equal(headlineTone('Profit fell') === headlineTone('Profit rose'), false);
  });
});
