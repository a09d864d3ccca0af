import { limit, numberBetween, outsiderText, text } from '@farebox/core/service/fields';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { YieldPool } from '../../upstreams/adapters/llama-pools.ts';
import { defineService } from '../define.ts';
import { statisticAnswer } from '../figures.ts';

const RISKS = ['low', 'medium', 'high'] as const;
type Risk = (typeof RISKS)[number];

/** The points from which a pool counts as medium risk, and as high risk. */
const MEDIUM_FROM = 2;
const HIGH_FROM = 4;

/** Each rule that speaks against a pool, with its points. The answer names those that applied. */
const RULES: readonly { points: number; says: string; applies(pool: YieldPool): boolean }[] = [
  { points: 2, says: 'holds less than 1 million USD', applies: ({ tvlUsd }) => tvlUsd < 1e6 },
  {
    points: 1,
    says: 'holds less than 10 million USD',
    applies: ({ tvlUsd }) => tvlUsd >= 1e6 && tvlUsd < 1e7,
  },
  {
    points: 2,
    says: 'its tokens may drift apart (impermanent loss)',
    applies: ({ impermanentLoss }) => impermanentLoss === true,
  },
  {
    points: 1,
    says: 'more than half of the yield is paid in reward tokens',
    applies: ({ apyPercent, apyRewardPercent }) =>
      apyRewardPercent !== null && apyPercent > 0 && apyRewardPercent > apyPercent / 2,
  },
  {
    points: 2,
    says: 'DefiLlama marks its yield as an outlier',
    applies: ({ isOutlier }) => isOutlier === true,
  },
  {
    points: 1,
    says: 'fewer than 30 days of history',
    applies: ({ historyDays }) => historyDays !== null && historyDays < 30,
  },
  { points: 1, says: 'more than 50 % a year', applies: ({ apyPercent }) => apyPercent > 50 },
];

/** Below this a figure reflects a single depositor, and is cheap to fake. */
const LEAST_TVL_USD = 10_000;

const lower = (value: unknown) => (typeof value === 'string' ? value.trim().toLowerCase() : value);
const KINDS: Readonly<Record<string, string>> = {
  lending: 'single',
  staking: 'single',
  vault: 'single',
  lp: 'multi',
  liquidity: 'multi',
  'liquidity-pool': 'multi',
  all: 'any',
};
const kind = (value: unknown) => {
  const written = lower(value);
  return typeof written === 'string' ? (KINDS[written] ?? written) : written;
};
const percent = z.number().nullable();

