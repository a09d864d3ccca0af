/** Runs a call on the newest state without sending it, by the best way that the node offers. */
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import {
  type Address,
  BaseError,
  concatHex,
  decodeFunctionResult,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  isHex,
  parseAbi,
  type StateOverride,
} from 'viem';
import { z } from 'zod';
import { asAddress } from '../../../preflight/call-arguments.ts';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import { printable, revertReason } from '../wallet/wallet-revert.ts';
import type { SimulatedLog } from './simulated-acts.ts';

export interface SimulatedCall {
  from: Address;
  /** Null creates a contract. */
  to: Address | null;
  value: bigint;
  data: Hex;
  /** The contract whose code acts as `from` (EIP-7702), as an authorization in the transaction would have it. */
  delegate: Address | null;
}

/** A balance to read: its holder and its token. */
export interface Holding {
  holder: Address;
  /** Null: the chain's own coin. */
  token: Address | null;
}

export interface Measured extends Holding {
  before: bigint;
  after: bigint;
}

export interface Simulation {
  method: 'eth_simulateV1' | 'debug_traceCall' | 'eth_call';
  success: boolean;
  revertReason: string | null;
  gasUsed: bigint | null;
  /** Null: this way to simulate shows none. */
  logs: SimulatedLog[] | null;
  /** Methods that the node does not have. */
  missing: string[];
}

const GAS_OF_A_READING = 200_000n;
const MULTICALL3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11';
const MULTICALL3_ABI = parseAbi([
  'struct Call { address target; bool allowFailure; uint256 value; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3Value(Call[] calls) payable returns (Result[] returnData)',
  'function getEthBalance(address addr) view returns (uint256 balance)',
]);
const MOST_FRAMES = 1_000;

/**
 * Simulates by `eth_simulateV1`, and where the node has none by `debug_traceCall`. Null where it has neither: then
 * `measureByCall` is left.
 *
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function simulate(
  chain: EvmChain,
  call: SimulatedCall,
  blockNumber: bigint,
): Promise<{ simulation: Simulation | null; missing: string[] }> {
  const missing: string[] = [];
  const bySimulation = await unlessMissing('eth_simulateV1', missing, () =>
    byBlocks(chain, call, blockNumber),
  );
  if (bySimulation !== null) return { simulation: { ...bySimulation, missing }, missing };
  const byTrace = await unlessMissing('debug_traceCall', missing, () => byTracing(chain, call, blockNumber));
  return { simulation: byTrace === null ? null : { ...byTrace, missing }, missing };
}

async function unlessMissing<T>(method: string, missing: string[], ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof UpstreamUnavailable && error.reason !== 'invalid_reply') throw error;
    missing.push(method);
    return null;
  }
}

type Run = Omit<Simulation, 'missing'>;

async function byBlocks(chain: EvmChain, call: SimulatedCall, blockNumber: bigint): Promise<Run> {
  const [result] = await inBlock(chain, call, blockNumber, []);
  if (result === undefined) throw new TypeError('no result');
  const success = result.status === 'success';
  return {
    method: 'eth_simulateV1',
    success,
    revertReason: success ? null : reasonOf(result.data),
    gasUsed: result.gasUsed,
    logs: success
      ? [...(result.logs ?? [])].map(({ address, topics, data }) => ({ address, topics, data }))
      : [],
  };
}

/** The call between two rounds of readings, all in one block. */
async function inBlock(
  chain: EvmChain,
  { from, to, value, data, delegate }: SimulatedCall,
  blockNumber: bigint,
  readings: readonly { to: Address; data: Hex }[],
) {
  const around = readings.map((each) => ({ ...each, gas: GAS_OF_A_READING }));
  const calls = [...around, { account: from, to, value, data }, ...around];
  const stateOverrides: StateOverride = delegate === null ? [] : [{ address: from, code: codeOf(delegate) }];
  const [block] = await chain.client.simulateBlocks({
    blocks: [{ calls, ...(delegate === null ? {} : { stateOverrides }) }],
    blockNumber,
    traceTransfers: true,
    validation: false,
  });
  if (block?.calls.length !== calls.length) throw new TypeError('not all was simulated');
  return block.calls as readonly {
    status: 'success' | 'failure';
    data: Hex;
    gasUsed: bigint;
    logs?: SimulatedLog[];
  }[];
}

