import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeAbiParameters, type Hex } from 'viem';
import { revertReason } from './wallet-revert.ts';

/** `Error(string)` with its selector from the Solidity documentation. */
function errorOf(message: string): Hex {
  return `0x08c379a0${encodeAbiParameters([{ type: 'string' }], [message]).slice(2)}`;
}

test('a revert is told in one short printable line', () => {
  // The example of the Solidity documentation, byte for byte.
  const documented =
    '0x08c379a0' +
    '0000000000000000000000000000000000000000000000000000000000000020' +
    '000000000000000000000000000000000000000000000000000000000000001a' +
    '4e6f7420656e6f7567682045746865722070726f76696465642e000000000000';
  assert.equal(revertReason(documented as Hex), 'Not enough Ether provided.');
  assert.equal(
    revertReason(`0x4e487b71${'11'.padStart(64, '0')}`),
    'panic 17: arithmetic overflow or underflow',
  );
  const balances = `${'a'.repeat(40).padStart(64, '0')}${'05'.padStart(64, '0')}${'06'.padStart(64, '0')}`;
  assert.equal(
    revertReason(`0xe450d38c${balances}`),
    'ERC20InsufficientBalance(0xaAaAaAaaAaAaAaaAaAAAAAAAAaaaAaAaAaaAaaAa, 5, 6)',
  );
  assert.equal(revertReason('0x'), 'reverted without a reason');
  assert.equal(revertReason('0xdeadbeef'), 'error 0xdeadbeef of the contract');
  assert.equal(revertReason('0x08c379a0ff'), 'error 0x08c379a0 of the contract');
  const rude = revertReason(errorOf(`line\n\u001b[31m${'x'.repeat(500)}`));
  assert.match(rude, /^line \[31mx+…$/);
  assert.equal(rude.length, 200);
});
