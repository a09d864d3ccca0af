/** Where the index is kept. Whoever moves it on says from where: who comes second from the same place changes nothing. */
import { arrayLiteral } from '@farebox/core/db/array-literal';
import type { Database, Transaction } from '@farebox/core/db/connection';
import type { KeeperMove, Move } from './moves.ts';

/** A fork is found by so many marks; older ones are forgotten. */
const KEPT_MARKS = 300;

/** How far the chain has been read. */
export interface Cursor {
  nextBlock: bigint;
  /** Hash of the block before; null: none has been read. */
  lastHash: string | null;
}

/** A block that was the chain's when it was read. */
export interface Mark {
  number: bigint;
  hash: string;
}

export type IndexStore = ReturnType<typeof createIndexStore>;

/** @param vault in lower case */
export function createIndexStore(sql: Database, vault: string, sinceBlock: bigint) {
  return {
    async cursor(): Promise<Cursor> {
      const read = () => sql<{ next_block: bigint; last_hash: string | null }[]>`
        SELECT next_block, last_hash FROM yield_index WHERE vault = ${vault}`;
      let [row] = await read();
      if (row === undefined) {
        await sql`INSERT INTO yield_index (vault, next_block) VALUES (${vault}, ${sinceBlock}) ON CONFLICT DO NOTHING`;
        [row] = await read();
      }
      return { nextBlock: row?.next_block ?? sinceBlock, lastHash: row?.last_hash ?? null };
    },

    /** The marks below a block, the newest first. */
    async marksBelow(block: bigint): Promise<Mark[]> {
      const rows = await sql<{ block_number: bigint; block_hash: string }[]>`
        SELECT block_number, block_hash FROM yield_marks
        WHERE vault = ${vault} AND block_number < ${block} ORDER BY block_number DESC`;
      return rows.map(({ block_number, block_hash }) => ({ number: block_number, hash: block_hash }));
    },

    /** Writes what was read up to a block. @param times of the blocks with moves */
    async write(
      at: Cursor,
      to: Mark,
      { moves, keeperMoves }: { moves: readonly Move[]; keeperMoves: readonly KeeperMove[] },
      times: ReadonlyMap<bigint, Date>,
    ): Promise<void> {
      await sql.begin(async (transaction) => {
        const next = { nextBlock: to.number + 1n, lastHash: to.hash };
        if (!(await moveOn(transaction, vault, at, next))) return;
        await transaction`
          INSERT INTO yield_marks (vault, block_number, block_hash) VALUES (${vault}, ${to.number}, ${to.hash})
          ON CONFLICT (vault, block_number) DO UPDATE SET block_hash = excluded.block_hash`;
        await transaction`
          DELETE FROM yield_marks WHERE vault = ${vault} AND block_number < (
            SELECT min(block_number) FROM (
              SELECT block_number FROM yield_marks WHERE vault = ${vault} ORDER BY block_number DESC LIMIT ${KEPT_MARKS}
            ) newest)`;
        if (moves.length > 0) await insert(transaction, vault, moves, times);
        if (keeperMoves.length > 0) await insertKeeperMoves(transaction, vault, keeperMoves, times);
      });
    },

    /** Forgets what came after a fork. @param fork null: all of it */
    async rewind(at: Cursor, fork: Mark | null): Promise<void> {
      const nextBlock = fork === null ? sinceBlock : fork.number + 1n;
      await sql.begin(async (transaction) => {
        if (!(await moveOn(transaction, vault, at, { nextBlock, lastHash: fork?.hash ?? null }))) return;
        await transaction`DELETE FROM yield_moves WHERE vault = ${vault} AND block_number >= ${nextBlock}`;
        await transaction`DELETE FROM yield_keeper_moves WHERE vault = ${vault} AND block_number >= ${nextBlock}`;
        await transaction`DELETE FROM yield_samples WHERE vault = ${vault} AND block_number >= ${nextBlock}`;
        await transaction`DELETE FROM yield_marks WHERE vault = ${vault} AND block_number >= ${nextBlock}`;
      });
    },
  };
}

/** @returns false: somebody else has moved it on meanwhile */
async function moveOn(transaction: Transaction, vault: string, from: Cursor, to: Cursor): Promise<boolean> {
  const { count } = await transaction`
    UPDATE yield_index SET next_block = ${to.nextBlock}, last_hash = ${to.lastHash}
    WHERE vault = ${vault} AND next_block = ${from.nextBlock} AND last_hash IS NOT DISTINCT FROM ${from.lastHash}`;
  return count === 1;
}

async function insert(
  transaction: Transaction,
  vault: string,
  moves: readonly Move[],
  times: ReadonlyMap<bigint, Date>,
): Promise<void> {
  const of = <Value extends string | number | bigint | null>(read: (move: Move) => Value) =>
    arrayLiteral(moves.map(read));
  const at = ({ blockNumber }: Move) => timeOf(blockNumber, times);
  await transaction`
    INSERT INTO yield_moves
      (vault, block_number, log_index, kind, at, from_wallet, to_wallet, shares, assets, priced_assets, priced_shares)
    SELECT ${vault}, * FROM unnest(
      ${of(({ blockNumber }) => blockNumber)}::text::bigint[], ${of(({ logIndex }) => logIndex)}::text::integer[],
      ${of(({ kind }) => kind)}::text::text[],
      ${of(at)}::text::timestamptz[],
      ${of(({ from }) => from)}::text::text[], ${of(({ to }) => to)}::text::text[],
      ${of(({ shares }) => shares)}::text::numeric[], ${of(({ assets }) => assets)}::text::numeric[],
      ${of(({ price }) => price?.assets ?? null)}::text::numeric[],
      ${of(({ price }) => price?.shares ?? null)}::text::numeric[])`;
}

async function insertKeeperMoves(
  transaction: Transaction,
  vault: string,
  moves: readonly KeeperMove[],
  times: ReadonlyMap<bigint, Date>,
): Promise<void> {
  const of = <Value extends string | number | bigint>(read: (move: KeeperMove) => Value) =>
    arrayLiteral(moves.map(read));
  await transaction`
    INSERT INTO yield_keeper_moves
      (vault, block_number, log_index, at, transaction_hash, from_protocol, to_protocol, assets, received)
    SELECT ${vault}, * FROM unnest(
      ${of(({ blockNumber }) => blockNumber)}::text::bigint[], ${of(({ logIndex }) => logIndex)}::text::integer[],
      ${of(({ blockNumber }) => timeOf(blockNumber, times))}::text::timestamptz[],
      ${of(({ transactionHash }) => transactionHash)}::text::text[],
      ${of(({ from }) => from)}::text::text[], ${of(({ to }) => to)}::text::text[],
      ${of(({ assets }) => assets)}::text::numeric[], ${of(({ received }) => received)}::text::numeric[])`;
}

/** ISO 8601. */
function timeOf(block: bigint, times: ReadonlyMap<bigint, Date>): string {
  const time = times.get(block);
  if (time === undefined) throw new Error(`the time of block ${block} was not read`);
  return time.toISOString();
}
