/**
 * Reads the vault's events into the database, a bounded piece of the chain at a time. What is written is bound to the blocks
 * that it was read from: when the chain takes another way, what was read past the fork goes, and is read again. Replicas
 * read the same pieces; who writes first has written, and the other one's piece is dropped.
 */
import { encodeEventTopics, type Hex, numberToHex, type RpcLog } from 'viem';
import { z } from 'zod';
import { type BatchingRpc, MAX_BATCH, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import type { Database } from '../../db/connection.ts';
import { VAULT_ABI } from '../contracts/abi.ts';
import { type Cursor, createIndexStore, type Mark } from './index-store.ts';
import { keeperMovesIn, MOVE_EVENTS, movesIn } from './moves.ts';
import type { Node } from './node.ts';

/** What most providers of nodes answer in one request. */
const MAX_BLOCKS = 2_000n;
/** What a round may take before others have their turn. */
const MAX_PIECES = 50;
const TOPICS = [
  MOVE_EVENTS.flatMap((eventName) => encodeEventTopics({ abi: VAULT_ABI, eventName }).slice(0, 1)),
];

export interface Indexer {
  /**
   * Reads what is new, up to the newest block, or so much of it as a round takes.
   *
   * @returns the last block that has been read; null: none
   * @throws RpcRefusal, RpcUnreachable when the chain cannot be read
   */
  catchUp(stopping?: AbortSignal): Promise<bigint | null>;
}

const header = z.looseObject({ hash: z.string(), timestamp: z.string() }).nullable();
const logs = z.array(
  z.looseObject({
    ...{ address: z.string(), blockHash: z.string(), blockNumber: z.string(), data: z.string() },
    ...{ logIndex: z.string(), topics: z.array(z.string()), transactionHash: z.string() },
  }),
);

export function createIndexer(
  sql: Database,
  { rpc }: Pick<Node, 'rpc'>,
  about: { vault: Hex; sinceBlock: number },
): Indexer {
  const vault = about.vault.toLowerCase();
  const store = createIndexStore(sql, vault, BigInt(about.sinceBlock));
  let piece = MAX_BLOCKS;

  /** One piece. @returns false: there is nothing more to read now */
  async function step(): Promise<boolean> {
    const at = await store.cursor();
    const newest = BigInt(z.string().parse(await rpc.call('eth_blockNumber', [])));
    if (await hasForked(rpc, at, newest)) {
      await store.rewind(at, await newestOnChain(rpc, await store.marksBelow(at.nextBlock)));
      return true;
    }
    if (at.nextBlock > newest) return false;
    const end = at.nextBlock + piece - 1n;
    const to = end < newest ? end : newest;
    const before = await blockAt(rpc, to);
    if (before === null) return false;
    let found: RpcLog[];
    try {
      found = await logsOf(rpc, vault, at.nextBlock, to);
    } catch (error) {
      // A node that refuses so many blocks, or so many events, at once is asked for fewer.
      if (!(error instanceof RpcRefusal) || piece === 1n) throw error;
      piece = piece / 4n > 0n ? piece / 4n : 1n;
      return true;
    }
    const read = { moves: movesIn(found), keeperMoves: keeperMovesIn(found) };
    const blocks = [...read.moves, ...read.keeperMoves].map(({ blockNumber }) => blockNumber);
    const times = await timesOf(rpc, [...new Set(blocks)]);
    // The chain was the same one before and after: what was read in between is of it.
    const after = await blockAt(rpc, to);
    if (after?.hash !== before.hash) return true;
    await store.write(at, { number: to, hash: before.hash }, read, times);
    if (piece < MAX_BLOCKS) piece *= 2n;
    return to < newest;
  }

  async function round(stopping?: AbortSignal): Promise<bigint | null> {
    for (let done = 0; done < MAX_PIECES && stopping?.aborted !== true; done += 1) if (!(await step())) break;
    const { nextBlock, lastHash } = await store.cursor();
    return lastHash === null ? null : nextBlock - 1n;
  }

  let running: Promise<bigint | null> | null = null;
  return {
    async catchUp(stopping) {
      // Whoever comes while a round runs waits for the next: that one may have looked for the newest block already.
      await running?.catch(() => null);
      running ??= round(stopping).finally(() => {
        running = null;
      });
      return running;
    },
  };
}

/** Whether the block that was read last is not the chain's any more. */
async function hasForked(
  rpc: BatchingRpc,
  { nextBlock, lastHash }: Cursor,
  newest: bigint,
): Promise<boolean> {
  if (lastHash === null) return false;
  const last = nextBlock - 1n > newest ? null : await blockAt(rpc, nextBlock - 1n);
  return last?.hash !== lastHash;
}

async function newestOnChain(rpc: BatchingRpc, marks: readonly Mark[]): Promise<Mark | null> {
  for (const mark of marks) if ((await blockAt(rpc, mark.number))?.hash === mark.hash) return mark;
  return null;
}

async function blockAt(rpc: BatchingRpc, number: bigint) {
  return header.parse(await rpc.call('eth_getBlockByNumber', [numberToHex(number), false]));
}

async function logsOf(rpc: BatchingRpc, vault: string, from: bigint, to: bigint): Promise<RpcLog[]> {
  const filter = { address: vault, topics: TOPICS, fromBlock: numberToHex(from), toBlock: numberToHex(to) };
  return logs.parse(await rpc.call('eth_getLogs', [filter])) as unknown as RpcLog[];
}

async function timesOf(rpc: BatchingRpc, numbers: readonly bigint[]): Promise<Map<bigint, Date>> {
  const times = new Map<bigint, Date>();
  for (let from = 0; from < numbers.length; from += MAX_BATCH) {
    const some = numbers.slice(from, from + MAX_BATCH);
    const blocks = await rpc.batch(
      'eth_getBlockByNumber',
      some.map((number) => [numberToHex(number), false]),
    );
    for (const [index, number] of some.entries()) {
      const block = header.parse(blocks[index]);
      if (block !== null) times.set(number, new Date(Number(BigInt(block.timestamp)) * 1_000));
    }
  }
  return times;
}
