/** Refunds above a bound, which wait for a second operator where there are several. */
import type { Database, Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { microsToUsd } from '../ledger/money.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import type { Order } from './act.ts';
import { digestOf } from './digest.ts';
import { isActOf, refundedAlone } from './refunded-alone.ts';

/** Proposals that may wait at once. */
const MOST_WAITING = 100;

/** What goes back: a card payment or a part of it, the price of a key's call, or a payment on a chain. */
export type Refund =
  | { act: 'refund_order'; orderId: string; amountMicros: bigint | null }
  | { act: 'refund_call' | 'refund_payment'; callId: string };

export interface Proposal {
  id: string;
  at: Date;
  actor: string;
  accountId: bigint;
  refund: Refund;
  amountMicros: bigint;
  reason: string;
  ended: 'approved' | 'declined' | null;
  endedBy: string | null;
}

export interface Proposals {
  /**
   * Puts a refund before a second operator if it is above the bound, together with what one operator alone sent back of the
   * same order before.
   *
   * @returns the proposal; null: one operator is enough, or there is nothing to refund, which the act itself will say
   */
  proposed(order: Order, refund: Refund): Promise<Proposal | null>;
  /** Those that wait, oldest first; also those that were agreed to and whose act is not there, such as after a crash. */
  waiting(): Promise<Proposal[]>;
  /** Lets one that was agreed to wait again, because its refund was refused. What was refunded stays ended. */
  reopen(id: string): Promise<void>;
  /**
   * Agrees to a refund. Again by the same operator it is the same agreement.
   *
   * @throws Problem 404 NO_SUCH_PROPOSAL; 409 SECOND_OPERATOR_NEEDED, PROPOSAL_ENDED
   */
  approve(id: string, actor: string): Promise<Proposal>;
  /** Ends one without a refund. @throws Problem 404 NO_SUCH_PROPOSAL; 409 PROPOSAL_ENDED */
  decline(id: string, actor: string): Promise<Proposal>;
}

interface ProposalRow {
  id: string;
  at: Date;
  actor: string;
  act: Refund['act'];
  account_id: bigint;
  order_id: string | null;
  call_id: string | null;
  amount_micros: bigint;
  reason: string;
  request_digest: Buffer;
  ended: Proposal['ended'];
  ended_by: string | null;
}

interface ProposalsParts {
  sql: Database;
  /** How many operators there are. */
  operators: number;
  /** A refund above it needs two of them. */
  aboveMicros: bigint;
  nowMs(): number;
}

export function createProposals(parts: ProposalsParts): Proposals {
  const { sql, operators, aboveMicros, nowMs } = parts;

  return {
    async proposed(order, refund) {
      if (operators < 2) return null;
      const before = await askedBefore(sql, order);
      if (before === 'done') return null;
      const amountMicros = await amountOf(sql, order.accountId, refund);
      if (amountMicros === null) return null;
      const aloneMicros =
        refund.act === 'refund_order' ? await refundedAlone(sql, order.accountId, refund.orderId) : 0n;
      if (before === null && amountMicros + aloneMicros <= aboveMicros) return null;
      const at = new Date(nowMs()).toISOString();
      return sql.begin((transaction) => propose(transaction, { order, refund, amountMicros, at }));
    },

    async waiting() {
      const rows = await sql<ProposalRow[]>`
        select * from operator_proposals p
        where ended is null or (ended = 'approved' and not ${isDone(sql)}) order by at limit ${MOST_WAITING}`;
      return rows.map(asProposal);
    },

    async reopen(id) {
      await sql`
        update operator_proposals p set ended = null, ended_by = null, ended_at = null
        where id = ${id} and ended = 'approved' and not ${isDone(sql)}`;
    },

    approve: (id, actor) => end(parts, { id, actor, as: 'approved' }),
    decline: (id, actor) => end(parts, { id, actor, as: 'declined' }),
  };
}

/** The Idempotency-Key of the act that follows from a proposal: however often it is asked for, it is one act. */
export function actKeyOf(proposalId: string): string {
  return `proposal:${proposalId}`;
}

/** The condition that the act of a proposal `p` is there. */
function isDone(sql: Database) {
  return sql`exists (select 1 from operator_acts a where ${isActOf(sql)})`;
}

/** What the same Idempotency-Key was before: an act, which repeats itself, or a proposal; null: neither. */
async function askedBefore(sql: Database, { idempotencyKey }: Order): Promise<'done' | 'proposed' | null> {
  const ofKey = digestOf([idempotencyKey]);
  const [row] = await sql<{ done: boolean; proposed: boolean }[]>`
    select exists (select 1 from operator_acts where idempotency_digest = ${ofKey}) as done,
           exists (select 1 from operator_proposals where idempotency_digest = ${ofKey}) as proposed`;
  if (row?.done) return 'done';
  return row?.proposed ? 'proposed' : null;
}

/** What would go back, in micro-USD; null: no such thing. */
async function amountOf(sql: Database, accountId: bigint, refund: Refund): Promise<bigint | null> {
  if (refund.act === 'refund_order') {
    if (refund.amountMicros !== null) return refund.amountMicros;
    const [order] = await sql<{ left: bigint }[]>`
      select amount_micros - reversed_micros as left from card_orders
      where id = ${refund.orderId} and account_id = ${String(accountId)}`;
    return order?.left ?? null;
  }
  const account = refund.act === 'refund_payment' ? HOUSE_ACCOUNTS.chain_clearing : accountId;
  const [call] = await sql<{ price_micros: bigint }[]>`
    select price_micros from calls where account_id = ${String(account)} and id = ${refund.callId}`;
  return call?.price_micros ?? null;
}

async function propose(
  transaction: Transaction,
  { order, refund, amountMicros, at }: { order: Order; refund: Refund; amountMicros: bigint; at: string },
): Promise<Proposal> {
  const { actor, accountId, reason, idempotencyKey } = order;
  const [orderId, callId] = refund.act === 'refund_order' ? [refund.orderId, null] : [null, refund.callId];
  const ofKey = digestOf([idempotencyKey]);
  const ofRequest = digestOf([
    ...[actor, refund.act, String(accountId), reason, orderId ?? callId],
    // The rest of a payment is proposed in numbers, so that what is agreed to is what was asked for.
    String('amountMicros' in refund ? refund.amountMicros : null),
  ]);
  await transaction`
    insert into operator_proposals (id, at, actor, act, account_id, order_id, call_id, amount_micros, reason,
                                    idempotency_digest, request_digest)
    select ${newTransferId(Date.parse(at))}::uuid, ${at}::timestamptz, ${actor}, ${refund.act}, ${String(accountId)}::bigint,
           ${orderId}::uuid, ${callId}::uuid, ${String(amountMicros)}::bigint, ${reason}, ${ofKey}::bytea, ${ofRequest}::bytea
    where (select count(*) from operator_proposals where ended is null) < ${MOST_WAITING}
    on conflict (idempotency_digest) do nothing`;
  const [row] = await transaction<ProposalRow[]>`
    select * from operator_proposals where idempotency_digest = ${ofKey}`;
  if (row === undefined)
    throw new Problem(
      409,
      'TOO_MANY_PROPOSALS',
      'Too many refunds wait for a second operator. End some first.',
    );
  if (!row.request_digest.equals(ofRequest))
    throw new Problem(409, 'IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another action.');
  return asProposal(row);
}

async function end(
  { sql, nowMs }: ProposalsParts,
  { id, actor, as }: { id: string; actor: string; as: 'approved' | 'declined' },
): Promise<Proposal> {
  return sql.begin(async (transaction) => {
    const [row] = await transaction<ProposalRow[]>`
      select * from operator_proposals where id = ${id} for no key update`;
    if (row === undefined) throw new Problem(404, 'NO_SUCH_PROPOSAL', 'There is no such proposal.');
    if (row.ended !== null && (row.ended !== as || row.ended_by !== actor))
      throw new Problem(409, 'PROPOSAL_ENDED', `This refund was ${row.ended} by ${row.ended_by}.`);
    if (as === 'approved' && row.actor === actor)
      throw new Problem(
        409,
        'SECOND_OPERATOR_NEEDED',
        'A refund of this size needs another operator than the one who asked for it.',
      );
    await transaction`
      update operator_proposals set ended = ${as}, ended_by = ${actor}, ended_at = ${new Date(nowMs()).toISOString()}
      where id = ${id} and ended is null`;
    return asProposal({ ...row, ended: as, ended_by: actor });
  });
}

function asProposal(row: ProposalRow): Proposal {
  return {
    id: row.id,
    at: row.at,
    actor: row.actor,
    accountId: row.account_id,
    refund:
      row.act === 'refund_order'
        ? { act: row.act, orderId: row.order_id ?? '', amountMicros: row.amount_micros }
        : { act: row.act, callId: row.call_id ?? '' },
    amountMicros: row.amount_micros,
    reason: row.reason,
    ended: row.ended,
    endedBy: row.ended_by,
  };
}

/** A proposal as the page gets it. */
export function proposalAsJson(proposal: Proposal): Record<string, unknown> {
  const { id, at, actor, accountId, refund, amountMicros, reason, ended, endedBy } = proposal;
  return {
    proposalId: id,
    at: at.toISOString(),
    actor,
    act: refund.act,
    accountId: String(accountId),
    orderId: 'orderId' in refund ? refund.orderId : null,
    callId: 'callId' in refund ? refund.callId : null,
    amountUsd: microsToUsd(amountMicros),
    reason,
    state: ended ?? 'waiting',
    endedBy,
  };
}
