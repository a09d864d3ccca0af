/**
 * The questions of the sandbox's two prediction venues. They are invented and neutral, and each is asked again in every period.
 * Some are asked on both venues with different wording, so that there is a spread between venues.
 */

export type Venue = 'polymarket' | 'kalshi';
export type Category =
  | 'crypto'
  | 'economy'
  | 'climate'
  | 'science'
  | 'politics'
  | 'sports'
  | 'culture'
  | 'world';

/** The times to which the wording of a question may refer. */
export interface Occasion {
  /** Such as "December 2026", "Q4 2026" or "2026". */
  period: string;
  /** The last day of the period, such as "December 31, 2026". */
  lastDay: string;
}

/** One yes/no market of an event. Yes means that the measured value ends at or above `low` and below `high`; null is no bound. */
export interface Outcome {
  key: string;
  low: number | null;
  high: number | null;
}

export interface Question {
  id: string;
  category: Category;
  period: 'month' | 'quarter' | 'year';
  /**
   * The value that decides the question. It is either a coin's price at the end of the period, with bounds that are fractions of
   * the price at its start, or a value that is forecast with a mean and a standard deviation.
   */
  measure: { kind: 'price'; coin: string } | { kind: 'forecast'; mean: number; deviation: number };
  outcomes: readonly Outcome[];
  /** Whether exactly one of the outcomes comes true. */
  exclusive: boolean;
  /** The text of a bound, such as "$95,000" or "3.0%". */
  unit: (bound: number) => string;
  /** The mean turnover a day on one venue. */
  turnoverUsd: number;
  polymarket?: {
    slug: string;
    title: (occasion: Occasion) => string;
    /** The question of one market. `bound` is a phrase such as "above $95,000", or empty if the event has one market only. */
    market: (occasion: Occasion, bound: string) => string;
  };
  kalshi?: {
    series: string;
    title: (occasion: Occasion) => string;
    market: (occasion: Occasion, bound: string) => string;
  };
}

const dollars = (bound: number) =>
  `$${bound.toLocaleString('en-US', { maximumFractionDigits: bound < 10 ? 2 : 0 })}`;
const percent = (bound: number) => `${bound.toFixed(1)}%`;
const count = (bound: number) => String(bound);
const above = (key: string, low: number): Outcome => ({ key, low, high: null });
/** A single yes/no market. Yes means that the forecast value ends at zero or above. */
const YES: readonly Outcome[] = [above('YES', 0)];

