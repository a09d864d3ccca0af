import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BaseError } from 'viem';
import { searchBack } from './chain-logs.ts';

/** Finds each multiple of 1,000 in a range; refuses ranges wider than the node allows. */
function node(widest: bigint) {
  const asked: bigint[] = [];
  const search = async ({ fromBlock, toBlock }: { fromBlock: bigint; toBlock: bigint }) => {
    asked.push(toBlock - fromBlock + 1n);
    if (toBlock - fromBlock + 1n > widest) throw new BaseError('range too wide');
    const found: bigint[] = [];
    for (let block = fromBlock; block <= toBlock; block++) if (block % 1_000n === 0n) found.push(block);
    return found;
  };
  return { asked, search };
}
const window = { blocks: 10_000n, blocksPerRequest: 4_000n, requests: 12 };

describe('searching logs backwards', () => {
  it('covers the window without gap or overlap, the newest first', async () => {
    const { asked, search } = node(4_000n);
    const { found, fromBlock, isCut } = await searchBack(search, 25_500n, window);
    assert.deepEqual(
      found,
      [25, 24, 23, 22, 21, 20, 19, 18, 17, 16].map((thousand) => BigInt(thousand) * 1_000n),
    );
    assert.deepEqual([fromBlock, isCut, asked], [15_501n, false, [4_000n, 4_000n, 2_000n]]);
  });

  it('takes smaller steps when the node refuses, and says when it did not get far', async () => {
    const { found, fromBlock, isCut } = await searchBack(node(1_000n).search, 25_500n, window);
    assert.deepEqual([found.length, fromBlock, isCut], [10, 15_501n, false]);
    const cut = await searchBack(node(500n).search, 25_500n, window);
    // Three of the twelve requests find the range that is allowed: 4,000, 1,000, 500.
    assert.deepEqual([cut.fromBlock, cut.isCut], [25_501n - 10n * 500n, true]);
  });

  it('stops at the first block of the chain', async () => {
    const { found, fromBlock, isCut } = await searchBack(node(4_000n).search, 1_200n, window);
    assert.deepEqual([found, fromBlock, isCut], [[1_000n, 0n], 0n, false]);
  });

  it('throws when the node allows nothing', async () => {
    await assert.rejects(searchBack(node(0n).search, 25_500n, window), /range too wide/);
  });
});
