import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { loadServices } from '../../../packages/catalogue/src/services/registry.ts';
import { ABOUT_TAGS } from '../../../packages/catalogue/src/services/tags.ts';
import { EVM_CHAIN_NAMES } from '../../../packages/catalogue/src/upstreams/adapters/evm-chains.ts';
import { UPSTREAM_NAMES, type UpstreamName } from '../../../packages/catalogue/src/upstreams/index.ts';
import { readConfig } from '../../../packages/core/src/config.ts';
import type { Pools } from '../../../packages/core/src/db/connection.ts';
import { createStartPatience } from '../../../packages/core/src/db/start-patience.ts';
import { createKeys } from '../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../packages/core/src/ledger/money.ts';
import { chooseServices } from '../../../packages/core/src/service/choose.ts';
import type { Service } from '../../../packages/core/src/service/define.ts';
import { upstreamBaseUrlVariable } from '../../../packages/core/src/words/upstream-variables.ts';
import { LiveRoutes, type OpenRoutes } from '../../../packages/proxy/src/part.ts';
import {
  createUpstreamSandbox,
  SANDBOX_KEYS,
  SANDBOX_SALES,
} from '../../../packages/sandbox/src/upstreams/server.ts';
import * as product from '../src/app.ts';
import { watchLog } from './operator/log-secrets.fixture.ts';

/** No test asks a real chain; one that needs a chain starts its own. */
const CHAIN_NAMES: readonly UpstreamName[] = [...EVM_CHAIN_NAMES, 'solana'];
const SECRET = 'a-secret-of-the-tests-and-of-nothing-else';
const NO_FOLDER = join(tmpdir(), 'farebox-no-such-folder');

export interface TestServer {
  url: string;
  app: product.App;
  /** Every line that the server logged, as text. */
  log: string[];
  /** A new key with so much credit. */
  key(usd: string): Promise<string>;
  /** A paid call: POST, JSON. */
  call(path: string, key: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** @throws Error when it has logged a secret */
  close(): Promise<void>;
}

export interface TestServerOptions {
  pools: Pools;
  /** Further environment variables. */
  environment?: Record<string, string>;
  /** What is sold; everything in the registry unless given. */
  services?: readonly Service[];
  /** Address of a sandbox for upstreams, from `startUpstreams`; without it none is configured. */
  upstreamsUrl?: string;
  nowMs?: () => number;
  /** Where it listens, for what must be told its address before; any free port unless given. */
  port?: number;
  /** Opens routes of other servers, which are sold beside the services; this server closes them. */
  routes?: () => OpenRoutes;
  /** Another list of parts than the product's. */
  made?: Pick<typeof product, 'createApp' | 'DECLARED'>;
}

/** The real app on a free port, in this process, with everything that the process would be told told here. */
export async function startTestServer(options: TestServerOptions): Promise<TestServer> {
  const log: string[] = [];
  const environment = {
    FAREBOX_SECRET: SECRET,
    // Nobody has restored anything there.
    FAREBOX_DATA_DIR: NO_FOLDER,
    RATE_LIMIT_PER_ADDRESS: '1000000',
    // By default trials come evenly over the day, so a test that takes several would pass or fail by the hour.
    TRIAL_BUDGET_USD_PER_DAY: 'none',
    FREE_CHAIN_READS_PER_MINUTE: '1000000',
    RATE_LIMIT_PER_KEY: '1000000',
    MAX_CONCURRENT_CALLS_PER_KEY: '1000',
    ...sourcesAt(options.upstreamsUrl),
    ...options.environment,
  };
  const watch = watchLog(environment);
  const write = (line: string) => {
    watch.see(line);
    log.push(line);
  };
  const logger = pino({ level: 'info' }, { write });
  const { createApp, DECLARED } = options.made ?? product;
  const config = readConfig(environment, DECLARED);
  const nowMs = options.nowMs ?? Date.now;
  const all = await loadServices();
  const chosen = chooseServices(all, config.house.services);
  const routes = options.routes?.() ?? null;
  const services = [...(options.services ?? chosen.sold), ...(routes?.services ?? [])];
  const app = createApp({
    config,
    routes: routes === null ? null : new LiveRoutes(routes),
    baseUrl: config.house.publicUrl ?? 'http://farebox.test',
    version: '0.0.0-test',
    pools: options.pools,
    services,
    tags: { ...ABOUT_TAGS, ...routes?.tags },
    leftOut: options.services === undefined ? chosen.leftOut : [],
    logger,
    nowMs,
  });
  await app.prepare(
    createStartPatience({
      waits: (error) => logger.warn({ err: error }, 'the start waits for the database'),
    }),
  );
  // A server that runs fetches its lists as its first job does; no jobs run here.
  if (options.upstreamsUrl !== undefined) await app.sources.dataLists.fetchDue();
  const url = await app.http.listen({ host: '127.0.0.1', port: options.port ?? 0 });
  const keys = createKeys(options.pools.sql, nowMs);
  const ledger = createLedger(options.pools, nowMs, config.database.settings);
  return {
    url,
    app,
    log,
    async key(usd) {
      const grant = { amountMicros: usdToMicros(usd), label: 'test', note: 'test' };
      return (await grantKey({ sql: options.pools.sql, keys, ledger, nowMs }, grant)).apiKey;
    },
    call: (path, key, body = {}, headers = {}) =>
      fetch(`${url}/x402/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
        body: JSON.stringify(body),
      }),
    async close() {
      await app.close();
      watch.assertClean();
    },
  };
}

/** Names the world of the sandbox's upstreams. */
export const UPSTREAM_SEED = 8402;

/** The sandbox's upstreams on a free port. */
export async function startUpstreams(
  nowMs: () => number = Date.now,
): Promise<{ url: string; stop(): Promise<void> }> {
  const sandbox = createUpstreamSandbox({ host: '127.0.0.1', port: 0, seed: UPSTREAM_SEED, nowMs });
  const { url } = await sandbox.start();
  return { url, stop: () => sandbox.stop() };
}

/**
 * The variables of every source: none asks a real chain.
 *
 * @param url of a sandbox for upstreams, which the other sources are then asked at; without it none of them is configured
 */
export function sourcesAt(url: string | undefined): Record<string, string> {
  return {
    SOURCE_TERMS_ACCEPTED: UPSTREAM_NAMES.join(','),
    ...Object.fromEntries(CHAIN_NAMES.map((name) => [upstreamBaseUrlVariable(name), 'none'])),
    LAW_PAGES_BASE_URL: url === undefined ? 'none' : `${url}/lawpages`,
    ...(url === undefined ? {} : sandboxAddresses(url)),
  };
}

function sandboxAddresses(url: string): Record<string, string> {
  const address = (name: UpstreamName) => [
    upstreamBaseUrlVariable(name),
    name === 'ai' ? `${url}/ai/v1` : `${url}/${name}`,
  ];
  const apis = UPSTREAM_NAMES.filter((name) => !CHAIN_NAMES.includes(name));
  return {
    ...Object.fromEntries(apis.map(address)),
    AI_MODEL: 'sandbox-extractive-1',
    UPSTREAM_GDELT_REQUESTS_PER_MINUTE: '1200',
    UPSTREAM_LIFI_REQUESTS_PER_MINUTE: '1200',
    ...SANDBOX_KEYS,
    ...SANDBOX_SALES,
  };
}

/** The JSON of an answer, unchecked: what it must be is for the test to say. */
// biome-ignore lint/suspicious/noExplicitAny: the boundary at which tests look at whatever came
export async function jsonOf(response: Response | Promise<Response>): Promise<any> {
  return (await response).json();
}