export const QUESTIONS: readonly Question[] = [
  {
    id: 'bitcoin-quarter',
    category: 'crypto',
    period: 'quarter',
    measure: { kind: 'price', coin: 'bitcoin' },
    outcomes: [above('A', 0.9), above('B', 1), above('C', 1.1)],
    exclusive: false,
    unit: dollars,
    turnoverUsd: 420_000,
    polymarket: {
      slug: 'bitcoin-above-at-quarter-end',
      title: ({ lastDay }) => `Bitcoin above ___ on ${lastDay}?`,
      market: ({ lastDay }, bound) => `Will the price of Bitcoin be ${bound} on ${lastDay}?`,
    },
    kalshi: {
      series: 'KXSYNBTCQ',
      title: ({ period }) => `Bitcoin price at the end of ${period}`,
      market: ({ lastDay }, bound) => `Will Bitcoin be ${bound} on ${lastDay}?`,
    },
  },
  {
    id: 'ether-quarter',
    category: 'crypto',
    period: 'quarter',
    measure: { kind: 'price', coin: 'ethereum' },
    outcomes: [above('A', 0.9), above('B', 1.1)],
    exclusive: false,
    unit: dollars,
    turnoverUsd: 210_000,
    polymarket: {
      slug: 'ethereum-above-at-quarter-end',
      title: ({ lastDay }) => `Ethereum above ___ on ${lastDay}?`,
      market: ({ lastDay }, bound) => `Will the price of Ethereum be ${bound} on ${lastDay}?`,
    },
    kalshi: {
      series: 'KXSYNETHQ',
      title: ({ period }) => `Ethereum price at the end of ${period}`,
      market: ({ lastDay }, bound) => `Will Ethereum be ${bound} on ${lastDay}?`,
    },
  },
  {
    id: 'solana-month',
    category: 'crypto',
    period: 'month',
    measure: { kind: 'price', coin: 'solana' },
    outcomes: [above('A', 0.9), above('B', 1), above('C', 1.15)],
    exclusive: false,
    unit: dollars,
    turnoverUsd: 95_000,
    polymarket: {
      slug: 'solana-above-at-month-end',
      title: ({ lastDay }) => `Solana above ___ on ${lastDay}?`,
      market: ({ lastDay }, bound) => `Will the price of Solana be ${bound} on ${lastDay}?`,
    },
  },
  {
    id: 'gold-month',
    category: 'economy',
    period: 'month',
    measure: { kind: 'price', coin: 'pax-gold' },
    outcomes: [above('A', 0.97), above('B', 1.03)],
    exclusive: false,
    unit: dollars,
    turnoverUsd: 60_000,
    polymarket: {
      slug: 'gold-above-at-month-end',
      title: ({ lastDay }) => `Gold above ___ on ${lastDay}?`,
      market: ({ lastDay }, bound) => `Will gold trade ${bound} an ounce on ${lastDay}?`,
    },
    kalshi: {
      series: 'KXSYNGOLDM',
      title: ({ period }) => `Gold price at the end of ${period}`,
      market: ({ lastDay }, bound) => `Will the gold price be ${bound} on ${lastDay}?`,
    },
  },
  {
    id: 'policy-rate',
    category: 'economy',
    period: 'quarter',
    measure: { kind: 'forecast', mean: 0.25, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 330_000,
    polymarket: {
      slug: 'us-policy-rate-cut',
      title: ({ period }) => `US policy rate cut in ${period}?`,
      market: ({ period }) => `Will the US central bank cut its policy rate in ${period}?`,
    },
    kalshi: {
      series: 'KXSYNRATECUT',
      title: ({ period }) => `US central bank rate cut in ${period}`,
      market: ({ period }) => `Will the US policy rate be cut in ${period}?`,
    },
  },
  {
    id: 'inflation',
    category: 'economy',
    period: 'month',
    measure: { kind: 'forecast', mean: 2.9, deviation: 0.25 },
    outcomes: [above('25', 2.5), above('30', 3), above('35', 3.5)],
    exclusive: false,
    unit: percent,
    turnoverUsd: 85_000,
    polymarket: {
      slug: 'us-inflation-above',
      title: ({ period }) => `US annual inflation in ${period}?`,
      market: ({ period }, bound) => `Will US annual inflation for ${period} be ${bound}?`,
    },
    kalshi: {
      series: 'KXSYNCPIYOY',
      title: ({ period }) => `US inflation, 12 months to ${period}`,
      market: ({ period }, bound) => `Will the US annual inflation rate be ${bound} in ${period}?`,
    },
  },
  {
    id: 'unemployment',
    category: 'economy',
    period: 'month',
    measure: { kind: 'forecast', mean: 4.4, deviation: 0.15 },
    outcomes: [above('43', 4.3), above('45', 4.5), above('47', 4.7)],
    exclusive: false,
    unit: percent,
    turnoverUsd: 40_000,
    kalshi: {
      series: 'KXSYNU3',
      title: ({ period }) => `US unemployment rate in ${period}`,
      market: ({ period }, bound) => `Will the US unemployment rate be ${bound} in ${period}?`,
    },
  },
  {
    id: 'gasoline',
    category: 'economy',
    period: 'month',
    measure: { kind: 'forecast', mean: 3.12, deviation: 0.12 },
    outcomes: [above('300', 3), above('320', 3.2)],
    exclusive: false,
    unit: (bound) => `$${bound.toFixed(2)}`,
    turnoverUsd: 25_000,
    kalshi: {
      series: 'KXSYNGAS',
      title: ({ period }) => `US gasoline price at the end of ${period}`,
      market: ({ lastDay }, bound) => `Will average US gasoline be ${bound} a gallon on ${lastDay}?`,
    },
  },
  {
    id: 'warmest-year',
    category: 'climate',
    period: 'year',
    measure: { kind: 'forecast', mean: -0.5, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 30_000,
    polymarket: {
      slug: 'warmest-year-on-record',
      title: ({ period }) => `Will ${period} be the warmest year on record?`,
      market: ({ period }) => `Will ${period} be the warmest year on record?`,
    },
    kalshi: {
      series: 'KXSYNWARMYEAR',
      title: ({ period }) => `Warmest year on record: ${period}`,
      market: ({ period }) => `Will ${period} be the hottest year on record?`,
    },
  },
  {
    id: 'named-storms',
    category: 'climate',
    period: 'year',
    measure: { kind: 'forecast', mean: 15.5, deviation: 4 },
    outcomes: [
      { key: '0', low: null, high: 12 },
      { key: '12', low: 12, high: 16 },
      { key: '16', low: 16, high: 20 },
      { key: '20', low: 20, high: null },
    ],
    exclusive: true,
    unit: count,
    turnoverUsd: 22_000,
    polymarket: {
      slug: 'atlantic-named-storms',
      title: ({ period }) => `How many named Atlantic storms in ${period}?`,
      market: ({ period }, bound) => `Will there be ${bound} named Atlantic storms in ${period}?`,
    },
    kalshi: {
      series: 'KXSYNSTORMS',
      title: ({ period }) => `Number of Atlantic named storms in ${period}`,
      market: ({ period }, bound) => `Will the Atlantic season of ${period} have ${bound} named storms?`,
    },
  },
  {
    id: 'sea-ice',
    category: 'climate',
    period: 'year',
    measure: { kind: 'forecast', mean: -0.2, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 9_000,
    polymarket: {
      slug: 'arctic-sea-ice-minimum',
      title: ({ period }) => `Arctic sea ice minimum below 4.2 million km2 in ${period}?`,
      market: ({ period }) => `Will the Arctic sea ice minimum of ${period} be below 4.2 million km2?`,
    },
  },
  {
    id: 'city-heat',
    category: 'climate',
    period: 'month',
    measure: { kind: 'forecast', mean: 0.1, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 18_000,
    kalshi: {
      series: 'KXSYNNYCTEMP',
      title: ({ period }) => `New York mean temperature in ${period}`,
      market: ({ period }) => `Will ${period} be warmer than average in New York?`,
    },
  },
  {
    id: 'orbital-launches',
    category: 'science',
    period: 'year',
    measure: { kind: 'forecast', mean: 330, deviation: 18 },
    outcomes: [above('300', 300), above('325', 325), above('350', 350)],
    exclusive: false,
    unit: count,
    turnoverUsd: 27_000,
    polymarket: {
      slug: 'orbital-launches',
      title: ({ period }) => `Orbital launches in ${period}?`,
      market: ({ period }, bound) => `Will ${bound} orbital launches reach space in ${period}?`,
    },
    kalshi: {
      series: 'KXSYNLAUNCH',
      title: ({ period }) => `Number of orbital launches in ${period}`,
      market: ({ period }, bound) => `Will the number of orbital launches be ${bound} in ${period}?`,
    },
  },
  {
    id: 'exoplanets',
    category: 'science',
    period: 'quarter',
    measure: { kind: 'forecast', mean: 0.3, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 5_000,
    polymarket: {
      slug: 'confirmed-exoplanets',
      title: ({ period }) => `100 newly confirmed exoplanets in ${period}?`,
      market: ({ period }) => `Will at least 100 exoplanets be newly confirmed in ${period}?`,
    },
  },
  {
    id: 'earthquake',
    category: 'world',
    period: 'quarter',
    measure: { kind: 'forecast', mean: -0.9, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 14_000,
    polymarket: {
      slug: 'earthquake-magnitude-8',
      title: ({ period }) => `Magnitude 8.0 earthquake in ${period}?`,
      market: ({ period }) => `Will there be an earthquake of magnitude 8.0 or more in ${period}?`,
    },
  },
  {
    id: 'turnout',
    category: 'politics',
    period: 'year',
    measure: { kind: 'forecast', mean: 0.15, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 48_000,
    polymarket: {
      slug: 'sandbox-election-turnout',
      title: ({ period }) => `Turnout above 60% in the sandbox election of ${period}?`,
      market: ({ period }) => `Will turnout in the sandbox general election of ${period} be above 60%?`,
    },
    kalshi: {
      series: 'KXSYNTURNOUT',
      title: ({ period }) => `Sandbox general election turnout in ${period}`,
      market: ({ period }) => `Will turnout be above 60% in the sandbox general election of ${period}?`,
    },
  },
  {
    id: 'cup-final',
    category: 'sports',
    period: 'month',
    measure: { kind: 'forecast', mean: 0.05, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 120_000,
    polymarket: {
      slug: 'sandbox-cup-final',
      title: ({ period }) => `Sandbox cup final of ${period}: home win?`,
      market: ({ period }) => `Will the home side win the sandbox cup final of ${period}?`,
    },
    kalshi: {
      series: 'KXSYNCUP',
      title: ({ period }) => `Sandbox cup final, ${period}`,
      market: ({ period }) => `Will the home team win the sandbox cup final in ${period}?`,
    },
  },
  {
    id: 'animated-film',
    category: 'culture',
    period: 'year',
    measure: { kind: 'forecast', mean: -0.1, deviation: 1 },
    outcomes: YES,
    exclusive: false,
    unit: count,
    turnoverUsd: 11_000,
    polymarket: {
      slug: 'top-film-animated',
      title: ({ period }) => `Top film of ${period} animated?`,
      market: ({ period }) => `Will the highest-grossing film of ${period} be animated?`,
    },
    kalshi: {
      series: 'KXSYNTOPFILM',
      title: ({ period }) => `Highest-grossing film of ${period}`,
      market: ({ period }) => `Will an animated film be the highest-grossing film of ${period}?`,
    },
  },
];
