/** Deposits that wallets claim before the chain could be asked about them. */
import type { Database } from '@farebox/core/db/connection';
import { type Held, LeasedQueue, type QueueShape } from '@farebox/core/db/leased-queue';

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

const QUEUE: QueueShape = {
  name: 'solana-claims',
  table: 'solana_yield_claims',
  key: ['signature', 'wallet'],
  columns: ['claimed_usdc', 'claimed_at'],
  attempts: null,
  leaseMs: 120_000,
  backOffMs: () => 60_000,
  mostAttempts: null,
  settled: 'marked',
  givenUpAt: null,
  only: (on) => on`state = 'pending'`,
  since: 'claimed_at',
};

export type Claims = ReturnType<typeof createClaims>;

export function createClaims(sql: Database, nowMs: () => number) {
  const queue = new LeasedQueue<Claim>(sql, QUEUE, nowMs);
  return {
    queue,

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

    /** Takes claims that are due. */
    takeDue: (most: number): Promise<Held<Claim>[]> => queue.claim(most),

    /**
     * How many of a wallet's deposits wait for the chain to be asked. Anybody may claim for a wallet, and only the wallet itself can pay
     * a fee: claims are counted as far as the chain shows fees of the wallet that wait for their deposits.
     */
    pendingOf: (wallet: string) => pendingOf(sql, wallet),

    /** @returns false when somebody else has it, or knows what it is */
    lookAgain: (claim: Held<Claim>, afterMs: number) => queue.backOff(claim, { afterMs }),

    /** The chain has said nothing of it. @returns false when somebody else has it, or knows what it is */
    giveUp: (claim: Held<Claim>, reason: string) =>
      queue.settle(claim, { set: { state: 'given_up', reason } }),

    /** The chain has said what it is. */
    async end(
      { signature, wallet }: Pick<Claim, 'signature' | 'wallet'>,
      state: 'confirmed' | 'refused',
      reason: string | null,
    ): Promise<void> {
      await sql`
        UPDATE solana_yield_claims SET state = ${state}, reason = ${reason}
        WHERE signature = ${signature} AND wallet = ${wallet} AND state <> ${state}`;
    },

    /** The chain has confirmed it. @returns the signature of the fee that was paid for the deposit; null: none is known */
    confirm: (claim: Pick<Claim, 'signature' | 'wallet'>) => confirm(sql, claim),

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

async function confirm(
  sql: Database,
  { signature, wallet }: Pick<Claim, 'signature' | 'wallet'>,
): Promise<string | null> {
  const [fee] = await sql<{ signature: string }[]>`
    WITH ended AS (
      UPDATE solana_yield_claims SET state = 'confirmed', reason = NULL
      WHERE signature = ${signature} AND wallet = ${wallet} AND state <> 'confirmed')
    SELECT signature FROM solana_yield_fees WHERE deposit_signature = ${signature}`;
  return fee?.signature ?? null;
}
