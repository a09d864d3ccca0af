import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnswerSeal } from './sealed-answer.ts';

const BODY = JSON.stringify({ privateKey: '0xdeadbeef', note: 'ключ' });

test('a sealed answer opens for its call, holds nothing readable, and is never sealed the same way twice', () => {
  const seal = createAnswerSeal('a secret');
  const sealed = seal.seal('call-1', BODY);
  assert.equal(seal.open('call-1', sealed), BODY);
  assert.equal(createAnswerSeal('a secret').open('call-1', sealed), BODY, 'another replica opens it');
  const readable = sealed + Buffer.from(sealed.slice('sealed:1:'.length), 'base64').toString('latin1');
  assert.ok(!readable.includes('deadbeef') && !readable.includes('privateKey'));
  assert.notEqual(seal.seal('call-1', BODY), sealed);
});

test('it does not open for another call, with another secret, or with a single bit changed', () => {
  const seal = createAnswerSeal('a secret');
  const sealed = seal.seal('call-1', BODY);
  assert.throws(() => seal.open('call-2', sealed));
  assert.throws(() => createAnswerSeal('another').open('call-1', sealed));
  const prefix = 'sealed:1:';
  const bytes = Buffer.from(sealed.slice(prefix.length), 'base64');
  for (let at = 0; at < bytes.length; at++) {
    const altered = Buffer.from(bytes);
    altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
    assert.throws(() => seal.open('call-1', prefix + altered.toString('base64')), `byte ${at}`);
  }
  for (const length of [0, 11, 12, 27, bytes.length - 1])
    assert.throws(() => seal.open('call-1', prefix + bytes.subarray(0, length).toString('base64')));
});

test('what was never sealed comes back as it is', () => {
  assert.equal(createAnswerSeal('a secret').open('call-1', BODY), BODY);
});
