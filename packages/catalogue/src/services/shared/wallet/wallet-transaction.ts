import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import {
  type Address,
  BaseError,
  ExecutionRevertedError,
  type Hex,
  InsufficientFundsError,
  isHex,
  numberToHex,
  parseAbi,
  RpcRequestError,
  type StateOverride,
  serializeTransaction,
} from 'viem';
import { z } from 'zod';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import type { ChainHead } from './wallet-chains.ts';
import { toMicroUsd } from './wallet-holdings.ts';
import { nativeCoin, usdPrices } from './wallet-prices.ts';
import { printable, revertReason } from './wallet-revert.ts';

/** How many blocks' tips are read, and which percentile of the tips of each block. */
const FEE_BLOCKS = 10;
const TIP_PERCENTILE = 50;
/** What a call may take more than measured, since the state may change until it is mined. In percent. */
const GAS_MARGIN_PERCENT = 20n;
const PLAIN_TRANSFER_GAS = 21_000n;
/** The OP stack's price oracle: what a transaction pays for its data on Ethereum. https://specs.optimism.io */
const L1_FEE_ORACLE: Address = '0x420000000000000000000000000000000000000F';
const l1FeeAbi = parseAbi(['function getL1Fee(bytes data) view returns (uint256)']);

/** A transaction's fields as wallets and `eth_sendTransaction` take them: quantities as hex. */
export const quantity = z.string().describe('Quantity in hex, as JSON-RPC takes it');

export interface Call {
  from: Address;
  to: Address;
  /** Wei. */
  value: bigint;
  data: Hex;
}

export interface Fees {
  /** Of the next block. All in wei per unit of gas. */
  baseFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
  maxFeePerGas: bigint;
}

/**
 * The fees to offer for a transaction now: the median of the median tips of the last blocks with transactions, and at
 * most twice the next base fee, which stays enough for six full blocks in a row (EIP-1559).
 */
export async function currentFees(chain: EvmChain): Promise<Fees> {
  const history = await chain.client.getFeeHistory({
    blockCount: FEE_BLOCKS,
    rewardPercentiles: [TIP_PERCENTILE],
  });
  const tips = (history.reward ?? [])
    .flatMap(([tip], block) => (tip !== undefined && (history.gasUsedRatio[block] ?? 0) > 0 ? [tip] : []))
    .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const maxPriorityFeePerGas =
    tips[Math.floor(tips.length / 2)] ?? (await chain.client.estimateMaxPriorityFeePerGas());
  const baseFeePerGas = history.baseFeePerGas.at(-1) ?? 0n;
  return { baseFeePerGas, maxPriorityFeePerGas, maxFeePerGas: 2n * baseFeePerGas + maxPriorityFeePerGas };
}

export type Trial =
  | { success: true; gas: bigint; revertReason: null }
  | { success: false; gas: null; revertReason: string };

/**
 * Simulates a call on the newest state without sending it.
 *
 * @param overrides state changes to assume
 * @returns the gas it used, or in one short line why it would fail
 */
export async function tryCall(chain: EvmChain, call: Call, overrides?: StateOverride): Promise<Trial> {
  const { from, to, value, data } = call;
  try {
    const gas = await chain.client.estimateGas({
      account: from,
      to,
      value,
      data,
      ...(overrides === undefined ? {} : { stateOverride: overrides }),
    });
    return { success: true, gas, revertReason: null };
  } catch (error) {
    if (!(error instanceof BaseError)) throw error;
    return { success: false, gas: null, revertReason: failureOf(error) };
  }
}

/** Nodes differ in whether they notice this when no gas price is given. */
export const LESS_THAN_THE_VALUE = 'the sender has less than the value it would send';

