/** How often providers say that they may be asked, beside how often each is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { burstOf } from '../budget.ts';
import type { UpstreamDefinition } from '../define.ts';
import { UPSTREAM_NAMES, UPSTREAMS, type UpstreamName } from '../index.ts';
import { overTheWire } from '../wire-server.fixture.ts';
import { coingecko } from './coingecko.ts';

/** Requests in any so many seconds, of one or of several sources that share a limit. */
const LIMITS: readonly (readonly [sources: readonly UpstreamName[], requests: number, seconds: number])[] = [
  // https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits: 10 a second, up to 15 in bursts; a bucket of 15 that fills by 10.
  [['coinbase'], 25, 1],
  // https://docs.etherscan.io/resources/rate-limits: 3 calls a second for a free key.
  [['etherscan'], 3, 1],
  // https://apiguide.geckoterminal.com/faq
  [['geckoterminal'], 30, 60],
  // https://docs.li.fi/api-reference/rate-limits: of quotes, without a key.
  [['lifi'], 75, 7_200],
  // https://docs.kalshi.com/getting_started/rate_limits: the lowest tier.
  [['kalshi'], 20, 1],
  // https://docs.polymarket.com/api-reference/rate-limits: markets, which have the lowest limit of those asked; books.
  [['polymarket'], 300, 10],
  [['polymarketclob'], 1_500, 10],
  // https://github.com/binance/binance-spot-api-docs: a weight of 6,000 a minute, and 5 for a book of 100 levels.
  [['binance'], 1_200, 60],
  [['dexscreener'], 300, 60],
  [['gdelt'], 2, 5],
  [['acs'], 500, 86_400],
  // www.sec.gov, for all of its servers together.
  [['edgar', 'sectickers'], 10, 1],
];

function mostWithin(name: UpstreamName, seconds: number): number {
  const definition: Pick<UpstreamDefinition<never>, 'burst' | 'requestsPerMinute'> = UPSTREAMS[name];
  const { requestsPerMinute } = definition;
  return burstOf(definition, requestsPerMinute) + (requestsPerMinute / 60) * seconds;
}

for (const [sources, requests, seconds] of LIMITS)
  test(`${sources.join(' and ')}: at most ${requests} requests in ${seconds} s`, () => {
    const most = sources.reduce((sum, name) => sum + mostWithin(name, seconds), 0);
    assert(most <= requests, `${most}`);
  });

test('documentation that was read has an address and a day', () => {
  for (const name of UPSTREAM_NAMES) {
    const { documentation }: Pick<UpstreamDefinition<never>, 'documentation'> = UPSTREAMS[name];
    if (documentation === undefined) continue;
    assert.equal(new URL(documentation.at).protocol, 'https:', name);
    assert.match(documentation.readOn, /^20\d\d-\d\d-\d\d$/, name);
  }
});

test('a key of CoinGecko goes into the header of the address that it is for', async () => {
  const replies = [{ path: '/simple/price', body: { bitcoin: { usd: 1 } } }];
  await overTheWire(
    coingecko,
    replies,
    async (api, asked) => {
      await api.coinMarket('bitcoin');
      assert.equal(asked[0]?.headers['x-cg-demo-api-key'], 'a-key');
      assert.equal(asked[0]?.headers['x-cg-pro-api-key'], undefined);
    },
    'a-key',
  );
  const headersAt = (baseUrl: string) => coingecko.authorize?.('a-key', baseUrl).headers;
  assert.deepEqual(headersAt('https://pro-api.coingecko.com/api/v3'), { 'x-cg-pro-api-key': 'a-key' });
  assert.deepEqual(headersAt('https://api.coingecko.com/api/v3'), { 'x-cg-demo-api-key': 'a-key' });
});
