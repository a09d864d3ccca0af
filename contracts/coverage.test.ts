import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLcov } from './coverage.ts';

test('lines and branches are counted for each source, and those that no test went through are named', () => {
  const report = [
    ...['TN:', 'SF:contracts/src/A.sol', 'DA:3,7', 'DA:4,0', 'FN:3,f', 'BRDA:3,0,0,2', 'BRDA:3,0,1,-'],
    ...['BRDA:9,1,0,0', 'LF:2', 'end_of_record', 'TN:', 'SF:contracts/src/B.sol', 'DA:1,1', 'end_of_record'],
  ].join('\n');
  assert.deepEqual(readLcov(report), [
    {
      file: 'contracts/src/A.sol',
      lines: { of: 2, hit: 1, missed: [4] },
      branches: { of: 3, hit: 1, missed: [3, 9] },
    },
    {
      file: 'contracts/src/B.sol',
      lines: { of: 1, hit: 1, missed: [] },
      branches: { of: 0, hit: 0, missed: [] },
    },
  ]);
});
