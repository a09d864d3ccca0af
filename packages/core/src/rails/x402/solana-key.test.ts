import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Address,
  createKeyPairSignerFromBytes,
  generateKeyPairSigner,
  getBase58Decoder,
  getPublicKeyFromAddress,
  type SignatureBytes,
  verifySignature,
} from '@solana/kit';
import { privateKeyOf, secretKeyOf, signerOf } from '../../../../sandbox/src/accounts.fixture.ts';
import { readSolanaKey } from './solana-key.ts';

test('a key is read as wallets and as the command line keep it, and signs as the library does', async () => {
  const bytes = secretKeyOf('settler');
  const { address } = await signerOf('settler');
  const message = new TextEncoder().encode('anything');
  const [signed] = await (await createKeyPairSignerFromBytes(bytes)).signMessages([
    { content: message, signatures: {} },
  ]);
  for (const text of [privateKeyOf('settler'), JSON.stringify([...bytes])]) {
    const key = readSolanaKey(text);
    assert.equal(key.address, address);
    assert.deepEqual(await key.sign(message), new Uint8Array(signed?.[address] ?? []));
    const publicKey = await getPublicKeyFromAddress(key.address as Address);
    assert(await verifySignature(publicKey, (await key.sign(message)) as SignatureBytes, message));
  }
});

test('what is no key is refused, without a word of it', async () => {
  const bytes = [...secretKeyOf('settler')];
  const other = (await generateKeyPairSigner()).address;
  const wrongHalf = [...bytes.slice(0, 32), ...secretKeyOf('refunds').slice(32)];
  for (const text of [
    '',
    'x',
    other,
    '0OIl',
    '[1,2]',
    '[',
    JSON.stringify([...bytes.slice(1), 256]),
    JSON.stringify([(bytes[0] ?? 0) + 256, ...bytes.slice(1)]),
    JSON.stringify([(bytes[0] ?? 0) - 256, ...bytes.slice(1)]),
    JSON.stringify(bytes.map(String)),
    getBase58Decoder().decode(new Uint8Array(bytes.slice(1))),
    JSON.stringify(wrongHalf),
    '1'.repeat(1_000),
  ]) {
    assert.throws(
      () => readSolanaKey(text),
      (error) => error instanceof Error && (text.length < 5 || !error.message.includes(text)),
      text.slice(0, 20),
    );
  }
});
