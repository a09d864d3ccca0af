import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mnemonicToAccount, privateKeyToAddress } from 'viem/accounts';
import { accountsOf, BUILDERS } from './accounts.ts';

test('who builds a chain has the keys of the public phrase, as every development node derives them', () => {
  const phrase = `${'test '.repeat(11)}junk`;
  const places = { deployer: 0, faucet: 5, lender: 6, borrower: 7 };
  for (const [name, addressIndex] of Object.entries(places)) {
    const { address, getHdKey } = mnemonicToAccount(phrase, { addressIndex });
    const key = Buffer.from(getHdKey().privateKey ?? []).toString('hex');
    assert.deepEqual(BUILDERS[name as keyof typeof BUILDERS], { privateKey: `0x${key}`, address });
  }
});

test("an installation's accounts follow from its seed alone, each with the address of its own key", () => {
  const accounts = accountsOf('a seed');
  const own = Object.values(accounts);
  for (const { privateKey, address } of own) assert.equal(address, privateKeyToAddress(privateKey));
  assert.equal(new Set(own.map(({ address }) => address)).size, own.length);
  assert.deepEqual(accountsOf('a seed'), accounts);
  assert.notDeepEqual(accountsOf('another seed'), accounts);
});
