import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { leastRate, recordOf, type TradedBars } from './signal-record.ts';
import type { Position } from './trade-signal.ts';

/** Bars as [open, high, low, close]. */
function barsOf(rows: readonly (readonly [number, number, number, number])[]): TradedBars {
  return {
    open: rows.map(([open]) => open),
    high: rows.map(([, high]) => high),
    low: rows.map(([, , low]) => low),
    close: rows.map(([, , , close]) => close),
  };
}
const buy = (stopLoss: number, target: number): Position => ({
  signal: 'BUY',
  stopLoss,
  target,
  holdReason: null,
});
const sell = (stopLoss: number, target: number): Position => ({
  signal: 'SELL',
  stopLoss,
  target,
  holdReason: null,
});
const near = (actual: number | null, expected: number) =>
  assert.ok(actual !== null && Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);

describe('the record of a signal', () => {
  it('earns its target or loses its stop, less the fees of both trades', () => {
    const won = recordOf(
      barsOf([
        [100, 100, 100, 100],
        [101, 103, 99, 102],
        [102, 111, 101, 105],
      ]),
      [buy(95, 110), null, null],
      0,
      0.1,
    );
    assert.deepEqual([won.trades, won.hits, won.hitRatePercent, won.unresolved], [1, 1, 100, false]);
    // 10 of 100, less 0.1 % of 100 and of 110.
    near(won.expectancyPercent, 10 - 0.21);
    near(won.holdingPercent, 5);
    const lost = recordOf(
      barsOf([
        [100, 100, 100, 100],
        [100, 106, 99, 103],
      ]),
      [sell(105, 90), null],
      0,
      0.1,
    );
    assert.deepEqual([lost.trades, lost.hits], [1, 0]);
    near(lost.expectancyPercent, -5 - 0.205);
  });

  it('counts a bar that reaches both levels as stopped, and leaves at the open beyond a level', () => {
    const both = recordOf(
      barsOf([
        [100, 100, 100, 100],
        [100, 111, 94, 100],
      ]),
      [buy(95, 110), null],
      0,
      0,
    );
    near(both.expectancyPercent, -5);
    const gapped = recordOf(
      barsOf([
        [100, 100, 100, 100],
        [90, 91, 89, 90],
      ]),
      [buy(95, 110), null],
      0,
      0,
    );
    near(gapped.expectancyPercent, -10);
    const lucky = recordOf(
      barsOf([
        [100, 100, 100, 100],
        [80, 81, 79, 80],
      ]),
      [sell(105, 90), null],
      0,
      0,
    );
    near(lucky.expectancyPercent, 20);
  });

  it('holds one position at a time, and counts none that is still open', () => {
    const flat = [100, 101, 99, 100] as const;
    const rows = [flat, flat, flat, [100, 111, 99, 110], flat, flat] as const;
    const always = rows.map(() => buy(95, 110));
    const record = recordOf(barsOf(rows), always, 0, 0);
    // In at the first bar and out at the fourth, whose own signal opens the second trade.
    assert.deepEqual([record.trades, record.unresolved], [1, true]);
    assert.equal(record.expectancyErrorPercent, null);
    const none = recordOf(
      barsOf(rows),
      rows.map(() => null),
      0,
      0,
    );
    assert.deepEqual(
      [none.trades, none.hitRatePercent, none.expectancyPercent, none.unresolved],
      [0, null, null, false],
    );
    // A level below zero is not shown, and not traded.
    assert.equal(recordOf(barsOf(rows), [sell(300, -5)], 0, 0).trades, 0);
    // Signals before the first bar that may be traded on are none, and one at the last bar is not open yet.
    const last = recordOf(barsOf(rows), always, 5, 0);
    assert.deepEqual([last.trades, last.unresolved], [0, false]);
  });

  it('calls a trade that earns less than its fees no hit, and states the error of the mean', () => {
    const rows = [
      [100, 100, 100, 100],
      [100, 100.1, 100, 100],
      [100, 100, 98, 100],
      [100, 104, 100, 100],
    ] as const;
    const record = recordOf(barsOf(rows), [buy(99, 100.1), buy(98, 110), buy(90, 104), null], 0, 0.1);
    assert.deepEqual([record.trades, record.hits], [3, 1]);
    const [a, b, c] = [0.1 - 0.2001, -2 - 0.198, 4 - 0.204];
    const mean = (a + b + c) / 3;
    near(record.expectancyPercent, mean);
    near(
      record.expectancyErrorPercent,
      Math.sqrt(((a - mean) ** 2 + (b - mean) ** 2 + (c - mean) ** 2) / 2 / 3),
    );
  });

  it('trusts a rate by how often it was tried, as the published intervals do', () => {
    // Lower ends of Wilson's 95 % interval, as statsmodels' proportion_confint gives them.
    for (const [hits, tries, least] of [
      [8, 10, 0.490162],
      [5, 10, 0.236593],
      [10, 10, 0.722467],
      [0, 10, 0],
    ] as const) {
      assert.ok(Math.abs(leastRate(hits, tries) - least) < 1e-5, `${hits} of ${tries}`);
    }
    assert.equal(leastRate(0, 0), 0);
    assert.ok(leastRate(1, 1) < 0.25, 'one win is no record');
  });
});
