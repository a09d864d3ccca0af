import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileFor, spoiled } from '../../../../apps/shop/test/hostile-values.fixture.ts';
import { asMined } from './node-reply.ts';

const HASH = `0x${'ab'.repeat(32)}`;
const RECEIPT = {
  transactionHash: HASH,
  status: '0x1',
  blockNumber: '0x10',
  gasUsed: '0x5208',
  logs: [{ address: `0x${'CD'.repeat(20)}`, topics: [HASH], data: '0x01' }],
};
const MINED = {
  status: 'success',
  hash: HASH,
  blockNumber: 16n,
  gasUsed: 21_000n,
  costWei: null,
  logs: [{ address: `0x${'cd'.repeat(20)}`, topics: [HASH], data: '0x01' }],
};

test('a receipt is read, one that moved nothing too', () => {
  assert.deepEqual(asMined(RECEIPT), MINED);
  assert.deepEqual(asMined({ ...RECEIPT, status: '0x0' }), { ...MINED, status: 'reverted' });
});

test('there is none where the node has none, and while it is in no block', () => {
  assert.equal(asMined(null), null);
  assert.equal(asMined(undefined), null);
  assert.equal(asMined({ ...RECEIPT, blockNumber: null, status: null, gasUsed: null }), null);
});

test('what is no receipt is told, whatever stands in which field: it is neither none nor one that was reverted', () => {
  for (const receipt of [...hostileFor(RECEIPT), { status: {} }, { ...RECEIPT, gasUsed: 21_000 }])
    if (receipt !== null) assert.throws(() => asMined(receipt), /no receipt/, JSON.stringify(receipt));
  const withoutData = RECEIPT.logs.map(({ data: _, ...log }) => log);
  assert.throws(() => asMined({ ...RECEIPT, logs: withoutData }), /no receipt/);
  for (const { path, put, value } of spoiled(RECEIPT)) {
    const what = `${path.join('.')}: ${JSON.stringify(put)}`;
    // Nodes leave the gas out, and a transaction may have no logs.
    const isAllowed =
      (path.join() === 'gasUsed' && put === null) ||
      (['logs', 'logs,0,topics'].includes(path.join()) && Array.isArray(put) && put.length === 0);
    if (path.join() === 'blockNumber' && put === null) assert.equal(asMined(value), null, what);
    else if (isAllowed) assert.equal(asMined(value)?.status, 'success', what);
    else assert.throws(() => asMined(value), /no receipt/, what);
  }
});
