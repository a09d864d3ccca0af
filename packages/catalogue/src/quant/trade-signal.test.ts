import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exits, type Indicators, indicatorsOf, vote, WEIGHTS } from './trade-signal.ts';

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
    const ballot = vote(
      indicatorsOf({ close, high: close.map((value) => value + 1), low: close.map((value) => value - 1) }),
    );
    assert.equal(ballot.votes.find(({ indicator }) => indicator === 'trend')?.vote, 1);
    assert.equal(ballot.votes.find(({ indicator }) => indicator === 'rsi')?.vote, -1);
  });
});

function pick({ signal, score }: ReturnType<typeof vote>): [string, number] {
  return [signal, score];
}
