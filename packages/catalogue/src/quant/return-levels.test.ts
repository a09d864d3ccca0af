import assert from 'node:assert/strict';
import { test } from 'node:test';
import { returnLevels } from './return-levels.ts';

const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual - expected) < 1e-5, `${actual}, not ${expected}`);

test('levels of ten years, by hand', () => {
  // Of 1 to 10: the mean is 5.5 and the first weighted moment 11/3, so the second L-moment is 22/3 - 5.5 = 11/6;
  // scale 11/6 / ln 2 = 2.644941, location 5.5 - 0.577216 * 2.644941 = 3.973299.
  const { level } = returnLevels([3, 1, 2, 10, 4, 5, 9, 6, 8, 7]);
  near(level(2), 3.973299 + 2.644941 * 0.366513);
  near(level(20), 3.973299 + 2.644941 * 2.970195);
});

test('years that are all alike have one level, and too few years none', () => {
  near(returnLevels(Array.from({ length: 12 }, () => 4)).level(20), 4);
  assert.throws(() => returnLevels([1, 2, 3]), RangeError);
});
