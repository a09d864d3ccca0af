import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileFor, spoiled } from '../../test/hostile-values.fixture.ts';
import { asMined, type MinedTransaction } from './node-reply.ts';

const HASH = `0x${'ab'.repeat(32)}`;
const RECEIPT = {
  transactionHash: HASH,
  ...{ status: '0x1', blockNumber: '0x10', gasUsed: '0x5208' },
  logs: [{ address: `0x${'CD'.repeat(20)}`, topics: [HASH], data: '0x01' }],
};
const MINED = {
  ...{ status: 'success', hash: HASH, blockNumber: 16n, gasUsed: 21_000n, costWei: null },
  logs: [{ address: `0x${'cd'.repeat(20)}`, topics: [HASH], data: '0x01' }],
};

test('a receipt is read, one that moved nothing too', () => {
  assert.deepEqual(asMined(RECEIPT), MINED);
  assert.deepEqual(asMined({ ...RECEIPT, status: '0x0' }), { ...MINED, status: 'reverted' });
});

test('what is no receipt is none, whatever stands in which field: never one that was reverted', () => {
  for (const receipt of hostileFor(RECEIPT)) assert.equal(asMined(receipt), null, JSON.stringify(receipt));
  for (const { path, put, value } of spoiled(RECEIPT)) {
    const what = `${path.join('.')}: ${JSON.stringify(put)}`;
    const mined: MinedTransaction | null = asMined(value);
    // Nodes leave the gas out, and a transaction may have no logs.
    const isAllowed =
      (path.join() === 'gasUsed' && put === null) ||
      (['logs', 'logs,0,topics'].includes(path.join()) && Array.isArray(put) && put.length === 0);
    assert.equal(mined === null, !isAllowed, what);
  }
});