export default defineService({
  path: 'solana-yield-finder',
  name: 'Solana Yield Finder',
  tag: 'Trading Intelligence',
  priceUsd: '0.25',
  summary: 'Yields on Solana by DefiLlama, highest first, with the warnings about each.',
  keywords:
    'yield apy apr interest earn earning staking stake farm farming lend lending deposit stablecoin best return passive income solana sol defi rate rates savings',
  input: z.object({
    token: text(60, 'Ticker or mint of a token that is deposited, such as USDC; all unless given').optional(),
    minApy: numberBetween(0, 100_000, 'Least yield in percent a year (3 is 3 %); 0 is no bound').default(0),
    maxRisk: z
      .preprocess(lower, z.enum(RISKS))
      .default('high')
      .describe('The riskiest that is returned; risk is counted by published rules'),
    protocol: text(60, 'Name of a protocol as DefiLlama writes it, such as "kamino-lend"').optional(),
    type: z
      .preprocess(kind, z.enum(['any', 'single', 'multi']))
      .default('any')
      .describe(
        'single: one token is deposited (lending, staking, vaults); multi: several (liquidity pools)',
      ),
    minTvlUsd: numberBetween(0, 1e12, 'Least value in the pool in USD').default(LEAST_TVL_USD),
    limit: limit(10, 50),
  }),
  output: z.object({
    topYields: z
      .array(
        z.object({
          id: z.string().describe("DefiLlama's id of the pool"),
          protocol: outsiderText(120).describe('The protocol'),
          token: outsiderText(200).describe('Tickers with dashes between, as the source writes them'),
          pool: outsiderText(200)
            .nullable()
            .describe('What tells it from others of the same protocol and tokens'),
          type: z
            .enum(['single', 'multi'])
            .nullable()
            .describe('single: one token; multi: several; null where the source does not say'),
          apyPct: z.number().describe('Percent a year: base and rewards, as of now, no promise'),
          apyBasePct: percent.describe('From fees or interest'),
          apyRewardPct: percent.describe('Paid in reward tokens'),
          apyMean30dPct: percent.describe('Mean of the last 30 days'),
          tvlUsd: z.number().describe('USD in the pool'),
          risk: z.enum(RISKS).describe('Band of the points'),
          riskPoints: z.number().int().describe('Points for what makes it riskier'),
          riskReasons: z.array(z.string()).describe('What they are for'),
          url: z.string().describe('Where to read it'),
        }),
      )
      .describe('The highest first'),
    totalOpportunities: z.number().int().describe('How many fit, of which the highest are returned'),
    scannedPools: z.number().int().describe('Pools on Solana in the list'),
    network: z.literal('solana').describe('The chain'),
    dataSource: z.string().describe('Where the data is from'),
    cacheAge: z.number().int().describe('Seconds since the list was fetched'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { token: 'USDC', minApy: 3 },
  aliases: {
    asset: 'token',
    symbol: 'token',
    tokenSymbol: 'token',
    mint: 'token',
    minApyPct: 'minApy',
    minAPY: 'minApy',
    risk: 'maxRisk',
    riskLevel: 'maxRisk',
    riskTolerance: 'maxRisk',
    project: 'protocol',
    minTvl: 'minTvlUsd',
    count: 'limit',
  },
  needs: ['llamayields'],
  async run(input, { upstreams, nowMs }) {
    const { value, source } = await upstreams.llamayields.pools('Solana');
    const { token, protocol } = input;
    const named = value.pools.filter((pool) => token === undefined || holds(pool, token));
    if (token !== undefined && named.length === 0) {
      throw noAnswer('UNKNOWN_TOKEN', `DefiLlama lists no pool on Solana that takes ${token}.`, 'token');
    }
    const ofProtocol = named.filter(({ project }) => protocol === undefined || sameName(project, protocol));
    if (protocol !== undefined && ofProtocol.length === 0) {
      const known = [...new Set(named.map(({ project }) => project))].sort().slice(0, 20).join(', ');
      throw noAnswer(
        'UNKNOWN_PROTOCOL',
        `No such protocol among these pools. There are: ${known}.`,
        'protocol',
      );
    }
    const found = ofProtocol
      .filter(({ tvlUsd, apyPercent }) => tvlUsd >= input.minTvlUsd && apyPercent >= input.minApy)
      .filter(({ exposure }) => input.type === 'any' || exposure === input.type)
      .map((pool) => ({ pool, ...riskOf(pool) }))
      .filter(({ risk }) => RISKS.indexOf(risk) <= RISKS.indexOf(input.maxRisk))
      .sort((a, b) => b.pool.apyPercent - a.pool.apyPercent || a.pool.id.localeCompare(b.pool.id));

    const notes = [
      'Yields are of the moment the source measured them, and change. They say nothing about the safety of a protocol.',
    ];
    if (value.unreadable > 0)
      notes.push(`${value.unreadable} pools were left out: their rows could not be read.`);
    return statisticAnswer(
      {
        topYields: found.slice(0, input.limit).map(({ pool, risk, points, reasons }) => ({
          id: pool.id,
          protocol: pool.project,
          token: pool.symbol,
          pool: pool.meta,
          type: pool.exposure,
          apyPct: pool.apyPercent,
          apyBasePct: pool.apyBasePercent,
          apyRewardPct: pool.apyRewardPercent,
          apyMean30dPct: pool.apyMean30dPercent,
          tvlUsd: pool.tvlUsd,
          risk,
          riskPoints: points,
          riskReasons: reasons,
          url: `https://defillama.com/yields/pool/${pool.id}`,
        })),
        totalOpportunities: found.length,
        scannedPools: value.pools.length,
        network: 'solana' as const,
        dataSource: 'DefiLlama yields',
        cacheAge: Math.max(0, Math.round((nowMs() - Date.parse(source.retrievedAt)) / 1_000)),
        disclaimer: 'Information as of the time of its source, by the rules in `method`. Not advice.',
      },
      {
        method:
          `DefiLlama's pools on Solana of at least minTvlUsd, by apy. Risk counts points (medium from ${MEDIUM_FROM}, high from ` +
          `${HIGH_FROM}): ${RULES.map(({ says, points }) => `${says} (${points})`).join('; ')}.`,
        sources: [source],
        notes,
      },
    );
  },
});

/** Whether one of the tokens of a pool is the one that was named, by ticker or by mint. */
function holds({ symbol, tokens }: YieldPool, token: string): boolean {
  const wanted = token.replace(/^\$/, '').toUpperCase();
  return (
    tokens.includes(token) ||
    symbol
      .toUpperCase()
      .split(/[-/+ ]+/)
      .includes(wanted)
  );
}

function sameName(a: string, b: string): boolean {
  const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '');
  return plain(a) === plain(b);
}

function riskOf(pool: YieldPool): { risk: Risk; points: number; reasons: string[] } {
  const against = RULES.filter((rule) => rule.applies(pool));
  const points = against.reduce((sum, rule) => sum + rule.points, 0);
  const risk = points >= HIGH_FROM ? 'high' : points >= MEDIUM_FROM ? 'medium' : 'low';
  return { risk, points, reasons: against.map(({ says }) => says) };
}
