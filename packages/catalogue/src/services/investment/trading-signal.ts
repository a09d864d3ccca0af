import { text } from '@farebox/core/service/fields';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { CHOICES, CHOSEN_THRESHOLD, type Choice, chosenTrail, RULES } from '../../quant/chosen-indicators.ts';
import { atrTrail } from '../../quant/indicators.ts';
import { positionOf, REWARD_TO_RISK, STOP_ATR } from '../../quant/trade-signal.ts';
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

const SPELLINGS: Readonly<Record<string, Choice>> = {
  ema: 'trend',
  ema50: 'trend',
  ema200: 'trend',
  ma: 'sma',
  sma50: 'sma',
  movingaverage: 'sma',
  rsi14: 'rsi',
  bb: 'bollinger',
  bbands: 'bollinger',
  bollingerbands: 'bollinger',
  stoch: 'stochastic',
  stochasticoscillator: 'stochastic',
  williamsr: 'williams',
  wpr: 'williams',
  momentum: 'roc',
  rateofchange: 'roc',
  atr14: 'atr',
};

/** A name as callers write it: in any case, with or without spaces, dashes and a percent sign. */
function choice(written: unknown): unknown {
  if (typeof written !== 'string') return written;
  const plain = written.toLowerCase().replace(/[^a-z0-9]/g, '');
  return SPELLINGS[plain] ?? plain;
}

const list = (value: unknown) => (typeof value === 'string' ? value.split(',') : value);
const price = z.number().nullable();
const word = (vote: number | null) =>
  vote === null
    ? ('NONE' as const)
    : vote > 0
      ? ('BUY' as const)
      : vote < 0
        ? ('SELL' as const)
        : ('NEUTRAL' as const);

