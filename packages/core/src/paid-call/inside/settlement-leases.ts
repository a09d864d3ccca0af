/** Leases of settlements: who works on which, and what is due. */
import type { PendingQuery, Row } from 'postgres';
import type { Database } from '../../db/connection.ts';
import { HOUSE_BUCKET } from '../../ledger/buckets.ts';
import {
  SETTLEMENT_STATES,
  type Settlement,
  type SettlementLane,
  type SettlementLeases,
} from '../settlements.ts';
import { revenueOf, type SettlementRows } from './settlement-rows.ts';

/** Longer than any lease. A service that runs once it is paid has a lease for all its time. */
const LONGEST_LEASE_MS = 400_000;

interface LeasedRow {
  account_id: bigint;
  bucket: number;
  call_id: string;
  rail: string;
  network: string;
  asset: string;
  payer: string;
  pay_to: string;
  amount_units: bigint;
  evidence: Record<string, unknown>;
  answered: boolean;
  transaction: string | null;
  block: bigint | null;
  attempts: number;
  missed: number;
  dead_after: Date;
  created_at: Date;
  payment_key: string | null;
  service: string;
  price_micros: bigint;
  call_state: number;
  /** The state before the lease. */
  prior_state: number;
  revenue: bigint;
}

export function settlementLeases(rows: SettlementRows, holder: () => bigint | null): SettlementLeases {
  const { sql, at, named } = rows;
  return {
    async lease(accountId, callId, leaseMs) {
      const notRefunded = sql`not exists (
        select 1 from refunds r where r.account_id = ${String(accountId)} and r.call_id = ${callId})`;
      const which = sql<Row[]>`${named({ accountId, callId })} and ${notRefunded}`;
      const [row] = await leased(rows, which, { leaseMs, holder: holder(), resumed: true });
      return row === undefined ? null : asSettlement(row);
    },

    async freeLeasesOf(transaction, ended) {
      // A lease and the time when its settlement is due again end together, so the indexes of what is due serve this.
      await transaction`
        update settlements set lease_until = ${at()}, next_at = ${at()}
        where bucket = ${HOUSE_BUCKET} and final_at is null and (state in (0, 3) or state = 1) and holder = ${String(ended)} and lease_until > ${at()}
          and next_at > ${at()} and next_at <= ${at(LONGEST_LEASE_MS)}`;
    },

    async leaseDue(limit, leaseMs, of) {
      const among = of === undefined ? sql`true` : sql`network = ${of.network} and ${inLane(sql, of.what)}`;
      const which = sql<Row[]>`next_at <= ${at()} and ${among} order by next_at limit ${limit}`;
      const due = await leased(rows, which, { leaseMs, holder: holder(), resumed: false });
      return due.map(asSettlement);
    },

    async dueNetworks(what) {
      const due = await sql<{ network: string }[]>`
        select distinct network from settlements
        where bucket = ${HOUSE_BUCKET} and next_at <= ${at()} and lease_until <= ${at()} and final_at is null
          and ${inLane(sql, what)}`;
      return due.map(({ network }) => network);
    },

    async later(settlement, afterMs, missed = 0) {
      await sql`
        update settlements set next_at = ${at(afterMs)}, missed = ${missed}, lease_until = ${at()}
        where ${named(settlement)}`;
    },
  };
}

/**
 * Leases settlements that nobody has, and reads what their calls say.
 *
 * @param lease.resumed `true`: one that was refused goes back to the chain. What its holder does may then be in flight,
 *   until the holder says otherwise
 */
function leased(
  { sql, at }: SettlementRows,
  which: PendingQuery<Row[]>,
  { leaseMs, holder, resumed }: { leaseMs: number; holder: bigint | null; resumed: boolean },
): Promise<LeasedRow[]> {
  return sql<LeasedRow[]>`
    with s as (
      update settlements u set lease_until = ${at(leaseMs)}, next_at = ${at(leaseMs)}, attempts = u.attempts + 1,
        holder = ${holder === null ? null : String(holder)}::bigint,
        state = case when u.state = 3 and ${resumed} then 0 else u.state end
      from (
        select account_id, call_id, state as prior_state from settlements
        where bucket = ${HOUSE_BUCKET} and lease_until <= ${at()} and final_at is null and state <> 2 and ${which}
        for update skip locked
      ) free
      where u.bucket = ${HOUSE_BUCKET} and u.account_id = free.account_id and u.call_id = free.call_id returning u.*, free.prior_state
    )
    select s.*, c.payment_key, c.service, c.price_micros, c.state as call_state, t.credit_account as revenue
    from s cross join lateral (
      select payment_key, service, price_micros, state from calls
      where bucket = ${HOUSE_BUCKET} and account_id = s.account_id and id = s.call_id offset 0
    ) c cross join lateral (
      select credit_account from ledger_transfers
      where bucket = ${HOUSE_BUCKET} and account_id = s.account_id and id = s.call_id and phase = 2 offset 0
    ) t`;
}

/** The condition of a lane, as the indexes of `settlements` have it. A call that was captured is told apart by its own row. */
function inLane(sql: Database, what: SettlementLane['what']) {
  const captured = sql`exists (
    select 1 from calls c
    where c.bucket = ${HOUSE_BUCKET} and c.account_id = settlements.account_id and c.id = settlements.call_id and c.state = 1)`;
  return what === 'watched'
    ? sql`state = 1 and ${captured}`
    : sql`(state in (0, 3) or (state = 1 and not answered)) and not (state = 1 and ${captured})`;
}

function asSettlement(row: LeasedRow): Settlement {
  const state = SETTLEMENT_STATES[row.prior_state];
  if (state === undefined) throw new Error(`settlement ${row.call_id} makes no sense`);
  return {
    accountId: row.account_id,
    bucket: row.bucket,
    callId: row.call_id,
    rail: row.rail,
    service: row.service,
    priceMicros: row.price_micros,
    revenue: revenueOf(row),
    captured: row.call_state === 1,
    answered: row.answered,
    state,
    transaction: row.transaction,
    blockNumber: row.block,
    attempts: row.attempts,
    missed: row.missed,
    createdAtMs: row.created_at.getTime(),
    payment: {
      identity: row.payment_key ?? '',
      network: row.network,
      asset: row.asset,
      payer: row.payer,
      payTo: row.pay_to,
      amountUnits: row.amount_units,
      deadAfterMs: row.dead_after.getTime(),
      evidence: row.evidence,
    },
  };
}