const codeOf = (delegate: Address): Hex => concatHex(['0xef0100', delegate]);

/** Reads balances before and after the call. Null where the node cannot. */
export async function measure(
  chain: EvmChain,
  call: SimulatedCall,
  blockNumber: bigint,
  holdings: readonly Holding[],
): Promise<Measured[] | null> {
  if (holdings.length === 0) return [];
  try {
    const results = await inBlock(chain, call, blockNumber, holdings.map(balanceCall));
    const readingAt = (index: number) => {
      const result = results[index];
      return result?.status === 'success' && result.data.length >= 66
        ? BigInt(result.data.slice(0, 66))
        : null;
    };
    return holdings.flatMap((holding, index) => {
      const [before, after] = [readingAt(index), readingAt(holdings.length + 1 + index)];
      return before === null || after === null ? [] : [{ ...holding, before, after }];
    });
  } catch (error) {
    if (error instanceof UpstreamUnavailable && error.reason !== 'invalid_reply') throw error;
    return null;
  }
}

function balanceCall({ holder, token }: Holding): { to: Address; data: Hex } {
  if (token !== null) {
    return {
      to: token,
      data: encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [holder] }),
    };
  }
  return {
    to: MULTICALL3,
    data: encodeFunctionData({ abi: MULTICALL3_ABI, functionName: 'getEthBalance', args: [holder] }),
  };
}

interface Frame {
  from: string;
  to?: string | null | undefined;
  value?: string | null | undefined;
  type?: string | undefined;
  error?: string | null | undefined;
  output?: string | null | undefined;
  gasUsed?: string | undefined;
  logs?: { address: string; topics: string[]; data: string }[] | undefined;
  calls?: Frame[] | undefined;
}
const frame: z.ZodType<Frame> = z.looseObject({
  from: z.string(),
  to: z.string().nullish(),
  value: z.string().nullish(),
  type: z.string().optional(),
  error: z.string().nullish(),
  output: z.string().nullish(),
  gasUsed: z.string().optional(),
  logs: z
    .array(z.looseObject({ address: z.string(), topics: z.array(z.string()), data: z.string() }))
    .optional(),
  get calls() {
    return z.array(frame).optional();
  },
});
const NATIVE_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const NATIVE: Address = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE';

async function byTracing(chain: EvmChain, call: SimulatedCall, blockNumber: bigint): Promise<Run> {
  const { from, to, value, data, delegate } = call;
  // viem's types have no method of that namespace.
  const request = chain.client.request as unknown as (asked: {
    method: 'debug_traceCall';
    params: unknown;
  }) => Promise<unknown>;
  const reply = await request({
    method: 'debug_traceCall',
    params: [
      { from, ...(to === null ? {} : { to }), value: hexOf(value), data },
      hexOf(blockNumber),
      {
        tracer: 'callTracer',
        tracerConfig: { withLog: true },
        ...(delegate === null ? {} : { stateOverrides: { [from]: { code: codeOf(delegate) } } }),
      },
    ],
  });
  const root = frame.parse(reply);
  const failed = typeof root.error === 'string';
  return {
    method: 'debug_traceCall',
    success: !failed,
    revertReason: failed ? reasonOf(isHex(root.output) ? root.output : '0x') : null,
    gasUsed: isHex(root.gasUsed) ? BigInt(root.gasUsed) : null,
    logs: failed ? [] : logsOf(root),
  };
}

const hexOf = (amount: bigint): Hex => `0x${amount.toString(16)}`;

