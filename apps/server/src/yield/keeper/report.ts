/** What the keeper last did or left, and why: written by whichever replica looked, read by all. */
import type { Database } from '../../db/connection.ts';
import type { ProtocolName } from './lenders.ts';

export type Outcome =
  | ('MOVED' | 'PENDING')
  | ('EMPTY' | 'BEST' | 'TOO_SMALL_A_GAIN' | 'COSTS_MORE' | 'STUCK')
  | ('COOLING' | 'INCOMPLETE' | 'NOT_KEEPER' | 'OUT_OF_GAS' | 'REFUSED' | 'REVERTED' | 'UNREADABLE');

export interface KeeperReport {
  outcome: Outcome;
  /** A sentence for people. */
  why: string;
  /** The block that everything was read at; null: the chain could not be read. */
  block: string | null;
  /** What each protocol pays now, percent a year, not compounded; null: it could not be read. */
  yearlyPercent: Readonly<Record<ProtocolName, number | null>>;
  /** The best move that was found, whether or not it was made. Amounts are USDC micros as decimal text. */
  proposal: {
    from: ProtocolName;
    to: ProtocolName;
    amountMicros: string;
    /** Why it is less than all that lies there; null: it is all. */
    partial: 'liquidity' | 'share' | 'room' | 'depth' | null;
    gainMicrosPerYear: string;
    costMicros: string;
    yearlyPercentAfter: number;
  } | null;
  transaction: string | null;
}

export interface ReportedLook {
  report: KeeperReport;
  /** ISO 8601. */
  at: string;
}

/** The last report about a vault; null: nobody has looked yet, or no keeper is configured anywhere. */
export async function readKeeperReport(sql: Database, vault: string): Promise<ReportedLook | null> {
  const [row] = await sql<{ report: KeeperReport | null; reported_at: Date | null }[]>`
    select report, reported_at from yield_keeper where vault = ${vault.toLowerCase()}`;
  if (!row?.report || row.reported_at === null) return null;
  return { report: row.report, at: row.reported_at.toISOString() };
}

/** One replica looks at a time; a look whose process died is over when its time is. */
export function createLooks(sql: Database, vault: string, nowMs: () => number) {
  const key = vault.toLowerCase();
  const iso = (atMs: number) => new Date(atMs).toISOString();
  return {
    /** @returns the look's number; null: another replica looks now */
    async begin(lastsMs: number): Promise<bigint | null> {
      const [row] = await sql<{ look: bigint }[]>`
        insert into yield_keeper as k (vault, looked_until, look) values (${key}, ${iso(nowMs() + lastsMs)}, 1)
        on conflict (vault) do update set looked_until = excluded.looked_until, look = k.look + 1
        where k.looked_until <= ${iso(nowMs())}
        returning look`;
      return row?.look ?? null;
    },
    /** Ends a look. Of one that took too long, and that another has followed by now, nothing is written. */
    async end(look: bigint, report: KeeperReport): Promise<void> {
      await sql`
        update yield_keeper set looked_until = ${iso(nowMs())}, reported_at = ${iso(nowMs())},
          report = ${JSON.stringify(report)}::text::jsonb
        where vault = ${key} and look = ${String(look)}`;
    },
  };
}
