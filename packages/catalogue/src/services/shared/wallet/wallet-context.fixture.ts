import type { TestChain } from '../../../../../../apps/shop/test/chain.fixture.ts';
import type { Service } from '../../../../../core/src/service/define.ts';
import type { UpstreamName, Upstreams } from '../../../upstreams/index.ts';
import type { RunContext } from '../../define.ts';
import { type FakeUpstreams, NOW_MS, notConfigured, reply, runContext } from '../../run-context.fixture.ts';

/** For tests: a wallet that nothing else uses. */
export const WALLET = '0x1111111111111111111111111111111111111111';
export const ETH = 'coingecko:ethereum';
export const USDC_COIN = 'base:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';

/** For tests: the chains of `startTestChain`, and what else is given. There is no second price and no index unless given. */
export function walletContext(
  { upstreams }: TestChain,
  fakes: FakeUpstreams = {},
  nowMs: number = NOW_MS,
): RunContext<UpstreamName> {
  const absent: FakeUpstreams = {
    dexscreener: { pairsOfTokens: notConfigured('dexscreener') },
    etherscan: { firstSent: notConfigured('etherscan') },
  };
  return { ...runContext({ ...upstreams, ...absent, ...fakes }), nowMs: () => nowMs };
}

/** For tests: buys a service as the paid call does, with the body checked. */
export function buy(service: Service, body: unknown, context: RunContext<UpstreamName>) {
  return service.run(service.input.parse(body), context);
}

/** For tests: a price source that knows these coins, in USD, as of `atMs`. */
export function pricesOf(usd: Record<string, number>, atMs = NOW_MS): Partial<Upstreams['defillama']> {
  return {
    currentPrices: async (coins) =>
      reply('defillama', {
        coins: Object.fromEntries(
          coins.flatMap((coin) => {
            const price = usd[coin];
            return price === undefined
              ? []
              : [[coin, { symbol: 'SYM', price, timestamp: atMs / 1_000, confidence: 0.99 }]];
          }),
        ),
      }),
  };
}
