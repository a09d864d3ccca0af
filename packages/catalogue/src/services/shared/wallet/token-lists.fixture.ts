import { createHash } from 'node:crypto';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import type { PublishedToken } from '../../../upstreams/adapters/token-list.ts';
import type { TokenLists } from '../../listed-tokens.ts';
import { NOW_MS } from '../../run-context.fixture.ts';

/** For tests: a list with these tokens of a chain, published the day before. */
export function tokenListsOf(
  chain: EvmChainName,
  tokens: readonly Omit<PublishedToken, 'chain'>[],
): TokenLists {
  const publishedAt = new Date(NOW_MS - 86_400_000).toISOString();
  const confirmedAt = new Date(NOW_MS).toISOString();
  return {
    configured: ['tokens-uniswap'],
    current: async (name) => ({
      name,
      title: `List ${name}`,
      publishedAt,
      confirmedAt,
      sha256: createHash('sha256').update(JSON.stringify(tokens)).digest('hex'),
      entries: tokens.length,
      on: (asked) => (asked === chain ? tokens.map((token) => ({ ...token, chain })) : []),
      source: {
        name: 'uniswaptokens',
        url: 'https://tokens.test/',
        asOf: publishedAt,
        retrievedAt: confirmedAt,
        cached: true,
        sandbox: false,
      },
    }),
  };
}
