/** Published lists of tokens as services use them: dated copies, by chain. */
import type { Source } from '@farebox/core/words/answer';
import { EVM_CHAIN_NAMES, type EvmChainName } from '../upstreams/adapters/evm-chains.ts';
import type { PublishedToken } from '../upstreams/adapters/token-list.ts';

export type TokenListName = 'tokens-uniswap' | `tokens-coingecko-${EvmChainName}`;

/** Lists of tokens, by their names in answers. */
export const TOKEN_LIST_NAMES: readonly TokenListName[] = [
  'tokens-uniswap',
  ...EVM_CHAIN_NAMES.map((chain) => `tokens-coingecko-${chain}` as const),
];

/** The last published version of a list of tokens, within its maximum age. */
export interface TokenListInUse {
  name: TokenListName;
  title: string;
  /** The time of publication as the publisher states it (ISO 8601). */
  publishedAt: string;
  /** When the publisher last confirmed that this is the current list (ISO 8601). */
  confirmedAt: string;
  /** SHA-256 of the unchanged file, in hex. */
  sha256: string;
  /** How many tokens it has, of all chains. */
  entries: number;
  /** Its tokens of a chain. */
  on(chain: EvmChainName): readonly PublishedToken[];
  /** `asOf` is when it was published, `retrievedAt` when it was confirmed. */
  source: Source;
}

export interface TokenLists {
  /** The lists whose address is configured, in a fixed order. */
  readonly configured: readonly TokenListName[];
  /**
   * The current version of a list.
   *
   * @throws UpstreamUnavailable when it is not configured, was never fetched, or is older than its maximum age
   */
  current(name: TokenListName): Promise<TokenListInUse>;
}

/** Whether a list can have tokens of a chain. */
export function isListOf(name: TokenListName, chain: EvmChainName): boolean {
  return name === 'tokens-uniswap' || name === `tokens-coingecko-${chain}`;
}
