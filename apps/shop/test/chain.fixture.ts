import { createTestClient, http, publicActions, walletActions } from 'viem';
import { type EvmChain, evmUpstream } from '../../../packages/catalogue/src/upstreams/adapters/evm.ts';
import {
  EVM_CHAIN_NAMES,
  type EvmChainName,
  viemChain,
} from '../../../packages/catalogue/src/upstreams/adapters/evm-chains.ts';
import { connectUpstream } from '../../../packages/catalogue/src/upstreams/http.ts';
import { SANDBOX_ACCOUNTS, SEED } from '../../../packages/sandbox/src/accounts.fixture.ts';
import { startEvmChain } from '../../../packages/sandbox/src/chain/chain.ts';

export type TestChain = Awaited<ReturnType<typeof startTestChain>>;

/** Starts the sandbox's chain for tests on a free port, with nothing kept, and two ways to it. */
export async function startTestChain() {
  const node = await startEvmChain({ seed: SEED, stateDir: null });
  const connections = EVM_CHAIN_NAMES.map((name) => {
    const upstream = evmUpstream(name);
    const config = { baseUrl: name === 'base' ? node.url : null };
    const connection = connectUpstream(upstream, config, {
      userAgent: 'test',
      acceptSandbox: true,
      nowMs: Date.now,
    });
    return { name, chain: upstream.open(connection.http), close: () => connection.close() };
  });
  const upstreams = Object.fromEntries(connections.map(({ name, chain }) => [name, chain])) as Record<
    EvmChainName,
    EvmChain
  >;
  /** Viem on its own, for arranging the chain and for reading it independently of what is tested. */
  const client = createTestClient({
    mode: 'anvil',
    chain: viemChain('base'),
    transport: http(node.url, { timeout: 60_000 }),
  })
    .extend(publicActions)
    .extend(walletActions);
  return {
    url: node.url,
    client,
    /** Does something while no block comes by itself, for who compares blocks or counts them. */
    async still<Result>(work: () => Promise<Result>): Promise<Result> {
      await client.setAutomine(false);
      try {
        return await work();
      } finally {
        await client.setAutomine(true);
      }
    },
    accounts: SANDBOX_ACCOUNTS,
    /** The chain as services get it. */
    upstream: upstreams.base,
    /** All chains as services get them: this one as `base`, the others not configured. */
    upstreams,
    async stop() {
      await Promise.all(connections.map(({ close }) => close()));
      await node.stop();
    },
  };
}
