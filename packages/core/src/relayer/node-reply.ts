import { type Hex, isHash, isHex } from 'viem';
import type { NodeRpc } from '../chain-rpc/json-rpc.ts';

export interface MinedTransaction {
  status: 'success' | 'reverted';
  hash: Hex;
  blockNumber: bigint;
  gasUsed: bigint;
  /** The price that its sender paid for it, in wei; null: the receipt does not say. */
  costWei: bigint | null;
  logs: { address: Hex; topics: Hex[]; data: Hex }[];
}

/** A field of what a node sent; undefined where it has none. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** A number as nodes write it. @throws when it is none */
export function quantity(value: unknown): bigint {
  if (!isQuantity(value)) throw new Error('the node sent no quantity');
  return BigInt(value);
}

function isQuantity(value: unknown): value is string {
  return typeof value === 'string' && /^0x[0-9a-fA-F]+$/.test(value);
}

/**
 * A receipt as a node sends it.
 *
 * @returns null when the node has none, or the transaction is in no block yet
 * @throws for anything else: it is no proof that there is none, by which what was paid would count as never sent
 */
export function asMined(receipt: unknown): MinedTransaction | null {
  if (receipt === null || receipt === undefined || field(receipt, 'blockNumber') === null) return null;
  const hash = field(receipt, 'transactionHash');
  const status = field(receipt, 'status');
  const blockNumber = field(receipt, 'blockNumber');
  const gasUsed = field(receipt, 'gasUsed') ?? '0x0';
  const logs = field(receipt, 'logs');
  if (typeof hash !== 'string' || !isHash(hash) || !isQuantity(blockNumber) || !isQuantity(gasUsed))
    throw noReceipt();
  // A status that says neither must not be taken for a transaction that moved nothing.
  if ((status !== '0x1' && status !== '0x0') || !Array.isArray(logs)) throw noReceipt();
  return {
    status: status === '0x1' ? 'success' : 'reverted',
    hash,
    blockNumber: BigInt(blockNumber),
    gasUsed: BigInt(gasUsed),
    costWei: costIn(receipt),
    logs: logs.map(asLog),
  };
}

/**
 * The receipt of a transaction, from a node that has a certain block. One address can be several nodes, of which one
 * stands still, and no node refuses a receipt because it is behind. Both are asked in one request, so that the node that
 * shows the block is the one that answers.
 *
 * @param headHash the block, as a node at this address named it
 * @returns null when no block up to that one holds the transaction
 * @throws when the node does not have the block, or does not answer
 */
export async function minedUpTo(
  rpc: Pick<NodeRpc, 'together'>,
  headHash: Hex,
  hash: string,
): Promise<MinedTransaction | null> {
  const [block, receipt] = await rpc.together([
    { method: 'eth_getBlockByHash', params: [headHash, false] },
    { method: 'eth_getTransactionReceipt', params: [hash] },
  ]);
  const shown = field(block, 'hash');
  if (typeof shown !== 'string' || shown.toLowerCase() !== headHash.toLowerCase())
    throw new Error('the node does not have the block');
  return asMined(receipt);
}

function noReceipt(): Error {
  return new Error('the node sent no receipt');
}

/** @throws when it is none */
function asLog(log: unknown): MinedTransaction['logs'][number] {
  const [address, topics, data] = ['address', 'topics', 'data'].map((name) => field(log, name));
  if (!isHex(address) || !Array.isArray(topics) || !topics.every((topic) => isHex(topic)) || !isHex(data))
    throw noReceipt();
  return {
    address: address.toLowerCase() as Hex,
    topics: topics.map((topic) => topic.toLowerCase() as Hex),
    data,
  };
}

/** Chains that post to another one say what that cost beside the gas (`l1Fee`: OP Stack), unless it is in it. */
function costIn(receipt: unknown): bigint | null {
  const [used, price, posted] = ['gasUsed', 'effectiveGasPrice', 'l1Fee'].map((name) => field(receipt, name));
  // It decides nothing: what is not told must not keep a receipt from being one.
  try {
    return (
      quantity(used) * quantity(price) + (posted === undefined || posted === null ? 0n : quantity(posted))
    );
  } catch {
    return null;
  }
}
