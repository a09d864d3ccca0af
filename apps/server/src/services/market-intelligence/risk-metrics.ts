import { z } from 'zod';
import { beta, maxDrawdown, sharpeRatio, sortinoRatio, volatility } from '../../quant/performance.ts';
import { alignByPeriod, portfolioReturns, simpleReturns } from '../../quant/returns.ts';
import { historicalTailLoss, normalTailLoss } from '../../quant/value-at-risk.ts';
import { answer, type Source } from '../answer.ts';
import type { Asset } from '../asset.ts';
import {
  type AssetSeries,
  alignReturns,
  assetItem,
  assetSeries,
  barEnd,
  MIN_OBSERVATIONS,
  provenanceOfSeries,
} from '../asset-series.ts';
import { defineService } from '../define.ts';
import { noAnswer, UpstreamUnavailable } from '../failure.ts';
import { numberBetween } from '../fields.ts';
import { PRICE_HISTORY_SOURCES, type PriceHistorySources, priceHistory } from '../price-history.ts';

const WINDOW_DAYS = 365;
/** A 99 % quantile of fewer returns than this is interpolated from one or two of them. */
const ENOUGH_FOR_99 = 100;
const MARKET: Asset = { kind: 'pair', label: 'BTC', pair: { base: 'BTC', quote: 'USD' } };

/** What names a single asset at the top of the body becomes a portfolio of one. */
function singleAsset(body: Record<string, unknown>): Record<string, unknown> {
  const { portfolio } = body;
  if (portfolio === undefined) {
    const { token, asset, symbol, tokenSymbol, tokenAddress, address, chain, returns, prices } = body;
    const name = token ?? asset ?? symbol ?? tokenSymbol ?? tokenAddress ?? address;
    if (name === undefined && returns === undefined && prices === undefined) return body;
    return { ...body, portfolio: [{ asset: name ?? 'portfolio', chain, returns, prices }] };
  }
  return Array.isArray(portfolio) ? body : { ...body, portfolio: [portfolio] };
}

const fraction = z.number();

export default defineService({
  path: 'risk-metrics',
  name: 'Risk Metrics',
  tag: 'Market Intelligence',
  priceUsd: '1.00',
  summary:
    'Value at risk, expected shortfall, Sharpe, Sortino, drawdown, beta and volatility of a portfolio.',
  input: z.object({
    portfolio: z
      .array(assetItem)
      .min(1)
      .max(20)
      .refine(
        (items) =>
          new Set(items.map(({ weight, amount, valueUsd }) => shareKind(weight, amount, valueUsd))).size ===
          1,
        'must give every item a weight, or every item an amount or valueUsd, or none of them anything',
      )
      .refine(
        (items) => items.some(({ weight, amount, valueUsd }) => (weight ?? amount ?? valueUsd ?? 1) > 0),
        'must hold something: all shares are 0',
      )
      .describe(
        '1 to 20 holdings, each with one of weight, amount or valueUsd; equal weights when none has any',
      ),
    confidenceLevel: numberBetween(0.5, 0.999, 'Confidence of varAtLevel and cvar, 0.5 to 0.999').default(
      0.95,
    ),
    periodsPerYear: numberBetween(
      1,
      366,
      'Returns a year, for annual figures: 365 for crypto, 252 for stocks',
    ).default(365),
  }),
  output: z.object({
    valueAtRisk: z.object({
      var95: fraction.describe('Loss not exceeded with 95 % confidence, as a positive fraction of the value'),
      var99: fraction.describe('The same with 99 %'),
      varAtLevel: fraction.describe('The same at confidenceLevel'),
      cvar: fraction.describe('Expected shortfall: mean loss in the cases beyond varAtLevel'),
      normalVarAtLevel: fraction.describe('varAtLevel if returns were normally distributed'),
      timeHorizon: z.string().describe('One period of the data'),
    }),
    sharpeRatio: z.number().nullable().describe('Annualised, risk-free return 0'),
    sortinoRatio: z.number().nullable().describe('Annualised, target 0; null without a loss'),
    maxDrawdown: fraction.describe('Deepest fall from a peak, as a fraction at or below 0'),
    beta: z.number().nullable().describe('Against BTC; null where dates are not known'),
    volatility: z
      .object({ daily: fraction, monthly: fraction, annualized: fraction })
      .describe('Standard deviation of log returns, as fractions'),
    riskLevel: z
      .enum(['Low', 'Medium', 'High', 'Extreme'])
      .describe('By annualised volatility: 20 %, 50 %, 100 %'),
    observations: z.number().int().describe('Returns that the figures rest on'),
    confidenceLevel: z.number(),
    weights: z.array(z.object({ asset: z.string(), weight: fraction })).describe('Normalised to sum to 1'),
    window: z.object({ from: z.string().nullable(), to: z.string().nullable() }),
  }),
  example: {
    portfolio: [
      { asset: 'BTC', weight: 0.6 },
      { asset: 'ETH', weight: 0.4 },
    ],
    confidenceLevel: 0.95,
  },
  aliases: { holdings: 'portfolio', assets: 'portfolio', tokens: 'portfolio', confidence: 'confidenceLevel' },
  adapt: singleAsset,
  needs: [PRICE_HISTORY_SOURCES],
  async run({ portfolio, confidenceLevel, periodsPerYear }, context) {
    const series = await assetSeries(portfolio, '1d', WINDOW_DAYS + 1, context, 'portfolio');
    const { columns, periods } = alignReturns(series, 'portfolio');
    const { weights, note } = weightsOf(series);
    const returns = portfolioReturns(columns, weights);

    const { sources, notes } = provenanceOfSeries(series);
    if (note !== null) notes.push(note);
    if (returns.length < ENOUGH_FOR_99) {
      notes.push(`${returns.length} returns: figures at 99 % rest on the worst one or two of them.`);
    }
    const market = await betaAgainstMarket(returns, periods, context);
    if (market.note !== null) notes.push(market.note);
    if (market.source !== null && !sources.some(({ url }) => url === market.source?.url))
      sources.push(market.source);

    const atLevel = historicalTailLoss(returns, confidenceLevel);
    const daily = volatility(returns);
    const annualized = daily * Math.sqrt(periodsPerYear);
    return answer(
      {
        valueAtRisk: {
          var95: historicalTailLoss(returns, 0.95).valueAtRisk,
          var99: historicalTailLoss(returns, 0.99).valueAtRisk,
          varAtLevel: atLevel.valueAtRisk,
          cvar: atLevel.expectedShortfall,
          normalVarAtLevel: normalTailLoss(returns, confidenceLevel).valueAtRisk,
          timeHorizon: periods === null ? 'one period of your data' : '1d',
        },
        sharpeRatio: sharpeRatio(returns, periodsPerYear),
        sortinoRatio: sortinoRatio(returns, periodsPerYear),
        maxDrawdown: maxDrawdown(returns),
        beta: market.beta,
        volatility: { daily, monthly: daily * Math.sqrt(periodsPerYear / 12), annualized },
        riskLevel: riskLevelOf(annualized),
        observations: returns.length,
        confidenceLevel,
        weights: portfolio.map(({ asset }, index) => ({ asset, weight: weights[index] ?? 0 })),
        window: { from: barEnd(periods?.[0], '1d'), to: barEnd(periods?.at(-1), '1d') },
      },
      {
        method:
          `Historical simulation on simple daily returns at today's weights, restored daily; quantile type 7; ` +
          `volatility from log returns; annualised with ${periodsPerYear} periods.`,
        sources,
        notes,
      },
    );
  },
});

