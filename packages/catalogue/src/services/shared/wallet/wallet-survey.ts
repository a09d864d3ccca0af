import type { Source } from '@farebox/core/words/answer';
import type { ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { EVM_CHAIN_NAMES, type EvmChainName, evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import type { TokenLists } from '../../listed-tokens.ts';
import { isEvmAddress } from './wallet-address.ts';
import { choice, isNotConfigured } from './wallet-chains.ts';
import {
  type ChainHoldings,
  evmHoldings,
  type Holding,
  nameOf,
  solanaHoldings,
  type TokenHolding,
  toMicroUsd,
  worth,
} from './wallet-holdings.ts';
import {
  listedCoins,
  nativeCoin,
  type PoolPrices,
  poolPrices,
  type SettledPrice,
  settledPrice,
  type UsdPrices,
  usdPrices,
} from './wallet-prices.ts';
import { type SoughtTokens, tokensToSeek } from './wallet-tokens.ts';

/** Where wallets are read: any one chain is enough, but prices are required. */
export const SURVEY_NEEDS = [[...EVM_CHAIN_NAMES, 'solana'], 'defillama'] as const;
/** Asked beside: a second price of each token. */
export const SURVEY_USES = ['dexscreener'] as const;
export type SurveyUpstreams = Pick<Upstreams, EvmChainName | 'solana' | 'defillama' | 'dexscreener'>;

/** A holding with what it is worth; null where nobody knows a sure price. */
export type Valued<Held extends Holding> = Held & {
  priceUsd: number | null;
  valueUsd: number | null;
  /** The prices that it follows from, and how far they agree. */
  priced: SettledPrice;
};

export interface SurveyedChain extends Omit<ChainHoldings, 'native' | 'tokens'> {
  native: Valued<Holding>;
  tokens: Valued<TokenHolding>[];
  priceSources: Source[];
  error: null;
}

export interface UnreadChain {
  chain: ChainName;
  error: 'not_configured' | 'unavailable' | 'other_kind_of_address';
}

export interface Survey {
  /** In the order in which the chains were asked for. */
  chains: (SurveyedChain | UnreadChain)[];
  /** What could be priced, in USD. */
  totalValueUsd: number;
  /**
   * True when the wallet may hold more: a chain that was asked for was not read, something held has no price or is left
   * out, or only some tokens of a chain, or none, were looked for.
   */
  totalIsPartial: boolean;
  sources: Source[];
  notes: string[];
}

/** What a survey reads with. */
export interface SurveyContext {
  upstreams: SurveyUpstreams;
  /** Undefined where no list is configured. */
  tokenLists?: TokenLists | undefined;
  nowMs(): number;
}

/**
 * What a wallet holds on several chains, each read at one block of its own, and what it is worth now.
 *
 * @param chains all that are configured for this kind of address, when none is given
 * @throws noAnswer when none of the chains can be read; UpstreamUnavailable when none answers, or prices are not to be had
 */
export async function surveyWallet(
  request: { wallet: string; chains: readonly ChainName[] | undefined; withTokens: boolean },
  { upstreams, tokenLists, nowMs }: SurveyContext,
): Promise<Survey> {
  const { wallet, withTokens } = request;
  const named = request.chains !== undefined && request.chains.length > 0;
  const asked = named
    ? (request.chains ?? [])
    : isEvmAddress(wallet)
      ? EVM_CHAIN_NAMES
      : (['solana'] as const);

  const failures: UpstreamUnavailable[] = [];
  const read = await Promise.all(
    asked.map(async (chain): Promise<SurveyedChain | UnreadChain> => {
      if ((chain === 'solana') === isEvmAddress(wallet)) return { chain, error: 'other_kind_of_address' };
      try {
        return await surveyChain(chain, wallet, withTokens, { upstreams, tokenLists, nowMs });
      } catch (error) {
        // Without prices there is no answer; without one chain there is one about the others.
        if (!(error instanceof UpstreamUnavailable) || error.upstream === 'defillama') throw error;
        if (isNotConfigured(error)) return { chain, error: 'not_configured' };
        failures.push(error);
        return { chain, error: 'unavailable' };
      }
    }),
  );
  const surveyed = read.filter((one) => one.error === null);
  if (surveyed.length === 0) {
    const [failure] = failures;
    if (failure !== undefined) throw failure;
    throw noAnswer(
      'NO_CHAIN_TO_READ',
      `None of these chains can be read for this address: ${asked.join(', ')}. ${await choice(upstreams)}`,
      'chains',
    );
  }

  // A chain that the caller did not name and that is not configured here is not reported.
  const chains = read.filter(({ error }) => named || error !== 'not_configured');
  const missing = chains.filter((one) => one.error !== null);
  const held = surveyed.flatMap(({ native, tokens }) => [native, ...tokens]);
  const unpriced = held.filter(({ amount, valueUsd }) => amount > 0n && valueUsd === null);
  const someTokensOnly =
    !withTokens || surveyed.some(({ tokensChecked, leavesOut }) => tokensChecked !== null || leavesOut);
  return {
    chains,
    totalValueUsd: toMicroUsd(held.reduce((sum, { valueUsd }) => sum + (valueUsd ?? 0), 0)),
    totalIsPartial:
      someTokensOnly || unpriced.length > 0 || missing.some(({ error }) => error !== 'other_kind_of_address'),
    sources: surveyed.flatMap(({ source, listSources, priceSources }) => [
      source,
      ...listSources,
      ...priceSources,
    ]),
    notes: [
      ...surveyed.flatMap(({ notes }) => notes),
      ...missing.map(({ chain, error }) => `${chain} is not in the total: ${error.replaceAll('_', ' ')}.`),
      ...(unpriced.length === 0
        ? []
        : [`Not in the total, for want of a sure price: ${someOf(unpriced.map(nameOf))}.`]),
      ...disagreements(held),
      ...coverage(withTokens, wallet),
    ],
  };
}

/** How many holdings a note names. */
const MOST_NAMED = 20;

function someOf(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return more > 0 ? `${names.slice(0, MOST_NAMED).join(', ')} and ${more} more` : names.join(', ');
}

function disagreements(held: readonly Valued<Holding>[]): string[] {
  const apart = held.filter(({ amount, priced }) => amount > 0n && priced.agreement === 'disagree');
  return apart.length === 0
    ? []
    : [
        `Two sources disagree on the price of: ${someOf(apart.map(nameOf))}. The lower price counts, and pricesBy has both.`,
      ];
}

function coverage(withTokens: boolean, wallet: string): string[] {
  if (!withTokens) return ['Only native coins were read.'];
  return isEvmAddress(wallet)
    ? [
        'Only the tokens in tokensChecked were looked for; the wallet may hold others, and positions in contracts.',
      ]
    : ["All token accounts were read, but not positions in programs. Symbols are DefiLlama's."];
}

async function surveyChain(
  chain: ChainName,
  wallet: string,
  withTokens: boolean,
  { upstreams, tokenLists, nowMs }: SurveyContext,
): Promise<SurveyedChain> {
  if (chain !== 'solana' && isEvmAddress(wallet)) {
    const sought = withTokens ? await tokensToSeek(chain, tokenLists) : NO_TOKENS;
    const held = await evmHoldings(upstreams[chain], wallet, sought);
    const coins = held.tokens.map(({ coin }) => coin);
    const prices = await usdPrices(coins, upstreams, nowMs(), listedCoins(chain));
    return valued(held, prices, upstreams);
  }
  const held = await solanaHoldings(upstreams, wallet, withTokens);
  const coins = [nativeCoin('solana'), ...held.tokens.map(({ coin }) => coin)];
  return valued(held, await usdPrices(coins, upstreams, nowMs()), upstreams);
}

const NO_TOKENS: SoughtTokens = { tokens: [], lists: [], sources: [], notes: [] };

/** The holdings with the prices of two sources: the most valuable by the first are the ones that the second is asked for. */
async function valued(
  held: ChainHoldings,
  prices: UsdPrices,
  upstreams: Pick<Upstreams, 'dexscreener'>,
): Promise<SurveyedChain> {
  const worthFirst = [...held.tokens]
    .map((token) => ({ token, usd: worth(token, prices.of(token.coin).usd ?? 0) }))
    .sort((a, b) => b.usd - a.usd)
    .map(({ token }) => token.address);
  const wrapped = held.chain === 'solana' ? null : evmChainFacts(held.chain).wrappedNative.address;
  const asked = wrapped === null || held.native.amount === 0n ? worthFirst : [wrapped, ...worthFirst];
  const pools = await poolPrices(held.chain, [...new Set(asked)], upstreams);
  return {
    ...held,
    native: valuedHolding(held.native, prices, pools, wrapped),
    tokens: held.tokens.map((token) => valuedHolding(token, prices, pools, token.address)),
    priceSources: pools.source === null ? [...prices.sources] : [...prices.sources, pools.source],
    notes: [...held.notes, ...pools.notes],
    error: null,
  };
}

/** @param poolAddress the token by which its pools are found; null: there is none */
function valuedHolding<Held extends Holding>(
  holding: Held,
  prices: UsdPrices,
  pools: PoolPrices,
  poolAddress: string | null,
): Valued<Held> {
  const { usd, symbol } = prices.of(holding.coin);
  const priced = settledPrice(usd, poolAddress === null ? null : pools.of(poolAddress));
  return {
    ...holding,
    symbol: holding.symbol ?? symbol,
    priceUsd: priced.usd,
    valueUsd: priced.usd === null ? null : worth(holding, priced.usd),
    priced,
  };
}
