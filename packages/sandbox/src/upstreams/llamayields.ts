/** https://yields.llama.fi: all pools in one list. The names of the lending projects are real; all figures are invented. */
import type { FastifyInstance } from 'fastify';
import { type ChainName, TOKENS, type Token } from './assets.ts';
import { keyOf, smooth, uniform } from './noise.ts';
import type { World } from './world.ts';

const HOUR_MS = 3_600_000;
const CHAIN_TITLES: Readonly<Record<ChainName, string>> = {
  ethereum: 'Ethereum',
  base: 'Base',
  polygon: 'Polygon',
  arbitrum: 'Arbitrum',
  optimism: 'Optimism',
  bsc: 'BSC',
  solana: 'Solana',
};
const STABLE_COINS = ['usd-coin', 'tether', 'dai'];
const LENDERS = ['kamino-lend', 'marginfi-lst', 'solend'];
const OTHER_LENDERS = ['aave-v3', 'compound-v3'];

interface Opened {
  chain: ChainName;
  project: string;
  symbol: string;
  exposure: 'single' | 'multi';
  tokens: string[];
  isStable: boolean;
  /** The yield in percent a year around which the pool's yield moves. */
  typicalPercent: number;
  rewardShare: number;
  tvlUsd: number;
}

export function llamayields(app: FastifyInstance, { seed, nowMs, pools }: World): void {
  const opened = [...TOKENS.flatMap(lent), ...swapped()];

  function lent(token: Token): Opened[] {
    const isStable = STABLE_COINS.includes(token.coin);
    return (token.chain === 'solana' ? LENDERS : OTHER_LENDERS).map((project) => {
      const key = keyOf(seed, `lent:${project}:${token.chain}:${token.address}`);
      return {
        chain: token.chain,
        project,
        symbol: token.symbol.toUpperCase(),
        exposure: 'single' as const,
        tokens: [token.address],
        isStable,
        typicalPercent: isStable ? 3 + 5 * uniform(key, 1) : 0.5 + 4 * uniform(key, 1),
        rewardShare: uniform(key, 2) < 0.3 ? 0.4 * uniform(key, 3) : 0,
        tvlUsd: token.liquidityUsd * (0.2 + 1.5 * uniform(key, 4)),
      };
    });
  }

  function swapped(): Opened[] {
    return pools.all.map((pool) => {
      const key = keyOf(seed, `swapped:${pool.address}`);
      return {
        chain: pool.chain,
        project: `${pool.dexId}-amm`,
        symbol: `${pool.base.symbol}-${pool.quote.symbol}`.toUpperCase(),
        exposure: 'multi' as const,
        tokens: [pool.base.address, pool.quote.address],
        isStable: STABLE_COINS.includes(pool.base.coin) && STABLE_COINS.includes(pool.quote.coin),
        typicalPercent: 365 * pool.feePercent * (0.15 + 0.5 * uniform(key, 1)),
        rewardShare: uniform(key, 2) < 0.4 ? 0.7 * uniform(key, 3) : 0,
        tvlUsd: pool.liquidityUsd,
      };
    });
  }

  app.get('/pools', () => {
    const hour = Math.floor(nowMs() / HOUR_MS);
    return {
      status: 'success',
      data: opened.map((one) => {
        const id = idOf(`${one.chain}:${one.project}:${one.tokens.join(':')}:${one.typicalPercent}`);
        const key = keyOf(seed, `yield:${id}`);
        const at = (when: number) => one.typicalPercent * Math.exp(0.25 * smooth(key, when / 36));
        const apy = at(hour);
        const reward = one.rewardShare === 0 ? null : apy * one.rewardShare;
        return {
          chain: CHAIN_TITLES[one.chain],
          project: one.project,
          symbol: one.symbol,
          tvlUsd: Math.round(one.tvlUsd * (1 + 0.05 * Math.tanh(smooth(key ^ 1, hour / 24)))),
          apyBase: apy - (reward ?? 0),
          apyReward: reward,
          apy,
          rewardTokens: reward === null ? null : [],
          pool: id,
          apyPct1D: apy - at(hour - 24),
          apyPct7D: apy - at(hour - 168),
          apyPct30D: apy - at(hour - 720),
          stablecoin: one.isStable,
          ilRisk: one.exposure === 'multi' && !one.isStable ? 'yes' : 'no',
          exposure: one.exposure,
          predictions: { predictedClass: null, predictedProbability: null, binnedConfidence: null },
          poolMeta: null,
          mu: one.typicalPercent,
          sigma: 0.05,
          count: 30 + Math.floor(600 * uniform(key, 9)),
          outlier: false,
          underlyingTokens: one.tokens,
          apyMean30d: one.typicalPercent,
        };
      }),
    };
  });
}

/** An id in the form of a UUID. */
function idOf(name: string): string {
  const hex = [0, 1, 2, 3].map((part) => keyOf(part, name).toString(16).padStart(8, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}
