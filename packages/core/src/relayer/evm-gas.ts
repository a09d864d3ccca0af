/** Costs of transactions on an EVM chain, and balances to pay them. */
import { type Rpc, RpcRefusal } from '../chain-rpc/json-rpc.ts';
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database } from '../db/connection.ts';
import type { GasSource } from './gas-tanks.ts';
import { field, quantity } from './node-reply.ts';

const FEE_FRESH_MS = 2_000;
/** Where the node knows no tip: 0.01 gwei. */
const TIP_UNKNOWN = '0x989680';

export interface EvmFees {
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

/** @returns what a transaction is sent with now, in wei, asked again after two seconds. @throws when the node does not say */
export function feesOf(rpc: Rpc, nowMs: () => number): () => Promise<EvmFees> {
  let known: (EvmFees & { atMs: number }) | null = null;
  return async () => {
    if (known !== null && nowMs() - known.atMs < FEE_FRESH_MS) return known;
    const [block, tip] = await Promise.all([
      rpc.call('eth_getBlockByNumber', ['latest', false]),
      rpc.call('eth_maxPriorityFeePerGas', []).catch((error: unknown) => {
        if (error instanceof RpcRefusal) return TIP_UNKNOWN;
        throw error;
      }),
    ]);
    const base = quantity(field(block, 'baseFeePerGas') ?? '0x0');
    const maxPriorityFeePerGas = quantity(tip);
    known = { atMs: nowMs(), maxPriorityFeePerGas, maxFeePerGas: base * 2n + maxPriorityFeePerGas };
    return known;
  };
}

/** An account's balance, in wei. @throws when the node does not say */
export async function weiOf(rpc: Rpc, address: string): Promise<bigint> {
  return quantity(await rpc.call('eth_getBalance', [address, 'latest']));
}

/** @param parts.gasEach what one transaction uses */
export function evmGas(parts: {
  sql: Database;
  rpc: Rpc;
  /** CAIP-2. */
  network: string;
  gasEach: bigint;
  nowMs(): number;
}): GasSource {
  const { sql, rpc, network, nowMs } = parts;
  const fees = feesOf(rpc, nowMs);
  return {
    balanceOf: (address) => weiOf(rpc, address),
    cost: async () => parts.gasEach * (await fees()).maxFeePerGas,
    async waitingMs(addresses) {
      const rows = await sql<{ address: string; created_at: Date }[]>`
        select address, min(created_at) as created_at from relayer_transactions
        where network = ${network} and state = 0 and address = any(${arrayLiteral(addresses)}::text::text[])
        group by address`;
      return new Map(
        rows.map(({ address, created_at }) => [address, Math.max(0, nowMs() - created_at.getTime())]),
      );
    },
  };
}
