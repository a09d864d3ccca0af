import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from 'viem';
import { CHAIN_ID, fixedOf } from './fixed.ts';
import type { Node } from './node.ts';

const at = (digit: number): Address => `0x${String(digit).repeat(40)}`;
const VAULT = at(1);
const PERMIT_DEPOSIT = at(7);

/** A vault on a chain whose answers are these unless others are given. */
function chainWith({
  chainId = CHAIN_ID as number,
  facts = [at(2), at(3), at(4), at(5), at(6), 'Vault', 'vUSDC', 12, 50, 1_000, 604_800] as unknown[],
  helpers = [VAULT],
} = {}) {
  let isBroken = false;
  let asked = 0;
  const chain = {
    getChainId: async () => chainId,
    multicall: async ({ contracts }: { contracts: readonly unknown[] }) => {
      asked += 1;
      if (isBroken) throw new Error('returned no data ("0x")');
      return contracts.length === 3 ? ['USD Coin', '2', at(8)] : facts;
    },
    readContract: async () => helpers.shift(),
  };
  return {
    node: { chain } as unknown as Node,
    asked: () => asked,
    breaks: (now: boolean) => {
      isBroken = now;
    },
  };
}

test('a vault that is not there, or elsewhere than on the chain, is a 503 and not remembered', async () => {
  const none = { status: 503, code: 'VAULT_NOT_FOUND' };
  const elsewhere = chainWith({ chainId: 1 });
  await assert.rejects(fixedOf(elsewhere.node, { vault: VAULT, permitDeposit: null })(), none);

  const { node, asked, breaks } = chainWith();
  const fixed = fixedOf(node, { vault: VAULT, permitDeposit: null });
  breaks(true);
  await assert.rejects(fixed(), none);
  breaks(false);
  assert.equal((await fixed()).vault, VAULT);
  const before = asked();
  assert.equal((await fixed()).shareToken, 'vUSDC');
  assert.equal(asked(), before, 'what is known is not asked for again');
});

test('no permit is offered by a helper that deposits into another vault', async () => {
  const { node } = chainWith({ helpers: [at(9), VAULT] });
  const fixed = fixedOf(node, { vault: VAULT, permitDeposit: PERMIT_DEPOSIT });
  await assert.rejects(fixed(), (error: Error & { status?: number; code?: string }) => {
    assert.deepEqual([error.status, error.code], [503, 'VAULT_NOT_FOUND']);
    assert.match(String(error.cause), /YIELD_PERMIT_DEPOSIT_ADDRESS deposits into another vault/);
    assert.doesNotMatch(error.message, /[A-Z]_[A-Z]/, 'a customer is told no variable of the operator');
    return true;
  });
  assert.equal((await fixed()).permitDeposit, PERMIT_DEPOSIT);
});
