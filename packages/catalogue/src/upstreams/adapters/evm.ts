import type { Source } from '@farebox/core/words/answer';
import { sourceUnavailable, UpstreamUnavailable } from '@farebox/core/words/failure';
import {
  type Address,
  type Chain,
  createPublicClient,
  custom,
  type PublicClient,
  RpcRequestError,
  type Transport,
} from 'viem';
import { z } from 'zod';
import { defineUpstream, type UpstreamDefinition, type UpstreamHttp } from '../define.ts';
import { type EvmChainName, evmChainFacts, viemChain } from './evm-chains.ts';

/** A chain as services read it. */
export interface EvmChain {
  readonly name: EvmChainName;
  /** EIP-155 id. */
  readonly chainId: number;
  readonly nativeSymbol: string;
  readonly usdc: Address;
  /**
   * A viem client whose every request goes through `UpstreamHttp.post`, with its time-out, breaker and budget.
   * Simultaneous reads are batched into one call of Multicall3. A chain that cannot be reached throws
   * `UpstreamUnavailable`, also from `multicall`, where viem would report a failure of each contract. What the node
   * answers, such as a revert, throws viem's errors.
   */
  readonly client: PublicClient<Transport, Chain>;
  /**
   * The provenance of an answer from this chain, with the block that it was read at. Call it only after something was
   * read.
   */
  source(at: { blockNumber: bigint; timestampMs: number }): Source;
}

const LICENCE = 'Public chain data';
const REQUESTS_PER_MINUTE = 6_000;
const OLDEST_HEAD_MS = 10 * 60_000;
const READS_PER_MULTICALL_BYTES = 16_384;

/** Client names of development nodes, which make up their own blocks. */
const DEVELOPMENT_NODE = /^(anvil|hardhat|ganache|ethereumjs)/i;
/**
 * Error codes with which public nodes refuse too many requests. For log queries the first one also means a range that
 * is too wide.
 */
const REFUSALS: readonly number[] = [-32005, -32007, -32016, -32029, 429];
const REFUSAL_TEXT = /rate limit|too many requests/i;
const BEHIND_TEXT = /header not found|unknown block|missing trie node|block not found|not (yet )?synced/i;

const rpcError = z.looseObject({ code: z.number(), message: z.string(), data: z.unknown().optional() });
const rpcReply = z
  .looseObject({ result: z.unknown().optional(), error: rpcError.nullish() })
  .refine((reply) => 'result' in reply || (reply.error !== null && reply.error !== undefined), {
    error: 'has neither a result nor an error',
  });

const quantity = z.string().regex(/^0x[0-9a-fA-F]{1,64}$/);
const data = z.string().regex(/^0x(?:[0-9a-fA-F]{2})*$/);
const block = z.looseObject({
  number: quantity.nullish(),
  timestamp: quantity,
  baseFeePerGas: quantity.nullish(),
});
const logs = z.array(z.looseObject({ address: data, topics: z.array(data), data }));
/**
 * The results that viem takes as they come, where it reads a number out of anything: a result of another shape is a
 * failure of the node, and no fault of ours.
 */
const RESULTS: Readonly<Record<string, z.ZodType>> = {
  eth_blockNumber: quantity,
  eth_gasPrice: quantity,
  eth_maxPriorityFeePerGas: quantity,
  eth_getBalance: quantity,
  eth_getTransactionCount: quantity,
  eth_estimateGas: quantity,
  eth_call: data,
  eth_getCode: data,
  eth_getStorageAt: data,
  // Null where there is none.
  eth_getBlockByNumber: block.nullable(),
  eth_getBlockByHash: block.nullable(),
  eth_getLogs: logs,
};

/** A chain's JSON-RPC. https://ethereum.github.io/execution-apis/ */
export function evmUpstream<const Name extends EvmChainName>(name: Name): UpstreamDefinition<EvmChain, Name> {
  const { title, publicRpcUrl } = evmChainFacts(name);
  return defineUpstream({
    name,
    title,
    baseUrl: publicRpcUrl,
    licence: LICENCE,
    terms: {
      commercialUse: 'allowed',
      note: 'Data on a public chain has no owner. Public nodes limit how often they may be asked.',
      attribution: null,
      url: null,
    },
    key: 'none',
    requestsPerMinute: REQUESTS_PER_MINUTE,
    open: (http) => openEvmChain(name, http),
    async probe(chain, nowMs) {
      if ((await chain.client.getChainId()) !== chain.chainId) {
        throw new Error(`is not chain ${chain.chainId}`);
      }
      const { number, timestamp } = await chain.client.getBlock();
      const timestampMs = Number(timestamp) * 1_000;
      // A development node makes a block only when it has a transaction.
      if (chain.source({ blockNumber: number, timestampMs }).sandbox) return;
      if (nowMs - timestampMs > OLDEST_HEAD_MS) throw new Error(`its newest block, ${number}, is old`);
    },
  });
}

