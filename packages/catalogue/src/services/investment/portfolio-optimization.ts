import { numberBetween } from '@farebox/core/service/fields';
import { openThread } from '@farebox/core/threads/thread';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { PortfolioOutcome, PortfolioPlan, PortfolioTask } from '../../quant/optimize.ts';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import { offThread } from '../off-thread.ts';
import {
  alignReturns,
  assetItem,
  assetSeries,
  barEnd,
  itemKey,
  provenanceOfSeries,
} from '../shared/market/asset-series.ts';
import {
  HOLDS_SOMETHING,
  holdsSomething,
  SHARES_ALIKE,
  sharesAreAlike,
  weightsOf,
} from '../shared/market/asset-weights.ts';
import { PRICE_HISTORY_SOURCES } from '../shared/market/price-history.ts';
import { riskWord } from '../shared/market/signal-candles.ts';

const WINDOW_DAYS = 365;
/** Smaller changes of a weight are not worth a trade. */
const LEAST_CHANGE = 0.005;
/** Estimates from fewer returns than this per asset are mostly noise. */
const OBSERVATIONS_PER_ASSET = 10;

/** Past means are mostly noise: without a bound the luckiest asset gets nearly all. */
const DEFAULT_MOST = 0.4;
/** A bound this near to equal weights would leave nothing to choose. */
const LEAST_ROOM = 1.5;
/** The bound on a weight for a number of assets, where the caller gave none. */
const defaultMost = (assets: number) => Math.max(DEFAULT_MOST, LEAST_ROOM / assets);

const GOALS = { low: 'least-variance', medium: 'highest-sharpe', high: 'ambitious' } as const;
const GOAL_WORDS = {
  'least-variance': 'the least variance',
  'highest-sharpe': 'the highest Sharpe ratio',
  ambitious:
    'the least variance with a mean four fifths of the way from that of the highest Sharpe ratio (of the least variance where no asset earned more than the risk-free return) to the highest',
  target: 'the least variance with at least the target return',
} as const;

const thread = openThread<PortfolioTask, PortfolioOutcome>(
  new URL('../shared/market/portfolio-program.ts', import.meta.url),
  {
    timeoutMs: 5_000,
    maxWaiting: 64,
    maxMemoryMb: 256,
  },
);

const fraction = z.number();
const mix = z.object({
  expectedReturn: fraction.describe('A year, as a fraction'),
  expectedRisk: fraction.describe('Standard deviation of a year, as a fraction'),
  sharpeRatio: z.number().nullable().describe('Return above the risk-free rate by risk; null without risk'),
});

