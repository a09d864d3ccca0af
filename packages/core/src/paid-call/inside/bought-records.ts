/** What is on record of a payment on a chain for whoever asks later: what it bought, and its receipt. */
import type { Database } from '../../db/connection.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import { type BoughtRecords, type Receipt, SETTLEMENT_STATES } from '../settlements.ts';
import type { SettlementRows } from './settlement-rows.ts';

const CALL_STATES = ['running', 'captured', 'released', 'settling'] as const;

interface ReceiptRow {
  call_id: string;
  rail: string;
  network: string;
  asset: string;
  payer: string;
  pay_to: string;
  amount_units: bigint;
  state: number;
  transaction: string | null;
  block: bigint | null;
  created_at: Date;
  service: string;
  price_micros: bigint;
  call_state: number;
  reason: string | null;
  settled_at: Date | null;
  final_at: Date | null;
  refund_state: number | null;
  refund_amount: bigint | null;
  refund_transaction: string | null;
  refund_reason: string | null;
}

/** @param answersLastMs from a payment's beginning to the end of its stored answer, at most */
export function boughtRecords({ sql, at }: SettlementRows, answersLastMs: number): BoughtRecords {
  return {
    async boughtBy(accountId, payer, service, fingerprint) {
      const [row] = await sql<{ id: string }[]>`
        select c.id from settlements s cross join lateral (
          select id from calls
          where bucket = ${HOUSE_BUCKET} and account_id = s.account_id and id = s.call_id and state = 1 and service = ${service}
            and fingerprint = case when s.evidence->>'claim' is null then ${fingerprint}::bytea
              else sha256(${fingerprint}::bytea || decode(s.evidence->>'claim', 'hex')) end
          offset 0
        ) c cross join lateral (
          select 1 from call_answers
          where bucket = ${HOUSE_BUCKET} and account_id = s.account_id and id = s.call_id and expires_at > ${at()} offset 0
        ) a
        where s.bucket = ${HOUSE_BUCKET} and s.payer = ${payer} and s.account_id = ${String(accountId)} and s.created_at > ${at(-answersLastMs)}
        order by s.created_at desc limit 1`;
      return row?.id ?? null;
    },

    receipt: (callId) => receiptWhere(sql, sql`s.call_id = ${callId}`),
    receiptBy: ({ transaction, payer }) =>
      receiptWhere(sql, sql`s.transaction = ${transaction} and s.payer = ${payer}`),
  };
}

async function receiptWhere(sql: Database, which: ReturnType<Database>): Promise<Receipt | null> {
  const [row] = await sql<ReceiptRow[]>`
    select s.*, c.service, c.price_micros, c.state as call_state, r.state as refund_state,
           r.amount_micros as refund_amount,
           r.transaction as refund_transaction, r.reason as refund_reason
    from settlements s join calls c on c.bucket = s.bucket and c.account_id = s.account_id and c.id = s.call_id
    left join refunds r on r.account_id = s.account_id and r.call_id = s.call_id
    where s.bucket = ${HOUSE_BUCKET} and s.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and ${which}
    order by s.created_at desc limit 1`;
  return row === undefined ? null : asReceipt(row);
}

function asReceipt(row: ReceiptRow): Receipt | null {
  const settlementState = SETTLEMENT_STATES[row.state];
  if (settlementState === undefined) return null;
  return {
    callId: row.call_id,
    rail: row.rail,
    service: row.service,
    priceMicros: row.price_micros,
    payment: {
      network: row.network,
      asset: row.asset,
      payer: row.payer,
      payTo: row.pay_to,
      amountUnits: row.amount_units,
    },
    callState: CALL_STATES[row.call_state] ?? 'running',
    settlementState,
    reason: row.reason,
    transaction: row.transaction,
    blockNumber: row.block,
    final: row.final_at !== null && row.state === 1,
    createdAtMs: row.created_at.getTime(),
    settledAtMs: row.settled_at?.getTime() ?? null,
    refund: refundIn(row),
  };
}

function refundIn(row: ReceiptRow): Receipt['refund'] {
  if (row.refund_state === null) return null;
  return {
    state: row.refund_state === 1 ? 'paid' : 'owed',
    amountMicros: row.refund_amount ?? row.price_micros,
    transaction: row.refund_transaction,
    reason: row.refund_reason ?? '',
  };
}