export default defineService({
  path: 'trading-signal',
  name: 'Trading Signal',
  tag: 'Investment',
  priceUsd: '1.00',
  summary:
    'A signal for a pair from the indicators you choose: each with its value and vote, entry, target and stop.',
  keywords:
    'technical analysis indicator indicators rsi macd bollinger ema sma moving average stochastic adx oscillator overbought oversold chart signal buy sell pair entry strategy crossover',
  input: z.object({
    pair: text(60, 'A pair (ETH/USDT) or a ticker (ETH) that an exchange lists'),
    timeframe: z
      .preprocess(lower, z.enum(['1m', '5m', '15m', '1h', '4h', '1d']))
      .default('1h')
      .describe('Length of a candle'),
    indicators: z
      .preprocess(list, z.array(z.preprocess(choice, z.enum(CHOICES))).max(20))
      .transform((chosen) => (chosen.length === 0 ? [...CHOICES] : [...new Set(chosen)]))
      .refine((chosen) => chosen.some((one) => one !== 'atr'), 'must name one that votes: atr alone does not')
      .default([...CHOICES])
      .describe(`Those that vote, with equal weights: any of ${CHOICES.join(', ')}; all unless given`),
    riskLevel: z
      .preprocess(riskWord, z.enum(['low', 'medium', 'high']))
      .default('medium')
      .describe('Distance of the stop: 1.5, 2 or 3 average true ranges'),
  }),
  output: z.object({
    signal: z
      .enum(['BUY', 'SELL', 'HOLD'])
      .describe('What the indicators come to; HOLD too where the target is nearer than a round trip costs'),
    confidence: z.number().min(0).max(100).describe(CONFIDENCE_WORDS),
    record: signalRecord.describe('What the same rule would have earned on the candles that were read'),
    score: z.number().min(-1).max(1).describe('Mean of the votes, -1 (down) to 1 (up)'),
    threshold: z.number().describe('The score from which on there is a signal'),
    holdReason: z.string().nullable().describe('Why it is HOLD; null for BUY and SELL'),
    takerFeePercent: z.number().describe('Fee of one trade that was reckoned with, in percent'),
    entryPrice: z.number().describe('The last finished close, in the quote currency'),
    targetPrice: price.describe('Null for HOLD'),
    stopLoss: price.describe('Null for HOLD'),
    riskReward: price.describe('Distance of the target over distance of the stop'),
    technicalIndicators: z
      .array(
        z.object({
          indicator: z.enum(CHOICES).describe('The indicator'),
          value: z
            .number()
            .nullable()
            .describe('At the last finished candle; trend and sma as a fraction of distance'),
          signal: z.enum(['BUY', 'SELL', 'NEUTRAL', 'NONE']).describe('What it says; NONE: it is not known'),
          weight: z.number().describe('What it counts'),
          because: z.string().describe('Why, in a sentence'),
        }),
      )
      .describe('What each indicator says'),
    reasoning: z.string().describe('Why, in a sentence'),
    pair: z.string().describe('The pair that was read'),
    exchange: z.string().describe('Where the candles are from'),
    timeframe: z.string().describe('Length of one candle'),
    riskLevel: z.string().describe('As asked: how far away the stop is'),
    bars: z.number().int().describe('Finished candles that were read'),
    asOf: z.string().describe('When the last finished candle closed (ISO 8601)'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { pair: 'ETH/USDT', timeframe: '4h', indicators: ['rsi', 'macd', 'bollinger', 'trend'] },
  aliases: {
    symbol: 'pair',
    token: 'pair',
    tokenSymbol: 'pair',
    tradingPair: 'pair',
    interval: 'timeframe',
    risk: 'riskLevel',
    riskTolerance: 'riskLevel',
    indicator: 'indicators',
  },
  needs: [['binance', 'kraken', 'coinbase']],
  async run({ pair: written, timeframe, indicators, riskLevel }, { upstreams, nowMs }) {
    const read = await signalCandles(written, timeframe, upstreams, nowMs(), 'pair');
    const { last, exchange, pair, candles, source, notes } = read;
    const atrs = atrTrail(read, 14);
    const ballots = chosenTrail(indicators, read);
    const [atr14, ballot] = [atrs.at(-1), ballots.at(-1)];
    if (!atr14 || ballot === undefined) {
      throw noAnswer(
        'NO_MOVEMENT',
        `${pair.base}/${pair.quote} did not move: there is nothing to trade on.`,
        'pair',
      );
    }
    const { signal: voted, score, weight, votes } = ballot;
    const takerFeePercent = TAKER_FEES_PERCENT[exchange];
    const positionAt = (signal: typeof voted, entry: number, range: number) =>
      positionOf({ signal, threshold: CHOSEN_THRESHOLD }, entry, range, riskLevel, takerFeePercent);
    const position = positionAt(voted, last.close, atr14);
    const { signal, holdReason } = position;
    const { target: targetPrice, stopLoss } = shownLevels(position, notes, 'entryPrice');
    const positions = candles.map(({ close }, at) => {
      const [then, range] = [ballots[at], atrs[at]];
      return then === undefined || !range ? null : positionAt(then.signal, close, range);
    });
    const { record, confidence } = recordOnCandles(read, positions, takerFeePercent);
    const count = (side: number) => votes.filter(({ vote }) => vote === side).length;
    for (const { indicator, value } of votes) {
      if (value === null) notes.push(`${indicator} has no value here: the price did not move enough.`);
    }
    const asOf = new Date(last.closeMs).toISOString();
    return pricedAnswer(
      {
        signal,
        confidence,
        record,
        score,
        threshold: CHOSEN_THRESHOLD,
        holdReason,
        takerFeePercent,
        entryPrice: last.close,
        targetPrice,
        stopLoss,
        riskReward: targetPrice === null || stopLoss === null ? null : REWARD_TO_RISK,
        technicalIndicators: votes.map(({ indicator, value, vote }) => ({
          indicator,
          value,
          signal: word(vote),
          weight: indicator === 'atr' ? 0 : weight,
          because: RULES[indicator],
        })),
        reasoning: `Of ${votes.filter(({ indicator }) => indicator !== 'atr').length} votes ${count(1)} are up, ${count(-1)} down; their mean is ${score}, and ±${CHOSEN_THRESHOLD} makes a signal.${holdReason === null ? '' : ` ${holdReason}`}`,
        pair: `${pair.base}/${pair.quote}`,
        exchange,
        timeframe,
        riskLevel,
        bars: candles.length,
        asOf,
        disclaimer: `Information as of ${asOf}, by the rules in technicalIndicators. Not advice, and no promise about future prices.`,
      },
      {
        method:
          `Equal votes of ${indicators.join(', ')} at the last finished candle; signal from ±${CHOSEN_THRESHOLD}; stop ` +
          `${STOP_ATR[riskLevel]} × ATR 14 (Wilder) from the last close, target ${REWARD_TO_RISK} times as far; ` +
          `HOLD where that is nearer than the taker fees of both trades (${takerFeePercent} % each). ${RECORD_METHOD}`,
        sources: [source],
        notes,
      },
    );
  },
});
