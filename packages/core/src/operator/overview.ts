/** The figures at a glance: sections, of which each can fail by itself. */
import type { Transaction } from '../db/connection.ts';
import { sqlFunction } from '../db/functions.ts';
import { HOUSE_BUCKET } from '../ledger/buckets.ts';
import { microsToUsd } from '../ledger/money.ts';
import { callsOfHouse } from './calls-of-house.ts';
import type { Sections } from './overview-sections.ts';
import { movedOf, salesOf } from './sales-figures.ts';

export const MOST_DAYS = 90;
const DAY_MS = 86_400_000;
const LISTED = 100;
/** A settlement takes seconds; one whose end is not known after this is worth a look. */
const SETTLEMENT_EXPECTED_MS = 60_000;
/** The age by which an order should be paid or over, even if every message about it was lost. */
const ORDER_GRACE_MS = 10 * 60_000;
/** The provider's words for disputes that are over. Words that come later are listed as open. */
const ENDED_DISPUTES = ['won', 'lost', 'prevented', 'warning_closed'];

export interface Overview {
  days: number;
  /** The first day, in UTC. */
  since: string;
  sales: Record<string, unknown> | null;
  money: Record<string, unknown> | null;
  unfinished: Record<string, unknown> | null;
}

/**
 * @param sections which read them, and note what is not known
 * @param options.days how many days to look back on, today among them: 1 to 90
 * @param options.trialBudgetMicrosPerDay what a day may give in trials; null: any
 * @param options.isSpread whether the database is spread over servers; not given: it is not
 * @param options.creditServices what the names of services begin with that sell credit: no sale until it is spent
 */
export async function overviewOf(
  sections: Sections,
  options: {
    days: number;
    creditServices: readonly string[];
    trialBudgetMicrosPerDay: bigint | null;
    isSpread?: boolean;
    nowMs: number;
  },
): Promise<Overview> {
  const { days, nowMs, isSpread = false } = options;
  const { notes } = sections;
  const since = new Date(nowMs - (nowMs % DAY_MS) - (days - 1) * DAY_MS);
  // One after the other: the figures are for people, and the connections for calls.
  const sales = await sections.snapshot('Sales', (on) => salesOf(on, since, { ...options, notes, isSpread }));
  const money = await sections.snapshot('Money', (on) => moneyOf(on, since, { ...options, notes, isSpread }));
  const unfinished = await sections.snapshot('Unfinished business', async (on) => ({
    ...(await unfinishedOf(on, nowMs)),
    disputes: await openDisputesOf(on),
  }));
  return { days, since: since.toISOString().slice(0, 10), sales, money, unfinished };
}

interface MoneyAsked {
  trialBudgetMicrosPerDay: bigint | null;
  isSpread: boolean;
  nowMs: number;
  notes: string[];
}

