import assert from 'node:assert/strict';
import { createCipheriv, hkdfSync } from 'node:crypto';
import { test } from 'node:test';
import { secretsOf } from '../secrets/secrets.ts';
import { createAnswerSeal } from './sealed-answer.ts';

const BODY = JSON.stringify({ privateKey: '0xdeadbeef', note: 'ключ' });
const sealOf = (...secrets: string[]) => createAnswerSeal(secretsOf(secrets));
/** The part before the sealed bytes: the format and the id of the secret's version. */
const headOf = (sealed: string) => sealed.slice(0, sealed.lastIndexOf(':') + 1);

test('a sealed answer opens for its call, holds nothing readable, and is never sealed the same way twice', () => {
  const seal = sealOf('a secret');
  const sealed = seal.seal('call-1', BODY);
  assert.equal(seal.open('call-1', sealed), BODY);
  assert.equal(sealOf('a secret').open('call-1', sealed), BODY, 'another replica opens it');
  const readable = sealed + Buffer.from(sealed.slice(headOf(sealed).length), 'base64').toString('latin1');
  assert.ok(
    !readable.includes('deadbeef') && !readable.includes('privateKey') && !readable.includes('a secret'),
  );
  assert.notEqual(seal.seal('call-1', BODY), sealed);
});

test('it does not open for another call, with another secret, or with a single bit changed', () => {
  const seal = sealOf('a secret');
  const sealed = seal.seal('call-1', BODY);
  assert.throws(() => seal.open('call-2', sealed));
  assert.throws(() => sealOf('another').open('call-1', sealed));
  const head = headOf(sealed);
  const bytes = Buffer.from(sealed.slice(head.length), 'base64');
  for (let at = 0; at < bytes.length; at++) {
    const altered = Buffer.from(bytes);
    altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
    assert.throws(() => seal.open('call-1', head + altered.toString('base64')), `byte ${at}`);
  }
  for (const length of [0, 11, 12, 27, bytes.length - 1])
    assert.throws(() => seal.open('call-1', head + bytes.subarray(0, length).toString('base64')));
});

test('after a secret is replaced, answers sealed with the old one open, and new ones are sealed with the new one', () => {
  const [before, during] = [sealOf('a secret'), sealOf('a newer one', 'a secret')];
  const old = before.seal('call-1', BODY);
  assert.equal(during.open('call-1', old), BODY);
  const fresh = during.seal('call-1', BODY);
  assert.equal(sealOf('a newer one').open('call-1', fresh), BODY);
  assert.throws(() => sealOf('a newer one').open('call-1', old), /no secret that is given/);
});

test('an answer sealed before versions had ids opens with whichever version fits', () => {
  const key = Buffer.from(hkdfSync('sha256', 'a secret', 'farebox', 'stored answers', 32));
  const nonce = Buffer.alloc(12, 7);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 }).setAAD(
    Buffer.from('call-1'),
  );
  const bytes = Buffer.concat([nonce, cipher.update(BODY, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  const nameless = `sealed:1:${bytes.toString('base64')}`;
  assert.equal(sealOf('a newer one', 'a secret').open('call-1', nameless), BODY);
  assert.throws(() => sealOf('a newer one').open('call-1', nameless));
});

test('an answer that was never sealed comes back unchanged', () => {
  assert.equal(sealOf('a secret').open('call-1', BODY), BODY);
});

test('any bytes come out as they went in', () => {
  const { seal, openBytes } = sealOf('a secret');
  const bytes = Buffer.from([0, 255, 0x73, 0, 10, 13]);
  assert.deepEqual(openBytes('call', seal('call', bytes)), bytes);
  assert.throws(() => openBytes('another call', seal('call', bytes)));
});
