import { type Address, erc20Abi, getAddress, hexToBytes, parseAbi } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';

/** A token's facts as its contract states them; null when it states nothing, or nothing readable. */
export interface TokenFacts {
  /** With its checksum. */
  address: Address;
  name: string | null;
  symbol: string | null;
  decimals: number | null;
  /** In the token's smallest unit. */
  totalSupply: bigint | null;
}

/** Contracts may call themselves anything, of any length. */
const LONGEST_NAME = 100;
/** The first tokens, such as MKR, give their names as 32 bytes. */
const BYTES32_NAMES = parseAbi([
  'function name() view returns (bytes32)',
  'function symbol() view returns (bytes32)',
]);

/**
 * Reads tokens at one block, all of them together.
 *
 * @returns by address in lower case; a token of which nothing is known has nulls only
 */
export async function readTokens(
  chain: EvmChain,
  addresses: readonly Address[],
  blockNumber: bigint,
): Promise<ReadonlyMap<string, TokenFacts>> {
  const distinct = [...new Map(addresses.map((address) => [address.toLowerCase(), address])).values()];
  const answers = await chain.client.multicall({
    blockNumber,
    contracts: distinct.flatMap((address) => {
      const contract = { abi: erc20Abi, address } as const;
      return [
        { ...contract, functionName: 'name' } as const,
        { ...contract, functionName: 'symbol' } as const,
        { ...contract, functionName: 'decimals' } as const,
        { ...contract, functionName: 'totalSupply' } as const,
      ];
    }),
  });
  const tokens = distinct.map((address, index): TokenFacts => {
    const [name, symbol, decimals, totalSupply] = answers.slice(4 * index).map(({ result }) => result);
    return {
      address: getAddress(address),
      name: typeof name === 'string' ? readable(name) : null,
      symbol: typeof symbol === 'string' ? readable(symbol) : null,
      decimals: typeof decimals === 'number' ? decimals : null,
      totalSupply: typeof totalSupply === 'bigint' ? totalSupply : null,
    };
  });
  await nameFromWords(
    tokens.filter(({ name, symbol }) => name === null || symbol === null),
    chain,
    blockNumber,
  );
  return new Map(tokens.map((facts) => [facts.address.toLowerCase(), facts]));
}

/** Fills in the names of those that give them as 32 bytes. */
async function nameFromWords(nameless: readonly TokenFacts[], chain: EvmChain, blockNumber: bigint) {
  if (nameless.length === 0) return;
  const answers = await chain.client.multicall({
    blockNumber,
    contracts: nameless.flatMap(({ address }) => [
      { abi: BYTES32_NAMES, address, functionName: 'name' } as const,
      { abi: BYTES32_NAMES, address, functionName: 'symbol' } as const,
    ]),
  });
  nameless.forEach((token, index) => {
    token.name ??= readable(textOfBytes32(answers[2 * index]?.result));
    token.symbol ??= readable(textOfBytes32(answers[2 * index + 1]?.result));
  });
}

/** Null for 32 bytes that hold anything but text followed by zeros. */
function textOfBytes32(word: `0x${string}` | undefined): string | null {
  if (word === undefined) return null;
  const bytes = hexToBytes(word);
  const end = bytes.indexOf(0);
  const text = bytes.subarray(0, end === -1 ? bytes.length : end);
  if (bytes.subarray(text.length).some((byte) => byte !== 0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(text);
  } catch {
    return null;
  }
}

function readable(name: string | null): string | null {
  const cleaned = name?.replace(/\p{C}/gu, '').trim().slice(0, LONGEST_NAME);
  return cleaned === undefined || cleaned === '' ? null : cleaned;
}
