/** Caps per day that are held down for a while, such as after a purchase with a new card. Meanwhile an owner can lower the cap but not raise it. */
import type { Database, Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { inBucket } from '../ledger/bucket-turns.ts';
import { keepPlaces } from '../ledger/buckets.ts';

export interface HeldCaps {
  /** Holds the caps per day of an account's keys at or below this amount until this time. A cap that is held already stays as it is. */
  fixCap(
    transaction: Transaction,
    accountId: bigint,
    capPerDayMicros: bigint,
    untilMs: number,
  ): Promise<void>;
  /**
   * Ends holds whose time is over: the cap is again what its owner set.
   *
   * @param limit how many at most
   * @param bucket of one bucket; null, or not given: of all
   * @returns how many ended
   */
  releaseCaps(limit: number, bucket?: number | null): Promise<number>;
}

/** @param now in ISO 8601 */
export function createHeldCaps(sql: Database, now: () => string, distribution: DistributionNote): HeldCaps {
  return {
    async fixCap(transaction, accountId, capPerDayMicros, untilMs) {
      await keepPlaces(transaction, distribution);
      await transaction`
        update api_keys
        set cap_per_day_micros = least(cap_per_day_micros, ${String(capPerDayMicros)}::bigint),
            cap_afterwards_micros = cap_per_day_micros,
            cap_fixed_until = ${new Date(untilMs).toISOString()}
        where account_id = ${String(accountId)} and status <> 'revoked' and cap_fixed_until is null`;
    },

    async releaseCaps(limit, bucket = null) {
      const here = inBucket(sql, bucket);
      const rows = await sql`
        update api_keys
        set cap_per_day_micros = cap_afterwards_micros, cap_afterwards_micros = null, cap_fixed_until = null
        where ${here} id in (
          select id from api_keys where ${here} cap_fixed_until <= ${now()} order by cap_fixed_until limit ${limit}
          for update skip locked
        ) returning id`;
      return rows.length;
    },
  };
}