async function moneyOf(
  on: Transaction,
  since: Date,
  { trialBudgetMicrosPerDay, isSpread, nowMs, notes }: MoneyAsked,
) {
  const from = since.toISOString();
  const usd = (micros: bigint | undefined) => microsToUsd(micros ?? 0n);
  const reserved = await reservedIn(on);
  const moved = await movedOf(on, since, { notes, isSpread });
  const movedBy = new Map(moved.map((row) => [row.code, row.moved]));
  const [debts] = await on<{ owed: bigint; accounts: bigint }[]>`
    select coalesce(sum(owed_micros), 0)::bigint as owed, count(*) as accounts from account_debts
    where owed_micros > 0`;
  const [refunds] = await on<{ owed: bigint; calls: bigint; oldest: Date | null }[]>`
    select coalesce(sum(amount_micros), 0)::bigint as owed, count(*) as calls, min(created_at) as oldest
    from refunds where state = 0`;
  const [cards] = await on<{ orders: bigint; paid: bigint; reversed: bigint }[]>`
    select count(*) as orders, coalesce(sum(amount_micros), 0)::bigint as paid,
           coalesce(sum(reversed_micros), 0)::bigint as reversed
    from card_orders where state = 1 and paid_at >= ${from}`;
  const disputes = await on<{ dispute: string; orders: bigint; reversed: bigint }[]>`
    select dispute, count(*) as orders, sum(reversed_micros)::bigint as reversed from card_orders
    where dispute is not null group by dispute order by dispute`;
  const [trials] = await on<{ micros: bigint; trials: number; most: bigint }[]>`
    select coalesce(d.granted_micros, 0)::bigint as micros, coalesce(d.trials, 0)::integer as trials,
           (select coalesce(max(count), 0) from (
              select count(distinct account_id) from trial_claims
              where site is not null and claimed_at > ${new Date(nowMs - 7 * DAY_MS).toISOString()} group by site
            ) sites) as most
    from (select) one left join trial_days d on d.day = ${new Date(nowMs).toISOString().slice(0, 10)}::date`;
  return {
    /** Today's, in UTC; and the most that one IPv6 site (/48) has taken in seven days. */
    trials: {
      today: trials?.trials ?? 0,
      todayUsd: usd(trials?.micros),
      budgetUsd: trialBudgetMicrosPerDay === null ? null : microsToUsd(trialBudgetMicrosPerDay),
      mostOfOneSite: Number(trials?.most ?? 0n),
    },
    reserved: { creditsUsd: usd(reserved.credits), onChainUsd: usd(reserved.onChain) },
    refunded: {
      onChainUsd: usd(movedBy.get('onchain_refund')),
      callsUsd: usd((movedBy.get('call_refund') ?? 0n) + (movedBy.get('operator_refund') ?? 0n)),
    },
    owed: {
      byCustomersUsd: usd(debts?.owed),
      customers: Number(debts?.accounts ?? 0n),
      onChainUsd: usd(refunds?.owed),
      onChainRefunds: Number(refunds?.calls ?? 0n),
      onChainSince: refunds?.oldest?.toISOString() ?? null,
    },
    granted: {
      byOperatorsUsd: usd(movedBy.get('operator_grant')),
      inTrialsUsd: usd(movedBy.get('trial_grant')),
    },
    cards: {
      ordersPaid: Number(cards?.orders ?? 0n),
      paidUsd: usd(cards?.paid),
      /** Sum of the reversals of orders paid in these days. */
      reversedUsd: usd(cards?.reversed),
      /** The disputes of all times, by the provider's word for where they stand. */
      disputes: disputes.map((row) => ({
        status: row.dispute,
        orders: Number(row.orders),
        reversedUsd: microsToUsd(row.reversed),
      })),
    },
    transfers: moved.map((row) => ({
      code: row.code,
      transfers: Number(row.transfers),
      movedUsd: microsToUsd(row.moved),
    })),
  };
}

/** What calls that run have reserved of customers' credit, and what chains have yet to move. */
async function reservedIn(on: Transaction): Promise<{ credits: bigint; onChain: bigint }> {
  const [credits] = await on<{ reserved: bigint }[]>`
    select coalesce(sum(price_micros), 0)::bigint as reserved from ${on(sqlFunction('open_calls'))}()
    where account_id >= 1000`;
  const [onChain] = await on<{ reserved: bigint }[]>`
    select coalesce(sum(c.price_micros), 0)::bigint as reserved from settlements s ${callsOfHouse(on)}
    where s.bucket = ${HOUSE_BUCKET} and s.final_at is null and s.state in (0, 3)`;
  return { credits: credits?.reserved ?? 0n, onChain: onChain?.reserved ?? 0n };
}

