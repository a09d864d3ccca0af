import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newCallId, newTransferId, transferIdFor } from './transfer-id.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-([78])[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('new ids are unique, sort by time and are UUIDs of version 7', () => {
  const ids = Array.from({ length: 2_000 }, (_, ms) => newTransferId(1_700_000_000_000 + ms));
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual([...ids].sort(), ids);
  assert(ids.every((id) => UUID.exec(id)?.[1] === '7'));
  const atOnce = Array.from({ length: 2_000 }, () => newTransferId(1_700_000_000_000));
  assert.equal(new Set(atOnce).size, atOnce.length, 'also of those made in one millisecond');
  // RFC 9562, appendix A.6: the time of its example is 0x017F22E279B0.
  assert.match(newTransferId(0x017f22e279b0), /^017f22e2-79b0-7/);
});

test('the id of a call names its bucket, and is as unique as any', () => {
  for (const bucket of [0, 5, 0xfff]) {
    const ids = Array.from({ length: 2_000 }, () => newCallId(0x017f22e279b0, bucket));
    assert.equal(new Set(ids).size, ids.length);
    assert(ids.every((id) => UUID.exec(id)?.[1] === '7' && id.startsWith('017f22e2-79b0-7')));
    assert(ids.every((id) => Number.parseInt(id.split('-')[3]?.slice(1) ?? '', 16) === bucket));
  }
});

test('one cause has one id, another cause another', () => {
  assert.equal(transferIdFor('refund:1'), transferIdFor('refund:1'));
  assert.notEqual(transferIdFor('refund:1'), transferIdFor('refund:2'));
  assert.equal(UUID.exec(transferIdFor('refund:1'))?.[1], '8');
  const long = 'a cause that is longer than any hash, told apart by its last letter: '.repeat(4);
  assert.notEqual(transferIdFor(`${long}a`), transferIdFor(`${long}b`));
});
