/** The sandbox's stand-in for the outside APIs: one server, which serves each API under a path that is its name. */
import Fastify, { type FastifyInstance } from 'fastify';
import { acs } from './acs.ts';
import { ai } from './ai.ts';
import { binance } from './binance.ts';
import { cctp } from './cctp.ts';
import { censusgeocoder } from './censusgeocoder.ts';
import { cmr } from './cmr.ts';
import { coinbase } from './coinbase.ts';
import { coingecko } from './coingecko.ts';
import { defillama } from './defillama.ts';
import { dexscreener } from './dexscreener.ts';
import { edgar } from './edgar.ts';
import { erddap } from './erddap.ts';
import { etherscan } from './etherscan.ts';
import { eusanctions } from './eusanctions.ts';
import { openUpstreamFaults } from './faults.ts';
import { feargreed } from './feargreed.ts';
import { fhfa } from './fhfa.ts';
import { firms } from './firms.ts';
import { frankfurter } from './frankfurter.ts';
import { gdelt } from './gdelt.ts';
import { geckoterminal } from './geckoterminal.ts';
import { gibs } from './gibs.ts';
import { hackernews } from './hackernews.ts';
import { kalshi } from './kalshi.ts';
import { kraken } from './kraken.ts';
import { lawpages } from './lawpages.ts';
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
import { sourcify } from './sourcify.ts';
import { coingeckotokens, uniswaptokens } from './token-lists.ts';
import { uksanctions } from './uksanctions.ts';
import { unsc } from './unsc.ts';
import { openWorld, type World } from './world.ts';

/** Every reply carries this header, so that a client can tell the sandbox from the real API. */
const SANDBOX_HEADER = 'x-farebox-sandbox';
const SANDBOX_PART = 'upstreams';
/** A path segment may be this long, because some APIs take a whole list of coins or tokens in one segment. */
const MAX_SEGMENT_CHARACTERS = 12_000;
const MAX_BODY_BYTES = 256 * 1024;

/**
 * The paths of the real APIs' base addresses, by upstream. Such an upstream answers with and without this path, so that both its
 * name alone and its name with the path serve as its base address.
 */
const VERSION_PATHS: Readonly<Record<string, string>> = {
  acs: '/data',
  ai: '/v1',
  censusgeocoder: '/geocoder',
  coingecko: '/api/v3',
  etherscan: '/v2',
  gdelt: '/api/v2',
  geckoterminal: '/api/v2',
  hackernews: '/api/v1',
  kalshi: '/trade-api/v2',
  lifi: '/v1',
  sourcify: '/server',
};

const UPSTREAMS: Readonly<Record<string, (app: FastifyInstance, world: World) => void>> = {
  acs,
  ai,
  binance,
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
  polymarket,
  polymarketclob,
  power,
  sales,
  sectickers,
  sourcify,
  uksanctions,
  uniswaptokens,
  unsc,
};

/** The keys that the stand-ins of sources with a key accept, by the environment variables that hold them. */
export const SANDBOX_KEYS: Readonly<Record<string, string>> = {
  UPSTREAM_ACS_API_KEY: 'sandbox-census',
  UPSTREAM_ETHERSCAN_API_KEY: 'sandbox-etherscan',
  UPSTREAM_FIRMS_API_KEY: 'sandbox-firms-map-key',
  UPSTREAM_OPENMETEOAIR_API_KEY: 'sandbox-openmeteo-air',
  UPSTREAM_OPENMETEOARCHIVE_API_KEY: 'sandbox-openmeteo-archive',
  UPSTREAM_OPENMETEOFLOOD_API_KEY: 'sandbox-openmeteo-flood',
};

/** The name and the terms of the sandbox's source of sales, by the environment variables with which an operator sets them. */
export const SANDBOX_SALES: Readonly<Record<string, string>> = {
  UPSTREAM_SALES_NAME: 'Sandbox sales',
  UPSTREAM_SALES_TERMS: 'Made up; no home was sold',
};

/** Where the official pages of laws are below the server's address. They are no upstream: nothing of them is sold. */
export const LAW_PAGES = 'lawpages';

/** The names of the upstreams. The base address of an upstream is the server's address, a slash and its name. */
export const UPSTREAM_NAMES: readonly string[] = Object.keys(UPSTREAMS);

export interface UpstreamSandboxOptions {
  host: string;
  /** 0 lets the system choose. */
  port: number;
  /** Chooses the world: two servers with the same seed and clock answer alike. */
  seed: number;
  /** The clock, in milliseconds since 1970. The system's clock if absent. */
  nowMs?: () => number;
  /** Called when the server starts and stops, and with each error inside it. */
  log?: (message: string) => void;
}

export interface UpstreamSandbox {
  start(): Promise<{ url: string }>;
  stop(): Promise<void>;
}

/**
 * Makes the server, which listens once `start` is called. It keeps nothing on disk: its answers follow from the seed and the
 * time. Tests set faults under `/__control`.
 */
export function createUpstreamSandbox(options: UpstreamSandboxOptions): UpstreamSandbox {
  const world = openWorld(options.seed, options.nowMs ?? Date.now);
  const faults = openUpstreamFaults(UPSTREAM_NAMES);
  const app = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    clientErrorHandler(_error, socket) {
      const head = `HTTP/1.1 400 Bad Request\r\n${SANDBOX_HEADER}: ${SANDBOX_PART}\r\n`;
      if (socket.writable) socket.end(`${head}content-length: 0\r\nconnection: close\r\n\r\n`);
    },
    // A malformed path is refused before the hook below runs, so that the header is set here.
    frameworkErrors({ message, statusCode }, _request, reply) {
      const headers = { [SANDBOX_HEADER]: SANDBOX_PART, 'content-type': 'application/json' };
      reply.raw.writeHead(statusCode ?? 400, headers).end(JSON.stringify({ message }));
    },
    routerOptions: { maxParamLength: MAX_SEGMENT_CHARACTERS, ignoreTrailingSlash: true },
  });
  app.addHook('onRequest', async (_request, reply) => {
    reply.header(SANDBOX_HEADER, SANDBOX_PART);
  });
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) options.log?.(`${request.method} ${request.url}: ${error.stack ?? error.message}`);
    return reply.code(status).send({ message: error.message });
  });
  faults.control(app);
  for (const [name, serve] of Object.entries(UPSTREAMS)) {
    app.register(
      async (prefixed) => {
        prefixed.addHook('onRequest', (request, reply) => faults.strike(name, request, reply));
        prefixed.setNotFoundHandler((_request, reply) => reply.code(404).send({ message: 'Not Found' }));
        const version = VERSION_PATHS[name];
        for (const prefix of version === undefined ? [''] : ['', version]) {
          prefixed.register(async (mounted) => serve(mounted, world), { prefix });
        }
      },
      { prefix: `/${name}` },
    );
  }
  app.register(async (mirror) => lawpages(mirror), { prefix: `/${LAW_PAGES}` });
  return {
    async start() {
      const url = await app.listen({ host: options.host, port: options.port });
      options.log?.(`sandbox upstreams at ${url}`);
      return { url };
    },
    async stop() {
      await app.close();
      options.log?.('sandbox upstreams stopped');
    },
  };
}
