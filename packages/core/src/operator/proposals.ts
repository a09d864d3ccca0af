/** Refunds and grants above a bound, which wait for a second operator where there are several. */
import type { Database, Transaction } from '../db/connection.ts';
import { Problem } from '../http/problem.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { microsToUsd } from '../ledger/money.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import type { Order } from './act.ts';
import { digestOf } from './digest.ts';
import { countedWith, type Gift, isActOf } from './given-alone.ts';

/** Proposals that may wait at once. */
const MOST_WAITING = 100;

export interface Proposal {
  id: string;
  at: Date;
  actor: string;
  accountId: bigint;
  gift: Gift;
  amountMicros: bigint;
  reason: string;
  ended: 'approved' | 'declined' | null;
  endedBy: string | null;
}

export interface Proposals {
  /**
   * Puts a gift before a second operator if it is above the bound, together with what one operator alone gave before: of the
   * same order, or in the last 24 hours.
   *
   * @returns the proposal; null: one operator is enough, or there is nothing to give, which the act itself will say
   */
  proposed(order: Order, gift: Gift): Promise<Proposal | null>;
  /** Those that wait, oldest first; also those that were agreed to and whose act is not there, such as after a crash. */
  waiting(): Promise<Proposal[]>;
  /** The operator who asked for one; null: there is no such proposal. */
  askerOf(id: string): Promise<string | null>;
  /** Lets one that was agreed to wait again, because its act was refused. What was done stays ended. */
  reopen(id: string): Promise<void>;
  /**
   * Agrees to one. Again by the same operator it is the same agreement.
   *
   * @throws Problem 404 NO_SUCH_PROPOSAL; 409 SECOND_OPERATOR_NEEDED, PROPOSAL_ENDED
   */
  approve(id: string, actor: string): Promise<Proposal>;
  /** Ends one without an act. @throws Problem 404 NO_SUCH_PROPOSAL; 409 PROPOSAL_ENDED */
  decline(id: string, actor: string): Promise<Proposal>;
}

interface ProposalRow {
  id: string;
  at: Date;
  actor: string;
  act: Gift['act'];
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
  operators(): number;
  /** The bound above which a gift needs two operators. */
  aboveMicros: bigint;
  nowMs(): number;
}

