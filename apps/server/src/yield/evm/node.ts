/** The way to the chain that the vault is on. */
import { createPublicClient, custom, type PublicClient, RpcRequestError, type Transport } from 'viem';
import { base } from 'viem/chains';
import { type BatchingRpc, connectRpc, RpcRefusal, RpcUnreachable } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';

const RPC_TIMEOUT_MS = 8_000;
const RETRY_AFTER_MS = 5_000;

/** Without the block that the chain got Multicall3 in: what stands there now is asked, also on a chain that is young. */
const CHAIN = {
  ...base,
  contracts: { multicall3: { address: base.contracts.multicall3.address } },
} as const;

export type Chain = PublicClient<Transport, typeof CHAIN>;

export interface Node {
  rpc: BatchingRpc;
  /** The same, as viem asks it. */
  chain: Chain;
  close(): Promise<void>;
}

export function openNode(url: string): Node {
  const rpc = connectRpc(url, { timeoutMs: RPC_TIMEOUT_MS });
  const chain = createPublicClient({
    chain: CHAIN,
    transport: custom(
      {
        async request({ method, params }: { method: string; params?: unknown }) {
          try {
            return await rpc.call(method, Array.isArray(params) ? params : []);
          } catch (error) {
            if (!(error instanceof RpcRefusal)) throw error;
            // What viem knows to read: it finds a revert's reason in `data`.
            const { code, message, data } = error;
            throw new RpcRequestError({ body: { method }, error: { code, message, data }, url: '' });
          }
        },
      },
      { retryCount: 0 },
    ),
    cacheTime: 0,
  });
  return { rpc, chain, close: rpc.close };
}

/** Whether it is because of the way to the node, and not of what was asked. */
export function isOutage(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof RpcUnreachable) return true;
  return false;
}

/** The 503 of a chain that cannot be read now. */
export function chainUnavailable(cause: unknown) {
  return unavailable(
    'CHAIN_UNAVAILABLE',
    'The chain cannot be read at the moment.',
    RETRY_AFTER_MS,
    {},
    cause,
  );
}