function riskLevelOf(annualVolatility: number): 'Low' | 'Medium' | 'High' | 'Extreme' {
  if (annualVolatility < 0.2) return 'Low';
  if (annualVolatility < 0.5) return 'Medium';
  return annualVolatility < 1 ? 'High' : 'Extreme';
}

function shareKind(
  weight: number | undefined,
  amount: number | undefined,
  valueUsd: number | undefined,
): string {
  return weight !== undefined ? 'weight' : amount !== undefined || valueUsd !== undefined ? 'value' : 'none';
}

/** Shares of the value held, summing to 1. */
function weightsOf(series: readonly AssetSeries[]): { weights: number[]; note: string | null } {
  const shares = series.map(({ item, lastPrice }, index) => {
    if (item.weight !== undefined) return item.weight;
    if (item.valueUsd !== undefined) return item.valueUsd;
    if (item.amount === undefined) return 1;
    if (lastPrice === null) {
      throw noAnswer(
        'NO_PRICE',
        `${item.asset}: an amount needs a price in USD; give valueUsd or weight.`,
        `portfolio.${index}`,
      );
    }
    return item.amount * lastPrice;
  });
  const total = shares.reduce((sum, share) => sum + share, 0);
  const given = series.some(
    ({ item }) => item.weight !== undefined || item.valueUsd !== undefined || item.amount !== undefined,
  );
  const note =
    series.length > 1 && !given
      ? 'No weights were given: every asset counts the same.'
      : given && Math.abs(total - 1) > 1e-9
        ? `The shares given sum to ${Number(total.toPrecision(8))}; they were normalised to 1.`
        : null;
  return { weights: shares.map((share) => share / total), note };
}

/** Beta against BTC over the same days. A missing market leaves only this figure out, not the answer. */
async function betaAgainstMarket(
  returns: readonly number[],
  periods: readonly number[] | null,
  sources: PriceHistorySources,
): Promise<{ beta: number | null; source: Source | null; note: string | null }> {
  if (periods === null) {
    return { beta: null, source: null, note: 'Beta is null: data without dates cannot be matched with BTC.' };
  }
  try {
    const market = await priceHistory(MARKET, '1d', WINDOW_DAYS + 1, sources, 'portfolio');
    // The portfolio's value on each joined day, so that both sides measure change between the same closes.
    const values = new Map<number, number>();
    let value = 1;
    for (const [index, day] of periods.entries()) {
      if (index > 0) value *= 1 + (returns[index - 1] ?? 0);
      values.set(day, value);
    }
    const { columns } = alignByPeriod([values, market.closes]);
    const [own, btc] = columns.map(simpleReturns);
    if (own === undefined || btc === undefined || own.length < MIN_OBSERVATIONS) {
      return {
        beta: null,
        source: null,
        note: `Beta is null: fewer than ${MIN_OBSERVATIONS} returns in common with BTC.`,
      };
    }
    return { beta: beta(own, btc), source: market.source, note: null };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return { beta: null, source: null, note: `Beta is null: no BTC prices (${error.message}).` };
  }
}
