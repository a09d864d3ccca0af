/** Which bundles were built for a key of the caller's, so that nobody gets two of them for one deposit. */
import { randomUUID } from 'node:crypto';
import type { Database } from '@farebox/core/db/connection';

/** The life of a bundle, as the interface has it. */
export const INTENT_MS = 120_000;
/** More slots than a bundle's two minutes have: what the program allows now it must still allow when the bundle lands. */
export const LANDS_WITHIN_SLOTS = 400n;
const MAX_FORGOTTEN = 1_000;

export interface Intent {
  id: string;
  expiresAtMs: number;
}

export type Intents = ReturnType<typeof createIntents>;

export function createIntents(sql: Database, nowMs: () => number) {
  return {
    /**
     * Takes a key for a wallet and an amount, unless it is taken: one statement, so that of two who ask at once one gets it.
     *
     * @param usdc USDC units
     * @returns `taken`: by whom, and until when
     */
    async take(key: string, wallet: string, usdc: bigint): Promise<Intent & { isTaken: boolean }> {
      for (;;) {
        const now = nowMs();
        const mine = { id: randomUUID(), expiresAtMs: now + INTENT_MS };
        const { count } = await sql`
          INSERT INTO solana_yield_intents (idempotency_key, wallet, usdc, id, expires_at)
          VALUES (${key}, ${wallet}, ${usdc}, ${mine.id}, ${new Date(mine.expiresAtMs)})
          ON CONFLICT (idempotency_key, wallet, usdc) DO UPDATE SET id = excluded.id, expires_at = excluded.expires_at
          WHERE solana_yield_intents.expires_at <= ${new Date(now)}`;
        if (count === 1) return { ...mine, isTaken: false };
        const [other] = await sql<{ id: string; expires_at: Date }[]>`
          SELECT id, expires_at FROM solana_yield_intents
          WHERE idempotency_key = ${key} AND wallet = ${wallet} AND usdc = ${usdc}`;
        // It may have been given back between the two.
        if (other !== undefined)
          return { id: other.id, expiresAtMs: other.expires_at.getTime(), isTaken: true };
      }
    },

    /** Frees the key of an intent for which nothing was built. */
    async giveBack({ id }: Intent): Promise<void> {
      await sql`DELETE FROM solana_yield_intents WHERE id = ${id}`;
    },

    /** Forgets those that expired. */
    async forget(): Promise<void> {
      await sql`
        DELETE FROM solana_yield_intents WHERE id IN (
          SELECT id FROM solana_yield_intents WHERE expires_at < ${new Date(nowMs() - INTENT_MS)} LIMIT ${MAX_FORGOTTEN})`;
    },
  };
}
