import type { Configured } from '@farebox/core/declared';
import { unavailable } from '@farebox/core/http/problem';
import type { House, Part } from '@farebox/core/part';
import type { FreeReadsByChain } from '../free-reads/part.ts';
import { readKeeperReport } from '../keeper/report.ts';
import { keptReading } from '../kept-reading.ts';
import type { CheckCall } from './before-signing.ts';
import { EVM_YIELD } from './declared.ts';
import { entryCostFrom } from './entry-cost.ts';
import { fixedOf } from './fixed.ts';
import { createIndexer } from './indexer.ts';
import { keeperMovesFrom } from './keeper-moves.ts';
import { openNode } from './node.ts';
import { YIELD_OPERATIONS } from './operations.ts';
import { yieldRoutes } from './routes.ts';
import { createSamples } from './samples.ts';
import { readSnapshot } from './snapshot.ts';
import { sourceRoutes } from './source-files.ts';
import { currentRateOf } from './views.ts';

export { EVM_YIELD };

const INDEX_MS = 5_000;
const SAMPLE_MS = 60_000;
const NOT_CONFIGURED_RETRY_MS = 3_600_000;

/** The part, and what others may ask of it. */
export interface EvmYield extends Part {
  /** The vault's address, as configured. Null: there is no vault. */
  address: `0x${string}` | null;
  /**
   * The rate that a holder earns now, in percent a year after the fee on the yield; null, and why it is not known. Throws `Problem` 503
   * while the chain is silent. Null itself: there is no vault.
   */
  currentRate: (() => Promise<{ netApyPercent: number } | { netApyPercent: null; reason: string }>) | null;
}

/**
 * The vault of USDC on Base: what it earns, and the transactions of whoever comes and leaves. Without a vault's address its
 * addresses say so, and no document mentions them.
 *
 * @param needs.upstreams of them the node of Base
 * @param needs.check the check of what is handed out; null: there is none
 */
export function openEvmYield(
  house: House,
  { settings }: Configured<typeof EVM_YIELD.variables>,
  {
    upstreams,
    freeReads,
    check,
  }: {
    upstreams: { base: { baseUrl: string | null } };
    freeReads: FreeReadsByChain;
    check: { base: CheckCall } | null;
  },
): EvmYield {
  const { vault, permitDeposit, vaultSinceBlock } = settings;
  const { baseUrl: rpcUrl } = upstreams.base;
  if (vault === null || rpcUrl === null) return notConfigured();
  const { nowMs, baseUrl, addressOf } = house;
  const { sql } = house.pools;
  const node = openNode(rpcUrl);
  const fixed = fixedOf(node, { vault, permitDeposit });
  const kept = keptReading(async () => readSnapshot(node, await fixed(), nowMs), { nowMs });
  const snapshot = async (maxAgeMs: number) => (await kept({ freshMs: maxAgeMs })).value;
  const indexer = createIndexer(sql, node, { vault, sinceBlock: vaultSinceBlock });
  const samples = createSamples(sql, vault, nowMs);
  return {
    name: 'evm-yield',
    assets: { '/yield': 'yield.html' },
    operations: [YIELD_OPERATIONS],
    metrics: freeReads.metrics,
    routes(http) {
      sourceRoutes(http);
      yieldRoutes(http, {
        node,
        fixed,
        snapshot,
        samples,
        baseUrl,
        addressOf,
        nowMs,
        keeperMoves: keeperMovesFrom(sql, vault, nowMs),
        lastLook: () => readKeeperReport(sql, vault),
        entryCost: entryCostFrom(sql, indexer, vault),
        limit: house.limitByAddress(),
        freeReads: freeReads.base,
        check: check?.base ?? null,
      });
    },
    jobs: [
      {
        name: 'yield-index',
        intervalMs: INDEX_MS,
        run: async (stopping) => void (await indexer.catchUp(stopping)),
      },
      { name: 'yield-sample', intervalMs: SAMPLE_MS, run: () => samples.note(() => snapshot(SAMPLE_MS)) },
    ],
    close: node.close,
    address: vault,
    currentRate: async () => currentRateOf(await snapshot(SAMPLE_MS)),
  };
}

function notConfigured(): EvmYield {
  return {
    name: 'evm-yield',
    address: null,
    currentRate: null,
    operations: [
      { operations: [], untold: [{ path: '/api/yield/*', because: 'There is no vault: it answers 503.' }] },
    ],
    routes(http) {
      http.get('/api/yield/*', async () => {
        throw unavailable('YIELD_NOT_CONFIGURED', 'This server offers no vault.', NOT_CONFIGURED_RETRY_MS, {
          success: false,
        });
      });
    },
  };
}
