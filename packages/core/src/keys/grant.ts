import type { Pools } from '../db/connection.ts';
import { createLedger } from '../ledger/ledger.ts';
import type { NewApiKey } from './api-key.ts';
import { createKeys } from './keys.ts';
import { grantKey } from './trial.ts';

/** A key that an operator gives away. */
export interface Grant {
  amountMicros: bigint;
  label: string;
  /** Why; it stands in the ledger. */
  note: string;
}

/**
 * @param spread over how many buckets the new accounts are spread
 * @returns makes a key with its credit, in a commit
 */
export function openGrants(
  pools: Pools,
  nowMs: () => number,
  spread: { accountBuckets?: number } = {},
): (grant: Grant) => Promise<NewApiKey> {
  const { sql } = pools;
  const parts = {
    sql,
    keys: createKeys(sql, nowMs, pools.distribution),
    ledger: createLedger(pools, nowMs, spread),
    nowMs,
  };
  return (grant) => grantKey(parts, grant);
}
