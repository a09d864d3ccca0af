/** The operators' view of customers: whose keys there are, and all that is on record of an account. */
import type { Database, Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { accountRecord } from './account-record.ts';
import { type CallStory, callStory } from './call-story.ts';
import { type Found, findAnything } from './find.ts';
import { type FoundKeys, searchKeys } from './key-search.ts';

const TIMEOUT_MS = 5_000;

export interface AccountRecords {
  /**
   * Keys by the beginning of the key, a part of the label or of an order's e-mail address, or the account's number; the
   * newest first, 50 at a time.
   *
   * @param after the id of the last one seen
   */
  search(query: string, after: bigint | null): Promise<FoundKeys>;
  /** @returns null when there is no such account, or when it is one of the house's own */
  account(id: bigint): Promise<Record<string, unknown> | null>;
  /** Finds the things that an id of a customer belongs to. */
  find(query: string): Promise<Found[]>;
  /** The whole story of a call. @param accountId null: a chain paid. @returns null when there is no such call */
  call(accountId: bigint | null, callId: string): Promise<CallStory | null>;
}

/** @param distribution says whether the database is spread; not given: it is not */
export function createAccountRecords(
  sql: Database,
  nowMs: () => number,
  distribution?: DistributionNote,
): AccountRecords {
  /** Reads in one snapshot, within a bound on time. */
  const reading = <T>(read: (transaction: Transaction) => Promise<T>): Promise<T> =>
    sql
      .begin('isolation level repeatable read read only', async (transaction) => {
        await transaction`select set_config('statement_timeout', ${String(TIMEOUT_MS)}, true)`;
        return [await read(transaction)] as const;
      })
      .then(([value]) => value as T);

  return {
    search: (query, after) => reading((on) => searchKeys(on, { query, after, nowMs: nowMs() })),
    account: (id) =>
      reading((on) =>
        accountRecord(on, id, { nowMs: nowMs(), isSpread: distribution?.isDistributed === true }),
      ),
    find: (query) => reading((on) => findAnything(on, query, nowMs())),
    call: (accountId, callId) => reading((on) => callStory(on, accountId, callId)),
  };
}
