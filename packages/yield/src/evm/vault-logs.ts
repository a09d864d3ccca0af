/** Reads the vault's events from a node, and checks them against what was asked. */

import { type BatchingRpc, MAX_BATCH } from '@farebox/core/chain-rpc/json-rpc';
import { numberToHex, type RpcLog } from 'viem';
import { z } from 'zod';

/** The contract whose events are wanted, and which of them. */
export interface Wanted {
  /** In lower case. */
  address: string;
  topics: readonly string[];
}

const header = z.looseObject({ hash: z.string(), timestamp: z.string() }).nullable();
const logs = z.array(
  z.looseObject({
    address: z.string(),
    blockHash: z.string(),
    blockNumber: z.string(),
    data: z.string(),
    logIndex: z.string(),
    topics: z.array(z.string()),
    transactionHash: z.string(),
  }),
);
const blockOfHashes = z.looseObject({ transactions: z.array(z.string()) });
const receipt = z.looseObject({ logs });

/** Null: the node does not know it. */
export async function blockAt(rpc: BatchingRpc, number: bigint) {
  return header.parse(await rpc.call('eth_getBlockByNumber', [numberToHex(number), false]));
}

/**
 * The events of some blocks.
 *
 * @throws Error when the node answers others; RpcRefusal, RpcUnreachable when it does not answer
 */
export async function logsOf(
  rpc: BatchingRpc,
  { address, topics }: Wanted,
  from: bigint,
  to: bigint,
): Promise<RpcLog[]> {
  const filter = { address, topics: [topics], fromBlock: numberToHex(from), toBlock: numberToHex(to) };
  const found = logs.parse(await rpc.call('eth_getLogs', [filter]));
  for (const log of found) {
    const number = BigInt(log.blockNumber);
    if (log.address.toLowerCase() !== address || number < from || number > to)
      throw new Error('the node answers other events than those that it was asked for');
  }
  return found as unknown as RpcLog[];
}

/**
 * The events of one block, read from its transactions one by one. Nobody can put so many events into a block that they cannot be
 * read in this way: those of one transaction, whose gas is bounded, fit in an answer.
 *
 * @throws as `logsOf`
 */
export async function logsOfBlock(rpc: BatchingRpc, wanted: Wanted, number: bigint): Promise<RpcLog[]> {
  const block = await rpc.call('eth_getBlockByNumber', [numberToHex(number), false]);
  const found: RpcLog[] = [];
  for (const hash of blockOfHashes.parse(block).transactions) {
    const its = receipt.parse(await rpc.call('eth_getTransactionReceipt', [hash]));
    for (const log of its.logs)
      if (log.address.toLowerCase() === wanted.address && wanted.topics.includes(log.topics[0] ?? ''))
        found.push(log as unknown as RpcLog);
  }
  return found;
}

/** When blocks were made; null: the node does not know one of them. */
export async function timesOf(
  rpc: BatchingRpc,
  numbers: readonly bigint[],
): Promise<Map<bigint, Date> | null> {
  const times = new Map<bigint, Date>();
  for (let from = 0; from < numbers.length; from += MAX_BATCH) {
    const some = numbers.slice(from, from + MAX_BATCH);
    const blocks = await rpc.batch(
      'eth_getBlockByNumber',
      some.map((number) => [numberToHex(number), false]),
    );
    for (const [index, number] of some.entries()) {
      const block = header.parse(blocks[index]);
      if (block === null) return null;
      times.set(number, new Date(Number(BigInt(block.timestamp)) * 1_000));
    }
  }
  return times;
}
