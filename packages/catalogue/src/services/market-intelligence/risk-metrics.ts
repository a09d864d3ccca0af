import { numberBetween } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { beta, maxDrawdown, sharpeRatio, sortinoRatio, volatility } from '../../quant/performance.ts';
import { portfolioReturns } from '../../quant/returns.ts';
import { historicalTailLoss, normalTailLoss } from '../../quant/value-at-risk.ts';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';
import type { Asset } from '../shared/market/asset.ts';
import {
  alignReturns,
  assetItem,
  assetSeries,
  barEnd,
  MIN_OBSERVATIONS,
  provenanceOfSeries,
  type Span,
} from '../shared/market/asset-series.ts';
import {
  HOLDS_SOMETHING,
  holdsSomething,
  SHARES_ALIKE,
  sharesAreAlike,
  weightsOf,
} from '../shared/market/asset-weights.ts';
import {
  PRICE_HISTORY_SOURCES,
  type PriceHistorySources,
  priceHistory,
} from '../shared/market/price-history.ts';

const WINDOW_DAYS = 365;
/** With fewer returns than this, a 99 % quantile is interpolated from one or two of them. */
const ENOUGH_FOR_99 = 100;
const MARKET: Asset = { kind: 'pair', label: 'BTC', pair: { base: 'BTC', quote: 'USD' } };

/** Fields of a single asset at the top of the body become a portfolio of one. */
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
  keywords:
    'risk var value at risk lose loss losses worst bad day drawdown volatility volatile sharpe sortino beta expected shortfall how much could portfolio downside stress standard deviation risky crash',
  input: z.object({
    portfolio: z
      .array(assetItem)
      .min(1)
      .max(20)
      .refine(sharesAreAlike, SHARES_ALIKE)
      .refine(holdsSomething, HOLDS_SOMETHING)
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
    valueAtRisk: z
      .object({
        var95: fraction.describe(
          'Loss not exceeded with 95 % confidence, as a positive fraction of the value',
        ),
        var99: fraction.describe('The same with 99 %'),
        varAtLevel: fraction.describe('The same at confidenceLevel'),
        cvar: fraction.describe('Expected shortfall: mean loss in the cases beyond varAtLevel'),
        normalVarAtLevel: fraction.describe('varAtLevel if returns were normally distributed'),
        timeHorizon: z.string().describe('One period of the data'),
      })
      .describe('What one period may lose'),
    sharpeRatio: z.number().nullable().describe('Annualised, risk-free return 0'),
    sortinoRatio: z.number().nullable().describe('Annualised, target 0; null without a loss'),
    maxDrawdown: fraction.describe('Deepest fall from a peak, as a fraction at or below 0'),
    beta: z.number().nullable().describe('Against BTC; null where dates are not known'),
    volatility: z
      .object({
        daily: fraction.describe('Of a day'),
        monthly: fraction.describe('Of a month'),
        annualized: fraction.describe('Of a year'),
      })
      .describe('Standard deviation of log returns, as fractions'),
    riskLevel: z
      .enum(['Low', 'Medium', 'High', 'Extreme'])
      .describe('By annualised volatility: 20 %, 50 %, 100 %'),
    observations: z.number().int().describe('Returns that the figures rest on'),
    confidenceLevel: z.number().describe('The level of varAtLevel, as asked'),
    weights: z
      .array(
        z.object({ asset: z.string().describe('The asset'), weight: fraction.describe('Its share, 0 to 1') }),
      )
      .describe('Normalised to sum to 1'),
    window: z
      .object({
        from: z.string().nullable().describe('Its first day; null where no dates are known'),
        to: z.string().nullable().describe('Its last day; null where no dates are known'),
      })
      .describe('The time that the returns are from'),
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
    const { columns, periods, spans, notes: holes } = alignReturns(series, 'portfolio');
    const { weights, note } = weightsOf(series, 'portfolio');
    const returns = portfolioReturns(columns, weights);

    const { sources, notes } = provenanceOfSeries(series);
    notes.push(...holes);
    if (note !== null) notes.push(note);
    if (returns.length < ENOUGH_FOR_99) {
      notes.push(`${returns.length} returns: figures at 99 % rest on the worst one or two of them.`);
    }
    const market = await betaAgainstMarket(returns, spans, context);
    if (market.note !== null) notes.push(market.note);
    if (market.source !== null && !sources.some(({ url }) => url === market.source?.url))
      sources.push(market.source);

    const atLevel = historicalTailLoss(returns, confidenceLevel);
    const daily = volatility(returns);
    const annualized = daily * Math.sqrt(periodsPerYear);
    return statisticAnswer(
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
          `Historical simulation on simple daily returns at today's weights, restored daily, without changes across missing closes; quantile type 7; ` +
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

/** Beta against BTC over the same days. If the market is not available, only this figure is missing, not the answer. */
async function betaAgainstMarket(
  returns: readonly number[],
  spans: readonly Span[] | null,
  sources: PriceHistorySources,
): Promise<{ beta: number | null; source: Source | null; note: string | null }> {
  if (spans === null) {
    return { beta: null, source: null, note: 'Beta is null: data without dates cannot be matched with BTC.' };
  }
  try {
    const market = await priceHistory(MARKET, '1d', WINDOW_DAYS + 1, sources, 'portfolio');
    const own: number[] = [];
    const btc: number[] = [];
    for (const [index, { from, to }] of spans.entries()) {
      const [before, after] = [market.closes.get(from), market.closes.get(to)];
      const change = returns[index];
      if (before === undefined || after === undefined || change === undefined) continue;
      own.push(change);
      btc.push(after / before - 1);
    }
    if (own.length < MIN_OBSERVATIONS) {
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
