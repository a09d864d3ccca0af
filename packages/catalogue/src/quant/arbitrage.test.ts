import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cross, offersOf } from './arbitrage.ts';

const near = (actual: number | undefined, expected: number) =>
  assert.ok(actual !== undefined && Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);
const FREE = { buy: 0, sell: 0 };

describe('crossing two books', () => {
  it('takes what gains after fees and leaves the rest, worked by hand', () => {
    const asks = [
      { priceUsd: 100, size: 1 },
      { priceUsd: 101, size: 2 },
      { priceUsd: 103, size: 5 },
    ];
    const bids = [
      { priceUsd: 104, size: 2 },
      { priceUsd: 102.5, size: 10 },
    ];
    // With 0.1 % and 0.2 %: unit costs 100.1, 101.101, 103.103; unit proceeds 103.792, 102.295.
    const made = cross(asks, bids, { buy: 0.001, sell: 0.002 }, 1_000);
    near(made?.size, 3);
    near(made?.costUsd, 100 + 2 * 101);
    near(made?.proceedsUsd, 2 * 104 + 102.5);
    near(made?.feesUsd, 0.001 * 302 + 0.002 * 310.5);
    near(made?.profitUsd, 310.5 - 302 - 0.302 - 0.621);
    assert.deepEqual([made?.buyLevels, made?.sellLevels, made?.limitedBy], [2, 2, 'price']);
  });

  it('spends no more than the capital, fees included', () => {
    const made = cross(
      [{ priceUsd: 100, size: 50 }],
      [{ priceUsd: 110, size: 50 }],
      { buy: 0.01, sell: 0 },
      1_010,
    );
    near(made?.size, 10);
    assert.equal(made?.limitedBy, 'capital');
  });

  it('shows the loss of the first unit where nothing gains, and says when a book ends', () => {
    const lost = cross(
      [{ priceUsd: 100, size: 3 }],
      [
        { priceUsd: 99, size: 2 },
        { priceUsd: 98, size: 9 },
      ],
      FREE,
      1e6,
    );
    near(lost?.profitUsd, -2);
    assert.deepEqual([lost?.size, lost?.limitedBy], [2, 'price']);
    assert.equal(
      cross([{ priceUsd: 100, size: 3 }], [{ priceUsd: 110, size: 20 }], FREE, 1e6)?.limitedBy,
      'depth',
    );
    assert.equal(cross([], [{ priceUsd: 1, size: 1 }], FREE, 1), null);
  });

  it('never gains more by more fees, and never loses by more depth', () => {
    const offers = fc.array(
      fc.record({
        priceUsd: fc.double({ min: 90, max: 110, noNaN: true }),
        size: fc.double({ min: 0.01, max: 5, noNaN: true }),
      }),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(offers, offers, fc.double({ min: 0, max: 0.01, noNaN: true }), (one, other, fee) => {
        const asks = one.toSorted((a, b) => a.priceUsd - b.priceUsd);
        const bids = other.toSorted((a, b) => b.priceUsd - a.priceUsd);
        const [free, dear] = [cross(asks, bids, FREE, 500), cross(asks, bids, { buy: fee, sell: fee }, 500)];
        assert(free !== null && dear !== null);
        assert(dear.profitUsd <= Math.max(free.profitUsd, 0) + 1e-6);
        assert(free.costUsd <= 500 + 1e-6 && dear.costUsd <= 500 + 1e-6);
        if (asks[0] !== undefined && bids[0] !== undefined && bids[0].priceUsd > asks[0].priceUsd)
          assert(free.profitUsd > 0);
      }),
      { numRuns: 300 },
    );
  });

  it('makes offers of whole amounts, and stops where more money brings no more', () => {
    assert.deepEqual(
      offersOf([
        { size: 1, usd: 100 },
        { size: 3, usd: 310 },
        { size: 3, usd: 400 },
      ]),
      [
        { priceUsd: 100, size: 1 },
        { priceUsd: 105, size: 2 },
      ],
    );
  });
});
