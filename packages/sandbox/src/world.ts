/**
 * The sandbox world: everything outside the server that is not configured, each part a server of its own on a local
 * port, speaking the real part's protocol. The server is handed their addresses and knows nothing else of them.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isAlive } from '../../../apps/server/src/db/is-alive.ts';
import { StartError } from '../../../apps/server/src/start-error.ts';
import { createUpstreamSandbox } from './upstreams/server.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface WorldPart {
  name: string;
  url: string;
  /** What it stands in for. */
  standsFor: string;
}

export interface World {
  /** What the server must be told, beside what it was told already. */
  environment: Record<string, string>;
  parts: readonly WorldPart[];
  stop(): Promise<void>;
}

/** Seed of the one synthetic market: the same everywhere, so that two sandboxes agree. */
const MARKET_SEED = 8402;

/** The upstreams whose replies the sandbox gives, with the path below its address that the adapter expects. */
const KEYLESS = [
  ...['binance', 'coinbase', 'coingecko', 'defillama', 'dexscreener', 'erddap', 'geckoterminal', 'gibs'],
  ...['kalshi', 'kraken', 'polymarket', 'polymarketclob'],
];
const AI = { path: '/ai/v1', model: 'sandbox-extractive-1' };

/** The folder that `npm start` keeps its state in. */
export function dataDirOf(environment: Environment): string {
  return resolve(environment.FAREBOX_DATA_DIR || '.farebox');
}

/**
 * Starts the parts that the environment does not name an address for.
 *
 * @param options.live leaves keyless upstreams at their real addresses
 */
export async function startWorld(environment: Environment, options: { live: boolean }): Promise<World> {
  const dataDir = dataDirOf(environment);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const note = join(dataDir, 'world.json');
  const other = noteIn(dataDir);
  if (other !== null && isAlive(other.pid)) {
    throw new StartError(
      `another sandbox (pid ${other.pid}) runs on ${dataDir}; set FAREBOX_DATA_DIR for a second one`,
    );
  }
  const added: Record<string, string> = { FAREBOX_DATA_DIR: dataDir };
  const give = (name: string, value: string) => {
    if (!environment[name]) added[name] = value;
  };
  give('FAREBOX_SECRET', secretIn(dataDir));
  give('LOG_LEVEL', 'warn');

  const upstreams = createUpstreamSandbox({ host: '127.0.0.1', port: 0, seed: MARKET_SEED });
  const { url } = await upstreams.start();
  if (!options.live)
    for (const name of KEYLESS) give(`UPSTREAM_${name.toUpperCase()}_BASE_URL`, `${url}/${name}`);
  if (!environment.AI_BASE_URL) {
    give('AI_BASE_URL', url + AI.path);
    give('AI_MODEL', AI.model);
  }
  added.FAREBOX_SANDBOX_PARTS = 'upstreams';

  writeFileSync(note, JSON.stringify({ pid: process.pid, environment: withoutSecrets(added) }, null, 2));
  return {
    environment: added,
    parts: [
      {
        name: 'upstreams',
        url,
        standsFor: options.live
          ? 'the AI model; keyless upstreams are live'
          : 'market, prediction, satellite and AI sources',
      },
    ],
    async stop() {
      await upstreams.stop();
      rmSync(note, { force: true });
    },
  };
}

/** What a command needs to look into the world that runs on this folder, or into what one left behind. */
export function environmentOfWorld(environment: Environment): Record<string, string> {
  const dataDir = dataDirOf(environment);
  const noted = noteIn(dataDir)?.environment ?? {};
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const live = environment.FAREBOX_UPSTREAMS === 'live';
  const wanted = Object.entries(noted).filter(([name]) => !(live && /^UPSTREAM_\w+_BASE_URL$/.test(name)));
  return { FAREBOX_DATA_DIR: dataDir, FAREBOX_SECRET: secretIn(dataDir), ...Object.fromEntries(wanted) };
}

/** What a world on this folder wrote down about itself. */
function noteIn(dataDir: string): { pid: number; environment: Record<string, string> } | null {
  const note = join(dataDir, 'world.json');
  return existsSync(note) ? JSON.parse(readFileSync(note, 'utf8')) : null;
}

/** The folder's own secret: made once, kept in a file that only its owner reads. */
function secretIn(dataDir: string): string {
  const file = join(dataDir, 'secret');
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('hex'), { mode: 0o600 });
  return readFileSync(file, 'utf8');
}

function withoutSecrets(environment: Record<string, string>): Record<string, string> {
  const { FAREBOX_SECRET: _, ...rest } = environment;
  return rest;
}
