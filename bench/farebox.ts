/** A server of ours for a measurement: the real process on a folder of its own, with keys to pay with. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { connectPools } from '../packages/core/src/db/connection.ts';
import { createKeys } from '../packages/core/src/keys/keys.ts';
import { grantKey } from '../packages/core/src/keys/trial.ts';
import { createLedger } from '../packages/core/src/ledger/ledger.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { freePort } from '../packages/process/src/free-port.ts';
import { STAYING } from '../packages/process/src/node-flags.mjs';
import { startProgram } from './answering-process.ts';
import type { Resources } from './resources.ts';

/** More than any run can spend. */
const KEY_MICROS = 1_000_000_000_000_000n;
/** Grants in progress at once: as many as the pool has connections. */
const GRANTS_AT_ONCE = 8;

export const ROOT = join(import.meta.dirname, '..');

/** The environment that a program needs, without the settings of this run. */
function plainEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR, TZ } = process.env;
  return { PATH, HOME, TMPDIR, TZ };
}

/**
 * The server's default settings, except limits, which a load generator would hit at once.
 *
 * @param port to listen on
 */
export function serverEnvironment(dataDir: string, port: number): NodeJS.ProcessEnv {
  return {
    ...plainEnvironment(),
    PORT: String(port),
    FAREBOX_DATA_DIR: dataDir,
    FAREBOX_SECRET: randomBytes(32).toString('hex'),
    LOG_LEVEL: 'warn',
    RATE_LIMIT_PER_ADDRESS: '100000000',
    RATE_LIMIT_PER_KEY: '100000000',
    FREE_CHAIN_READS_PER_MINUTE: '100000000',
    MAX_CONCURRENT_CALLS: '100000',
    MAX_CONCURRENT_CALLS_PER_KEY: '100000',
  };
}

/**
 * Starts `main.ts` on a folder, with the embedded database there.
 *
 * @param settings further settings
 * @returns its address
 */
export async function startFarebox(
  resources: Resources,
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<string> {
  const { first } = await startProgram<{ baseUrl: string }>(resources, join(ROOT, 'apps/shop/src/main.ts'), {
    environment: { ...serverEnvironment(dataDir, await freePort()), ...settings },
    execArgv: [
      ...STAYING,
      ...(process.env.BENCH_SERVER_NODE_OPTIONS ?? '').split(' ').filter((option) => option !== ''),
    ],
  });
  return first.baseUrl;
}

/** Keys with credit, each with an account of its own, on the database that runs on a folder. */
export async function makeKeys(dataDir: string, count: number): Promise<string[]> {
  const embedded = await startEmbeddedPostgres(dataDir);
  const pools = connectPools(embedded.url, GRANTS_AT_ONCE + 2);
  try {
    const parts = {
      sql: pools.sql,
      keys: createKeys(pools.sql, Date.now),
      ledger: createLedger(pools, Date.now),
      nowMs: Date.now,
    };
    const apiKeys: string[] = [];
    while (apiKeys.length < count) {
      const next = Array.from({ length: Math.min(GRANTS_AT_ONCE, count - apiKeys.length) }, () =>
        grantKey(parts, { amountMicros: KEY_MICROS, label: 'bench', note: 'benchmark' }),
      );
      for (const { apiKey } of await Promise.all(next)) apiKeys.push(apiKey);
    }
    return apiKeys;
  } finally {
    await Promise.all([pools.sql.end({ timeout: 5 }), pools.commits.end({ timeout: 5 })]);
    await embedded.stop();
  }
}
