/** The keeper's last report, what it did or left and why: written by whichever replica looked, read by all. */
import type { Database } from '@farebox/core/db/connection';
import type { ProtocolName } from '../contracts/protocols.ts';
import type { Unrest } from './conduct.ts';

export type Outcome =
  | ('MOVED' | 'LEFT' | 'SUPPLIED' | 'PENDING')
  | ('EMPTY' | 'NO_HISTORY' | 'UNREST' | 'BEST' | 'TOO_SMALL_A_GAIN' | 'COSTS_MORE' | 'STUCK')
  | ('COOLING' | 'INCOMPLETE' | 'NOT_KEEPER' | 'OUT_OF_GAS' | 'REFUSED' | 'REVERTED' | 'UNREADABLE');

export interface ReportedConduct {
  /** Its average rate over the last hours, percent a year, not compounded; null: the samples do not reach back far enough. */
  averagePercent: number | null;
  /** How much of what was lent to it is borrowed now. */
  utilizationPercent: number;
  /** Why it is not gone to; null: it was calm for a day. */
  unrest: Unrest | null;
}

export interface KeeperReport {
  outcome: Outcome;
  /** A sentence for people. */
  why: string;
  /** The block that everything was read at; null: the chain could not be read. */
  block: string | null;
  /** The rate of each protocol now, percent a year, not compounded; null: it could not be read. */
  yearlyPercent: Readonly<Record<ProtocolName, number | null>>;
  /** The conduct of each over hours; null: it could not be read. Older reports do not say. */
  conduct?: Readonly<Record<ProtocolName, ReportedConduct | null>>;
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
  /** The least rise of the yearly rate of moved funds that a move must bring, in hundredths of a percent. Older reports do not say. */
  minGainBps?: number;
}

/** Why a move is made: what it was expected to bring when it was sent. */
export interface MoveReason {
  /** The yearly rates of the two over the hours before it, percent, not compounded; null: it could not be read. */
  yearlyPercentBefore: { from: number | null; to: number | null };
  /** The target's rate after it. */
  yearlyPercentAfter: number;
  gainMicrosPerYear: string;
  costMicros: string;
  partial: NonNullable<KeeperReport['proposal']>['partial'];
}

/** The time for which the reason of a move is kept. */
const REASONS_KEPT_MS = 400 * 86_400_000;

/**
 * Notes why a move is made, before it is sent. Which of several that were tried was made, its event tells.
 *
 * @param move.allowedAt from when the contract allows it, in seconds since 1970
 */
export async function noteReason(
  sql: Database,
  move: { vault: string; allowedAt: bigint; proposal: NonNullable<KeeperReport['proposal']> },
  averages: Readonly<Record<ProtocolName, number | null>>,
  nowMs: number,
): Promise<void> {
  const { from, to, amountMicros, yearlyPercentAfter, gainMicrosPerYear, costMicros, partial } =
    move.proposal;
  const reason: MoveReason = {
    yearlyPercentBefore: { from: averages[from], to: averages[to] },
    yearlyPercentAfter,
    gainMicrosPerYear,
    costMicros,
    partial,
  };
  const vault = move.vault.toLowerCase();
  await sql`
    insert into yield_keeper_reasons (vault, allowed_at, noted_at, from_protocol, to_protocol, assets, reason)
    values (${vault}, ${move.allowedAt}, ${new Date(nowMs)}, ${from}, ${to}, ${amountMicros},
      ${JSON.stringify(reason)}::text::jsonb)
    on conflict (vault, from_protocol, to_protocol, assets, allowed_at)
      do update set noted_at = excluded.noted_at, reason = excluded.reason`;
  await sql`
    delete from yield_keeper_reasons
    where vault = ${vault} and noted_at < ${new Date(nowMs - REASONS_KEPT_MS)}`;
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