async function unfinishedOf(on: Transaction, nowMs: number) {
  const before = (ms: number) => new Date(nowMs - ms).toISOString();
  const settlements = await on<
    {
      call_id: string;
      rail: string;
      service: string;
      network: string;
      payer: string;
      price_micros: bigint;
      state: number;
      attempts: number;
      reason: string | null;
      transaction: string | null;
      created_at: Date;
      dead_after: Date;
      next_at: Date;
      of_all: bigint;
    }[]
  >`
    select s.call_id, s.rail, c.service, s.network, s.payer, c.price_micros, s.state, s.attempts, s.reason,
           s.transaction, s.created_at, s.dead_after, s.next_at, count(*) over () as of_all
    from settlements s ${callsOfHouse(on)}
    where s.bucket = ${HOUSE_BUCKET} and s.final_at is null and s.state in (0, 3) and s.created_at < ${before(SETTLEMENT_EXPECTED_MS)}
    order by s.created_at limit ${LISTED}`;
  const orders = await on<
    {
      id: string;
      kind: string;
      account_id: bigint | null;
      amount_micros: bigint;
      looks: number;
      created_at: Date;
      expires_at: Date;
      looked_at: Date | null;
      of_all: bigint;
    }[]
  >`
    select id, kind, account_id, amount_micros, looks, created_at, expires_at, looked_at, count(*) over () as of_all
    from card_orders where state = 0 and expires_at < ${before(ORDER_GRACE_MS)}
    order by created_at limit ${LISTED}`;
  const [inbox] = await on<{ waiting: bigint; oldest: Date | null; attempts: number | null }[]>`
    select count(*) as waiting, min(received_at) as oldest, max(attempts) as attempts from card_events
    where next_at is not null`;
  return {
    settlements: {
      count: Number(settlements[0]?.of_all ?? 0n),
      oldest: settlements.map((row) => ({
        callId: row.call_id,
        rail: row.rail,
        service: row.service,
        network: row.network,
        payer: row.payer,
        priceUsd: microsToUsd(row.price_micros),
        state: row.state === 0 ? 'with_chain' : 'refused',
        attempts: row.attempts,
        reason: row.reason,
        transaction: row.transaction,
        createdAt: row.created_at.toISOString(),
        deadAfter: row.dead_after.toISOString(),
        nextAt: row.next_at.toISOString(),
      })),
    },
    cardOrders: {
      count: Number(orders[0]?.of_all ?? 0n),
      oldest: orders.map((row) => ({
        orderId: row.id,
        kind: row.kind,
        accountId: row.account_id === null ? null : String(row.account_id),
        amountUsd: microsToUsd(row.amount_micros),
        looks: row.looks,
        createdAt: row.created_at.toISOString(),
        expiresAt: row.expires_at.toISOString(),
        lookedAt: row.looked_at?.toISOString() ?? null,
      })),
    },
    inbox: {
      waiting: Number(inbox?.waiting ?? 0n),
      oldestAt: inbox?.oldest?.toISOString() ?? null,
      mostAttempts: inbox?.attempts ?? 0,
    },
  };
}

/** Disputes that are not over, the next due first. */
async function openDisputesOf(on: Transaction) {
  const disputes = await on<
    {
      id: string;
      account_id: bigint | null;
      amount_micros: bigint;
      reversed_micros: bigint;
      dispute: string;
      dispute_due_at: Date | null;
      payment_intent_id: string | null;
      created_at: Date;
      of_all: bigint;
      to_answer: bigint;
    }[]
  >`
    select id, account_id, amount_micros, reversed_micros, dispute, dispute_due_at, payment_intent_id, created_at,
           count(*) over () as of_all, count(*) filter (where dispute like '%needs_response') over () as to_answer
    from card_orders where dispute is not null and dispute <> all(${ENDED_DISPUTES})
    order by dispute_due_at nulls last, created_at limit ${LISTED}`;
  return {
    count: Number(disputes[0]?.of_all ?? 0n),
    /** The number of disputes that are to be answered with evidence before it is due. */
    toAnswer: Number(disputes[0]?.to_answer ?? 0n),
    nextDue: disputes.map((row) => ({
      orderId: row.id,
      accountId: row.account_id === null ? null : String(row.account_id),
      paymentIntentId: row.payment_intent_id,
      status: row.dispute,
      amountUsd: microsToUsd(row.amount_micros),
      reversedUsd: microsToUsd(row.reversed_micros),
      evidenceDueAt: row.dispute_due_at?.toISOString() ?? null,
      createdAt: row.created_at.toISOString(),
    })),
  };
}
