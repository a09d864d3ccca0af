/** Fees that reached the treasury, and the deposits that they were paid for. A fee whose deposit never came is due back. */
import type { Database, Transaction } from '@farebox/core/db/connection';
import { type Held, LeasedQueue } from '@farebox/core/db/leased-queue';
import { DEPOSIT_FEE_BPS } from './terms.ts';

/** The units that a program may leave over of a deposit. */
const LEFT_OVER = 2n;
const MAX_MATCHED = 200;
/** So many fees of a wallet are sent back by one payment, whose memo names them all: a transaction holds no more. */
const MAX_TOGETHER = 5;
/** The time for which the deposit of a fee that is due back is still looked for. */
const LATE_MS = 7 * 86_400_000;

/** Why a fee is due back. */
export type Unused = 'DEPOSIT_FAILED' | 'NO_DEPOSIT';

export interface Fee {
  signature: string;
  wallet: string;
  usdc: bigint;
  slot: bigint;
  at: Date;
  state: 'waiting' | 'used' | 'unused' | 'refunded';
  reason: Unused | null;
  deposit_signature: string | null;
  refund_signature: string | null;
  looked_before: string | null;
  looked_from: bigint | null;
}

/** One payment of the treasury's back to a wallet. */
export interface Due {
  wallet: string;
  /** The sum of the fees that are named here, in USDC units. */
  usdc: bigint;
  /** When the oldest of them was paid. */
  since: Date;
  /** The fees, the oldest first, `MAX_TOGETHER` at most. */
  signatures: string[];
  /** How many more of the wallet's are due once these are sent. */
  further: number;
  reason: Unused;
}

export type Fees = ReturnType<typeof createFees>;

export function createFees(sql: Database, nowMs: () => number) {
  return {
    match,
    ...sought(sql, nowMs),
    ...told(sql),
    /** The same, in a commit of its own. @returns whether this fee wants no deposit any more */
    async matchNow(wallet: string, signature: string): Promise<boolean> {
      await sql.begin((transaction) => match(transaction, wallet));
      const [row] = await sql`
        SELECT 1 FROM solana_yield_fees WHERE signature = ${signature} AND state IN ('waiting', 'unused')`;
      return row === undefined;
    },
  };
}

/**
 * Finds the deposits that a wallet's fees were paid for: each fee one deposit, each deposit one fee.
 *
 * @returns how many were found
 */
async function match(transaction: Transaction, wallet: string): Promise<number> {
  const open = await transaction<Fee[]>`
    SELECT * FROM solana_yield_fees WHERE wallet = ${wallet} AND state IN ('waiting', 'unused')
    ORDER BY slot DESC, signature DESC LIMIT ${MAX_MATCHED} FOR UPDATE`;
  // The newest are read, so that those that were never used hide none; the oldest is matched first.
  open.reverse();
  if (open.length === 0) return 0;
  const deposits = await transaction<{ signature: string; slot: bigint; usdc: bigint }[]>`
    SELECT m.signature, m.slot, m.usdc FROM solana_yield_moves m
    WHERE m.wallet = ${wallet} AND m.kind = 'deposit' AND m.slot >= ${open[0]?.slot ?? 0n}
      AND NOT EXISTS (SELECT 1 FROM solana_yield_fees f WHERE f.deposit_signature = m.signature)
    ORDER BY m.slot DESC, m.signature DESC LIMIT ${MAX_MATCHED}`;
  deposits.reverse();
  let found = 0;
  for (const fee of open) {
    const fits = (deposit: { slot: bigint; usdc: bigint }) =>
      deposit.slot >= fee.slot && isFeeOf(fee.usdc, deposit.usdc);
    const same = deposits.findIndex((each) => each.signature === fee.signature && fits(each));
    const index = same >= 0 ? same : deposits.findIndex(fits);
    const [deposit] = index < 0 ? [] : deposits.splice(index, 1);
    if (deposit === undefined) continue;
    await transaction`
      UPDATE solana_yield_fees SET state = 'used', deposit_signature = ${deposit.signature}, reason = NULL
      WHERE signature = ${fee.signature}`;
    found += 1;
  }
  return found;
}

/** Fees, as their deposits are looked for. */
function sought(sql: Database, nowMs: () => number) {
  const queue = openQueue(sql, nowMs);
  return {
    queue,

    /** Keeps a fee; one that is known stays as it is. @param lookMs when its deposit is looked for */
    async keep(
      transaction: Transaction,
      fee: Pick<Fee, 'signature' | 'wallet' | 'usdc' | 'slot'> & { atMs: number | null },
      lookMs: number,
    ): Promise<void> {
      const { signature, wallet, usdc, slot, atMs } = fee;
      await transaction`
        INSERT INTO solana_yield_fees (signature, wallet, usdc, slot, at, state, next_at)
        VALUES (${signature}, ${wallet}, ${usdc}, ${slot}, ${new Date(atMs ?? nowMs())}, 'waiting', ${new Date(lookMs)})
        ON CONFLICT DO NOTHING`;
    },

    /**
     * Takes the fee whose deposit is to be looked for first. One that is due back is still looked for, since its deposit may
     * come late.
     *
     * @returns null: none is due
     */
    async takeDue(): Promise<Held<Fee> | null> {
      const [fee] = await queue.claim(1);
      return fee ?? null;
    },

    /**
     * Its deposit was not found yet.
     *
     * @param at.before where a look that was cut goes on; null: the next one begins with the newest
     * @param at.from the slot in which the look that was cut began
     */
    async lookAgain(
      fee: Held<Fee>,
      at: { before: string | null; from: bigint | null; afterMs: number },
    ): Promise<void> {
      const set = { looked_before: at.before, looked_from: at.from };
      await queue.backOff(fee, { set, afterMs: at.afterMs });
    },

    /** Its deposit did not come: the fee is due back. @param afterMs when it is looked for again */
    async giveUp(fee: Held<Fee>, reason: Unused, afterMs: number): Promise<void> {
      const unused = { state: 'unused', reason, unused_at: new Date(nowMs()).toISOString() };
      await queue.backOff(fee, { set: { ...unused, looked_before: null, looked_from: null }, afterMs });
    },

    /** The treasury has sent it back. */
    async refunded(transaction: Transaction, signature: string, refund: string): Promise<void> {
      await transaction`
        UPDATE solana_yield_fees SET state = 'refunded', refund_signature = ${refund}
        WHERE signature = ${signature} AND state IN ('waiting', 'unused')`;
    },
  };
}

