import type { Source } from '@farebox/core/words/answer';
import type { ChainName } from '@farebox/core/words/chain-names';
import { type Address, formatUnits } from 'viem';
import { llamaToken } from '../../../upstreams/adapters/defillama.ts';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import {
  type EvmChainName,
  evmChainFacts,
  type ListedToken,
} from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { headOf } from './wallet-chains.ts';
import { nativeCoin } from './wallet-prices.ts';
import { type SoughtTokens, type TokenListFacts, tokenBalances } from './wallet-tokens.ts';

/** Wallets with more tokens are full of advertising tokens. The rest is left out, and the answer says so. */
const MOST_SOLANA_TOKENS = 60;
const MOST_EVM_TOKENS = 200;
/** How many tokens a note names. */
const MOST_NAMED = 20;

/** Something that a wallet holds on one chain. */
export interface Holding {
  chain: ChainName;
  /** Null: the chain itself does not say (Solana). */
  symbol: string | null;
  /** Null: the chain's own coin. */
  address: string | null;
  decimals: number;
  /** In the smallest unit. */
  amount: bigint;
  /** What DefiLlama calls it. */
  coin: string;
}
export type TokenHolding = Holding & { address: string };

/** What a wallet holds on one chain, all of it at one block. */
export interface ChainHoldings {
  chain: ChainName;
  native: Holding;
  /** Those with something in them. */
  tokens: TokenHolding[];
  /** Tokens that were looked for and found to exist; null: every token account of the wallet. */
  tokensChecked: readonly ListedToken[] | null;
  /** The published lists that tokens were taken from. */
  tokenLists: TokenListFacts[];
  /** Whether something that was found is left out of `tokens`. */
  leavesOut: boolean;
  /** The block, or Solana's slot. */
  blockNumber: bigint;
  source: Source;
  /** Where the lists came from. */
  listSources: Source[];
  notes: string[];
}

/**
 * What a wallet holds on an EVM chain at the newest block: the coin, and of tokens those that are sought.
 *
 * @throws UpstreamUnavailable when the chain is not configured or cannot be reached
 */
export async function evmHoldings(
  chain: EvmChain,
  wallet: Address,
  sought: SoughtTokens,
): Promise<ChainHoldings> {
  const head = await headOf(chain);
  const held = await evmHoldingsAt(chain, wallet, sought.tokens, head.blockNumber);
  const { blockNumber, timestampMs } = head;
  return {
    ...held,
    blockNumber,
    tokenLists: sought.lists,
    listSources: sought.sources,
    notes: [...sought.notes, ...held.notes],
    source: chain.source({ blockNumber, timestampMs }),
  };
}

/** The same at any block whose state the node still has; viem's errors say that it has not. */
export async function evmHoldingsAt(
  chain: EvmChain,
  wallet: Address,
  sought: readonly ListedToken[],
  blockNumber: bigint,
): Promise<Omit<ChainHoldings, 'source' | 'listSources' | 'tokenLists'>> {
  const [amount, balances] = await Promise.all([
    chain.client.getBalance({ address: wallet, blockNumber }),
    tokenBalances(chain, wallet, sought, blockNumber),
  ]);
  const tokens = balances.held.map(
    ({ symbol, address, decimals, amount: held }): TokenHolding => ({
      chain: chain.name,
      symbol,
      address,
      decimals,
      amount: held,
      coin: llamaToken(chain.name, address),
    }),
  );
  const left = tokens.length - MOST_EVM_TOKENS;
  const shown = tokens.slice(0, MOST_EVM_TOKENS);
  return {
    chain: chain.name,
    native: {
      chain: chain.name,
      symbol: chain.nativeSymbol,
      address: null,
      decimals: 18,
      amount,
      coin: nativeCoin(chain.name),
    },
    tokens: shown,
    tokensChecked: balances.checked,
    leavesOut: left > 0,
    blockNumber,
    notes: [
      ...silence(chain.name, balances.silent),
      ...(left > 0 ? [`${left} more tokens of this wallet on ${chain.name} are left out.`] : []),
      ...namesakes(chain.name, shown),
    ],
  };
}

