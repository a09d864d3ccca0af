/**
 * Reads the vault's events into the database, a bounded piece of the chain at a time. What is written is bound to the blocks
 * that it was read from: when the chain takes another way, what was read past the fork goes, and is read again. Replicas
 * read the same pieces; who writes first has written, and the other one's piece is dropped.
 */

import { type BatchingRpc, RpcRefusal } from '@farebox/core/chain-rpc/json-rpc';
import type { Database } from '@farebox/core/db/connection';
import { encodeEventTopics, type Hex, type RpcLog } from 'viem';
import { z } from 'zod';
import { VAULT_ABI } from '../contracts/abi.ts';
import { type Cursor, createIndexStore, type Mark } from './index-store.ts';
import { keeperMovesIn, MOVE_EVENTS, movesIn } from './moves.ts';
import type { Node } from './node.ts';
import { blockAt, logsOf, logsOfBlock, timesOf } from './vault-logs.ts';

/** The blocks that most providers of nodes answer for in one request. */
const MAX_BLOCKS = 2_000n;
/** The pieces that a round may take before others have their turn. */
const MAX_PIECES = 50;
const TOPICS = MOVE_EVENTS.map((eventName) => String(encodeEventTopics({ abi: VAULT_ABI, eventName })[0]));

export interface Indexer {
  /**
   * Reads what is new, up to the newest block, or so much of it as a round takes.
   *
   * @returns the last block that has been read; null: none
   * @throws RpcRefusal, RpcUnreachable when the chain cannot be read
   */
  catchUp(stopping?: AbortSignal): Promise<bigint | null>;
}

export function createIndexer(
  sql: Database,
  { rpc }: Pick<Node, 'rpc'>,
  about: { vault: Hex; sinceBlock: number },
): Indexer {
  const vault = about.vault.toLowerCase();
  const its = { address: vault, topics: TOPICS };
  const store = createIndexStore(sql, vault, BigInt(about.sinceBlock));
  let piece = MAX_BLOCKS;

  /** One piece. @returns false: there is nothing more to read now */
  async function step(): Promise<boolean> {
    const at = await store.cursor();
    const newest = BigInt(z.string().parse(await rpc.call('eth_blockNumber', [])));
    const since = await whatBecameOf(rpc, at);
    if (since === 'behind') return false;
    if (since === 'forked') {
      const marks = await newestOnChain(rpc, await store.marksBelow(at.nextBlock));
      if (marks === 'behind') return false;
      await store.rewind(at, marks);
      return true;
    }
    if (at.nextBlock > newest) return false;
    const end = at.nextBlock + piece - 1n;
    const to = end < newest ? end : newest;
    const before = await blockAt(rpc, to);
    if (before === null) return false;
    let found: RpcLog[];
    try {
      found = await logsOf(rpc, its, at.nextBlock, to);
    } catch (error) {
      if (to > at.nextBlock) {
        // A node that refuses so many blocks, or so many events, at once is asked for fewer; one that is silent, or whose answer is
        // longer than what is read of one, in the next round.
        piece = (to - at.nextBlock + 4n) / 4n;
        if (error instanceof RpcRefusal) return true;
        throw error;
      }
      found = await logsOfBlock(rpc, its, to);
    }
    const read = { moves: movesIn(found), keeperMoves: keeperMovesIn(found) };
    const blocks = [...read.moves, ...read.keeperMoves].map(({ blockNumber }) => blockNumber);
    const times = await timesOf(rpc, [...new Set(blocks)]);
    if (times === null) return false;
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

/**
 * Whether the block that was read last is still the chain's. A node that does not know it is behind the one that was asked before
 * and says nothing about a fork: what was read stays.
 */
async function whatBecameOf(
  rpc: BatchingRpc,
  { nextBlock, lastHash }: Cursor,
): Promise<'there' | 'forked' | 'behind'> {
  if (lastHash === null) return 'there';
  const last = await blockAt(rpc, nextBlock - 1n);
  if (last === null) return 'behind';
  return last.hash === lastHash ? 'there' : 'forked';
}

/** Null: none of them is. */
async function newestOnChain(rpc: BatchingRpc, marks: readonly Mark[]): Promise<Mark | null | 'behind'> {
  for (const mark of marks) {
    const there = await blockAt(rpc, mark.number);
    if (there === null) return 'behind';
    if (there.hash === mark.hash) return mark;
  }
  return null;
}
