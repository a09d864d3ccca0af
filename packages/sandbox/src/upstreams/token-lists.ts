/**
 * Lists of tokens in the Token Lists format, as Uniswap (one file) and CoinGecko (one file a chain) publish them.
 * https://github.com/Uniswap/token-lists
 */
import type { FastifyInstance } from 'fastify';
import { TOKENS, type Token } from './assets.ts';
import { dayOf } from './listed.ts';
import type { World } from './world.ts';

/** EIP-155 ids by CoinGecko's names of the chains. */
const PLATFORMS: Readonly<Record<string, { chain: Token['chain']; chainId: number }>> = {
  ethereum: { chain: 'ethereum', chainId: 1 },
  base: { chain: 'base', chainId: 8453 },
  'polygon-pos': { chain: 'polygon', chainId: 137 },
  'arbitrum-one': { chain: 'arbitrum', chainId: 42_161 },
  'optimistic-ethereum': { chain: 'optimism', chainId: 10 },
  'binance-smart-chain': { chain: 'bsc', chainId: 56 },
};
const CHAIN_IDS = new Map(Object.values(PLATFORMS).map(({ chain, chainId }) => [chain, chainId]));

function listOf(name: string, nowMs: number, tokens: readonly Token[]) {
  return {
    name,
    timestamp: `${dayOf(nowMs).iso}T00:00:00.000Z`,
    version: { major: 1, minor: 0, patch: 0 },
    tokens: tokens.flatMap(({ chain, address, symbol, name: title, decimals }) => {
      const chainId = CHAIN_IDS.get(chain);
      return chainId === undefined ? [] : [{ chainId, address, symbol, name: title, decimals }];
    }),
  };
}

/** https://tokens.uniswap.org */
export function uniswaptokens(app: FastifyInstance, { nowMs }: World): void {
  app.get('/', () => listOf('Sandbox tokens', nowMs(), TOKENS));
}

/** https://tokens.coingecko.com */
export function coingeckotokens(app: FastifyInstance, { nowMs }: World): void {
  app.get<{ Params: { platform: string } }>('/:platform/all.json', ({ params }, reply) => {
    const found = PLATFORMS[params.platform];
    if (found === undefined) return reply.code(404).send({ message: 'Not Found' });
    const { chain } = found;
    return listOf(
      `Sandbox tokens of ${chain}`,
      nowMs(),
      TOKENS.filter((token) => token.chain === chain),
    );
  });
}
