/** DefiLlama's list of all yield pools: a reply of more than ten megabytes, of which one chain is needed. */
import { z } from 'zod';

const fraction = z.number().nullish();

/** The fields of a row that are read. Figures are in percent and USD. */
const row = z
  .looseObject({
    pool: z.string().regex(/^[\w-]{1,64}$/),
    chain: z.string(),
    project: z.string(),
    symbol: z.string(),
    poolMeta: z.string().nullish(),
    tvlUsd: z.number(),
    apy: z.number(),
    apyBase: fraction,
    apyReward: fraction,
    apyMean30d: fraction,
    ilRisk: z.enum(['yes', 'no']).nullish(),
    exposure: z.enum(['single', 'multi']).nullish(),
    stablecoin: z.boolean().nullish(),
    outlier: z.boolean().nullish(),
    /** How many days of history it has. */
    count: z.number().nullish(),
    sigma: fraction,
    underlyingTokens: z.array(z.string().nullable()).nullish(),
  })
  .transform((wire) => ({
    id: wire.pool,
    project: wire.project,
    symbol: wire.symbol,
    meta: wire.poolMeta ?? null,
    tvlUsd: wire.tvlUsd,
    apyPercent: wire.apy,
    apyBasePercent: wire.apyBase ?? null,
    apyRewardPercent: wire.apyReward ?? null,
    apyMean30dPercent: wire.apyMean30d ?? null,
    impermanentLoss: wire.ilRisk === undefined || wire.ilRisk === null ? null : wire.ilRisk === 'yes',
    exposure: wire.exposure ?? null,
    isStablecoin: wire.stablecoin ?? null,
    isOutlier: wire.outlier ?? null,
    historyDays: wire.count ?? null,
    tokens: (wire.underlyingTokens ?? []).filter((token) => token !== null),
  }));

const list = z.looseObject({ status: z.literal('success'), data: z.array(z.unknown()).min(1) });

/** A pool as DefiLlama describes it; fields are null when it does not say. */
export type YieldPool = z.output<typeof row>;

export interface PoolList {
  pools: YieldPool[];
  /** Rows of the chain that do not have the documented shape and are left out. */
  unreadable: number;
}

/** The share of the wanted chain's rows that may be unreadable. With more, the format of the reply has changed. */
const MOST_UNREADABLE = 0.05;

/**
 * Reads the pools of a chain out of the reply.
 *
 * @throws when it does not have the documented shape
 */
export function readPools({ bytes, chain }: { bytes: Uint8Array; chain: string }): PoolList {
  const { data } = list.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  const wanted = data.filter((one) => Object(one).chain === chain);
  const pools = wanted.flatMap((one) => {
    const read = row.safeParse(one);
    return read.success ? [read.data] : [];
  });
  const unreadable = wanted.length - pools.length;
  if (unreadable > MOST_UNREADABLE * wanted.length) {
    throw new Error(`${unreadable} of ${wanted.length} pools do not have the documented shape`);
  }
  return { pools, unreadable };
}