function failureOf(error: BaseError): string {
  const reply = error.walk((cause) => cause instanceof RpcRequestError);
  const said = reply instanceof RpcRequestError ? reply : null;
  if (said !== null && isHex(said.data) && said.data !== '0x') return revertReason(said.data);
  if (error.walk((cause) => cause instanceof InsufficientFundsError) !== null) {
    return LESS_THAN_THE_VALUE;
  }
  const words = printable(said?.details ?? '');
  if (error.walk((cause) => cause instanceof ExecutionRevertedError) !== null) {
    return words.replace(/^execution reverted:?\s*/i, '') || revertReason('0x');
  }
  return `the node does not execute it${words === '' ? '' : `: ${words}`}`;
}

/** The gas to give a transaction that was measured to take `gas`. */
export function gasLimit(gas: bigint): bigint {
  return gas === PLAIN_TRANSFER_GAS ? gas : gas + (gas * GAS_MARGIN_PERCENT) / 100n;
}

/** What a sender signs: the transaction as wallets take it, and serialized (EIP-2718) without a signature. */
export function unsigned(chain: EvmChain, call: Call, nonce: number, gas: bigint, fees: Fees) {
  const { maxFeePerGas, maxPriorityFeePerGas } = fees;
  const { from, to, value, data } = call;
  return {
    transaction: {
      chainId: chain.chainId,
      from,
      to,
      value: numberToHex(value),
      data,
      nonce,
      gas: numberToHex(gas),
      maxFeePerGas: numberToHex(maxFeePerGas),
      maxPriorityFeePerGas: numberToHex(maxPriorityFeePerGas),
      type: 2,
    },
    unsignedSerialized: serializeTransaction({
      type: 'eip1559',
      chainId: chain.chainId,
      to,
      value,
      data,
      nonce,
      gas,
      maxFeePerGas,
      maxPriorityFeePerGas,
    }),
  };
}

export interface FeeEstimate {
  /** At the next base fee and the tip, and on OP-stack chains with the part for Ethereum where the chain tells it. */
  feeWei: bigint;
  /** Null: no sure price of the chain's coin. */
  feeUsd: number | null;
  /** Of the price. */
  sources: Source[];
  notes: string[];
}

/** What a transaction costs its sender, by the gas that it was measured to take. */
export async function estimateFee(
  { chain }: ChainHead,
  transaction: { gas: bigint; serialized: Hex; fees: Fees },
  { defillama }: Pick<Upstreams, 'defillama'>,
  nowMs: number,
): Promise<FeeEstimate> {
  const { baseFeePerGas, maxPriorityFeePerGas } = transaction.fees;
  const notes: string[] = [];
  let feeWei = transaction.gas * (baseFeePerGas + maxPriorityFeePerGas);
  const [l1FeeWei, price] = await Promise.all([
    evmChainFacts(chain.name).opStack ? l1Fee(chain, transaction.serialized) : 0n,
    priceOf(chain, { defillama }, nowMs),
  ]);
  if (l1FeeWei === null) {
    notes.push('The fee is without its part for data on Ethereum: this chain has no oracle for it.');
  } else {
    feeWei += l1FeeWei;
  }
  if (price?.usd == null)
    notes.push(`The fee in USD is null: there is no sure price of ${chain.nativeSymbol}.`);
  return {
    feeWei,
    feeUsd: price?.usd == null ? null : toMicroUsd((Number(feeWei) / 1e18) * price.usd),
    sources: price === null ? [] : [price.source],
    notes,
  };
}

async function priceOf(
  chain: EvmChain,
  upstreams: Pick<Upstreams, 'defillama'>,
  nowMs: number,
): Promise<{ usd: number | null; source: Source } | null> {
  const coin = nativeCoin(chain.name);
  try {
    const prices = await usdPrices([coin], upstreams, nowMs);
    return { usd: prices.of(coin).usd, source: prices.sources[0] };
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return null;
    throw error;
  }
}

async function l1Fee(chain: EvmChain, serialized: Hex): Promise<bigint | null> {
  try {
    return await chain.client.readContract({
      address: L1_FEE_ORACLE,
      abi: l1FeeAbi,
      functionName: 'getL1Fee',
      args: [serialized],
    });
  } catch (error) {
    if (error instanceof BaseError) return null;
    throw error;
  }
}
