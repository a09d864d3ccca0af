import { chainName, outsiderText, tokenAddress } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, notFound, UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, formatUnits, getAddress, isAddress } from 'viem';
import { z } from 'zod';
import { llamaToken } from '../../upstreams/adapters/defillama.ts';
import { EVM_CHAIN_NAMES, evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import {
  findPools,
  readPools,
  sameAddress,
  spotPrice,
  type V3PoolState,
} from '../shared/chain/chain-pools.ts';
import { readTokens, type TokenFacts } from '../shared/chain/chain-token.ts';
import { MIN_POOL_USD } from '../shared/market/dex-market.ts';
import { headOf } from '../shared/wallet/wallet-chains.ts';
import { usdPrices } from '../shared/wallet/wallet-prices.ts';

const MOST_POOLS = 50;

const usd = z.number().nonnegative().nullable();
const pool = z.object({
  dex: outsiderText(60).describe('The exchange'),
  pairAddress: z.string().describe('Address of the pool'),
  baseSymbol: outsiderText(60).nullable().describe('Ticker of the base token; null where nobody knows it'),
  baseAddress: z.string().describe('The base token'),
  quoteSymbol: outsiderText(60).nullable().describe('Ticker of the quote token; null where nobody knows it'),
  quoteAddress: z.string().describe('The quote token'),
  liquidityUsd: usd.describe('Value of both sides; null where it could not be valued'),
  volume24hUsd: usd.describe('Null for pools that only the chain knows'),
  feeTierPct: z.number().nullable().describe('Percent of a swap; null where the source does not say'),
  priceUsd: z.number().positive().nullable().describe('Of the base token in this pool'),
  baseReserve: z.string().nullable().describe('In whole tokens; null where it was not read from the chain'),
  quoteReserve: z.string().nullable().describe('In whole tokens; null where it was not read from the chain'),
  source: z
    .enum(['chain', 'dexscreener', 'chain+dexscreener'])
    .describe('Who says so; of `chain+dexscreener` the volume is from DexScreener, the rest from the chain'),
});
type Pool = z.input<typeof pool>;

export const output = z.object({
  tokenAddress: z.string().describe('Address of the token'),
  chain: z.enum(CHAINS).describe('The chain, by name'),
  pools: z.array(pool).describe(`Deepest first, at most ${MOST_POOLS}`),
  totalLiquidity: z.number().nonnegative().describe('USD, sum over the pools that could be valued'),
  poolCount: z.number().int().describe(`Pools found that hold at least ${MIN_POOL_USD} USD or have no value`),
  blockNumber: z.number().int().nullable().describe('Where pools were read on chain; null where none were'),
});

type DexUpstreams = Pick<Upstreams, (typeof EVM_CHAIN_NAMES)[number] | 'dexscreener' | 'defillama'>;

export default defineService({
  path: 'dex-liquidity',
  name: 'DEX Liquidity Monitor',
  tag: 'Trading Intelligence',
  priceUsd: '0.20',
  summary:
    'Pools of a token on one chain with depth, volume, fee and price: DexScreener’s pairs and Uniswap v3 read on chain.',
  keywords:
    'pool pools depth liquidity tvl slippage uniswap pair pairs swap enough sell trade volume decentralized exchange dex thin deep market',
  input: z.object({
    tokenAddress,
    chain: chainName,
    tokenB: tokenAddress.optional().describe('Only pools against this token'),
  }),
  output,
  example: { tokenAddress: '0x4200000000000000000000000000000000000006', chain: 'base' },
  aliases: {
    token: 'tokenAddress',
    address: 'tokenAddress',
    contractAddress: 'tokenAddress',
    tokenA: 'tokenAddress',
    chainId: 'chain',
    network: 'chain',
  },
  needs: [['dexscreener', ...EVM_CHAIN_NAMES]],
  uses: ['defillama'],
  async run({ tokenAddress: token, chain, tokenB }, { upstreams, nowMs }) {
    for (const [field, address] of [
      ['tokenAddress', token],
      ['tokenB', tokenB],
    ] as const) {
      if (address !== undefined && address.startsWith('0x') === (chain === 'solana')) {
        throw noAnswer('OTHER_KIND_OF_ADDRESS', `${address} is no address of ${chain}.`, field);
      }
    }
    const [listed, onChain] = await Promise.all([
      heard(pairsOf(chain, token, tokenB ?? null, upstreams)),
      heard(uniswapPools(chain, token, tokenB ?? null, upstreams, nowMs())),
    ]);
    if ('failure' in listed && 'failure' in onChain) throw listed.failure;

    const notes: string[] = [];
    const sources: Source[] = [];
    const found = new Map<string, Pool>();
    let blockNumber: number | null = null;
    if ('failure' in onChain) {
      if (chain !== 'solana') notes.push(`Pools on chain were not read (${onChain.failure.reason}).`);
    } else {
      if (!onChain.value.isContract) {
        throw notFound('tokenAddress', `There is no contract at ${token} on ${chain}.`);
      }
      blockNumber = onChain.value.blockNumber;
      sources.push(...onChain.value.sources);
      notes.push(...onChain.value.notes);
      for (const one of onChain.value.pools) found.set(one.pairAddress.toLowerCase(), one);
    }
    if ('failure' in listed) {
      notes.push(
        `dexscreener did not answer (${listed.failure.reason}): only Uniswap v3 pools are here, without volumes.`,
      );
    } else {
      sources.push(listed.value.source);
      for (const one of listed.value.pools) {
        const key = one.pairAddress.toLowerCase();
        const read = found.get(key);
        found.set(key, read === undefined ? one : merged(read, one));
      }
      if (found.size === 0 && 'failure' in onChain) {
        throw notFound('tokenAddress', `DexScreener knows no pool of ${token} on ${chain}.`);
      }
    }

    const all = [...found.values()];
    const worthwhile = all
      .filter(({ liquidityUsd }) => liquidityUsd === null || liquidityUsd >= MIN_POOL_USD)
      .sort((a, b) => (b.liquidityUsd ?? -1) - (a.liquidityUsd ?? -1));
    const valued = worthwhile.map(({ liquidityUsd }) => liquidityUsd).filter((value) => value !== null);
    const tiny = all.length - worthwhile.length;
    if (tiny > 0) notes.push(`${tiny} pool(s) with less than ${MIN_POOL_USD} USD are left out.`);
    if (valued.length < worthwhile.length) {
      notes.push(
        `${worthwhile.length - valued.length} pool(s) could not be valued and are not in the total.`,
      );
    }
    if (worthwhile.length > MOST_POOLS) {
      notes.push(`The ${MOST_POOLS} deepest pools are listed; the total is over all of them.`);
    }
    return pricedAnswer(
      {
        tokenAddress: token,
        chain,
        pools: worthwhile.slice(0, MOST_POOLS),
        totalLiquidity: cents(valued.reduce((sum, value) => sum + value, 0)),
        poolCount: worthwhile.length,
        blockNumber,
      },
      {
        method:
          'DexScreener’s pairs of the token, joined by pool address with the Uniswap v3 pools that the factory names for the token ' +
          'against USDC and the wrapped native coin (or tokenB) in every fee tier. Those are valued by what the pool contract holds, ' +
          'uncollected fees included: the quote side at DefiLlama’s price, the token at the pool’s own.',
        sources,
        notes,
      },
    );
  },
});

async function heard<T>(question: Promise<T>): Promise<{ value: T } | { failure: UpstreamUnavailable }> {
  try {
    return { value: await question };
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return { failure: error };
    throw error;
  }
}

async function pairsOf(
  chain: ChainName,
  token: string,
  other: string | null,
  { dexscreener }: DexUpstreams,
): Promise<{ pools: Pool[]; source: Source }> {
  const { value, source } = await dexscreener.pairsOf(chain, token);
  const wanted = value.filter(
    ({ base, quote }) =>
      other === null || sameAddress(base.address, other) || sameAddress(quote.address, other),
  );
  const pools = wanted.map((pair) => ({
    dex: [pair.dex, ...pair.labels].join(' '),
    pairAddress: pair.pairAddress,
    baseSymbol: pair.base.symbol,
    baseAddress: pair.base.address,
    quoteSymbol: pair.quote.symbol,
    quoteAddress: pair.quote.address,
    liquidityUsd: pair.liquidityUsd,
    volume24hUsd: pair.volume24hUsd,
    feeTierPct: null,
    priceUsd: pair.priceUsd,
    baseReserve: null,
    quoteReserve: null,
    source: 'dexscreener' as const,
  }));
  return { pools, source };
}

/** The same pool from both sources. The chain's values take precedence. */
function merged(read: Pool, listed: Pool): Pool {
  return {
    ...read,
    volume24hUsd: listed.volume24hUsd,
    liquidityUsd: read.liquidityUsd ?? listed.liquidityUsd,
    source: 'chain+dexscreener',
  };
}

interface OnChain {
  isContract: boolean;
  pools: Pool[];
  blockNumber: number;
  sources: Source[];
  notes: string[];
}

async function uniswapPools(
  name: ChainName,
  written: string,
  other: string | null,
  upstreams: DexUpstreams,
  nowMs: number,
): Promise<OnChain> {
  if (name === 'solana' || !isAddress(written, { strict: false })) {
    throw new UpstreamUnavailable(name, 'not_configured', 'Uniswap is not on this chain', 0);
  }
  const chain = upstreams[name];
  const { blockNumber, source } = await headOf(chain);
  const token = getAddress(written);
  const code = await chain.client.getCode({ address: token, blockNumber });
  const place = { blockNumber: Number(blockNumber), sources: [source], notes: [] };
  if (code === undefined || code === '0x') return { ...place, isContract: false, pools: [] };

  const { usdc, wrappedNative } = evmChainFacts(name);
  const quotes = (other === null ? [usdc, wrappedNative.address] : [getAddress(other)]).filter(
    (quote) => !sameAddress(quote, token),
  );
  const found = await findPools(
    chain,
    quotes.map((quote) => [token, quote]),
    blockNumber,
  );
  const [states, tokens, prices] = await Promise.all([
    readPools(chain, found.flat(), blockNumber),
    readTokens(chain, [token, ...quotes], blockNumber),
    heard(
      usdPrices(
        quotes.map((quote) => llamaToken(name, quote)),
        upstreams,
        nowMs,
      ),
    ),
  ]);
  const usdOf = (address: Address) =>
    'failure' in prices ? null : prices.value.of(llamaToken(name, address)).usd;
  const notes: string[] = [];
  if ('failure' in prices) {
    notes.push(`Pools on chain have no value in USD: defillama did not answer (${prices.failure.reason}).`);
  }
  return {
    ...place,
    isContract: true,
    pools: states.flatMap((state) => {
      const quote = sameAddress(state.token0, token) ? state.token1 : state.token0;
      const facts = [tokens.get(token.toLowerCase()), tokens.get(quote.toLowerCase())] as const;
      return poolOf(state, facts, usdOf(quote));
    }),
    sources: 'failure' in prices ? [source] : [source, prices.value.sources[0]],
    notes,
  };
}

/** Empty where a token does not say its decimals: then amounts of it mean nothing. */
function poolOf(
  state: V3PoolState,
  [base, quote]: readonly [TokenFacts | undefined, TokenFacts | undefined],
  quoteUsd: number | null,
): Pool[] {
  if (base === undefined || quote === undefined || base.decimals === null || quote.decimals === null)
    return [];
  const isFirst = sameAddress(base.address, state.token0);
  const baseReserve = formatUnits(isFirst ? state.balance0 : state.balance1, base.decimals);
  const quoteReserve = formatUnits(isFirst ? state.balance1 : state.balance0, quote.decimals);
  const priceInQuote = spotPrice(state, base.address) * 10 ** (base.decimals - quote.decimals);
  const usdFrom = (amountInQuote: number) =>
    // Contracts may claim any decimals and any balance. A value that no number can hold counts as unknown.
    quoteUsd === null || !Number.isFinite(amountInQuote * quoteUsd) ? null : amountInQuote * quoteUsd;
  const liquidityUsd = usdFrom(Number(quoteReserve) + Number(baseReserve) * priceInQuote);
  const priceUsd = usdFrom(priceInQuote);
  return [
    {
      dex: 'uniswap v3',
      pairAddress: state.address,
      baseSymbol: base.symbol,
      baseAddress: base.address,
      quoteSymbol: quote.symbol,
      quoteAddress: quote.address,
      liquidityUsd: liquidityUsd === null ? null : cents(liquidityUsd),
      volume24hUsd: null,
      feeTierPct: state.fee / 10_000,
      priceUsd: priceUsd === null || priceUsd === 0 ? null : Number(priceUsd.toPrecision(12)),
      baseReserve,
      quoteReserve,
      source: 'chain',
    },
  ];
}

function cents(usdAmount: number): number {
  return Math.round(usdAmount * 100) / 100;
}
