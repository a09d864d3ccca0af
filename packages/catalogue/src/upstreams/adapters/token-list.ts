/** Reads lists of tokens that others publish in the Token Lists format. https://github.com/Uniswap/token-lists */
import { type Address, getAddress, isAddress } from 'viem';
import { z } from 'zod';
import { EVM_CHAIN_NAMES, type EvmChainName, evmChainFacts } from './evm-chains.ts';
import { InvalidList, listTime } from './published-list.ts';

/** A token as a published list names it. Whoever keeps the list wrote the symbol: it is no proof of what the token is. */
export interface PublishedToken {
  chain: EvmChainName;
  /** EIP-55 spelling. */
  address: Address;
  symbol: string;
}

export interface PublishedTokens {
  /** When the publisher made the list, as it states itself (ISO 8601). */
  publishedAt: string;
  /** Each token of the chains that this server knows, once. */
  tokens: PublishedToken[];
}

/** More tokens than the longest published list has. */
const MOST_TOKENS = 50_000;
const MOST_SYMBOL_CHARACTERS = 40;
/** If more of the entries cannot be read, the file is taken for another kind of file. */
const MOST_UNREADABLE_SHARE = 0.2;

const list = z.looseObject({
  timestamp: z.string().max(100),
  tokens: z.array(z.unknown()).max(MOST_TOKENS),
});
const entry = z.looseObject({
  chainId: z.number().int(),
  address: z.string().refine((value) => isAddress(value, { strict: false })),
  symbol: z.string().trim().min(1).max(MOST_SYMBOL_CHARACTERS),
});

const CHAIN_OF = new Map(EVM_CHAIN_NAMES.map((name) => [evmChainFacts(name).chainId, name]));

/**
 * Reads a token list. An entry that cannot be read is left out and keeps no other out; entries of other chains are not
 * counted.
 *
 * @throws InvalidList when it is cut off, says no time, or a fifth of its entries cannot be read
 */
export async function readTokenList(bytes: Buffer): Promise<PublishedTokens> {
  let raw: unknown;
  try {
    raw = JSON.parse(bytes.toString('utf8'));
  } catch (cause) {
    throw new InvalidList('not a whole list: not JSON', { cause });
  }
  const parsed = list.safeParse(raw);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new InvalidList(`${issue?.path.join('.')}: ${issue?.message}`);
  }
  const entries = parsed.data.tokens;
  const tokens = new Map<string, PublishedToken>();
  let unreadable = 0;
  for (const each of entries) {
    const token = entry.safeParse(each);
    if (!token.success) {
      // Lists of several kinds of chains have addresses that are none of Ethereum's.
      if (!isOfAnotherChain(each)) unreadable += 1;
      continue;
    }
    const { chainId, address, symbol } = token.data;
    const chain = CHAIN_OF.get(chainId);
    if (chain === undefined) continue;
    const key = `${chain}:${address.toLowerCase()}`;
    if (!tokens.has(key)) tokens.set(key, { chain, address: getAddress(address), symbol });
  }
  if (unreadable > entries.length * MOST_UNREADABLE_SHARE) {
    throw new InvalidList(`${unreadable} of its ${entries.length} entries cannot be read`);
  }
  return { publishedAt: listTime(parsed.data.timestamp), tokens: [...tokens.values()] };
}

function isOfAnotherChain(each: unknown): boolean {
  const { success, data } = z.looseObject({ chainId: z.number() }).safeParse(each);
  return success && !CHAIN_OF.has(data.chainId);
}
