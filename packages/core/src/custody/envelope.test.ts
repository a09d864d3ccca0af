import assert from 'node:assert/strict';
import { createDecipheriv, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { createKeyring, parseKeyEncryptionKeys, Unreadable } from './envelope.ts';

const OLD = randomBytes(32);
const NEW = randomBytes(32);
const SECRET = Buffer.from('4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318', 'hex');
const WALLET = 'wallet-1:evm:0xabc';

describe('an envelope', () => {
  const keyring = createKeyring([OLD]);

  test('opens with its key and what it belongs to, and shows nothing of the secret', () => {
    const sealed = keyring.seal(SECRET, WALLET);
    assert.deepEqual(keyring.open(sealed, WALLET), SECRET);
    const stored = Buffer.concat([sealed.wrappedDataKey, sealed.ciphertext]);
    assert.equal(stored.indexOf(SECRET.subarray(0, 8)), -1);
    assert.equal(stored.indexOf(OLD.subarray(0, 8)), -1);
    assert.notEqual(sealed.kekId, OLD.toString('hex').slice(0, 16));
  });

  test('is what it says: AES-256-GCM under a data key, which is AES-256-GCM under the configured key', () => {
    const { kekId, wrappedDataKey, ciphertext } = keyring.seal(SECRET, WALLET);
    const open = (key: Buffer, sealed: Buffer, aad: string) => {
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12));
      decipher.setAAD(Buffer.from(aad));
      decipher.setAuthTag(sealed.subarray(-16));
      return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
    };
    const dataKey = open(OLD, wrappedDataKey, `data-key:${kekId}:${WALLET}`);
    assert.equal(dataKey.length, 32);
    assert.deepEqual(open(dataKey, ciphertext, `secret:${WALLET}`), SECRET);
  });

  test('never uses a data key or a nonce twice', () => {
    const [a, b] = [keyring.seal(SECRET, WALLET), keyring.seal(SECRET, WALLET)];
    assert.notDeepEqual(a.ciphertext.subarray(0, 12), b.ciphertext.subarray(0, 12));
    // With a's data key in place of b's, b's secret does not open.
    assert.throws(() => keyring.open({ ...b, wrappedDataKey: a.wrappedDataKey }, WALLET), Unreadable);
  });

  test('does not open with another key, even if that key claims its id', () => {
    const sealed = keyring.seal(SECRET, WALLET);
    const other = createKeyring([NEW]);
    assert.throws(() => other.open(sealed, WALLET), Unreadable);
    assert.throws(() => other.open({ ...sealed, kekId: other.currentId }, WALLET), Unreadable);
  });

  test('does not open for another wallet', () => {
    assert.throws(() => keyring.open(keyring.seal(SECRET, WALLET), 'wallet-2:evm:0xabc'), Unreadable);
  });

  test('does not open when a single bit of it was changed, wherever', () => {
    const sealed = keyring.seal(SECRET, WALLET);
    for (const part of ['wrappedDataKey', 'ciphertext'] as const) {
      for (let index = 0; index < sealed[part].length; index++) {
        const changed = Buffer.from(sealed[part]);
        changed.writeUInt8(changed.readUInt8(index) ^ 1, index);
        assert.throws(() => keyring.open({ ...sealed, [part]: changed }, WALLET), Unreadable);
      }
      assert.throws(
        () => keyring.open({ ...sealed, [part]: sealed[part].subarray(0, 20) }, WALLET),
        Unreadable,
      );
    }
  });
});

describe('rotation', () => {
  test('the first key encrypts, all decrypt, and what was brought over needs the old one no more', () => {
    const before = createKeyring([OLD]).seal(SECRET, WALLET);
    const both = createKeyring([NEW, OLD]);
    const only = createKeyring([NEW]);
    assert.equal(both.seal(SECRET, WALLET).kekId, only.currentId);
    assert.deepEqual(both.open(before, WALLET), SECRET);
    assert.throws(() => only.open(before, WALLET), Unreadable);

    const after = both.rewrap(before, WALLET);
    assert.deepEqual(only.open(after, WALLET), SECRET);
    assert.deepEqual(after.ciphertext, before.ciphertext);
    assert.throws(() => both.rewrap(before, 'wallet-2:evm:0xabc'), Unreadable);
  });
});

describe('WALLET_ENCRYPTION_KEY', () => {
  test('holds keys of 64 hex digits', () => {
    const [a, b] = [OLD.toString('hex'), NEW.toString('hex').toUpperCase()];
    assert.deepEqual(parseKeyEncryptionKeys(`${a}, ${b}`), [OLD, NEW]);
    for (const wrong of [
      '',
      'abc',
      a.slice(1),
      `${a}0`,
      `${a},`,
      '0'.repeat(64),
      `${a},${a.toUpperCase()}`,
    ]) {
      assert.throws(() => parseKeyEncryptionKeys(wrong), wrong);
    }
    const keys = Array.from({ length: 17 }, () => randomBytes(32).toString('hex'));
    assert.equal(parseKeyEncryptionKeys(keys.slice(1).join()).length, 16);
    assert.throws(() => parseKeyEncryptionKeys(keys.join()), /at most 16 keys/);
  });
});
