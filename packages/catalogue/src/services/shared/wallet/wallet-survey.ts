import type { Source } from '@farebox/core/words/answer';
import type { ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { EVM_CHAIN_NAMES, type EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { isEvmAddress } from './wallet-address.ts';
import { choice, isNotConfigured } from './wallet-chains.ts';
import {
  type ChainHoldings,
  evmHoldings,
  type Holding,
  solanaHoldings,
  type TokenHolding,
  toMicroUsd,
  worth,
} from './wallet-holdings.ts';
import { listedCoins, nativeCoin, type UsdPrices, usdPrices } from './wallet-prices.ts';

/** Where wallets are read: any one chain is enough, but prices are required. */
export const SURVEY_NEEDS = [[...EVM_CHAIN_NAMES, 'solana'], 'defillama'] as const;
export type SurveyUpstreams = Pick<Upstreams, EvmChainName | 'solana' | 'defillama'>;

/** A holding with what it is worth; null where nobody knows a sure price. */
export type Valued<Held extends Holding> = Held & { priceUsd: number | null; valueUsd: number | null };

export interface SurveyedChain extends Omit<ChainHoldings, 'native' | 'tokens'> {
  native: Valued<Holding>;
  tokens: Valued<TokenHolding>[];
  priceSource: Source;
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
   * True when the wallet may hold more: a chain that was asked for was not read, something held has no price, or only some
   * tokens of a chain were looked for.
   */
  totalIsPartial: boolean;
  sources: Source[];
  notes: string[];
}

/**
 * What a wallet holds on several chains, each read at one block of its own, and what it is worth now.
 *
 * @param chains all that are configured for this kind of address, when none is given
 * @throws noAnswer when none of the chains can be read; UpstreamUnavailable when none answers, or prices are not to be had
 */
export async function surveyWallet(
  request: { wallet: string; chains: readonly ChainName[] | undefined; withTokens: boolean },
  upstreams: SurveyUpstreams,
  nowMs: number,
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
        return await surveyChain(chain, wallet, withTokens, upstreams, nowMs);
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
  const someTokensOnly = withTokens && surveyed.some(({ tokensChecked }) => tokensChecked !== null);
  return {
    chains,
    totalValueUsd: toMicroUsd(held.reduce((sum, { valueUsd }) => sum + (valueUsd ?? 0), 0)),
    totalIsPartial:
      someTokensOnly || unpriced.length > 0 || missing.some(({ error }) => error !== 'other_kind_of_address'),
    sources: surveyed.flatMap(({ source, priceSource }) => [source, priceSource]),
    notes: [
      ...surveyed.flatMap(({ notes }) => notes),
      ...missing.map(({ chain, error }) => `${chain} is not in the total: ${error.replaceAll('_', ' ')}.`),
      ...(unpriced.length === 0
        ? []
        : [`Not in the total, for want of a sure price: ${unpriced.map(nameOf).join(', ')}.`]),
      ...coverage(withTokens, wallet),
    ],
  };
}

/** How to call a holding in a note. */
export function nameOf({ chain, symbol, address }: Holding): string {
  return `${symbol ?? address} on ${chain}`;
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
  upstreams: SurveyUpstreams,
  nowMs: number,
): Promise<SurveyedChain> {
  if (chain !== 'solana' && isEvmAddress(wallet)) {
    const [held, prices] = await Promise.all([
      evmHoldings(upstreams[chain], wallet, withTokens),
      usdPrices(listedCoins(chain), upstreams, nowMs),
    ]);
    return valued(held, prices);
  }
  const held = await solanaHoldings(upstreams, wallet, withTokens);
  const coins = [nativeCoin('solana'), ...held.tokens.map(({ coin }) => coin)];
  return valued(held, await usdPrices(coins, upstreams, nowMs));
}

function valued(held: ChainHoldings, prices: UsdPrices): SurveyedChain {
  return {
    ...held,
    native: valuedHolding(held.native, prices),
    tokens: held.tokens.map((token) => valuedHolding(token, prices)),
    priceSource: prices.source,
    error: null,
  };
}

function valuedHolding<Held extends Holding>(holding: Held, prices: UsdPrices): Valued<Held> {
  const { usd, symbol } = prices.of(holding.coin);
  return {
    ...holding,
    symbol: holding.symbol ?? symbol,
    priceUsd: usd,
    valueUsd: usd === null ? null : worth(holding, usd),
  };
}
