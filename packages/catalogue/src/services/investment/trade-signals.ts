import { text } from '@farebox/core/service/fields';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import {
  indicatorTrail,
  positionOf,
  REWARD_TO_RISK,
  SIGNAL_THRESHOLD,
  STOP_ATR,
  vote,
  WEIGHTS,
} from '../../quant/trade-signal.ts';
import { defineService } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import { lower, riskWord, shownLevels, signalCandles } from '../shared/market/signal-candles.ts';
import {
  CONFIDENCE_WORDS,
  RECORD_METHOD,
  recordOnCandles,
  signalRecord,
} from '../shared/market/signal-record.ts';
import { TAKER_FEES_PERCENT } from '../shared/market/trading-venues.ts';

const number = z.number().nullable();

export default defineService({
  path: 'trade-signals',
  name: 'Trade Signals',
  tag: 'Investment',
  priceUsd: '0.75',
  summary:
    'BUY, SELL or HOLD for a pair from a published indicator vote, with entry, target and stop from its volatility.',
  keywords:
    'buy sell hold trade trading signal signals advice recommendation should entry target stop loss take profit bitcoin btc eth crypto coin now time position long short day swing risk level entry point dip overpriced undervalued',
  input: z.object({
    token: text(60, 'A ticker (ETH) or a pair (ETH/USDT) that an exchange lists').default('BTC/USDT'),
    timeframe: z
      .preprocess(lower, z.enum(['5m', '15m', '1h', '4h', '1d']))
      .default('1h')
      .describe('Length of a candle'),
    riskLevel: z
      .preprocess(riskWord, z.enum(['low', 'medium', 'high']))
      .default('medium')
      .describe('Distance of the stop: 1.5, 2 or 3 average true ranges'),
  }),
  output: z.object({
    signal: z
      .enum(['BUY', 'SELL', 'HOLD'])
      .describe('What the votes come to; HOLD too where the target is nearer than a round trip costs'),
    entry: z.number().describe('The last finished close, in the quote currency'),
    target: number.describe('Null for HOLD'),
    stopLoss: number.describe('Null for HOLD'),
    confidence: z.number().min(0).max(100).describe(CONFIDENCE_WORDS),
    record: signalRecord.describe('What the same rule would have earned on the candles that were read'),
    riskReward: number.describe('Distance of the target over distance of the stop'),
    score: z.number().min(-1).max(1).describe('Weighted sum of the votes, -1 (down) to 1 (up)'),
    threshold: z.number().describe('The score from which on there is a signal'),
    holdReason: z.string().nullable().describe('Why it is HOLD; null for BUY and SELL'),
    takerFeePercent: z.number().describe('Fee of one trade that was reckoned with, in percent'),
    votes: z
      .array(
        z.object({
          indicator: z.enum(['trend', 'macd', 'rsi', 'bollinger']).describe('The indicator'),
          vote: z
            .number()
            .int()
            .min(-1)
            .max(1)
            .nullable()
            .describe('1 buy, -1 sell, 0 neither; null: not known'),
          weight: z.number().describe('What it counts'),
          because: z.string().describe('Why, in a sentence'),
        }),
      )
      .describe('What each indicator says'),
    indicators: z
      .object({
        rsi14: number.describe('Relative strength index over 14 candles, 0 to 100'),
        macd: z
          .object({
            macd: z.number().describe('Difference of the two averages'),
            signal: z.number().describe('Its own average'),
            histogram: z.number().describe('macd less signal'),
          })
          .nullable()
          .describe('MACD 12/26/9'),
        ema20: number.describe('Exponential average of 20 closes'),
        ema50: number.describe('Exponential average of 50 closes'),
        ema200: number.describe('Exponential average of 200 closes'),
        atr14: number.describe('Average true range of 14 candles'),
        bollinger: z
          .object({
            upper: z.number().describe('Upper band'),
            middle: z.number().describe('Middle band'),
            lower: z.number().describe('Lower band'),
            percentB: number.describe('Where the close lies between the bands: 0 lower, 1 upper'),
          })
          .nullable()
          .describe('20 bars, two deviations'),
      })
      .describe('The values of the last candle'),
    token: z.string().describe('The pair'),
    pair: z.string().describe('The pair that was read'),
    exchange: z.string().describe('Where the candles are from'),
    timeframe: z.string().describe('Length of one candle'),
    riskLevel: z.string().describe('As asked: how far away the stop is'),
    bars: z.number().int().describe('Finished candles that were read'),
    asOf: z.string().describe('When the last finished candle closed (ISO 8601)'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { token: 'BTC/USDT', timeframe: '1h', riskLevel: 'medium' },
  aliases: {
    symbol: 'token',
    pair: 'token',
    tokenSymbol: 'token',
    address: 'token',
    tokenAddress: 'token',
    interval: 'timeframe',
    risk: 'riskLevel',
    riskTolerance: 'riskLevel',
  },
  needs: [['binance', 'kraken', 'coinbase']],
  async run({ token, timeframe, riskLevel }, { upstreams, nowMs }) {
    const read = await signalCandles(token, timeframe, upstreams, nowMs(), 'token');
    const { last, exchange, pair, candles, source, notes } = read;
    const trail = indicatorTrail(read);
    const indicators = trail.at(-1);
    if (indicators === undefined || !indicators.atr14) {
      throw noAnswer(
        'NO_MOVEMENT',
        `${pair.base}/${pair.quote} did not move: there is nothing to trade on.`,
        'token',
      );
    }
    const { signal: voted, score, votes } = vote(indicators);
    const takerFeePercent = TAKER_FEES_PERCENT[exchange];
    const positionAt = (signal: typeof voted, entry: number, atr14: number) =>
      positionOf({ signal, threshold: SIGNAL_THRESHOLD }, entry, atr14, riskLevel, takerFeePercent);
    const position = positionAt(voted, last.close, indicators.atr14);
    const { signal, holdReason } = position;
    const { target, stopLoss } = shownLevels(position, notes, 'entry');
    const positions = candles.map(({ close }, at) => {
      const then = trail[at];
      return then?.atr14 ? positionAt(vote(then).signal, close, then.atr14) : null;
    });
    const { record, confidence } = recordOnCandles(read, positions, takerFeePercent);
    return pricedAnswer(
      {
        signal,
        entry: last.close,
        target,
        stopLoss,
        confidence,
        record,
        riskReward: target === null || stopLoss === null ? null : REWARD_TO_RISK,
        score,
        threshold: SIGNAL_THRESHOLD,
        holdReason,
        takerFeePercent,
        votes,
        indicators,
        token,
        pair: `${pair.base}/${pair.quote}`,
        exchange,
        timeframe,
        riskLevel,
        bars: candles.length,
        asOf: new Date(last.closeMs).toISOString(),
        disclaimer: 'A mechanical reading of past prices. Not advice, and no promise about future prices.',
      },
      {
        method:
          `Vote of EMA 50/200 trend (${WEIGHTS.trend}), MACD 12/26/9 histogram (${WEIGHTS.macd}), RSI 14 beyond 30/70 ` +
          `(${WEIGHTS.rsi}) and Bollinger 20/2 breaks (${WEIGHTS.bollinger}); signal from ±${SIGNAL_THRESHOLD}; stop ` +
          `${STOP_ATR[riskLevel]} × ATR 14 (Wilder) from the last close, target ${REWARD_TO_RISK} times as far; ` +
          `HOLD where that is nearer than the taker fees of both trades (${takerFeePercent} % each). ${RECORD_METHOD}`,
        sources: [source],
        notes,
      },
    );
  },
});
