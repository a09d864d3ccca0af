/** Fees that our keys paid for transactions in the last days. It is written with the end of each: see `gas_spent`. */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';

const DAY_MS = 86_400_000;
/** Today among them. */
export const DAYS_LOOKED_BACK = 7;

/**
 * The gas costs of each key a day: what its transactions of the last seven days (UTC) cost, divided by the time since the first
 * of these days on which it sent any, one day at least. A transaction whose cost the chain did not tell counts as the
 * mean of those whose cost it told.
 *
 * @param network CAIP-2
 * @returns in the smallest unit of what pays for transactions there; without the keys that have no such history
 */
export async function spentPerDay(
  sql: Database | Transaction,
  { network, addresses, nowMs }: { network: string; addresses: readonly string[]; nowMs: number },
): Promise<ReadonlyMap<string, bigint>> {
  const today = nowMs - (nowMs % DAY_MS);
  const first = new Date(today - (DAYS_LOOKED_BACK - 1) * DAY_MS).toISOString().slice(0, 10);
  const rows = await sql<
    { address: string; transactions: bigint; priced: bigint; spent: string; since: string }[]
  >`
    select address, sum(transactions) as transactions, sum(priced) as priced, sum(spent)::text as spent,
           min(day)::text as since
    from gas_spent
    where network = ${network} and address = any(${arrayLiteral(addresses)}::text::text[]) and day >= ${first}::date
    group by address having sum(priced) > 0`;
  return new Map(
    rows.map(({ address, transactions, priced, spent, since }) => {
      const elapsedMs = BigInt(Math.max(DAY_MS, nowMs - Date.parse(since)));
      return [address, (BigInt(spent) * transactions * BigInt(DAY_MS)) / (priced * elapsedMs)];
    }),
  );
}
