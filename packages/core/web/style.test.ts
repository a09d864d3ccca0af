import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const SHEET = readFileSync(join(import.meta.dirname, 'style.css'), 'utf8');

test('type has eight sizes, and corners three', () => {
  const sizes = [...SHEET.matchAll(/--t-(\d): ([\d.]+)rem;/g)].map(([, , rem]) => Number(rem) * 16);
  assert.deepEqual(sizes, [13, 14, 16, 18, 24, 32, 44, 84]);
  const said = [...SHEET.matchAll(/font(?:-size)?:([^;]*(?:rem|px)[^;]*);/g)].map(([, value = '']) => value);
  // Letters in a chart that is scaled have the size that its width leaves them.
  const own = said.filter((value) => !/var\(--t-\d\)/.test(value) && !/^ (400 )?(12|20)px/.test(value));
  assert.deepEqual(own, []);
  const corners = [...SHEET.matchAll(/border-radius: ([^;]+);/g)].flatMap(([, value = '']) =>
    value.split(' '),
  );
  assert.deepEqual(
    [...new Set(corners)].filter((each) => !['0', '4px', '8px', '12px'].includes(each)),
    [],
  );
});
