import assert from 'node:assert/strict';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startTestChain } from '../../../../apps/shop/test/chain.fixture.ts';
import { openTestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { connectRpc, type Rpc } from '../chain-rpc/json-rpc.ts';
import type { Database } from '../db/connection.ts';
import { evmGas } from './evm-gas.ts';
import { createGasTanks } from './gas-tanks.ts';
import { createRelayer, type Relayer } from './relayer.ts';
import { addressOf } from './sign.ts';
import type { Hex } from './to-send.ts';

/** For tests: a relayer on the sandbox's chain, as the x402 rail makes one. */
export function relayerOn(parts: {
  sql: Database;
  rpc: Rpc;
  network: string;
  keys: readonly Hex[];
  nowMs(): number;
}): Relayer {
  const tank = createGasTanks({ ...parts, report: () => {} }).open({
    network: parts.network,
    duty: 'settle',
    token: { symbol: 'ETH', decimals: 18 },
    addresses: parts.keys.map(addressOf),
    source: evmGas({ ...parts, gasEach: 60_000n }),
    least: (cost) => 20n * cost,
  });
  return createRelayer({ ...parts, chainId: 8453, tank });
}

/** Code that takes any call. */
export const STOP: Hex = '0x00';

export type RelayerStage = Awaited<ReturnType<typeof startRelayerStage>>;

/** For tests: a chain and a database, on which each test has a network, keys and a clock of its own. */
export async function startRelayerStage() {
  const [chain, database] = await Promise.all([startTestChain(), openTestDatabase()]);
  const rpc = connectRpc(chain.url, { timeoutMs: 10_000 });
  return {
    chain,
    database,
    rpc,

    /** Any number of relayers on one setting are replicas, or the same one restarted. */
    async setting(test: { name: string }, keyCount = 1) {
      const network = test.name;
      const keys = Array.from({ length: keyCount }, () => generatePrivateKey());
      const addresses = keys.map((key) => privateKeyToAccount(key).address);
      const [address] = addresses;
      assert(address !== undefined);
      for (const each of addresses) await chain.client.setBalance({ address: each, value: 10n ** 18n });
      const target = privateKeyToAccount(generatePrivateKey()).address;
      await chain.client.setCode({ address: target, bytecode: STOP });
      let nowMs = Date.now();
      return {
        keys,
        addresses,
        /** The address of the first key. */
        address,
        target,
        passMs(ms: number) {
          nowMs += ms;
        },
        relayer: (on: Rpc = rpc, its: readonly Hex[] = keys, sql: Database = database.sql): Relayer =>
          relayerOn({ sql, rpc: on, network, keys: its, nowMs: () => nowMs }),
        call: (id: string) => ({ id, to: target, data: '0x1234' as Hex, gasLimit: 60_000n }),
        rows: () => database.sql<
          {
            address: string;
            nonce: bigint;
            id: string;
            state: number;
            raw: Hex;
            hashes: Hex[];
            filler: Hex | null;
          }[]
        >`select address, nonce, id, state, raw, hashes, filler from relayer_transactions
          where network = ${network} order by address, nonce`,
        /** How many transactions of a key are in blocks. */
        mined: (of: Hex = address) => chain.client.getTransactionCount({ address: of }),
      };
    },

    /** The node, with some of its methods replaced. */
    nodeThat(
      methods: readonly string[],
      replaced: (method: string, ask: () => Promise<unknown>) => Promise<unknown>,
    ): Rpc {
      return {
        call: (method, params, options) =>
          methods.includes(method)
            ? replaced(method, () => rpc.call(method, params, options))
            : rpc.call(method, params, options),
        close: async () => {},
      };
    },

    async close(): Promise<void> {
      await rpc.close();
      await Promise.all([chain.stop(), database.close()]);
    },
  };
}
