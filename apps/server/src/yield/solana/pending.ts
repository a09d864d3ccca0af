import type { Database } from '../../db/connection.ts';

/** How many deposits of a wallet were claimed that the chain could not be asked about yet. */
export function pendingOf(sql: Database): (wallet: string) => Promise<number> {
  return async (wallet) => {
    const [row] = await sql<{ count: bigint }[]>`
      SELECT count(*) AS count FROM solana_yield_claims WHERE wallet = ${wallet} AND state = 'pending'`;
    return Number(row?.count ?? 0n);
  };
}
