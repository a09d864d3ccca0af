import {
  type Bars,
  bollinger,
  ema,
  macd,
  rateOfChange,
  rsi,
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
 * Lets the chosen indicators vote with equal weights.
 *
 * @param atr14 from the same bars; it is needed for the stop anyway
 * @throws when none of those chosen votes
 */
export function voteOf(chosen: readonly Choice[], bars: Bars, atr14: number | null): ChosenBallot {
  const voters = chosen.filter((choice) => choice !== 'atr').length;
  if (voters === 0) throw new Error('none of the chosen indicators votes');
  const votes = CHOICES.filter((choice) => chosen.includes(choice)).map((indicator): ChosenVote => {
    if (indicator === 'atr') return { indicator, value: atr14, vote: null };
    return { indicator, ...READINGS[indicator](bars) };
  });
  const score = votes.reduce((sum, { vote }) => sum + (vote ?? 0), 0) / voters;
  const signal = score >= CHOSEN_THRESHOLD ? 'BUY' : score <= -CHOSEN_THRESHOLD ? 'SELL' : 'HOLD';
  return { signal, score: Math.round(score * 1e9) / 1e9, weight: 1 / voters, votes };
}

type Reading = Pick<ChosenVote, 'value' | 'vote'>;

const READINGS: Readonly<Record<Exclude<Choice, 'atr'>, (bars: Bars) => Reading>> = {
  trend({ close }) {
    const [fast, slow] = [ema(close, 50), ema(close, 200)];
    return following(fast === null || slow === null ? null : fast / slow - 1);
  },
  sma({ close }) {
    const average = simpleAverage(close, 50);
    const last = close.at(-1);
    return following(average === null || last === undefined ? null : last / average - 1);
  },
  macd: ({ close }) => following(macd(close)?.histogram ?? null),
  rsi: ({ close }) => returning(rsi(close, 14), 30, 70),
  bollinger: ({ close }) => returning(bollinger(close, 20)?.percentB ?? null, 0, 1),
  stochastic: (bars) => returning(stochastic(bars, 14, 3), 20, 80),
  williams: (bars) => returning(williamsR(bars, 14), -80, -20),
  roc: ({ close }) => following(rateOfChange(close, 12)),
};

/** Above zero is up. */
function following(value: number | null): Reading {
  return { value, vote: value === null ? null : value > 0 ? 1 : value < 0 ? -1 : 0 };
}

/** Beyond a bound, a return is expected. */
function returning(value: number | null, low: number, high: number): Reading {
  return { value, vote: value === null ? null : value < low ? 1 : value > high ? -1 : 0 };
}
