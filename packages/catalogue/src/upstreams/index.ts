import type { Sources } from '@farebox/core/service/sources';
import { acs } from './acs.ts';
import { ai } from './ai.ts';
import { binance } from './binance.ts';
import { inCall } from './call-scope.ts';
import { cctp } from './cctp.ts';
import { censusgeocoder } from './censusgeocoder.ts';
import { cmr } from './cmr.ts';
import { coinbase } from './coinbase.ts';
import { coingecko } from './coingecko.ts';
import { defillama } from './defillama.ts';
import type { UpstreamDefinition } from './define.ts';
import { dexscreener } from './dexscreener.ts';
import { edgar } from './edgar.ts';
import { erddap } from './erddap.ts';
import { eusanctions } from './eusanctions.ts';
import { evmUpstream } from './evm.ts';
import { feargreed } from './feargreed.ts';
import { fhfa } from './fhfa.ts';
import { firms } from './firms.ts';
import { frankfurter } from './frankfurter.ts';
import { gdelt } from './gdelt.ts';
import { geckoterminal } from './geckoterminal.ts';
import { gibs } from './gibs.ts';
import { hackernews } from './hackernews.ts';
import { connectUpstream, type UpstreamConfig, type UpstreamConnection, type UpstreamParts } from './http.ts';
import { kalshi } from './kalshi.ts';
import { kraken } from './kraken.ts';
import { lifi } from './lifi.ts';
import { llamayields } from './llamayields.ts';
import { mixers } from './mixers.ts';
import { modis } from './modis.ts';
import { nws } from './nws.ts';
import { ofac } from './ofac.ts';
import { openmeteoair } from './openmeteoair.ts';
import { openmeteoarchive } from './openmeteoarchive.ts';
import { openmeteoflood } from './openmeteoflood.ts';
import { polymarket } from './polymarket.ts';
import { polymarketclob } from './polymarketclob.ts';
import { power } from './power.ts';
import { sales } from './sales.ts';
import { sectickers } from './sectickers.ts';
import { solana } from './solana.ts';
import { sourcify } from './sourcify.ts';
import { uksanctions } from './uksanctions.ts';
import { unsc } from './unsc.ts';

/** Every outside API and every chain that services may ask: one line each. */
export const UPSTREAMS = {
  acs,
  ai,
  arbitrum: evmUpstream('arbitrum'),
  base: evmUpstream('base'),
  binance,
  bsc: evmUpstream('bsc'),
  cctp,
  censusgeocoder,
  cmr,
  coinbase,
  coingecko,
  defillama,
  dexscreener,
  edgar,
  erddap,
  ethereum: evmUpstream('ethereum'),
  eusanctions,
  feargreed,
  fhfa,
  firms,
  frankfurter,
  gdelt,
  geckoterminal,
  gibs,
  hackernews,
  kalshi,
  kraken,
  lifi,
  llamayields,
  mixers,
  modis,
  nws,
  ofac,
  openmeteoair,
  openmeteoarchive,
  openmeteoflood,
  optimism: evmUpstream('optimism'),
  polygon: evmUpstream('polygon'),
  polymarket,
  polymarketclob,
  power,
  sales,
  sectickers,
  solana,
  sourcify,
  uksanctions,
  unsc,
} as const;

export type UpstreamName = keyof typeof UPSTREAMS;
export type Upstreams = { [Name in UpstreamName]: ReturnType<(typeof UPSTREAMS)[Name]['open']> };
export const UPSTREAM_NAMES = Object.keys(UPSTREAMS) as UpstreamName[];

export interface ConnectedUpstreams extends Sources {
  apis: Upstreams;
  close(): Promise<void>;
}

/** Opens every upstream. Those that are not configured answer `not_configured` when they are asked. */
export function connectUpstreams(
  configs: Readonly<Record<UpstreamName, UpstreamConfig>>,
  parts: UpstreamParts,
): ConnectedUpstreams {
  const connections = new Map<string, UpstreamConnection>(
    UPSTREAM_NAMES.map((name) => [
      name,
      connectUpstream(UPSTREAMS[name] as UpstreamDefinition<unknown>, configs[name], parts),
    ]),
  );
  const connection = (name: string) => {
    const found = connections.get(name);
    if (found === undefined) throw new Error(`no upstream ${name}`);
    return found;
  };
  return {
    apis: Object.fromEntries(
      UPSTREAM_NAMES.map((name) => [name, UPSTREAMS[name].open(connection(name).http)]),
    ) as Upstreams,
    health: (name) => connection(name).health(),
    inCall,
    async close() {
      await Promise.all([...connections.values()].map((open) => open.close()));
    },
  };
}
