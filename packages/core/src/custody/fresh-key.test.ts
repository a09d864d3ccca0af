import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyPairFromBytes, getAddressFromPublicKey, getBase58Encoder } from '@solana/kit';
import { recoverMessageAddress } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { freshKey, writtenKey } from './fresh-key.ts';

test('an EVM key signs for the address it came with', async () => {
  const key = freshKey('evm');
  const written = writtenKey(key);
  assert.match(written, /^0x[0-9a-f]{64}$/);
  const signature = await privateKeyToAccount(`0x${written.slice(2)}`).signMessage({ message: 'mine' });
  assert.equal(await recoverMessageAddress({ message: 'mine', signature }), key.address);
});

test('a Solana key is what the chain’s own library imports, and leads to the address it came with', async () => {
  const key = freshKey('solana');
  const bytes = getBase58Encoder().encode(writtenKey(key));
  assert.equal(bytes.length, 64);
  // It refuses bytes whose public half does not belong to the private one.
  const pair = await createKeyPairFromBytes(bytes);
  assert.equal(await getAddressFromPublicKey(pair.publicKey), key.address);
});

test('no two keys are the same', () => {
  const kinds = ['evm', 'solana'] as const;
  const written = kinds.flatMap((kind) => Array.from({ length: 10 }, () => writtenKey(freshKey(kind))));
  assert.equal(new Set(written).size, 20);
});
