import {
  atrTrail,
  type Bars,
  bollingerTrail,
  emaTrail,
  macdTrail,
  rateOfChange,
  rsiTrail,
  simpleAverage,
  stochastic,
  williamsR,
} from './indicators.ts';

/** What a caller may choose from, in the order in which an answer shows them. `atr` measures and does not vote. */
export const CHOICES = [
  'trend',
  'sma',
  'macd',
  'rsi',
  'bollinger',
  'stochastic',
  'williams',
  'roc',
  'atr',
] as const;
export type Choice = (typeof CHOICES)[number];

/** A sum of equally weighted votes at least this far from zero is a signal. */
export const CHOSEN_THRESHOLD = 0.5;

/** How each is read: what makes it vote up (1), down (-1) or for neither (0). */
export const RULES: Readonly<Record<Choice, string>> = {
  trend: 'EMA 50 above EMA 200 votes up, below it down',
  sma: 'a close above the average of 50 closes votes up, below it down',
  macd: 'MACD 12/26/9 above its signal line votes up, below it down',
  rsi: 'RSI 14 below 30 votes up, above 70 down',
  bollinger: 'a close below the lower Bollinger band (20, 2) votes up, above the upper one down',
  stochastic: '%K 14/3 below 20 votes up, above 80 down',
  williams: 'Williams %R 14 below -80 votes up, above -20 down',
  roc: 'a rise over 12 bars votes up, a fall down',
  atr: 'ATR 14 sets stop and target and does not vote',
};

export interface ChosenVote {
  indicator: Choice;
  /** In the unit of the indicator; null when it has no value here. */
  value: number | null;
  vote: -1 | 0 | 1 | null;
}

export interface ChosenBallot {
  signal: 'BUY' | 'SELL' | 'HOLD';
  /** Mean of the votes, -1 to 1; an indicator without a value counts as 0. */
  score: number;
  /** What each vote counts. */
  weight: number;
  votes: ChosenVote[];
}

/**
 * Lets the chosen indicators vote with equal weights, at each bar by that bar and those before it alone.
 *
 * @throws when none of those chosen votes
 */
export function chosenTrail(chosen: readonly Choice[], bars: Bars): ChosenBallot[] {
  const voters = chosen.filter((choice) => choice !== 'atr').length;
  if (voters === 0) throw new Error('none of the chosen indicators votes');
  const read = CHOICES.filter((choice) => chosen.includes(choice)).map((indicator) => ({
    indicator,
    readings: READINGS[indicator](bars),
  }));
  return bars.close.map((_, at) => {
    const votes = read.map(
      ({ indicator, readings }): ChosenVote => ({
        indicator,
        value: readings[at]?.value ?? null,
        vote: readings[at]?.vote ?? null,
      }),
    );
    const score = votes.reduce((sum, { vote }) => sum + (vote ?? 0), 0) / voters;
    const signal = score >= CHOSEN_THRESHOLD ? 'BUY' : score <= -CHOSEN_THRESHOLD ? 'SELL' : 'HOLD';
    return { signal, score: Math.round(score * 1e9) / 1e9, weight: 1 / voters, votes };
  });
}

type Reading = Pick<ChosenVote, 'value' | 'vote'>;

const READINGS: Readonly<Record<Choice, (bars: Bars) => Reading[]>> = {
  trend({ close }) {
    const slow = emaTrail(close, 200);
    return emaTrail(close, 50).map((fast, at) => {
      const beside = slow[at] ?? null;
      return following(fast === null || beside === null ? null : fast / beside - 1);
    });
  },
  sma: ({ close }) =>
    close.map((last, at) => {
      const average = simpleAverage(close, 50, at + 1);
      return following(average === null ? null : last / average - 1);
    }),
  macd: ({ close }) => macdTrail(close).map((at) => following(at?.histogram ?? null)),
  rsi: ({ close }) => rsiTrail(close, 14).map((at) => returning(at, 30, 70)),
  bollinger: ({ close }) => bollingerTrail(close, 20).map((at) => returning(at?.percentB ?? null, 0, 1)),
  stochastic: (bars) => bars.close.map((_, at) => returning(stochastic(bars, 14, 3, at + 1), 20, 80)),
  williams: (bars) => bars.close.map((_, at) => returning(williamsR(bars, 14, at + 1), -80, -20)),
  roc: ({ close }) => close.map((_, at) => following(rateOfChange(close, 12, at + 1))),
  atr: (bars) => atrTrail(bars, 14).map((value) => ({ value, vote: null })),
};

/** Above zero is up. */
function following(value: number | null): Reading {
  return { value, vote: value === null ? null : value > 0 ? 1 : value < 0 ? -1 : 0 };
}

/** Beyond a bound, a return is expected. */
function returning(value: number | null, low: number, high: number): Reading {
  return { value, vote: value === null ? null : value < low ? 1 : value > high ? -1 : 0 };
}
