import type { Sources } from '@farebox/core/service/sources';
import { acs } from './adapters/acs.ts';
import { ai } from './adapters/ai.ts';
import { binance } from './adapters/binance.ts';
import { cctp } from './adapters/cctp.ts';
import { censusgeocoder } from './adapters/censusgeocoder.ts';
import { cmr } from './adapters/cmr.ts';
import { coinbase } from './adapters/coinbase.ts';
import { coingecko } from './adapters/coingecko.ts';
import { coingeckotokens } from './adapters/coingeckotokens.ts';
import { defillama } from './adapters/defillama.ts';
import { dexscreener } from './adapters/dexscreener.ts';
import { edgar } from './adapters/edgar.ts';
import { erddap } from './adapters/erddap.ts';
import { etherscan } from './adapters/etherscan.ts';
import { eusanctions } from './adapters/eusanctions.ts';
import { evmUpstream } from './adapters/evm.ts';
import { feargreed } from './adapters/feargreed.ts';
import { fhfa } from './adapters/fhfa.ts';
import { firms } from './adapters/firms.ts';
import { frankfurter } from './adapters/frankfurter.ts';
import { gdelt } from './adapters/gdelt.ts';
import { geckoterminal } from './adapters/geckoterminal.ts';
import { gibs } from './adapters/gibs.ts';
import { hackernews } from './adapters/hackernews.ts';
import { kalshi } from './adapters/kalshi.ts';
import { kraken } from './adapters/kraken.ts';
import { lifi } from './adapters/lifi.ts';
import { llamayields } from './adapters/llamayields.ts';
import { mixers } from './adapters/mixers.ts';
import { modis } from './adapters/modis.ts';
import { nws } from './adapters/nws.ts';
import { ofac } from './adapters/ofac.ts';
import { openmeteoair } from './adapters/openmeteoair.ts';
import { openmeteoarchive } from './adapters/openmeteoarchive.ts';
import { openmeteoflood } from './adapters/openmeteoflood.ts';
import { polymarket } from './adapters/polymarket.ts';
import { polymarketclob } from './adapters/polymarketclob.ts';
import { power } from './adapters/power.ts';
import { sales } from './adapters/sales.ts';
import { sectickers } from './adapters/sectickers.ts';
import { solana } from './adapters/solana.ts';
import { sourcify } from './adapters/sourcify.ts';
import { uksanctions } from './adapters/uksanctions.ts';
import { uniswaptokens } from './adapters/uniswaptokens.ts';
import { unsc } from './adapters/unsc.ts';
import type { Budget } from './budget.ts';
import { inCall } from './call-scope.ts';
import type { UpstreamDefinition } from './define.ts';
import { connectUpstream, type UpstreamConfig, type UpstreamConnection, type UpstreamParts } from './http.ts';

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
  coingeckotokens,
  defillama,
  dexscreener,
  edgar,
  erddap,
  ethereum: evmUpstream('ethereum'),
  etherscan,
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
  uniswaptokens,
  unsc,
} as const;

export type UpstreamName = keyof typeof UPSTREAMS;
export type Upstreams = { [Name in UpstreamName]: ReturnType<(typeof UPSTREAMS)[Name]['open']> };
export const UPSTREAM_NAMES = Object.keys(UPSTREAMS) as UpstreamName[];

export interface ConnectedUpstreams extends Sources {
  apis: Upstreams;
  /** How many requests each may be sent now, by its name. */
  budgets: ReadonlyMap<string, Budget>;
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
    budgets: new Map([...connections].map(([name, { budget }]) => [name, budget])),
    health: (name) => connection(name).health(),
    inCall,
    async close() {
      await Promise.all([...connections.values()].map((open) => open.close()));
    },
  };
}
