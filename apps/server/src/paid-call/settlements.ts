/** What became of payments on a chain: the rows of `settlements` and `refunds`. Money itself moves in `calls.ts`. */
import type { Database, Transaction } from '../db/connection.ts';
import { HOUSE_ACCOUNTS, type HouseAccount, houseAccountName } from '../ledger/accounts.ts';
import type { PricedCall } from './call-steps.ts';
import type { OnChainPayment, Refund } from './rail.ts';

/** 0 with the chain, 1 settled, 2 dead, 3 refused by us, 4 lost. As in `db/migrations/004_settlements.sql`. */
const STATES = ['with_chain', 'settled', 'dead', 'refused', 'lost'] as const;

/** The longest `ANSWER_TTL_HOURS`, and a day for what takes its time on a chain. */
const LONGEST_KEPT_MS = 31 * 86_400_000;

export interface Settlement extends Omit<PricedCall, 'id'> {
  callId: string;
  rail: string;
  payment: OnChainPayment;
  /** Whether the call was captured: all that is left then is to see that its transaction stays. */
  captured: boolean;
  /** Whether the answer is stored already. */
  answered: boolean;
  /** As it stood when it was taken. */
  state: (typeof STATES)[number];
  transaction: string | null;
  blockNumber: bigint | null;
  /** How often it was taken before. With the chain after one, something of an earlier attempt may be in flight. */
  attempts: number;
  /** How often in a row the chain did not know its transaction. */
  missed: number;
  createdAtMs: number;
}

/** The call that a settlement pays for. */
export function callOf({ callId, accountId, service, priceMicros, revenue }: Settlement): PricedCall {
  return { id: callId, accountId, service, priceMicros, revenue };
}

/** Longer than any lease: a service that runs once it is paid has one for all its time. */
const LONGEST_LEASE_MS = 400_000;

/** Whether an attempt of somebody who did not tell its end may still reach the chain. */
export function mayBeInFlight(settlement: Pick<Settlement, 'state' | 'attempts'>): boolean {
  return settlement.state === 'with_chain' && settlement.attempts > 0;
}

export interface Receipt {
  callId: string;
  rail: string;
  service: string;
  priceMicros: bigint;
  payment: Pick<OnChainPayment, 'network' | 'asset' | 'payer' | 'payTo' | 'amountUnits'>;
  callState: 'running' | 'captured' | 'released' | 'settling';
  settlementState: Settlement['state'];
  reason: string | null;
  transaction: string | null;
  blockNumber: bigint | null;
  final: boolean;
  createdAtMs: number;
  settledAtMs: number | null;
  /** Of all that was paid, or of what was paid above the price. */
  refund: {
    state: 'owed' | 'paid';
    amountMicros: bigint;
    transaction: string | null;
    reason: string;
  } | null;
}

export interface DueRefund extends Refund {
  accountId: bigint;
  rail: string;
  revenue: HouseAccount;
  amountMicros: bigint;
  attempts: number;
}

export interface SettlementStore {
  /** Takes a settlement for oneself; null while somebody else has it, or when there is none. */
  lease(accountId: bigint, callId: string, leaseMs: number): Promise<Settlement | null>;
  /** Frees what a process leased that has ended. */
  freeLeasesOf(transaction: Transaction, holder: bigint): Promise<void>;
  /** Takes those whose time has come, longest due first. @param of all of them unless given */
  leaseDue(limit: number, leaseMs: number, of?: SettlementLane): Promise<Settlement[]>;
  /** The networks that have any that are due. */
  dueNetworks(what: SettlementLane['what']): Promise<string[]>;
  /** Notes where the money moved, before the service has run. */
  markSettled(
    settlement: Pick<Settlement, 'accountId' | 'callId'>,
    at: { transaction: string; blockNumber: bigint | null },
    leaseMs: number,
  ): Promise<void>;
  /** Notes that we will not settle it any more by ourselves; it is looked at again when it must be dead. */
  markRefused(
    settlement: Pick<Settlement, 'accountId' | 'callId' | 'payment'>,
    reason: string,
  ): Promise<void>;
  /** Gives it back, to be looked at again after a while. `missed`: how often in a row its transaction was not found. */
  later(
    settlement: Pick<Settlement, 'accountId' | 'callId'>,
    afterMs: number,
    missed?: number,
  ): Promise<void>;
  markFinal(settlement: Settlement): Promise<void>;
  /** The chain forgot it: it is with the chain again, or lost. */
  markGone(settlement: Settlement, state: 'with_chain' | 'lost'): Promise<void>;
  /** Owes the payer what was paid, or a part of it. Again changes nothing: a call is sent back once. */
  owe(settlement: Settlement, reason: string, amountMicros?: bigint): Promise<void>;
  leaseDueRefunds(limit: number, leaseMs: number): Promise<DueRefund[]>;
  markRefunded(refund: DueRefund, transaction: string): Promise<void>;
  refundLater(refund: DueRefund, afterMs: number): Promise<void>;
  /** The newest call with a stored answer that this payer bought with this request, whatever claim it is bound to. */
  boughtBy(accountId: bigint, payer: string, service: string, fingerprint: Buffer): Promise<string | null>;
  receipt(callId: string): Promise<Receipt | null>;
}

