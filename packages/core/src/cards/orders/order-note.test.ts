import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newApiKey } from '../../keys/api-key.ts';
import { secretsOf } from '../../secrets/secrets.ts';
import { type NotedOrder, noteOf, readNote } from './order-note.ts';

const SECRETS = secretsOf(['a-secret-of-the-tests-and-of-nothing-else']);
const ID = '0190b0b0-0000-7000-8000-000000000001';
const { lookup, digest, prefix } = newApiKey(0);
const ORDER: NotedOrder = {
  kind: 'checkout',
  amountMicros: 25_000_000n,
  creditMicros: 26_000_000n,
  accountId: null,
  key: { lookup, digest, prefix },
  tokenDigest: Buffer.alloc(32, 1),
  requestDigest: null,
  keyName: 'mine',
  recharge: { thresholdMicros: 1n, topUpMicros: 2n },
  keySecretId: SECRETS.current.id,
  pageSeal: Buffer.alloc(40, 2),
};

test('an order is read from its note as it was, beside what else the provider keeps with it', () => {
  const note = noteOf(ID, ORDER, SECRETS);
  assert.deepEqual(readNote(ID, { order: ID, of: 'the provider', ...note }, SECRETS), ORDER);
  const topUp = { ...ORDER, accountId: 1_007n, key: null, keySecretId: null, pageSeal: null, keyName: null };
  assert.deepEqual(readNote(ID, noteOf(ID, topUp, SECRETS), SECRETS), topUp);
  for (const value of Object.values(note)) assert(value.length <= 500);
});

test('a note of another order, of another shop, or that somebody changed counts for nothing', () => {
  const note = noteOf(ID, ORDER, SECRETS);
  assert.equal(readNote(ID.replace('1', '2'), note, SECRETS), null);
  assert.equal(readNote(ID, note, secretsOf(['another-secret-of-the-tests-and-of-nothing'])), null);
  assert.equal(readNote(ID, { ...note, order_credit: '99000000' }, SECRETS), null);
  assert.equal(readNote(ID, { ...note, order_account: '1001' }, SECRETS), null);
  assert.equal(readNote(ID, { order: ID }, SECRETS), null);
});

test('while secrets change the note is the same, and is read with both', () => {
  const both = secretsOf([
    'the-newer-secret-of-the-tests-0123456789',
    'a-secret-of-the-tests-and-of-nothing-else',
  ]);
  assert.deepEqual(noteOf(ID, ORDER, both), noteOf(ID, ORDER, SECRETS));
  assert.deepEqual(readNote(ID, noteOf(ID, ORDER, SECRETS), both), ORDER);
});
