/** Which tokens are looked for in a wallet, and how much of each it has. */
import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, erc20Abi } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import {
  type EvmChainName,
  evmChainFacts,
  type ListedToken,
} from '../../../upstreams/adapters/evm-chains.ts';
import { isListOf, type TokenLists } from '../../listed-tokens.ts';

/** Contracts asked in one call of Multicall3: some 15 million gas, which public nodes allow. */
const TOKENS_PER_CALL = 400;
/** A part of the tokens that fails as a whole is halved down to this. */
const LEAST_TOKENS_PER_CALL = 25;
const CALLS_AT_ONCE = 4;
/** More than the longest list of a chain has. What lies beyond is left out, and the answer says so. */
const MOST_TOKENS_OF_A_CHAIN = 12_000;

/** A published list that tokens were taken from, as answers state it. */
export interface TokenListFacts {
  list: string;
  publishedAt: string;
  confirmedAt: string;
  sha256: string;
  /** Its tokens of the chain. */
  entries: number;
}

export interface SoughtTokens {
  /** The well-known tokens of the chain first, then those of published lists, each once. */
  tokens: readonly ListedToken[];
  lists: TokenListFacts[];
  sources: Source[];
  notes: string[];
}

/**
 * The tokens to look for on a chain. A list that cannot be used is told in a note: without any list only the well-known
 * tokens are looked for.
 */
export async function tokensToSeek(
  chain: EvmChainName,
  tokenLists: TokenLists | undefined,
): Promise<SoughtTokens> {
  const found = new Map<string, ListedToken>();
  for (const token of evmChainFacts(chain).tokens) found.set(token.address.toLowerCase(), token);
  const sought: SoughtTokens = { tokens: [], lists: [], sources: [], notes: [] };
  for (const name of (tokenLists?.configured ?? []).filter((each) => isListOf(each, chain))) {
    try {
      const list = await tokenLists?.current(name);
      if (list === undefined) continue;
      const tokens = list.on(chain);
      for (const { address, symbol } of tokens) {
        const key = address.toLowerCase();
        if (!found.has(key)) found.set(key, { address, symbol });
      }
      const { publishedAt, confirmedAt, sha256 } = list;
      sought.lists.push({ list: name, publishedAt, confirmedAt, sha256, entries: tokens.length });
      sought.sources.push(list.source);
    } catch (error) {
      if (!(error instanceof UpstreamUnavailable)) throw error;
      sought.notes.push(`${error.message}: its tokens were not looked for on ${chain}.`);
    }
  }
  if (sought.lists.length === 0) {
    sought.notes.push(
      `No published list of tokens of ${chain} could be used: only ${found.size} well-known tokens were looked for.`,
    );
  }
  if (found.size > MOST_TOKENS_OF_A_CHAIN) {
    sought.notes.push(
      `The lists have ${found.size} tokens of ${chain}: ${MOST_TOKENS_OF_A_CHAIN} were looked for.`,
    );
  }
  return { ...sought, tokens: [...found.values()].slice(0, MOST_TOKENS_OF_A_CHAIN) };
}

export interface TokenBalances {
  /** Those with something in them. Decimals are the contract's own. */
  held: (ListedToken & { amount: bigint; decimals: number })[];
  /** Those whose contracts answered. */
  checked: ListedToken[];
  /** Those whose contracts did not. */
  silent: ListedToken[];
}

/**
 * How much a wallet has of each token at a block, by as few calls as there can be.
 *
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function tokenBalances(
  chain: EvmChain,
  wallet: Address,
  tokens: readonly ListedToken[],
  blockNumber: bigint,
): Promise<TokenBalances> {
  const amounts = await inTurns(tokens, (part) => amountsOf(chain, wallet, part, blockNumber));
  const checked = tokens.filter((_, index) => amounts[index] !== null);
  const silent = tokens.filter((_, index) => amounts[index] === null);
  const some = tokens.flatMap((token, index) => {
    const amount = amounts[index] ?? 0n;
    return amount > 0n ? [{ ...token, amount }] : [];
  });
  const decimals = await inTurns(some, (part) => decimalsOf(chain, part, blockNumber));
  const held: TokenBalances['held'] = [];
  some.forEach((token, index) => {
    const places = decimals[index];
    if (typeof places === 'number') held.push({ ...token, decimals: places });
  });
  // A balance without decimals is a number that nobody can read.
  const unread = some.filter((_, index) => typeof decimals[index] !== 'number');
  return {
    held,
    checked: checked.filter(({ address }) => !unread.some((each) => each.address === address)),
    silent: [...silent, ...unread],
  };
}

/** Asks for parts of the tokens, a few parts at a time. */
async function inTurns<Token, Value>(
  tokens: readonly Token[],
  ask: (part: readonly Token[]) => Promise<(Value | null)[]>,
): Promise<(Value | null)[]> {
  const parts: (readonly Token[])[] = [];
  for (let at = 0; at < tokens.length; at += TOKENS_PER_CALL)
    parts.push(tokens.slice(at, at + TOKENS_PER_CALL));
  const values: (Value | null)[] = [];
  for (let at = 0; at < parts.length; at += CALLS_AT_ONCE) {
    const some = await Promise.all(parts.slice(at, at + CALLS_AT_ONCE).map(ask));
    values.push(...some.flat());
  }
  return values;
}

/** The balance of each token, null where its contract gives none. */
async function amountsOf(
  chain: EvmChain,
  wallet: Address,
  tokens: readonly ListedToken[],
  blockNumber: bigint,
): Promise<(bigint | null)[]> {
  const answers = await chain.client.multicall({
    blockNumber,
    batchSize: 0,
    contracts: tokens.map(
      ({ address }) => ({ abi: erc20Abi, address, functionName: 'balanceOf', args: [wallet] }) as const,
    ),
  });
  // One token that burns all gas fails every other one of its part, with one and the same error.
  if (tokens.length > LEAST_TOKENS_PER_CALL && failedAsOne(answers)) {
    const half = Math.ceil(tokens.length / 2);
    const [first, second] = [tokens.slice(0, half), tokens.slice(half)];
    return [
      ...(await amountsOf(chain, wallet, first, blockNumber)),
      ...(await amountsOf(chain, wallet, second, blockNumber)),
    ];
  }
  return answers.map(({ result }) => (typeof result === 'bigint' ? result : null));
}

async function decimalsOf(
  chain: EvmChain,
  tokens: readonly ListedToken[],
  blockNumber: bigint,
): Promise<(number | null)[]> {
  const answers = await chain.client.multicall({
    blockNumber,
    batchSize: 0,
    contracts: tokens.map(({ address }) => ({ abi: erc20Abi, address, functionName: 'decimals' }) as const),
  });
  return answers.map(({ result }) => (typeof result === 'number' ? result : null));
}

function failedAsOne(
  answers: readonly { status: 'success' | 'failure'; error?: Error | undefined }[],
): boolean {
  const [first] = answers;
  return first?.error !== undefined && answers.every(({ error }) => error === first.error);
}