function silence(chain: EvmChainName, silent: readonly ListedToken[]): string[] {
  if (silent.length === 0) return [];
  const named = silent
    .slice(0, MOST_NAMED)
    .map(({ symbol, address }) => (isWellKnown(chain, address) ? symbol : address));
  const more = silent.length - named.length;
  return [
    `On ${chain} there was no answer from the contracts of: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}.`,
  ];
}

/** Tokens that bear the ticker of a well-known token of their chain, or of the chain's coin, at another address. */
function namesakes(chain: EvmChainName, tokens: readonly TokenHolding[]): string[] {
  const facts = evmChainFacts(chain);
  const known = new Map(
    facts.tokens.map(({ symbol, address }) => [symbol.toLowerCase(), address.toLowerCase()]),
  );
  return tokens
    .filter(({ symbol, address }) => {
      const name = (symbol ?? '').trim().toLowerCase();
      const own = known.get(name);
      if (own === undefined) return name === facts.nativeSymbol.toLowerCase();
      return own !== address.toLowerCase();
    })
    .slice(0, MOST_NAMED)
    .map(
      ({ address }) =>
        `The token ${address} on ${chain} bears the ticker of a well-known one, and is another.`,
    );
}

/**
 * What a wallet holds on Solana: SOL and all its token accounts.
 *
 * @throws UpstreamUnavailable when Solana is not configured or cannot be reached
 */
export async function solanaHoldings(
  { solana }: Pick<Upstreams, 'solana'>,
  wallet: string,
  withTokens: boolean,
): Promise<ChainHoldings> {
  const [lamports, accounts] = await Promise.all([
    solana.balanceOf(wallet),
    withTokens ? solana.tokenBalancesOf(wallet, null) : null,
  ]);
  const tokens = (accounts?.value ?? []).map(
    ({ mint, amount, decimals }): TokenHolding => ({
      chain: 'solana',
      symbol: null,
      address: mint,
      decimals,
      amount,
      coin: llamaToken('solana', mint),
    }),
  );
  const left = tokens.length - MOST_SOLANA_TOKENS;
  return {
    chain: 'solana',
    native: {
      chain: 'solana',
      symbol: 'SOL',
      address: null,
      decimals: 9,
      amount: lamports.value,
      coin: nativeCoin('solana'),
    },
    tokens: tokens.slice(0, MOST_SOLANA_TOKENS),
    tokensChecked: withTokens ? null : [],
    tokenLists: [],
    leavesOut: left > 0,
    blockNumber: BigInt(lamports.slot),
    source: lamports.source,
    listSources: [],
    notes: left > 0 ? [`${left} more tokens of this wallet on solana are left out.`] : [],
  };
}

/** How to call a holding in a note: by its ticker only where that is this server's own word. */
export function nameOf({ chain, symbol, address }: Holding): string {
  const isOwnWord = address === null || (chain !== 'solana' && isWellKnown(chain, address));
  return `${isOwnWord && symbol !== null ? symbol : address} on ${chain}`;
}

function isWellKnown(chain: EvmChainName, address: string): boolean {
  return evmChainFacts(chain).tokens.some((token) => token.address.toLowerCase() === address.toLowerCase());
}

/** An amount in whole units, exactly. */
export function inUnits({ amount, decimals }: Pick<Holding, 'amount' | 'decimals'>): string {
  return formatUnits(amount, decimals);
}

/** What a holding is worth at a price, in USD to a millionth. */
export function worth(holding: Pick<Holding, 'amount' | 'decimals'>, priceUsd: number): number {
  return toMicroUsd(Number(inUnits(holding)) * priceUsd);
}

/** Cuts what floating-point sums leave behind the millionth of a dollar. */
export function toMicroUsd(usd: number): number {
  return Math.round(usd * 1e6) / 1e6;
}
