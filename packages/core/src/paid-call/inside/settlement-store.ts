/** The settlements and refunds of a database: the rows of `settlements` and `refunds`. */
import type { Database } from '../../db/connection.ts';
import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import { SETTLEMENT_STATES, type SettlementMarks, type SettlementStore } from '../settlements.ts';
import { boughtRecords } from './bought-records.ts';
import { refundStore } from './refund-store.ts';
import { settlementLeases } from './settlement-leases.ts';
import type { SettlementRows } from './settlement-rows.ts';

/** The longest `ANSWER_TTL_HOURS`, and a day for what takes its time on a chain. */
const LONGEST_KEPT_MS = 31 * 86_400_000;

/**
 * The settlements of a database.
 *
 * @param options.answersLastMs from a payment's beginning to the end of its stored answer, at most
 * @param options.holder this process, by its row in `replicas`: once it has ended, its leases are free
 */
export function createSettlementStore(
  sql: Database,
  nowMs: () => number,
  options: { answersLastMs?: number; holder?: () => bigint | null } = {},
): SettlementStore {
  const { answersLastMs = LONGEST_KEPT_MS, holder = () => null } = options;
  const rows: SettlementRows = {
    sql,
    at: (inMs = 0) => new Date(nowMs() + inMs).toISOString(),
    named: ({ accountId, callId }) =>
      sql`bucket = ${HOUSE_BUCKET} and account_id = ${String(accountId)} and call_id = ${callId}`,
  };
  return {
    ...settlementLeases(rows, holder),
    ...settlementMarks(rows, nowMs),
    ...refundStore(rows),
    ...boughtRecords(rows, answersLastMs),
  };
}

function settlementMarks({ sql, at, named }: SettlementRows, nowMs: () => number): SettlementMarks {
  return {
    async markSettled(settlement, { transaction, blockNumber }, leaseMs) {
      // A balance that is read from now on does not hold the money any more.
      await sql`
        with moved as (
          update payments_in_flight set moved_at = statement_timestamp() where ${named(settlement)} and moved_at is null
        )
        update settlements set state = 1, transaction = ${transaction},
          block = ${blockNumber === null ? null : String(blockNumber)}, settled_at = ${at()},
          lease_until = ${at(leaseMs)}, next_at = ${at(leaseMs)}
        where ${named(settlement)} and state in (0, 1, 3)`;
    },

    async markRefused(settlement, reason) {
      const next = new Date(Math.max(settlement.payment.deadAfterMs, nowMs())).toISOString();
      await sql`
        update settlements set state = 3, reason = ${reason}, next_at = ${next}, lease_until = ${at()}
        where ${named(settlement)} and state in (0, 3)`;
    },

    async markFinal(settlement) {
      await sql`update settlements set final_at = ${at()} where ${named(settlement)} and state = 1`;
    },

    async dropMoved(limit) {
      // What moves is noted by the database's clock, and so it is forgotten.
      const dropped = await sql`
        with moved as (
          select account_id, call_id from payments_in_flight
          where bucket = ${HOUSE_BUCKET} and moved_at < now() - interval '5 minutes' order by moved_at limit ${limit} for update skip locked
        )
        delete from payments_in_flight p using moved m where p.bucket = ${HOUSE_BUCKET} and p.account_id = m.account_id and p.call_id = m.call_id`;
      return dropped.count;
    },

    async markGone(settlement, state) {
      const finalAt = state === 'lost' ? at() : null;
      await sql`
        update settlements set state = ${SETTLEMENT_STATES.indexOf(state)}, next_at = ${at()}, lease_until = ${at()},
          final_at = ${finalAt}
        where ${named(settlement)} and state = 1 and final_at is null`;
    },
  };
}