/** Settlements of one network: those that a chain has still to decide, or those that are watched until they are final. */
export interface SettlementLane {
  what: 'undecided' | 'watched';
  network: string;
}

interface Row {
  account_id: bigint;
  call_id: string;
  rail: string;
  network: string;
  asset: string;
  payer: string;
  pay_to: string;
  amount_units: bigint;
  evidence: Record<string, unknown>;
  answered: boolean;
  state: number;
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
  prior_state: number;
  revenue: bigint;
}

function revenueOf(row: { revenue: bigint; call_id: string }): HouseAccount {
  const revenue = houseAccountName(row.revenue);
  if (revenue === null) throw new Error(`call ${row.call_id} is paid to account ${row.revenue}`);
  return revenue;
}

/**
 * The settlements of a database.
 *
 * @param options.answersLastMs from a payment's beginning to the end of its stored answer, at most
 * @param options.holder this process, by its row in `replicas`: when it has ended, what it leased is free
 */
export function createSettlementStore(
  sql: Database,
  nowMs: () => number,
  options: { answersLastMs?: number; holder?: () => bigint | null } = {},
): SettlementStore {
  const { answersLastMs = LONGEST_KEPT_MS, holder = () => null } = options;
  const heldByUs = () => {
    const id = holder();
    return id === null ? null : String(id);
  };
  const at = (afterMs = 0) => new Date(nowMs() + afterMs).toISOString();

  /** As the indexes of migration 019 have them; what service is given only for money is told apart by its call. */
  const inLane = (what: SettlementLane['what']) => {
    const captured = sql`exists (
      select 1 from calls c where c.account_id = settlements.account_id and c.id = settlements.call_id and c.state = 1)`;
    return what === 'watched'
      ? sql`state = 1 and ${captured}`
      : sql`(state in (0, 3) or (state = 1 and not answered)) and not (state = 1 and ${captured})`;
  };

  /**
   * Takes settlements that nobody has. `prior_state` is what stood there before.
   *
   * @param resumed one that was refused goes back to the chain: from then on what its holder does may be in flight,
   *   until it says otherwise
   */
  const leased = (which: ReturnType<typeof sql>, leaseMs: number, resumed: boolean) => sql`
    update settlements u set lease_until = ${at(leaseMs)}, next_at = ${at(leaseMs)}, attempts = u.attempts + 1,
      holder = ${heldByUs()}::bigint, state = case when u.state = 3 and ${resumed} then 0 else u.state end
    from (
      select account_id, call_id, state as prior_state from settlements
      where lease_until <= ${at()} and final_at is null and state <> 2 and ${which}
      for update skip locked
    ) free
    where u.account_id = free.account_id and u.call_id = free.call_id returning u.*, free.prior_state`;

  /** The settlements that an update returned, with what their calls say. */
  const joined = (taken: ReturnType<typeof leased>) => sql<Row[]>`
    with s as (${taken})
    select s.*, c.payment_key, c.service, c.price_micros, c.state as call_state, t.credit_account as revenue
    from s join calls c on c.account_id = s.account_id and c.id = s.call_id
    join ledger_transfers t on t.account_id = c.account_id and t.id = c.id and t.phase = 2`;

  function asSettlement(row: Row): Settlement {
    const revenue = revenueOf(row);
    const state = STATES[row.prior_state];
    if (state === undefined) throw new Error(`settlement ${row.call_id} makes no sense`);
    return {
      accountId: row.account_id,
      callId: row.call_id,
      rail: row.rail,
      service: row.service,
      priceMicros: row.price_micros,
      revenue,
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
  const named = ({ accountId, callId }: { accountId: bigint; callId: string }) =>
    sql`account_id = ${String(accountId)} and call_id = ${callId}`;

  return {
    async lease(accountId, callId, leaseMs) {
      const [row] = await joined(
        leased(
          sql`${named({ accountId, callId })} and not exists (
            select 1 from refunds r where r.account_id = ${String(accountId)} and r.call_id = ${callId})`,
          leaseMs,
          true,
        ),
      );
      return row === undefined ? null : asSettlement(row);
    },

    async freeLeasesOf(transaction, ended) {
      // By the index of what is due: a lease and the time when it is looked at next end together.
      await transaction`
        update settlements set lease_until = ${at()}, next_at = ${at()}
        where final_at is null and state <> 2 and holder = ${String(ended)} and lease_until > ${at()}
          and next_at > ${at()} and next_at <= ${at(LONGEST_LEASE_MS)}`;
    },

    async leaseDue(limit, leaseMs, of) {
      const among = of === undefined ? sql`true` : sql`network = ${of.network} and ${inLane(of.what)}`;
      const rows = await joined(
        leased(sql`next_at <= ${at()} and ${among} order by next_at limit ${limit}`, leaseMs, false),
      );
      return rows.map(asSettlement);
    },

    async dueNetworks(what) {
      const rows = await sql<{ network: string }[]>`
        select distinct network from settlements
        where next_at <= ${at()} and lease_until <= ${at()} and final_at is null and ${inLane(what)}`;
      return rows.map(({ network }) => network);
    },

    async markSettled(settlement, { transaction, blockNumber }, leaseMs) {
      await sql`
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

    async later(settlement, afterMs, missed = 0) {
      await sql`update settlements set next_at = ${at(afterMs)}, missed = ${missed}, lease_until = ${at()} where ${named(settlement)}`;
    },

    async markFinal(settlement) {
      await sql`update settlements set final_at = ${at()} where ${named(settlement)} and state = 1`;
    },

    async markGone(settlement, state) {
      const code = STATES.indexOf(state);
      await sql`
        update settlements set state = ${code}, next_at = ${at()}, lease_until = ${at()}, final_at = ${code === 4 ? at() : null}
        where ${named(settlement)} and state = 1 and final_at is null`;
    },

    async owe(settlement, reason, amountMicros = settlement.priceMicros) {
      await sql`
        insert into refunds (account_id, call_id, network, asset, payee, amount_micros, reason, created_at, next_at)
        values (${String(settlement.accountId)}, ${settlement.callId}, ${settlement.payment.network},
          ${settlement.payment.asset}, ${settlement.payment.payer}, ${String(amountMicros)},
          ${reason}, ${at()}, ${at()})
        on conflict (account_id, call_id) do nothing`;
    },

    async leaseDueRefunds(limit, leaseMs) {
      const rows = await sql<
        {
          account_id: bigint;
          call_id: string;
          network: string;
          asset: string;
          payee: string;
          amount_micros: bigint;
          attempts: number;
          rail: string;
          revenue: bigint;
        }[]
      >`
        with r as (update refunds set next_at = ${at(leaseMs)}, attempts = attempts + 1
        where (account_id, call_id) in (
          select account_id, call_id from refunds where state = 0 and next_at <= ${at()}
          order by next_at limit ${limit} for update skip locked
        ) returning account_id, call_id, network, asset, payee, amount_micros, attempts)
        select r.*, c.rail, t.credit_account as revenue
        from r join calls c on c.account_id = r.account_id and c.id = r.call_id
        join ledger_transfers t on t.account_id = c.account_id and t.id = c.id and t.phase = 2`;
      return rows.map((row) => ({
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
      }));
    },

    async markRefunded(refund, transaction) {
      await sql`update refunds set state = 1, transaction = ${transaction}, paid_at = ${at()} where ${named(refund)}`;
    },

    async refundLater(refund, afterMs) {
      await sql`update refunds set next_at = ${at(afterMs)} where ${named(refund)} and state = 0`;
    },

    async boughtBy(accountId, payer, service, fingerprint) {
      const [row] = await sql<{ id: string }[]>`
        select c.id from settlements s
        join calls c on c.account_id = s.account_id and c.id = s.call_id
        join call_answers a on a.account_id = c.account_id and a.id = c.id
        where s.payer = ${payer} and s.account_id = ${String(accountId)} and s.created_at > ${at(-answersLastMs)}
          and c.state = 1 and c.service = ${service}
          and c.fingerprint = case when s.evidence->>'claim' is null then ${fingerprint}::bytea
            else sha256(${fingerprint}::bytea || decode(s.evidence->>'claim', 'hex')) end
          and a.expires_at > ${at()}
        order by s.created_at desc limit 1`;
      return row?.id ?? null;
    },

    async receipt(callId) {
      const [row] = await sql<
        (Omit<Row, 'payment_key' | 'revenue' | 'dead_after' | 'prior_state'> & {
          reason: string | null;
          settled_at: Date | null;
          final_at: Date | null;
          refund_state: number | null;
          refund_amount: bigint | null;
          refund_transaction: string | null;
          refund_reason: string | null;
        })[]
      >`
        select s.*, c.service, c.price_micros, c.state as call_state, r.state as refund_state,
               r.amount_micros as refund_amount,
               r.transaction as refund_transaction, r.reason as refund_reason
        from settlements s join calls c on c.account_id = s.account_id and c.id = s.call_id
        left join refunds r on r.account_id = s.account_id and r.call_id = s.call_id
        where s.account_id = ${String(HOUSE_ACCOUNTS.chain_clearing)} and s.call_id = ${callId}`;
      const settlementState = STATES[row?.state ?? -1];
      if (row === undefined || settlementState === undefined) return null;
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
        callState: (['running', 'captured', 'released', 'settling'] as const)[row.call_state] ?? 'running',
        settlementState,
        reason: row.reason,
        transaction: row.transaction,
        blockNumber: row.block,
        final: row.final_at !== null && row.state === 1,
        createdAtMs: row.created_at.getTime(),
        settledAtMs: row.settled_at?.getTime() ?? null,
        refund:
          row.refund_state === null
            ? null
            : {
                state: row.refund_state === 1 ? 'paid' : 'owed',
                amountMicros: row.refund_amount ?? row.price_micros,
                transaction: row.refund_transaction,
                reason: row.refund_reason ?? '',
              },
      };
    },
  };
}
