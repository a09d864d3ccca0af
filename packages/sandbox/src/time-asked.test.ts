import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secondsAsked } from './time-asked.ts';

test('a time is one number of days or hours, of ten years at most', () => {
  for (const [asked, seconds] of [
    ['180d', 15_552_000],
    ['1h', 3_600],
    ['87600h', 315_360_000],
    ['3650d', 315_360_000],
  ] as const)
    assert.equal(secondsAsked([asked]), seconds, asked);
  for (const wrong of [[], ['180'], ['0d'], ['3651d'], ['87601h'], ['1d', '2d'], ['-1d'], ['1m'], ['1dh']])
    assert.equal(secondsAsked(wrong), null, wrong.join(' '));
});
