/** Refunds on the chain that a payment came from: the rows of `refunds`. */

import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import type { DueRefund, RefundStore } from '../settlements.ts';
import { revenueOf, type SettlementRows } from './settlement-rows.ts';

interface RefundRow {
  account_id: bigint;
  call_id: string;
  network: string;
  asset: string;
  payee: string;
  amount_micros: bigint;
  attempts: number;
  rail: string;
  revenue: bigint;
}

export function refundStore({ sql, at }: SettlementRows): RefundStore {
  const of = ({ accountId, callId }: { accountId: bigint; callId: string }) =>
    sql`account_id = ${String(accountId)} and call_id = ${callId}`;
  return {
    async owe(settlement, reason, amountMicros = settlement.priceMicros) {
      await sql`
        insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, created_at, next_at)
        values (${String(settlement.accountId)}, ${settlement.callId}, ${settlement.payment.network},
          ${settlement.payment.asset}, ${settlement.payment.payer}, ${String(amountMicros)},
          ${reason}, ${at()}, ${at()})
        on conflict (account_id, call_id) do nothing`;
    },

    async leaseDueRefunds(limit, leaseMs) {
      const rows = await sql<RefundRow[]>`
        with r as (update refunds set next_at = ${at(leaseMs)}, attempts = attempts + 1
        where (account_id, call_id) in (
          select account_id, call_id from refunds where state = 0 and next_at <= ${at()}
          order by next_at limit ${limit} for update skip locked
        ) returning account_id, call_id, network, asset, payee, amount_micros, attempts)
        select r.*, c.rail, t.credit_account as revenue
        from r cross join lateral (
          select rail from calls where bucket = ${HOUSE_BUCKET} and account_id = r.account_id and id = r.call_id offset 0
        ) c cross join lateral (
          select credit_account from ledger_transfers
          where bucket = ${HOUSE_BUCKET} and account_id = r.account_id and id = r.call_id and phase = 2 offset 0
        ) t`;
      return rows.map(readRefund);
    },

    async dueRefund(accountId, callId) {
      const [row] = await sql<RefundRow[]>`
        select r.account_id, r.call_id, r.network, r.asset, r.payee, r.amount_micros, r.attempts, c.rail,
          t.credit_account as revenue
        from refunds r join calls c on c.bucket = ${HOUSE_BUCKET} and c.account_id = r.account_id and c.id = r.call_id
        join ledger_transfers t on t.bucket = ${HOUSE_BUCKET} and t.account_id = c.account_id and t.id = c.id and t.phase = 2
        where r.account_id = ${String(accountId)} and r.call_id = ${callId} and r.state = 0`;
      return row === undefined ? null : readRefund(row);
    },

    async markRefunded(refund, transaction) {
      await sql`update refunds set state = 1, transaction = ${transaction}, paid_at = ${at()} where ${of(refund)}`;
    },

    async refundLater(refund, afterMs) {
      await sql`update refunds set next_at = ${at(afterMs)} where ${of(refund)} and state = 0`;
    },
  };
}

function readRefund(row: RefundRow): DueRefund {
  return {
    rail: row.rail,
    revenue: revenueOf(row),
    accountId: row.account_id,
    callId: row.call_id,
    network: row.network,
    asset: row.asset,
    payee: row.payee,
    amountUnits: row.amount_micros,
    amountMicros: row.amount_micros,
    attempts: row.attempts,
  };
}