export function createProposals(parts: ProposalsParts): Proposals {
  const { sql, operators, aboveMicros, nowMs } = parts;

  return {
    async proposed(order, gift) {
      if (operators() < 2) return null;
      const before = await askedBefore(sql, order);
      if (before === 'done') return null;
      const amountMicros = await amountOf(sql, order.accountId, gift);
      if (amountMicros === null) return null;
      const countedMicros = await countedWith(sql, order, gift, nowMs());
      if (before === null && amountMicros + countedMicros <= aboveMicros) return null;
      const at = new Date(nowMs()).toISOString();
      return sql.begin((transaction) => propose(transaction, { order, gift, amountMicros, at }));
    },

    async waiting() {
      const rows = await sql<ProposalRow[]>`
        select * from operator_proposals p
        where ended is null or (ended = 'approved' and not ${isDone(sql)}) order by at limit ${MOST_WAITING}`;
      return rows.map(asProposal);
    },

    async askerOf(id) {
      const [row] = await sql<{ actor: string }[]>`select actor from operator_proposals where id = ${id}`;
      return row?.actor ?? null;
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

/** Looks up what the same Idempotency-Key was before: an act, which repeats itself, or a proposal; null: neither. */
async function askedBefore(sql: Database, { idempotencyKey }: Order): Promise<'done' | 'proposed' | null> {
  const ofKey = digestOf([idempotencyKey]);
  const [row] = await sql<{ done: boolean; proposed: boolean }[]>`
    select exists (select 1 from operator_acts where idempotency_digest = ${ofKey}) as done,
           exists (select 1 from operator_proposals where idempotency_digest = ${ofKey}) as proposed`;
  if (row?.done) return 'done';
  return row?.proposed ? 'proposed' : null;
}

/** The amount that would be given, in micro-USD; null: no such thing. */
async function amountOf(sql: Database, accountId: bigint, gift: Gift): Promise<bigint | null> {
  if (gift.act === 'grant') return gift.amountMicros;
  if (gift.act === 'refund_order') {
    if (gift.amountMicros !== null) return gift.amountMicros;
    const [order] = await sql<{ left: bigint }[]>`
      select amount_micros - reversed_micros as left from card_orders
      where id = ${gift.orderId} and account_id = ${String(accountId)}`;
    return order?.left ?? null;
  }
  const account = gift.act === 'refund_payment' ? HOUSE_ACCOUNTS.chain_clearing : accountId;
  const [call] = await sql<{ price_micros: bigint }[]>`
    select price_micros from calls where account_id = ${String(account)} and id = ${gift.callId}`;
  return call?.price_micros ?? null;
}

async function propose(
  transaction: Transaction,
  { order, gift, amountMicros, at }: { order: Order; gift: Gift; amountMicros: bigint; at: string },
): Promise<Proposal> {
  const { actor, accountId, reason, idempotencyKey } = order;
  const orderId = 'orderId' in gift ? gift.orderId : null;
  const callId = 'callId' in gift ? gift.callId : null;
  const ofKey = digestOf([idempotencyKey]);
  const ofRequest = digestOf([
    ...[actor, gift.act, String(accountId), reason, orderId ?? callId],
    // The rest of a payment is proposed in numbers, so that what is agreed to is what was asked for.
    String('amountMicros' in gift ? gift.amountMicros : null),
  ]);
  await transaction`
    insert into operator_proposals (id, at, actor, act, account_id, order_id, call_id, amount_micros, reason,
                                    idempotency_digest, request_digest)
    select ${newTransferId(Date.parse(at))}::uuid, ${at}::timestamptz, ${actor}, ${gift.act}, ${String(accountId)}::bigint,
           ${orderId}::uuid, ${callId}::uuid, ${String(amountMicros)}::bigint, ${reason}, ${ofKey}::bytea, ${ofRequest}::bytea
    where (select count(*) from operator_proposals where ended is null) < ${MOST_WAITING}
    on conflict (idempotency_digest) do nothing`;
  const [row] = await transaction<ProposalRow[]>`
    select * from operator_proposals where idempotency_digest = ${ofKey}`;
  if (row === undefined)
    throw new Problem(
      409,
      'TOO_MANY_PROPOSALS',
      'Too many proposals wait for a second operator. End some first.',
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
      throw new Problem(409, 'PROPOSAL_ENDED', `This was ${row.ended} by ${row.ended_by}.`);
    if (as === 'approved' && row.actor === actor)
      throw new Problem(
        409,
        'SECOND_OPERATOR_NEEDED',
        'This needs another operator than the one who asked for it.',
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
    gift: giftOf(row),
    amountMicros: row.amount_micros,
    reason: row.reason,
    ended: row.ended,
    endedBy: row.ended_by,
  };
}

function giftOf({ act, order_id: orderId, call_id: callId, amount_micros: amountMicros }: ProposalRow): Gift {
  if (act === 'grant') return { act, amountMicros };
  if (act === 'refund_order') return { act, orderId: orderId ?? '', amountMicros };
  return { act, callId: callId ?? '' };
}

/** A proposal as the page gets it. */
export function proposalAsJson(proposal: Proposal): Record<string, unknown> {
  const { id, at, actor, accountId, gift, amountMicros, reason, ended, endedBy } = proposal;
  return {
    proposalId: id,
    at: at.toISOString(),
    actor,
    act: gift.act,
    accountId: String(accountId),
    orderId: 'orderId' in gift ? gift.orderId : null,
    callId: 'callId' in gift ? gift.callId : null,
    amountUsd: microsToUsd(amountMicros),
    reason,
    state: ended ?? 'waiting',
    endedBy,
  };
}
