import type { Rpc } from '../chain-rpc/json-rpc.ts';
import type { Database } from '../db/connection.ts';
import { evmGas } from './evm-gas.ts';
import { createGasTanks } from './gas-tanks.ts';
import { createRelayer, type Hex, type Relayer } from './relayer.ts';
import { addressOf } from './sign.ts';

/** For tests: a relayer on the sandbox's chain, as the x402 rail makes one. */
export function relayerOn(parts: {
  sql: Database;
  rpc: Rpc;
  network: string;
  keys: readonly Hex[];
  nowMs(): number;
}): Relayer {
  const tank = createGasTanks({ ...parts, report: () => {} }).open({
    ...{ network: parts.network, duty: 'settle', token: { symbol: 'ETH', decimals: 18 } },
    addresses: parts.keys.map(addressOf),
    source: evmGas({ ...parts, gasEach: 60_000n }),
    least: (cost) => 20n * cost,
  });
  return createRelayer({ ...parts, chainId: 8453, tank });
}
