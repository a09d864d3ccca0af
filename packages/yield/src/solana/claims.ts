/** Deposits that wallets claim before the chain could be asked about them. */
import type { Database } from '@farebox/core/db/connection';

/** So many may wait: what is beyond is found by its fee, or claimed again. Anybody may claim for any wallet, so none has a part of its own. */
const MAX_PENDING = 10_000;
/** A wallet's open claims and fees are counted up to here. */
const MAX_COUNTED = 50;
const KEPT_MS = 7 * 86_400_000;
const MAX_FORGOTTEN = 1_000;

export interface Claim {
  signature: string;
  wallet: string;
  claimed_usdc: bigint | null;
  claimed_at: Date;
}

export type Claims = ReturnType<typeof createClaims>;

export function createClaims(sql: Database, nowMs: () => number) {
  return {
    /**
     * Keeps a claim until the chain has been asked.
     *
     * @param claim.nextMs when it is asked
     * @returns false: too many wait
     */
    async keep(
      claim: Pick<Claim, 'signature' | 'wallet' | 'claimed_usdc'> & { nextMs: number },
    ): Promise<boolean> {
      const { signature, wallet, claimed_usdc, nextMs } = claim;
      const { count } = await sql`
        INSERT INTO solana_yield_claims (signature, wallet, claimed_usdc, state, claimed_at, next_at)
        SELECT ${signature}, ${wallet}, ${claimed_usdc}::bigint, 'pending', ${new Date(nowMs())}::timestamptz,
          ${new Date(nextMs)}::timestamptz
        WHERE (SELECT count(*) FROM (SELECT 1 FROM solana_yield_claims WHERE state = 'pending' LIMIT ${MAX_PENDING}) a)
            < ${MAX_PENDING}
        ON CONFLICT (signature, wallet) DO UPDATE SET
          state = 'pending', reason = NULL,
          claimed_at = CASE WHEN solana_yield_claims.state = 'pending' THEN solana_yield_claims.claimed_at
            ELSE excluded.claimed_at END,
          next_at = least(solana_yield_claims.next_at, excluded.next_at)`;
      return count === 1;
    },

    /** Takes claims that are due; nobody else gets them before `untilMs`. */
    async takeDue(most: number, untilMs: number): Promise<Claim[]> {
      return sql<Claim[]>`
        WITH due AS MATERIALIZED (
          SELECT signature, wallet FROM solana_yield_claims WHERE state = 'pending' AND next_at <= ${new Date(nowMs())}
          ORDER BY next_at LIMIT ${most} FOR UPDATE SKIP LOCKED)
        UPDATE solana_yield_claims c SET next_at = ${new Date(untilMs)} FROM due
        WHERE c.signature = due.signature AND c.wallet = due.wallet
        RETURNING c.signature, c.wallet, c.claimed_usdc, c.claimed_at`;
    },

    /**
     * How many of a wallet's deposits wait for the chain to be asked. Anybody may claim for a wallet, and only the wallet itself can pay
     * a fee: claims are counted as far as the chain shows fees of the wallet that wait for their deposits.
     */
    pendingOf: (wallet: string) => pendingOf(sql, wallet),

    async lookAgain({ signature, wallet }: Claim, nextMs: number): Promise<void> {
      await sql`
        UPDATE solana_yield_claims SET next_at = ${new Date(nextMs)}
        WHERE signature = ${signature} AND wallet = ${wallet} AND state = 'pending'`;
    },

    /** The chain has said what it is. */
    async end(
      { signature, wallet }: Pick<Claim, 'signature' | 'wallet'>,
      state: 'confirmed' | 'refused' | 'given_up',
      reason: string | null,
    ): Promise<void> {
      await sql`
        UPDATE solana_yield_claims SET state = ${state}, reason = ${reason}
        WHERE signature = ${signature} AND wallet = ${wallet} AND state <> ${state}`;
    },

    /** Forgets claims that were decided long ago. */
    async forget(): Promise<void> {
      await sql`
        DELETE FROM solana_yield_claims WHERE (signature, wallet) IN (
          SELECT signature, wallet FROM solana_yield_claims
          WHERE state <> 'pending' AND claimed_at < ${new Date(nowMs() - KEPT_MS)} LIMIT ${MAX_FORGOTTEN})`;
    },
  };
}

async function pendingOf(sql: Database, wallet: string): Promise<number> {
  const [row] = await sql<{ count: bigint }[]>`
    SELECT least(
      (SELECT count(*) FROM (SELECT 1 FROM solana_yield_claims
        WHERE wallet = ${wallet} AND state = 'pending' LIMIT ${MAX_COUNTED}) c),
      (SELECT count(*) FROM (SELECT 1 FROM solana_yield_fees
        WHERE wallet = ${wallet} AND state = 'waiting' LIMIT ${MAX_COUNTED}) f)) AS count`;
  return Number(row?.count ?? 0n);
}
