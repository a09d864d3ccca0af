import type { House, Part } from '../part.ts';
import { createGasTanks, type GasTanks } from './gas-tanks.ts';
import { createGasMetrics } from './metrics.ts';

const LOOKED_AT_EVERY_MS = 30_000;

/** Balances of the keys that pay gas, whichever part a key belongs to. It prepares after those parts are opened. */
export function openGas({ pools, logger, nowMs }: House): Part & { gas: GasTanks } {
  const gas = createGasTanks({
    sql: pools.sql,
    nowMs,
    report({ isAble, network, duty, address, reason }, tank) {
      const line = { network, duty, address };
      if (isAble) logger.warn(line, 'a key of ours can pay for transactions again');
      else
        logger[tank.isAble ? 'warn' : 'error'](
          { ...line, reason, otherKeys: tank.isAble },
          'a key of ours cannot pay for transactions: what needs it is not offered until it can',
        );
    },
  });
  return {
    name: 'gas',
    gas,
    prepare: gas.look,
    jobs: [{ name: 'look-at-gas', intervalMs: LOOKED_AT_EVERY_MS, run: gas.look }],
    metrics: createGasMetrics(gas.standings),
  };
}
