import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../http/json-body.ts';
import { readParameters } from '../http/parameters.ts';
import { Problem } from '../http/problem.ts';
import { HOUSE_ACCOUNTS } from '../ledger/accounts.ts';
import { usdToMicros } from '../ledger/money.ts';
import type { ActDone, GiftOrder, Order } from './act.ts';
import {
  type ActRouteParts,
  accountOrderOf,
  amountUpTo,
  keyedBy,
  plainAct,
  reason,
  toldOf,
  uuid,
} from './act-routes.ts';
import type { Acts } from './acts.ts';
import type { Gift } from './given-alone.ts';
import { actKeyOf, type Proposals, proposalAsJson } from './proposals.ts';
import type { People } from './sign-in/people.ts';
import type { Operator } from './trail.ts';

const MOST_REFUNDED_MICROS = usdToMicros('1000000');
const MOST_GRANTED_MICROS = usdToMicros('10000');
const CENT_MICROS = 10_000n;

const grantAct = z.strictObject({ reason, amountUsd: amountUpTo(MOST_GRANTED_MICROS) });
const callRefund = z.strictObject({ reason, callId: uuid });
const orderRefund = z.strictObject({
  reason,
  orderId: uuid,
  amountUsd: amountUpTo(MOST_REFUNDED_MICROS)
    .refine((micros) => micros % CENT_MICROS === 0n, 'must be a whole number of cents')
    .nullable(),
});

/** Routes by which operators give: refunds on every rail, and credit. What is above the bound waits for a second operator. */
export function giftRoutes(admin: FastifyInstance, parts: ActRouteParts & { proposals: Proposals }): void {
  const { acts, proposals } = parts;

  admin.post('/accounts/:account/grant', async (request, reply) => {
    const { amountUsd: amountMicros, reason } = readJsonBody(request, grantAct);
    return given({ ...accountOrderOf(parts, request), reason }, { act: 'grant', amountMicros }, reply);
  });
  admin.post('/accounts/:account/refund-call', async (request, reply) => {
    const { reason, callId } = readJsonBody(request, callRefund);
    return given({ ...accountOrderOf(parts, request), reason }, { act: 'refund_call', callId }, reply);
  });
  admin.post('/accounts/:account/refund-order', async (request, reply) => {
    const { amountUsd: amountMicros, orderId, reason } = readJsonBody(request, orderRefund);
    return given(
      { ...accountOrderOf(parts, request), reason },
      { act: 'refund_order', orderId, amountMicros },
      reply,
    );
  });
  admin.post<{ Params: { call: string } }>('/payments/:call/refund', async (request, reply) => {
    const { reason } = readJsonBody(request, plainAct);
    const callId = readParameters(uuid, request.params.call);
    const order = { ...keyedBy(parts, request), accountId: HOUSE_ACCOUNTS.chain_clearing, reason };
    return given(order, { act: 'refund_payment', callId }, reply);
  });

  /** Gives it, or puts it before a second operator. */
  async function given(order: Order, gift: Gift, reply: FastifyReply): Promise<object> {
    const proposal = await proposals.proposed(order, gift);
    if (proposal === null) return toldOf(parts, await give(acts, { ...order, agreed: false }, gift));
    reply.code(202);
    return { success: true, proposal: proposalAsJson(proposal) };
  }
}

/** Routes by which a second operator decides on a gift. */
export function proposalRoutes(
  admin: FastifyInstance,
  parts: ActRouteParts & {
    proposals: Proposals;
    /** Refuses whoever may not agree to what this asker asked for. */
    refuseToAgree(request: FastifyRequest, asker: string): Promise<void>;
  },
): void {
  const { acts, proposals, actorOf } = parts;

  admin.get('/proposals', async () => ({ proposals: (await proposals.waiting()).map(proposalAsJson) }));

  admin.post<{ Params: { proposal: string } }>('/proposals/:proposal/approve', async (request) => {
    const actor = actorOf(request);
    const wantedId = readParameters(uuid, request.params.proposal);
    const asker = await proposals.askerOf(wantedId);
    if (asker !== null) await parts.refuseToAgree(request, asker);
    const proposal = await proposals.approve(wantedId, actor);
    const { id: proposalId, accountId, reason, gift } = proposal;
    // Both names stand in the act. The key is the proposal's, so that to agree again is to ask for the same act.
    const order = {
      agreed: true,
      actor: `${proposal.actor} and ${actor}`,
      accountId,
      reason,
      idempotencyKey: actKeyOf(proposalId),
    };
    try {
      return toldOf(parts, await give(acts, order, gift));
    } catch (error) {
      // Refused, such as while a payment is not final: it waits again, to be agreed to later or declined.
      if (error instanceof Problem && error.status < 500) await proposals.reopen(proposalId);
      throw error;
    }
  });
  admin.post<{ Params: { proposal: string } }>('/proposals/:proposal/decline', async (request) => {
    const proposal = await proposals.decline(readParameters(uuid, request.params.proposal), actorOf(request));
    return { success: true, proposal: proposalAsJson(proposal) };
  });
}

/**
 * Where people sign in, two of them must agree: one person may hold a token beside their own name.
 *
 * @throws Problem 409 SECOND_OPERATOR_NEEDED
 */
export async function refuseToAgree(
  { person }: Operator,
  asker: string,
  { provider, people }: { provider: object | null; people: Pick<People, 'isPerson'> },
): Promise<void> {
  if (provider === null) return;
  if (person !== null && (await people.isPerson(asker))) return;
  throw new Problem(
    409,
    'SECOND_OPERATOR_NEEDED',
    'Two operators who signed in at the provider must agree to this: one asks for it, and another agrees. A token counts as neither.',
  );
}

function give(acts: Acts, order: GiftOrder, gift: Gift): Promise<ActDone> {
  switch (gift.act) {
    case 'grant':
      return acts.grant({ ...order, amountMicros: gift.amountMicros });
    case 'refund_order':
      return acts.refundOrder({ ...order, orderId: gift.orderId, amountMicros: gift.amountMicros });
    case 'refund_call':
      return acts.refundCall({ ...order, callId: gift.callId });
    case 'refund_payment':
      return acts.refundPayment({ ...order, callId: gift.callId });
  }
}
