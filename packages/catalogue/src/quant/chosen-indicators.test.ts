import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CHOICES, type Choice, chosenTrail } from './chosen-indicators.ts';
import { type Bars, rateOfChange, simpleAverage, stochastic, williamsR } from './indicators.ts';

// The worked Stochastic Oscillator example that StockCharts publishes: 14-period %K and, smoothed by 3, its average.
const HIGH = [
  127.009, 127.6159, 126.5911, 127.3472, 128.173, 128.4317, 127.3671, 126.422, 126.8995, 126.8498, 125.646,
  125.7156, 127.1582, 127.7154, 127.6855, 128.2228, 128.2725, 128.0934, 128.2725, 127.7353,
];
const LOW = [
  125.3574, 126.1633, 124.9296, 126.0937, 126.8199, 126.4817, 126.034, 124.8301, 126.3921, 125.7156, 124.5615,
  124.5715, 125.0689, 126.8597, 126.6309, 126.8001, 126.7105, 126.8001, 126.1335, 125.9245,
];
/** Only the closes from the fourteenth bar on count. */
const CLOSE = [
  ...new Array(13).fill(126),
  127.2876,
  127.1781,
  128.0138,
  127.1085,
  127.7253,
  127.0587,
  127.3273,
];

function upTo(count: number) {
  return { high: HIGH.slice(0, count), low: LOW.slice(0, count), close: CLOSE.slice(0, count) };
}
const voteOf = (chosen: readonly Choice[], bars: Bars) => {
  const last = chosenTrail(chosen, bars).at(-1);
  assert(last !== undefined);
  return last;
};
const near = (actual: number | null, expected: number, within: number) =>
  assert.ok(actual !== null && Math.abs(actual - expected) <= within, `${actual} is not ${expected}`);

describe('chosen indicators', () => {
  it('give the published stochastic series, and %R beside it', () => {
    const published = [70.4382, 67.6089, 89.2021, 65.8106, 81.7477, 64.5238, 74.5298];
    published.forEach((k, index) => {
      near(stochastic(upTo(14 + index), 14, 1), k, 0.01);
      near(williamsR(upTo(14 + index), 14), k - 100, 0.01);
    });
    near(stochastic(upTo(16), 14, 3), 75.7497, 0.01);
    near(stochastic(upTo(17), 14, 3), 74.2072, 0.01);
    assert.equal(stochastic(upTo(15), 14, 3), null);
  });

  it('have no %K in an empty range', () => {
    const still = new Array(20).fill(5);
    assert.equal(williamsR({ high: still, low: still, close: still }, 14), null);
  });

  it('average and compare by hand', () => {
    assert.equal(simpleAverage([1, 2, 3, 6], 3), 11 / 3);
    assert.equal(simpleAverage([1, 2], 3), null);
    near(rateOfChange([100, 90, 105], 2), 5, 1e-12);
    assert.equal(rateOfChange([100, 90], 2), null);
  });

  it('count the same each, and an indicator without a value for neither side', () => {
    const close = Array.from({ length: 250 }, (_, index) => 100 + index);
    const bars = { close, high: close.map((value) => value + 1), low: close.map((value) => value - 1) };
    const rising = voteOf(['trend', 'sma', 'roc', 'rsi'], bars);
    assert.deepEqual(
      [rising.signal, rising.score, rising.weight, rising.votes.map(({ vote }) => vote)],
      ['BUY', 0.5, 0.25, [1, 1, -1, 1]],
    );
    assert.equal(voteOf(['rsi', 'atr'], bars).signal, 'SELL');
    const few = { close: close.slice(0, 60), high: close.slice(0, 60), low: close.slice(0, 60) };
    const lame = voteOf(['trend', 'sma'], few);
    assert.deepEqual([lame.score, lame.votes[0]?.vote], [0.5, null]);
    assert.throws(() => voteOf(['atr'], bars));
    assert.equal(voteOf([...CHOICES], bars).votes.length, CHOICES.length);
  });

  it('say at each bar what that bar and those before it say, whatever comes after', () => {
    const close = Array.from({ length: 240 }, (_, at) => 100 + 9 * Math.sin(at / 6) + 2 * Math.sin(at * 2.3));
    const bars = { close, high: close.map((value) => value + 1), low: close.map((value) => value - 1) };
    const trail = chosenTrail(CHOICES, bars);
    for (const count of [1, 13, 16, 50, 120, 200, 240]) {
      const known = {
        close: close.slice(0, count),
        high: bars.high.slice(0, count),
        low: bars.low.slice(0, count),
      };
      assert.deepEqual(voteOf(CHOICES, known), trail[count - 1], `of ${count} bars`);
    }
  });
});
