/**
 * What speaks for fraud in one transaction, each feature by itself with its weight: never a black box. The weights are
 * this house's own, and told.
 */
import { medianOf } from './median.ts';

export interface Payment {
  /** In one currency, the same for all. */
  amount: number | null;
  atMs: number | null;
  counterparty: string | null;
}

/** What is known of a transaction; null is what was not given or nobody could say. */
export interface FraudFacts extends Payment {
  /** Countries that were given, such as of the card, the address and the network. */
  countries: readonly string[];
  /** True when the amount is in USD. */
  inUsd: boolean;
  history: readonly Payment[];
  listedCounterparty: boolean | null;
  mixerCounterparty: boolean | null;
  /** Of the payer's wallet on the chain. */
  walletAgeDays: number | null;
  walletTransactions: number | null;
}

export interface FraudFeature {
  code: string;
  /** The most that it can add. */
  weight: number;
  /** 0 to 1, how far it is met; null: not evaluated. */
  value: number | null;
  /** weight x value; null: not evaluated. */
  contribution: number | null;
  because: string;
}

export interface FraudScore {
  /** The contributions added up, at most 100. */
  score: number;
  level: 'Low' | 'Medium' | 'High' | 'Critical';
  features: FraudFeature[];
  /** Share of the weights that could be evaluated, 0 to 1. */
  confidence: number;
}

const HOUR_MS = 3_600_000;
const LEAST_AMOUNTS = 5;
const LEAST_TIMES = 10;
/** The modified z-score from which Iglewicz and Hoaglin (1993) call a value an outlier, and one that is far beyond. */
const OUTLIER_Z = 3.5;
const FAR_Z = 10;
/** Thresholds of US rules that payments are split to stay below: 31 CFR 1010.410(f), 1010.311. */
const THRESHOLDS_USD = [3_000, 10_000];
const JUST_BELOW = 0.05;

/** @returns the features in a fixed order, and their sum */
export function fraudScore(facts: FraudFacts): FraudScore {
  const features = [
    feature('LISTED_COUNTERPARTY', 100, flag(facts.listedCounterparty), [
      'the counterparty stands in a list of sanctions',
      'the counterparty stands in no list that was looked at',
      'no address was given that could be looked up',
    ]),
    feature('MIXER_COUNTERPARTY', 25, flag(facts.mixerCounterparty), [
      'the counterparty is a listed mixing service',
      'the counterparty is no listed mixing service',
      'no address was given, or no list of mixing services is used here',
    ]),
    amountFeature(facts),
    velocityFeature(facts),
    counterpartyFeature(facts),
    countryFeature(facts),
    thresholdFeature(facts),
    roundFeature(facts),
    hourFeature(facts),
    walletFeature(facts),
  ];
  const score = Math.min(
    100,
    Math.round(features.reduce((sum, { contribution }) => sum + (contribution ?? 0), 0) * 10) / 10,
  );
  const weightOf = (of: readonly FraudFeature[]) => of.reduce((sum, { weight }) => sum + weight, 0);
  const evaluated = features.filter(({ value }) => value !== null);
  return {
    score,
    level: score < 25 ? 'Low' : score < 50 ? 'Medium' : score < 75 ? 'High' : 'Critical',
    features,
    confidence: Math.round((weightOf(evaluated) / weightOf(features)) * 1_000) / 1_000,
  };
}

/**
 * The modified z-score 0.6745 (x - median) / MAD; where most values are the same, by the mean deviation from the median
 * instead (Iglewicz and Hoaglin 1993). Null for fewer than five values; infinite for any other value where all are one.
 */
export function modifiedZ(value: number, sample: readonly number[]): number | null {
  if (sample.length < LEAST_AMOUNTS) return null;
  const median = medianOf(sample);
  const deviations = sample.map((each) => Math.abs(each - median));
  const mad = medianOf(deviations);
  if (mad > 0) return (0.6745 * (value - median)) / mad;
  const mean = deviations.reduce((sum, each) => sum + each, 0) / deviations.length;
  if (mean > 0) return (value - median) / (1.253314 * mean);
  return value === median ? 0 : value > median ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
}

function amountFeature({ amount, history }: FraudFacts): FraudFeature {
  const amounts = history.flatMap((each) => (each.amount === null ? [] : [each.amount]));
  const z = amount === null ? null : modifiedZ(amount, amounts);
  const value = z === null ? null : clamp((z - OUTLIER_Z) / (FAR_Z - OUTLIER_Z));
  const says = Number.isFinite(z ?? 0) ? Math.round((z ?? 0) * 100) / 100 : 'beyond measure';
  return feature('AMOUNT_OUTLIER', 25, value, [
    `modified z-score ${says} against ${amounts.length} earlier amounts; 3.5 is the bound`,
    `modified z-score ${says} against ${amounts.length} earlier amounts; 3.5 is the bound`,
    `an amount and at least ${LEAST_AMOUNTS} earlier amounts are needed; ${amounts.length} were given`,
  ]);
}

