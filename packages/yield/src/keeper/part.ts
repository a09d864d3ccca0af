import { connectRpc } from '@farebox/core/chain-rpc/json-rpc';
import type { Configured } from '@farebox/core/declared';
import type { House, Part } from '@farebox/core/part';
import { evmGas } from '@farebox/core/relayer/evm-gas';
import type { GasTanks } from '@farebox/core/relayer/gas-tanks';
import { createRelayer } from '@farebox/core/relayer/relayer';
import { addressOf } from '@farebox/core/relayer/sign';
import type { Hex } from '@farebox/core/relayer/to-send';
import { Counter, Gauge, Registry } from 'prom-client';
import { YIELD_KEEPER } from './declared.ts';
import { createKeeper, MOST_MOVE_GAS } from './keeper.ts';
import type { KeeperReport, Outcome } from './report.ts';

export { YIELD_KEEPER };

/** Base: where the vault is. */
const CHAIN_ID = 8453;
const LOOK_EVERY_MS = 60_000;
/** A key that cannot pay for so many moves makes none. */
const LEAST_MOVES = 2n;
/** The outcomes that a person has to see to. */
const AMISS: ReadonlySet<Outcome> = new Set(['LEFT', 'NOT_KEEPER', 'INCOMPLETE', 'OUT_OF_GAS', 'REVERTED']);

/**
 * Opens the keeper, which moves the yield vault's funds. It is absent without a key of its own.
 *
 * @param needs.vault null: there is none
 * @param needs.upstreams of them the node of Base; null: nothing of it is there either
 */
export function openYieldKeeper(
  house: House,
  { settings, secrets }: Configured<typeof YIELD_KEEPER.variables>,
  {
    gas,
    vault,
    upstreams,
  }: { gas: GasTanks; vault: Hex | null; upstreams: { base: { baseUrl: string | null } } },
): Part {
  const { key } = secrets.reveal();
  const { baseUrl: rpcUrl } = upstreams.base;
  if (key === null || vault === null || rpcUrl === null) return { name: 'yield-keeper' };
  const { nowMs, logger } = house;
  const { sql } = house.pools;
  const rpc = connectRpc(rpcUrl, { timeoutMs: 8_000 });
  const network = `eip155:${CHAIN_ID}`;
  const tank = gas.open({
    network,
    duty: 'move',
    token: { symbol: 'ETH', decimals: 18 },
    addresses: [addressOf(key)],
    source: evmGas({ sql, rpc, network, gasEach: MOST_MOVE_GAS, nowMs }),
    least: (cost) => LEAST_MOVES * cost,
  });
  const relayer = createRelayer({ sql, rpc, network, chainId: CHAIN_ID, keys: [key], tank, nowMs });
  const look = createKeeper({ sql, rpc, relayer, vault, minGainBps: settings.minGainBps, nowMs });
  const { registry, count } = createKeeperMetrics();
  return {
    name: 'yield-keeper',
    jobs: [
      {
        name: 'keep-yield',
        intervalMs: LOOK_EVERY_MS,
        async run() {
          const report = await look();
          if (report === null) return;
          count(report);
          const { outcome, why, proposal, transaction } = report;
          const line = { outcome, proposal, transaction };
          if (outcome === 'MOVED' || outcome === 'SUPPLIED') logger.info(line, why);
          else if (AMISS.has(outcome)) logger.warn(line, why);
        },
      },
    ],
    resume: () => relayer.resume(),
    metrics: registry,
    close: rpc.close,
  };
}

function createKeeperMetrics() {
  const registry = new Registry();
  const looks = new Counter({
    name: 'farebox_yield_keeper_looks_total',
    help: 'Looks of this process at where the yield vault’s funds should be, by what came of them',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const rates = new Gauge({
    name: 'farebox_yield_rate_percent',
    help: 'What a protocol paid a year, not compounded, when this process looked last',
    labelNames: ['protocol'],
    registers: [registry],
  });
  return {
    registry,
    count({ outcome, yearlyPercent }: KeeperReport) {
      looks.inc({ outcome });
      rates.reset();
      for (const [protocol, rate] of Object.entries(yearlyPercent))
        if (rate !== null) rates.set({ protocol }, rate);
    },
  };
}
