/** Deposits and withdrawals that were verified on the chain: one row for each transaction, whoever found it and however often. */
import type { Database, Transaction } from '@farebox/core/db/connection';
import { type CostBasis, costBasisOf, type Move } from './cost-basis.ts';

/** A deposit or a withdrawal, with whose it is. Amounts are units of six places. */
export interface WalletMove extends Move {
  signature: string;
  wallet: string;
  /** Null: the chain does not say. */
  atMs: number | null;
  /** The fee that the same transaction paid to the treasury. */
  fee: bigint;
}

export type Moves = ReturnType<typeof createMoves>;

interface Row {
  signature: string;
  wallet: string;
  kind: Move['kind'];
  slot: bigint;
  at: Date | null;
  collateral: bigint;
  usdc: bigint;
  held_before: bigint;
  held_after: bigint;
  fee: bigint;
}

export function createMoves(sql: Database, nowMs: () => number) {
  return {
    ...stillOpen(sql, nowMs),

    /**
     * Keeps a move. One that is known stays as it is, but may become final.
     *
     * @param isFinal whether the chain cannot take it back any more
     */
    async keep(transaction: Transaction, move: WalletMove, isFinal: boolean): Promise<void> {
      const { signature, wallet, kind, slot, atMs, collateral, usdc, heldBefore, heldAfter, fee } = move;
      const at = atMs === null ? null : new Date(atMs);
      await transaction`
        INSERT INTO solana_yield_moves
          (signature, wallet, kind, slot, at, collateral, usdc, held_before, held_after, fee, final, found_at)
        VALUES (${signature}, ${wallet}, ${kind}, ${slot}, ${at}, ${collateral}, ${usdc}, ${heldBefore}, ${heldAfter}, ${fee},
          ${isFinal}, ${new Date(nowMs())})
        ON CONFLICT (signature) DO UPDATE SET final = true WHERE excluded.final AND NOT solana_yield_moves.final`;
    },

    /** @returns null: none is known by this signature */
    async find(signature: string): Promise<WalletMove | null> {
      const [row] = await sql<Row[]>`SELECT * FROM solana_yield_moves WHERE signature = ${signature}`;
      return row === undefined ? null : moveIn(row);
    },

    /** All of a wallet's, the oldest first. */
    async of(wallet: string): Promise<WalletMove[]> {
      const rows = await sql<Row[]>`SELECT * FROM solana_yield_moves WHERE wallet = ${wallet} ORDER BY slot`;
      return rows.map(moveIn);
    },

    /**
     * Works out what a wallet's collateral cost.
     *
     * @param heldNow what its own account of the collateral token holds
     * @returns collateral that came through this portal, and what was paid for it; none is known of the rest
     */
    async costBasis(wallet: string, heldNow: bigint): Promise<CostBasis> {
      return costBasisOf(await this.of(wallet), heldNow);
    },

    /** These cannot be taken back any more. */
    async finish(signatures: readonly string[]): Promise<void> {
      if (signatures.length > 0)
        await sql`UPDATE solana_yield_moves SET final = true WHERE signature IN ${sql(signatures)}`;
    },

    /** It is not on the chain any more: what followed from it is open again. @returns false: it is final meanwhile, and stays */
    async takeBack(signature: string): Promise<boolean> {
      const now = new Date(nowMs());
      return sql.begin(async (transaction) => {
        const { count } = await transaction`
          DELETE FROM solana_yield_moves WHERE signature = ${signature} AND NOT final`;
        if (count === 0) return false;
        await transaction`
          UPDATE solana_yield_fees SET state = 'waiting', deposit_signature = NULL, looked_before = NULL, looked_from = NULL, next_at = ${now}
          WHERE deposit_signature = ${signature}`;
        await transaction`
          UPDATE solana_yield_claims SET state = 'pending', claimed_at = ${now}, next_at = ${now}
          WHERE signature = ${signature} AND state = 'confirmed'`;
        return true;
      });
    },
  };
}

/** Moves that the chain could still take back. */
function stillOpen(sql: Database, nowMs: () => number) {
  return {
    /**
     * Keeps a move that the chain can still take back, in a commit of its own: one statement in place of a transaction.
     *
     * @returns false: nothing was kept, since a fee of the wallet waits for its deposit, or the move is known
     */
    async keepAlone(move: WalletMove): Promise<boolean> {
      const { signature, wallet, kind, slot, atMs, collateral, usdc, heldBefore, heldAfter, fee } = move;
      const at = atMs === null ? null : new Date(atMs);
      const { count } = await sql`
        INSERT INTO solana_yield_moves
          (signature, wallet, kind, slot, at, collateral, usdc, held_before, held_after, fee, final, found_at)
        SELECT ${signature}, ${wallet}, ${kind}, ${slot}::bigint, ${at}::timestamptz, ${collateral}::bigint, ${usdc}::bigint,
          ${heldBefore}::bigint, ${heldAfter}::bigint, ${fee}::bigint, false, ${new Date(nowMs())}::timestamptz
        WHERE NOT EXISTS (SELECT 1 FROM solana_yield_fees WHERE wallet = ${wallet} AND state IN ('waiting', 'unused'))
        ON CONFLICT (signature) DO NOTHING`;
      return count === 1;
    },

    /** The moves that the chain could still take back when they were last looked at, the oldest first. */
    async open(most: number): Promise<{ signature: string; slot: bigint }[]> {
      return sql<{ signature: string; slot: bigint }[]>`
        SELECT signature, slot FROM solana_yield_moves WHERE NOT final ORDER BY found_at LIMIT ${most}`;
    },
  };
}

function moveIn(row: Row): WalletMove {
  const { held_before: heldBefore, held_after: heldAfter, at, ...same } = row;
  return { ...same, heldBefore, heldAfter, atMs: at === null ? null : at.getTime() };
}