export default defineService({
  path: 'portfolio-optimization',
  name: 'Portfolio Optimization',
  tag: 'Investment',
  priceUsd: '2.00',
  summary:
    'Weights of 2 to 20 assets by mean and variance with a shrunk covariance, and hierarchical risk parity beside them.',
  keywords:
    'optimize optimise optimal allocate allocation weights weight split divide distribute diversify diversification markowitz efficient frontier rebalance portfolio mix savings invest risk parity assets how should put percent minimum variance',
  input: z.object({
    holdings: z
      .array(assetItem)
      .min(2, 'must name at least 2 assets: one alone has nothing to be weighed against')
      .max(20)
      .refine((items) => new Set(items.map(itemKey)).size === items.length, 'must not name an asset twice')
      .refine(sharesAreAlike, SHARES_ALIKE)
      .refine(holdsSomething, HOLDS_SOMETHING)
      .describe(
        '2 to 20 assets, each with one of weight, amount or valueUsd; equal weights when none has any',
      ),
    riskTolerance: z
      .preprocess(riskWord, z.enum(['low', 'medium', 'high']))
      .default('medium')
      .describe(
        'low: least variance; medium: highest Sharpe ratio; high: near the highest mean. expectedRisk never falls from one to the next',
      ),
    targetReturn: numberBetween(
      -1,
      10,
      'Least mean return a year, as a fraction (0.15 is 15 %); instead of riskTolerance',
    ).optional(),
    maxWeight: numberBetween(
      0.01,
      1,
      `The most that one asset may weigh, as a fraction; ${DEFAULT_MOST} unless given, 0.5 for three assets, 0.75 for two. 1: no bound`,
    ).optional(),
    riskFreeRate: numberBetween(-0.05, 1, 'Risk-free return a year, as a fraction').default(0),
    periodsPerYear: numberBetween(1, 366, 'Returns a year: 365 for crypto, 252 for stocks').default(365),
  }),
  output: z.object({
    optimizedAllocation: z
      .array(
        z.object({
          asset: z.string().describe('The asset'),
          currentWeight: fraction.describe('Its share now, 0 to 1'),
          recommendedWeight: fraction.describe('Its share in the recommended mix, 0 to 1'),
          action: z
            .enum(['buy', 'sell', 'hold'])
            .describe('hold: a change of less than half a percentage point'),
          changeUsd: z
            .number()
            .nullable()
            .describe('What to buy (above 0) or sell; null where no value is known'),
          expectedReturn: fraction.describe('Mean of this asset alone, a year'),
          expectedReturnError: fraction.describe(
            'Standard error of that mean; a mean that is smaller than this says nothing',
          ),
          riskShare: fraction.describe('Its part in the variance of the recommended mix; they sum to 1'),
          riskParityWeight: fraction.describe('By hierarchical risk parity, which uses no means'),
        }),
      )
      .describe('Each asset in the recommended mix'),
    expectedReturn: fraction.describe('Of the recommended mix, a year, as a fraction: the past mean'),
    expectedReturnError: fraction.describe('Standard error of that mean: how little the past says about it'),
    expectedRisk: fraction.describe('Standard deviation of a year, as a fraction'),
    sharpeRatio: z
      .number()
      .nullable()
      .describe('Of the recommended mix: return above the risk-free rate by risk; null without risk'),
    diversificationScore: z
      .number()
      .min(0)
      .max(100)
      .describe('100 when all assets carry the same part of the variance, 0 when one carries all'),
    current: mix.describe('The same figures of the mix as it is'),
    riskParity: mix.describe('The same figures by hierarchical risk parity'),
    rebalancingSteps: z.array(z.string()).describe('What to buy and sell, in sentences'),
    assumptions: z
      .object({
        goal: z.string().describe('What was optimised, as asked'),
        window: z
          .object({
            from: z.string().nullable().describe('Its first day; null where no dates are known'),
            to: z.string().nullable().describe('Its last day; null where no dates are known'),
          })
          .describe('The time that the returns are from'),
        observations: z.number().int().describe('Returns of each asset'),
        riskFree: z.number().describe('Risk-free return of a year, as a fraction'),
        maxWeight: z.number().describe('The largest share that one asset may have'),
        periodsPerYear: z.number().describe('Returns in a year'),
        shrinkage: fraction.describe('Intensity of Ledoit and Wolf, 0 to 1'),
        attainableReturns: z
          .object({ low: fraction.describe('The least'), high: fraction.describe('The most') })
          .describe('What mixes of these assets can return'),
      })
      .describe('What the figures rest on'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: {
    holdings: [
      { asset: 'BTC', amount: 0.5 },
      { asset: 'ETH', amount: 4 },
      { asset: 'SOL', amount: 50 },
    ],
    riskTolerance: 'medium',
  },
  aliases: {
    currentHoldings: 'holdings',
    portfolio: 'holdings',
    assets: 'holdings',
    tokens: 'holdings',
    risk: 'riskTolerance',
    riskLevel: 'riskTolerance',
    targetAnnualReturn: 'targetReturn',
    riskFree: 'riskFreeRate',
  },
  needs: [PRICE_HISTORY_SOURCES],
  async run(input, context) {
    const { holdings, periodsPerYear } = input;
    const maxWeight = input.maxWeight ?? defaultMost(holdings.length);
    if (maxWeight * holdings.length < 1) {
      throw noAnswer(
        'INFEASIBLE',
        `${holdings.length} assets of at most ${maxWeight} each do not make up a whole; give maxWeight of at least ${Math.ceil(1e4 / holdings.length) / 1e4}.`,
        'maxWeight',
      );
    }
    const series = await assetSeries(holdings, '1d', WINDOW_DAYS + 1, context, 'holdings');
    const { columns, periods, notes: holes } = alignReturns(series, 'holdings');
    const { weights, totalUsd, note } = weightsOf(series, 'holdings');
    const outcome = await offThread(thread, {
      columns,
      current: weights,
      periodsPerYear,
      riskFree: input.riskFreeRate,
      maxWeight,
      goal:
        input.targetReturn === undefined
          ? { kind: GOALS[input.riskTolerance] }
          : { kind: 'target', mean: input.targetReturn },
    });
    if ('infeasible' in outcome) {
      throw noAnswer(
        'INFEASIBLE',
        `There is no such portfolio: ${outcome.infeasible}.`,
        input.targetReturn === undefined ? 'holdings' : 'targetReturn',
      );
    }
    const { plan } = outcome;
    const { best } = plan;

    const { sources, notes } = provenanceOfSeries(series);
    notes.push(...holes);
    if (note !== null) notes.push(note);
    const observations = columns[0]?.length ?? 0;
    if (observations < OBSERVATIONS_PER_ASSET * holdings.length) {
      notes.push(
        `${observations} returns for ${holdings.length} assets are few: the weights rest much on noise.`,
      );
    }
    notes.push(...meansNotes(input, plan, maxWeight));
    notes.push('The means are those of the past: the next year may differ by more than expectedReturnError.');
    if (totalUsd === null) notes.push('changeUsd is null: the values held are not known, only their shares.');
    const rows = holdings.map(({ asset }, index) => {
      const recommendedWeight = best.weights[index] ?? 0;
      const change = recommendedWeight - (weights[index] ?? 0);
      return {
        asset,
        currentWeight: weights[index] ?? 0,
        recommendedWeight,
        action:
          Math.abs(change) < LEAST_CHANGE
            ? ('hold' as const)
            : change > 0
              ? ('buy' as const)
              : ('sell' as const),
        changeUsd: totalUsd === null ? null : Math.round(change * totalUsd * 100) / 100,
        expectedReturn: plan.means[index] ?? 0,
        expectedReturnError: plan.meanErrors[index] ?? 0,
        riskShare: best.riskShares[index] ?? 0,
        riskParityWeight: plan.riskParity.weights[index] ?? 0,
      };
    });
    const figures = ({ mean, deviation, sharpe }: typeof best) => ({
      expectedReturn: mean,
      expectedRisk: deviation,
      sharpeRatio: sharpe,
    });
    const to = barEnd(periods?.at(-1), '1d');
    return statisticAnswer(
      {
        optimizedAllocation: rows,
        ...figures(best),
        expectedReturnError: plan.meanError,
        diversificationScore: scoreOf(best.riskShares),
        current: figures(plan.current),
        riskParity: figures(plan.riskParity),
        rebalancingSteps: stepsOf(rows),
        assumptions: {
          goal: GOAL_WORDS[plan.kind],
          window: { from: barEnd(periods?.[0], '1d'), to },
          observations,
          riskFree: input.riskFreeRate,
          maxWeight,
          periodsPerYear,
          shrinkage: plan.shrinkage,
          attainableReturns: plan.attainable,
        },
        disclaimer: `Information${to === null ? '' : ` as of ${to}`}, by the rules in provenance.method. Not advice, and no promise about future returns.`,
      },
      {
        method:
          `${GOAL_WORDS[plan.kind].replace(/^t/, 'T')}, without short sales, at most ${maxWeight} each (Markowitz 1952; Goldfarb and ` +
          `Idnani's method), on past mean returns and the covariance shrunk by Ledoit and Wolf (2004); beside it hierarchical risk ` +
          `parity (López de Prado 2016, tree on the distance between columns of the distance matrix). Simple returns, ` +
          `${periodsPerYear} a year.`,
        sources,
        notes,
      },
    );
  },
});

/** What the answer says about its means, and about the bound where the caller gave none. */
function meansNotes(
  input: {
    holdings: readonly { asset: string }[];
    targetReturn?: number | undefined;
    riskTolerance: string;
    maxWeight?: number | undefined;
  },
  { kind, means, meanErrors }: PortfolioPlan,
  maxWeight: number,
): string[] {
  const notes: string[] = [];
  if (kind !== 'highest-sharpe' && input.targetReturn === undefined && input.riskTolerance === 'medium') {
    notes.push(
      'No asset earned more than the risk-free return, so no Sharpe ratio is the highest: these are the weights of least variance.',
    );
  }
  if (input.maxWeight === undefined)
    notes.push(`No asset weighs more than ${maxWeight}, as maxWeight was not given.`);
  const unsure = input.holdings.filter((_, index) => Math.abs(means[index] ?? 0) < (meanErrors[index] ?? 0));
  if (unsure.length > 0) {
    notes.push(
      `The past mean is smaller than its own error for ${unsure.map(({ asset }) => asset).join(', ')}: riskParityWeight, which uses no means, rests on more.`,
    );
  }
  return notes;
}

interface Row {
  asset: string;
  currentWeight: number;
  recommendedWeight: number;
  action: 'buy' | 'sell' | 'hold';
  changeUsd: number | null;
}

/** Sales first: they pay for the rest. */
function stepsOf(rows: readonly Row[]): string[] {
  const percent = (weight: number) => `${(weight * 100).toFixed(2)} %`;
  return (['sell', 'buy'] as const).flatMap((action) =>
    rows
      .filter((row) => row.action === action)
      .map(
        ({ asset, currentWeight, recommendedWeight, changeUsd }) =>
          `${action === 'sell' ? 'Sell' : 'Buy'} ${asset}${changeUsd === null ? '' : ` for ${Math.abs(changeUsd)} USD`}: from ${percent(currentWeight)} to ${percent(recommendedWeight)}.`,
      ),
  );
}

/** Computed from the Herfindahl index of the shares of variance; a negative share counts as 0. */
function scoreOf(riskShares: readonly number[]): number {
  const parts = riskShares.map((share) => Math.max(0, share));
  const sum = parts.reduce((total, part) => total + part, 0);
  if (sum === 0 || parts.length < 2) return 0;
  const index = parts.reduce((total, part) => total + (part / sum) ** 2, 0);
  const least = 1 / parts.length;
  return Math.max(0, Math.min(100, Math.round((1 - (index - least) / (1 - least)) * 1_000) / 10));
}
