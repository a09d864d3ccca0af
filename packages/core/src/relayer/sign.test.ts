import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTransaction, recoverTransactionAddress } from 'viem';
import { generatePrivateKey } from 'viem/accounts';
import { createSigner } from './sign.ts';

test('natively and in JavaScript the same transaction gets the same signature, by the right key', async () => {
  for (let nonce = 0; nonce < 40; nonce++) {
    const privateKey = generatePrivateKey();
    const transaction = {
      type: 'eip1559',
      chainId: 8453,
      nonce,
      to: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      data: `0x${nonce.toString(16).padStart(8, '0')}`,
      gas: 120_000n,
      maxFeePerGas: 10n ** 9n,
      maxPriorityFeePerGas: 10n ** 6n,
    } as const;
    const [native, inJavaScript] = [createSigner(privateKey), createSigner(privateKey, null)];
    const signed = await native.sign(transaction);
    assert.deepEqual(signed, await inJavaScript.sign(transaction));
    assert.equal(native.address, inJavaScript.address);
    const serializedTransaction = signed.raw as `0x02${string}`;
    assert.equal((await recoverTransactionAddress({ serializedTransaction })).toLowerCase(), native.address);
    assert.equal(parseTransaction(serializedTransaction).nonce ?? 0, nonce);
  }
});
