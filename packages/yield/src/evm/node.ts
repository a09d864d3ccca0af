/** The way to the chain that the vault is on. */

import { type BatchingRpc, connectRpc, RpcRefusal, RpcUnreachable } from '@farebox/core/chain-rpc/json-rpc';
import { Problem, unavailable } from '@farebox/core/http/problem';
import { createPublicClient, custom, type PublicClient, RpcRequestError, type Transport } from 'viem';
import { BASE } from '../contracts/base-chain.ts';
import { createNewestBlock, type NewestBlock } from './newest-block.ts';

const RPC_TIMEOUT_MS = 8_000;
const RETRY_AFTER_MS = 5_000;

export type Chain = PublicClient<Transport, typeof BASE>;

export interface Node {
  rpc: BatchingRpc;
  /** The same, as viem asks it. */
  chain: Chain;
  /** The newest block that it was seen to know. */
  newest: NewestBlock;
  close(): Promise<void>;
}

export function openNode(url: string): Node {
  const rpc = connectRpc(url, { timeoutMs: RPC_TIMEOUT_MS });
  const chain = createPublicClient({
    chain: BASE,
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
  return { rpc, chain, newest: createNewestBlock(), close: rpc.close };
}

/** Whether it is because of the way to the node, and not of what was asked. */
export function isOutage(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof RpcUnreachable) return true;
  return false;
}

/** A revert, as nodes say it: by the code of EIP-1474's errors of execution, or in the words of all of them. */
const REVERTED_CODE = 3;

/** Whether the node answered that it does not do what was asked, for a reason of its own: a limit, or a state that it lacks. */
export function isRefusal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof RpcRequestError)
      return cause.code !== REVERTED_CODE && !/revert/i.test(cause.details);
  return false;
}

/**
 * Waits for an answer that any node serving the chain gives.
 *
 * @throws Problem 503 in place of whatever else it said: a limit of requests, a state that it has not yet, or nonsense
 */
export async function fromChain<Value>(reading: Promise<Value>): Promise<Value> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof Problem ? error : chainUnavailable(error);
  }
}

const QUANTITY = /^0x[0-9a-f]{1,64}$/i;

/** A number that a node answers. @throws Problem 503 when it answers none */
export async function quantityFrom(
  { rpc }: Pick<Node, 'rpc'>,
  method: string,
  params: readonly unknown[] = [],
): Promise<bigint> {
  const told = await fromChain(rpc.call(method, params));
  if (typeof told !== 'string' || !QUANTITY.test(told))
    throw chainUnavailable(new Error(`${method}: the node answers no number`));
  return BigInt(told);
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
