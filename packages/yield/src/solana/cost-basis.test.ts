import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { costBasisOf, type Move, yieldIn } from './cost-basis.ts';

const deposit = (slot: bigint, collateral: bigint, usdc: bigint, heldBefore: bigint): Move => ({
  kind: 'deposit',
  slot,
  collateral,
  usdc,
  heldBefore,
  heldAfter: heldBefore + collateral,
});
const withdrawal = (slot: bigint, collateral: bigint, usdc: bigint, heldBefore: bigint): Move => ({
  kind: 'withdrawal',
  slot,
  collateral,
  usdc,
  heldBefore,
  heldAfter: heldBefore - collateral,
});

describe('the cost of what a wallet holds', () => {
  it('is what it paid, less the part of what it took out, in whichever order its transactions are found', () => {
    const moves = [
      deposit(10n, 1_000n, 1_100n, 0n),
      withdrawal(20n, 250n, 280n, 1_000n),
      deposit(30n, 100n, 115n, 750n),
    ];
    const wanted = { collateral: 850n, usdc: 940n };
    assert.deepEqual(costBasisOf(moves, 850n), wanted);
    assert.deepEqual(costBasisOf(moves.toReversed(), 850n), wanted);
  });

  it('puts transactions of one slot in the order that what they held says', () => {
    const moves = [
      withdrawal(10n, 600n, 660n, 1_000n),
      deposit(10n, 1_000n, 1_100n, 0n),
      deposit(10n, 600n, 700n, 400n),
    ];
    // 1100 for 1000; 400 of it is left, for 440; and 600 for 700.
    assert.deepEqual(costBasisOf(moves, 1_000n), { collateral: 1_000n, usdc: 1_140n });
  });

  it('goes with what left elsewhere, before the next transaction and after the last', () => {
    const moves = [deposit(10n, 1_000n, 1_100n, 0n), deposit(20n, 500n, 600n, 400n)];
    // Of the first 1000 were 400 left: 440.
    assert.deepEqual(costBasisOf(moves, 900n), { collateral: 900n, usdc: 1_040n });
    assert.deepEqual(costBasisOf(moves, 450n), { collateral: 450n, usdc: 520n });
    assert.deepEqual(costBasisOf(moves, 0n), { collateral: 0n, usdc: 0n });
  });

  it('does not stay behind when the same transaction sends the collateral away', () => {
    const sent: Move = { ...deposit(10n, 1_000n, 1_100n, 0n), heldAfter: 100n };
    assert.deepEqual(costBasisOf([sent], 100n), { collateral: 100n, usdc: 110n });
    // What it gets back later has no price here.
    assert.deepEqual(costBasisOf([sent], 1_000n), { collateral: 100n, usdc: 110n });
  });

  it('knows nothing of collateral that came from elsewhere', () => {
    assert.deepEqual(costBasisOf([], 700n), { collateral: 0n, usdc: 0n });
    assert.deepEqual(costBasisOf([deposit(10n, 300n, 330n, 700n)], 1_000n), { collateral: 300n, usdc: 330n });
  });
});

describe('the yield in a withdrawal', () => {
  it('is that of the worked example: 995 USDC for a month', () => {
    const basis = { collateral: 856_110_718n, usdc: 995_000_000n };
    const all = { gross: 997_797_573n, burned: 856_110_718n, held: 856_110_718n };
    assert.equal(yieldIn(basis, all), 2_797_573n);
  });

  it('is never below nothing, and never counted on what has no price', () => {
    const basis = { collateral: 500n, usdc: 1_000n };
    assert.equal(yieldIn(basis, { gross: 900n, burned: 500n, held: 500n }), 0n);
    assert.equal(yieldIn({ collateral: 0n, usdc: 0n }, { gross: 900n, burned: 500n, held: 500n }), 0n);
    // Half of what is held has a price of 2; all of it is worth 3: the yield is on that half.
    assert.equal(yieldIn(basis, { gross: 3_000n, burned: 1_000n, held: 1_000n }), 500n);
  });

  it('comes to the same in one withdrawal and in many', () => {
    const one = yieldIn(
      { collateral: 1_000n, usdc: 1_000n },
      { gross: 1_500n, burned: 1_000n, held: 1_000n },
    );
    let basis = { collateral: 1_000n, usdc: 1_000n };
    let [held, all] = [1_000n, 0n];
    const moves = [deposit(1n, 1_000n, 1_000n, 0n)];
    for (let slot = 2n; held > 0n; slot += 1n) {
      all += yieldIn(basis, { gross: 150n, burned: 100n, held });
      moves.push(withdrawal(slot, 100n, 150n, held));
      held -= 100n;
      basis = costBasisOf(moves, held);
    }
    assert.equal(all, one);
  });
});