function velocityFeature({ atMs, history }: FraudFacts): FraudFeature {
  const times = history.flatMap((each) => (each.atMs === null ? [] : [each.atMs]));
  const recent = atMs === null ? 0 : times.filter((each) => each <= atMs && each > atMs - HOUR_MS).length;
  const value = atMs === null || times.length === 0 ? null : clamp((recent - 3) / 7);
  return feature('VELOCITY', 20, value, [
    `${recent} earlier transactions within the hour before`,
    `${recent} earlier transactions within the hour before`,
    'a time and earlier times are needed',
  ]);
}

function counterpartyFeature({ counterparty, history }: FraudFacts): FraudFeature {
  const known = history.flatMap((each) =>
    each.counterparty === null ? [] : [each.counterparty.toLowerCase()],
  );
  const value =
    counterparty === null || known.length === 0 ? null : known.includes(counterparty.toLowerCase()) ? 0 : 1;
  return feature('NEW_COUNTERPARTY', 10, value, [
    'the counterparty is in none of the earlier transactions',
    'the counterparty is in earlier transactions',
    'a counterparty and earlier counterparties are needed',
  ]);
}

function countryFeature({ countries }: FraudFacts): FraudFeature {
  const different = new Set(countries.map((country) => country.trim().toUpperCase()));
  const value = countries.length < 2 ? null : different.size > 1 ? 1 : 0;
  return feature('COUNTRY_MISMATCH', 15, value, [
    `the countries differ: ${[...different].join(', ')}`,
    'the countries agree',
    'two countries are needed, such as ipCountry and cardCountry',
  ]);
}

function thresholdFeature({ amount, inUsd }: FraudFacts): FraudFeature {
  const above =
    amount === null
      ? undefined
      : THRESHOLDS_USD.find((each) => amount < each && amount >= each * (1 - JUST_BELOW));
  const value = amount === null || !inUsd ? null : above === undefined ? 0 : 1;
  return feature('JUST_BELOW_THRESHOLD', 10, value, [
    `the amount is at most 5 % below ${above} USD`,
    'the amount is not just below 3,000 or 10,000 USD',
    'an amount in USD is needed',
  ]);
}

function roundFeature({ amount }: FraudFacts): FraudFeature {
  const step = amount === null || amount < 100 ? null : 10 ** Math.floor(Math.log10(amount));
  const value = amount === null ? null : step !== null && amount % (step / 2) === 0 ? 1 : 0;
  return feature('ROUND_AMOUNT', 5, value, [
    'the amount is round',
    'the amount is not round',
    'an amount is needed',
  ]);
}

function hourFeature({ atMs, history }: FraudFacts): FraudFeature {
  const times = history.flatMap((each) => (each.atMs === null ? [] : [each.atMs]));
  const hourOf = (ms: number) => new Date(ms).getUTCHours();
  const near =
    atMs === null
      ? 0
      : times.filter((each) => {
          const apart = Math.abs(hourOf(each) - hourOf(atMs));
          return Math.min(apart, 24 - apart) <= 1;
        }).length;
  const value = atMs === null || times.length < LEAST_TIMES ? null : near === 0 ? 1 : 0;
  return feature('UNUSUAL_HOUR', 5, value, [
    'no earlier transaction was within an hour of that time of day (UTC)',
    `${near} earlier transactions were within an hour of that time of day (UTC)`,
    `a time and at least ${LEAST_TIMES} earlier times are needed`,
  ]);
}

function walletFeature({ walletAgeDays, walletTransactions }: FraudFacts): FraudFeature {
  const value =
    walletTransactions === null
      ? null
      : walletTransactions === 0
        ? 1
        : walletAgeDays === null
          ? null
          : walletAgeDays < 7
            ? 1
            : walletAgeDays < 30
              ? 0.5
              : 0;
  return feature('NEW_WALLET', 10, value, [
    walletTransactions === 0
      ? 'the wallet has sent nothing yet'
      : `the wallet began ${walletAgeDays} days ago`,
    `the wallet began ${walletAgeDays} days ago`,
    'a wallet and a chain that knows its age are needed',
  ]);
}

function flag(value: boolean | null): number | null {
  return value === null ? null : value ? 1 : 0;
}

function clamp(value: number): number {
  return Math.max(0, Math.min(1, value));
}

function feature(
  code: string,
  weight: number,
  value: number | null,
  [met, unmet, unknown]: readonly [string, string, string],
): FraudFeature {
  return {
    code,
    weight,
    value: value === null ? null : Math.round(value * 1_000) / 1_000,
    contribution: value === null ? null : Math.round(weight * value * 10) / 10,
    because: value === null ? `not evaluated: ${unknown}` : value > 0 ? met : unmet,
  };
}