/** The logs of calls that went through, with what moved of the chain's own coin told in the same form. */
function logsOf(root: Frame): SimulatedLog[] {
  const logs: SimulatedLog[] = [];
  const waiting = [root];
  for (let looked = 0, next = waiting.shift(); next !== undefined && looked < MOST_FRAMES; looked += 1) {
    if (typeof next.error !== 'string') {
      const moves =
        isHex(next.value) && BigInt(next.value) > 0n && !/^(DELEGATE|CALLCODE|STATIC)/.test(next.type ?? '');
      if (moves && isHex(next.value) && typeof next.to === 'string') {
        logs.push({
          address: NATIVE,
          topics: [NATIVE_TOPIC, topicOf(next.from), topicOf(next.to)],
          data: `0x${BigInt(next.value).toString(16).padStart(64, '0')}`,
        });
      }
      for (const { address, topics, data } of next.logs ?? []) {
        logs.push({
          address: asAddress(address),
          topics: topics.filter((each) => isHex(each)),
          data: isHex(data) ? data : '0x',
        });
      }
      waiting.push(...(next.calls ?? []));
    }
    next = waiting.shift();
  }
  return logs;
}

const topicOf = (address: string): Hex => `0x${asAddress(address).slice(2).toLowerCase().padStart(64, '0')}`;

/**
 * By `eth_call` alone: the code of Multicall3 stands in for the sender's, so that it reads the balances, makes the call and reads
 * them again. Contracts that tell accounts from contracts may act otherwise then.
 */
export async function measureByCall(
  chain: EvmChain,
  { from, to, value, data }: SimulatedCall,
  blockNumber: bigint,
  tokens: readonly (Address | null)[],
): Promise<{ run: Run; measured: Measured[] } | null> {
  if (to === null) return null;
  const code = await chain.client.getCode({ address: MULTICALL3, blockNumber });
  if (code === undefined) return null;
  const readings = tokens.map((token) => {
    const reading = balanceCall({ holder: from, token });
    return {
      target: token === null ? from : reading.to,
      allowFailure: true,
      value: 0n,
      callData: reading.data,
    };
  });
  const calls = [...readings, { target: to, allowFailure: true, value, callData: data }, ...readings];
  try {
    const { data: returned } = await chain.client.call({
      account: from,
      to: from,
      data: encodeFunctionData({ abi: MULTICALL3_ABI, functionName: 'aggregate3Value', args: [calls] }),
      value,
      blockNumber,
      stateOverride: [{ address: from, code }],
      batch: false,
    } as Parameters<typeof chain.client.call>[0]);
    const results = decodeFunctionResult({
      abi: MULTICALL3_ABI,
      functionName: 'aggregate3Value',
      data: returned ?? '0x',
    });
    return readingsIn(results, tokens, from);
  } catch (error) {
    if (!(error instanceof BaseError)) throw error;
    return null;
  }
}

function readingsIn(
  results: readonly { success: boolean; returnData: Hex }[],
  tokens: readonly (Address | null)[],
  holder: Address,
): { run: Run; measured: Measured[] } | null {
  const outcome = results[tokens.length];
  if (outcome === undefined) return null;
  const amountAt = (index: number) => {
    const result = results[index];
    return result?.success === true && result.returnData.length >= 66
      ? BigInt(result.returnData.slice(0, 66))
      : null;
  };
  const measured = tokens.flatMap((token, index): Measured[] => {
    const [before, after] = [amountAt(index), amountAt(tokens.length + 1 + index)];
    return before === null || after === null ? [] : [{ holder, token, before, after }];
  });
  const { success, returnData } = outcome;
  const run = { method: 'eth_call', gasUsed: null, logs: null, success } as const;
  return { run: { ...run, revertReason: success ? null : reasonOf(returnData) }, measured };
}

function reasonOf(data: Hex | undefined): string {
  return printable(revertReason(data ?? '0x'));
}

/** The tokens that are looked at where the node shows no logs: the chain's well-known ones. */
export function listedTokens(chain: EvmChain): Address[] {
  return evmChainFacts(chain.name).tokens.map(({ address }) => address);
}