function openQueue(sql: Database, nowMs: () => number): LeasedQueue<Fee> {
  return new LeasedQueue(
    sql,
    {
      name: 'solana-fees',
      table: 'solana_yield_fees',
      key: ['signature'],
      columns: [
        ...['wallet', 'usdc', 'slot', 'at', 'state', 'reason', 'deposit_signature', 'refund_signature'],
        ...['looked_before', 'looked_from'],
      ],
      attempts: null,
      leaseMs: 120_000,
      backOffMs: () => 60_000,
      mostAttempts: null,
      settled: 'marked',
      givenUpAt: null,
      only: (on) =>
        on`(state = 'waiting' OR (state = 'unused' AND unused_at > ${new Date(nowMs() - LATE_MS)}))`,
      since: 'at',
      waiting: (on) => on`state = 'waiting'`,
    },
    nowMs,
  );
}

/** The queries about known fees. */
function told(sql: Database) {
  return {
    /** The fees of these signatures that are not refunded yet. */
    async openAmong(signatures: readonly string[]): Promise<Fee[]> {
      if (signatures.length === 0) return [];
      return sql<Fee[]>`
        SELECT * FROM solana_yield_fees WHERE signature IN ${sql(signatures)} AND state IN ('waiting', 'unused')`;
    },

    /** Whether each of these signatures is that of a known fee. */
    async areKnown(signatures: readonly string[]): Promise<boolean> {
      const named = [...new Set(signatures)];
      if (named.length === 0) return true;
      const known = await sql`SELECT 1 FROM solana_yield_fees WHERE signature IN ${sql(named)}`;
      return known.length === named.length;
    },

    /** A wallet's fees without a deposit, the newest first. @param page.after the last one of the page before; null: from the newest */
    async ofWallet(wallet: string, page: { after: string | null; most: number }): Promise<Fee[]> {
      return sql<Fee[]>`
        SELECT * FROM solana_yield_fees WHERE wallet = ${wallet} AND state <> 'used'
          AND (${page.after}::text IS NULL OR (slot, signature) < (
            SELECT slot, signature FROM solana_yield_fees WHERE signature = ${page.after} AND wallet = ${wallet}))
        ORDER BY slot DESC, signature DESC LIMIT ${page.most}`;
    },

    /** All that is due back to a wallet, in units. */
    async dueTo(wallet: string): Promise<bigint> {
      const [row] = await sql<{ usdc: bigint }[]>`
        SELECT coalesce(sum(usdc), 0)::bigint AS usdc FROM solana_yield_fees WHERE wallet = ${wallet} AND state = 'unused'`;
      return row?.usdc ?? 0n;
    },

    /**
     * Lists what is due back, one payment for each wallet: those first whose deposit failed on the chain, then the largest. So payments that
     * somebody makes to the treasury for nothing stand below what wallets miss.
     */
    async due({ skip, most }: { skip: number; most: number }): Promise<{ due: Due[]; total: number }> {
      const due = await sql<Due[]>`
        WITH numbered AS (
          SELECT wallet, usdc, at, signature, reason, count(*) OVER (PARTITION BY wallet) AS fees,
            row_number() OVER (PARTITION BY wallet ORDER BY at, signature) AS number
          FROM solana_yield_fees WHERE state = 'unused')
        SELECT wallet, sum(usdc)::bigint AS usdc, min(at) AS since, array_agg(signature ORDER BY number) AS signatures,
          (max(fees) - count(*))::int AS further,
          CASE WHEN bool_or(reason = 'DEPOSIT_FAILED') THEN 'DEPOSIT_FAILED' ELSE 'NO_DEPOSIT' END AS reason
        FROM numbered WHERE number <= ${MAX_TOGETHER}
        GROUP BY wallet ORDER BY (count(*) FILTER (WHERE reason = 'DEPOSIT_FAILED') > 0) DESC, sum(usdc) DESC, wallet
        LIMIT ${most} OFFSET ${skip}`;
      const [row] = await sql<{ total: number }[]>`
        SELECT count(DISTINCT wallet)::int AS total FROM solana_yield_fees WHERE state = 'unused'`;
      return { due: [...due], total: row?.total ?? 0 };
    },
  };
}

/** Whether so much is the fee of such a deposit: the fee is a part of both together. */
function isFeeOf(fee: bigint, deposited: bigint): boolean {
  for (let left = 0n; left <= LEFT_OVER; left += 1n)
    if (((deposited + fee + left) * DEPOSIT_FEE_BPS) / 10_000n === fee) return true;
  return false;
}
