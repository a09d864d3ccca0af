import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exits, type Indicators, indicatorTrail, vote, WEIGHTS } from './trade-signal.ts';

const NEUTRAL: Indicators = {
  rsi14: 50,
  macd: { macd: 0, signal: 0, histogram: 0 },
  ema20: 100,
  ema50: 100,
  ema200: 100,
  atr14: 2,
  bollinger: { upper: 110, middle: 100, lower: 90, percentB: 0.5 },
};
const up = { macd: 1, signal: 0, histogram: 1 };
const down = { macd: -1, signal: 0, histogram: -1 };

describe('trade signal', () => {
  it('has weights that sum to 1', () => {
    assert.equal(
      Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0),
      1,
    );
  });

  it('follows a trend that momentum confirms, both ways', () => {
    assert.deepEqual(pick(vote({ ...NEUTRAL, ema50: 101, macd: up })), ['BUY', 0.6]);
    assert.deepEqual(pick(vote({ ...NEUTRAL, ema50: 99, macd: down })), ['SELL', -0.6]);
  });

  it('holds when trend and momentum disagree, and when a rise is overbought', () => {
    assert.deepEqual(pick(vote({ ...NEUTRAL, ema50: 101, macd: down })), ['HOLD', 0.1]);
    assert.deepEqual(pick(vote({ ...NEUTRAL, ema50: 101, macd: up, rsi14: 75 })), ['HOLD', 0.4]);
  });

  it('lets an indicator without a value abstain', () => {
    const ballot = vote({ ...NEUTRAL, rsi14: null, ema200: null });
    assert.deepEqual(pick(ballot), ['HOLD', 0]);
    assert.deepEqual(
      ballot.votes.filter(({ vote }) => vote === null).map(({ indicator }) => indicator),
      ['trend', 'rsi'],
    );
  });

  it('puts stop and target on the right sides, by risk level', () => {
    assert.deepEqual(exits('BUY', 100, 2, 'low'), { stopLoss: 97, target: 106 });
    assert.deepEqual(exits('SELL', 100, 2, 'medium'), { stopLoss: 104, target: 92 });
    assert.deepEqual(exits('BUY', 100, 2, 'high'), { stopLoss: 94, target: 112 });
  });

  it('sees a steady rise: trend up, and overbought', () => {
    const close = Array.from({ length: 250 }, (_, index) => 100 + index);
    const bars = { close, high: close.map((value) => value + 1), low: close.map((value) => value - 1) };
    const last = indicatorTrail(bars).at(-1);
    assert(last !== undefined);
    const ballot = vote(last);
    assert.equal(ballot.votes.find(({ indicator }) => indicator === 'trend')?.vote, 1);
    assert.equal(ballot.votes.find(({ indicator }) => indicator === 'rsi')?.vote, -1);
  });

  it('says at each bar what that bar and those before it say, whatever comes after', () => {
    const close = Array.from({ length: 260 }, (_, at) => 100 + 8 * Math.sin(at / 7) + 3 * Math.sin(at * 1.7));
    const bars = { close, high: close.map((value) => value + 1), low: close.map((value) => value - 1) };
    const trail = indicatorTrail(bars);
    for (const count of [1, 15, 34, 50, 199, 200, 231, 260]) {
      const known = {
        close: close.slice(0, count),
        high: bars.high.slice(0, count),
        low: bars.low.slice(0, count),
      };
      assert.deepEqual(indicatorTrail(known).at(-1), trail[count - 1], `of ${count} bars`);
    }
    const still = indicatorTrail({ close: [5, 5, 5], high: [5, 5, 5], low: [5, 5, 5] });
    assert.deepEqual(
      still.map(({ rsi14 }) => rsi14),
      [null, null, null],
    );
  });
});

function pick({ signal, score }: ReturnType<typeof vote>): [string, number] {
  return [signal, score];
}
