import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evmAddress, walletAddress } from './wallet-address.ts';

/** The first example of EIP-55. */
const EXAMPLE = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

test('an address is spelled with its checksum, and a wrong checksum is a misspelled address', () => {
  for (const field of [evmAddress('An address'), walletAddress('A wallet')]) {
    for (const written of [EXAMPLE, EXAMPLE.toLowerCase(), `0x${EXAMPLE.slice(2).toUpperCase()}`]) {
      assert.equal(field.safeParse(written).data, EXAMPLE);
    }
    const misspelled = EXAMPLE.replace('aA', 'Aa');
    for (const wrong of [misspelled, EXAMPLE.slice(0, -1), EXAMPLE.slice(2), 'vitalik.eth', '', null]) {
      assert.equal(field.safeParse(wrong).success, false, String(wrong));
    }
  }
});

test('a wallet may be on Solana, where an address is 32 bytes', () => {
  const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
  assert.equal(walletAddress('A wallet').safeParse(mint).data, mint);
  // 44 characters, but more than 32 bytes.
  assert.equal(walletAddress('A wallet').safeParse('z'.repeat(44)).success, false);
  assert.equal(evmAddress('An address').safeParse(mint).success, false);
});