function openEvmChain(name: EvmChainName, http: UpstreamHttp): EvmChain {
  const { title, chainId, nativeSymbol, usdc } = evmChainFacts(name);
  let requests = 0;
  let latest: Source | undefined;
  let introduction: Promise<{ developmentNode: boolean }> | undefined;
  let developmentNode = false;

  /** Sends one request, once. */
  async function send(method: string, params: unknown): Promise<unknown> {
    requests += 1;
    const body = { jsonrpc: '2.0', id: requests, method, params: params ?? [] };
    const { value, source } = await http.post({ path: '', body, schema: rpcReply, idempotencyKey: null });
    latest = source;
    const { error } = value;
    if (error === undefined || error === null) return fitting(name, method, params, value.result);
    if (isRefusal(method, error)) {
      throw sourceUnavailable(name, 'rate_limited', `${title}: refuses more requests`);
    }
    if (BEHIND_TEXT.test(error.message)) {
      throw sourceUnavailable(name, 'upstream_down', `${title}: the node lacks that block`, 2_000);
    }
    // The form that viem understands: it finds revert reasons in `data`. The address is kept out of its messages.
    const { code, message, data } = error;
    throw new RpcRequestError({ body: { method }, error: { code, message, data }, url: '' });
  }

  /** The same, repeated once when the connection broke. Asking twice does no harm; sending twice would. */
  async function ask(method: string, params: unknown): Promise<unknown> {
    try {
      return await send(method, params);
    } catch (error) {
      const broken = error instanceof UpstreamUnavailable && error.reason === 'upstream_down';
      if (!broken || method.startsWith('eth_send')) throw error;
      return send(method, params);
    }
  }

  /** Checks once that the node serves this chain, and learns whether it is a development node. */
  async function introduce(): Promise<{ developmentNode: boolean }> {
    const [id, version] = await Promise.all([
      ask('eth_chainId', []),
      // Many public nodes do not answer this; those are no development nodes.
      ask('web3_clientVersion', []).catch(() => ''),
    ]);
    const served = typeof id === 'string' || typeof id === 'number' ? `chain ${Number(id)}` : 'no chain';
    if (served !== `chain ${chainId}`)
      throw sourceUnavailable(name, 'invalid_reply', `${title}: the configured node serves ${served}`);
    return { developmentNode: typeof version === 'string' && DEVELOPMENT_NODE.test(version) };
  }

  const client = createPublicClient({
    chain: viemChain(name),
    transport: custom(
      {
        async request({ method, params }: { method: string; params?: unknown }) {
          introduction ??= introduce().catch((error: unknown) => {
            introduction = undefined;
            throw error;
          });
          developmentNode = (await introduction).developmentNode;
          return ask(method, params);
        },
      },
      { retryCount: 0 },
    ),
    batch: { multicall: { batchSize: READS_PER_MULTICALL_BYTES, wait: 0 } },
    cacheTime: 0,
  });

  return {
    name,
    chainId,
    nativeSymbol,
    usdc,
    client: withOutagesThrown(client),
    source({ blockNumber, timestampMs }) {
      if (latest === undefined) throw new Error(`nothing was read from ${name}`);
      return {
        ...latest,
        // Addresses of RPC services often contain a key in their path, so only the host is shown.
        url: `${new URL(latest.url).origin}/#block=${blockNumber}`,
        asOf: new Date(timestampMs).toISOString(),
        sandbox: latest.sandbox || developmentNode,
      };
    },
  };
}

/** A result that has the shape which its method's must have, where that is checked. There is always a newest block. */
function fitting(name: EvmChainName, method: string, params: unknown, result: unknown): unknown {
  const isNewest = method === 'eth_getBlockByNumber' && Array.isArray(params) && params[0] === 'latest';
  const shape = isNewest ? block : RESULTS[method];
  if (shape === undefined || shape.safeParse(result).success) return result;
  const { title } = evmChainFacts(name);
  throw sourceUnavailable(name, 'invalid_reply', `${title}: answered ${method} with something else`);
}

function isRefusal(method: string, error: { code: number; message: string }): boolean {
  if (REFUSAL_TEXT.test(error.message)) return true;
  return method !== 'eth_getLogs' && REFUSALS.includes(error.code);
}

/** The same client, except that outages are thrown even where viem wraps them into an error or a result of its own. */
function withOutagesThrown<Client extends object>(client: Client): Client {
  return new Proxy(client, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key);
      if (typeof member !== 'function') return member;
      return (...parameters: unknown[]) => {
        const returned: unknown = Reflect.apply(member, target, parameters);
        if (!(returned instanceof Promise)) return returned;
        return returned.then(
          (value: unknown) => {
            if (key === 'multicall' && Array.isArray(value)) throwOutageAmong(value);
            return value;
          },
          (error: unknown) => {
            throw outageIn(error) ?? error;
          },
        );
      };
    },
  });
}

function throwOutageAmong(results: readonly unknown[]): void {
  for (const result of results) {
    if (typeof result !== 'object' || result === null || !('error' in result)) continue;
    const outage = outageIn(result.error);
    if (outage !== null) throw outage;
  }
}

function outageIn(error: unknown): UpstreamUnavailable | null {
  let cause = error;
  while (cause instanceof Error) {
    if (cause instanceof UpstreamUnavailable) return cause;
    cause = cause.cause;
  }
  return null;
}
