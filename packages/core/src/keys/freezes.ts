/** Freezes of accounts: while an account is frozen, none of its keys pays. */
import type { Database, Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { keepPlaces } from '../ledger/buckets.ts';

/**
 * The causes of a freeze. An account's keys stay frozen while at least one cause stands. `reversal`: the credit that bought
 * the key was taken back, and nothing else is on it.
 */
export const FREEZE_CAUSES = ['debt', 'operator', 'reversal'] as const;
export type FreezeCause = (typeof FREEZE_CAUSES)[number];

export interface Freezes {
  /** Freezes an account's keys for this cause. If the cause stands already, its note is replaced. */
  freeze(transaction: Transaction, accountId: bigint, cause: FreezeCause, note: string | null): Promise<void>;
  /** Removes a cause. With the last cause the freeze ends, and the keys can be used again. @returns whether the cause stood */
  thaw(transaction: Transaction, accountId: bigint, cause: FreezeCause): Promise<boolean>;
  /** The causes that stand for an account; empty when it is not frozen. */
  freezes(accountId: bigint): Promise<readonly FreezeCause[]>;
}

/** @param now in ISO 8601 */
export function createFreezes(sql: Database, now: () => string, distribution: DistributionNote): Freezes {
  return {
    async freeze(transaction, accountId, cause, note) {
      await keepPlaces(transaction, distribution);
      await transaction`
        insert into account_freezes (account_id, cause, note, created_at)
        values (${String(accountId)}, ${cause}, ${note}, ${now()})
        on conflict (account_id, cause) do update set note = excluded.note`;
      await transaction`
        update api_keys set status = 'frozen' where account_id = ${String(accountId)} and status = 'active'`;
    },

    async thaw(transaction, accountId, cause) {
      await keepPlaces(transaction, distribution);
      const gone = await transaction`
        delete from account_freezes where account_id = ${String(accountId)} and cause = ${cause} returning cause`;
      if (gone.length === 0) return false;
      // Asked by itself: where a database is spread, keys lie on other servers than freezes.
      const others = await transaction`
        select 1 from account_freezes where account_id = ${String(accountId)} limit 1`;
      if (others.length === 0)
        await transaction`
          update api_keys set status = 'active' where account_id = ${String(accountId)} and status = 'frozen'`;
      return true;
    },

    async freezes(accountId) {
      const rows = await sql<{ cause: FreezeCause }[]>`
        select cause from account_freezes where account_id = ${String(accountId)} order by cause`;
      return rows.map(({ cause }) => cause);
    },
  };
}
