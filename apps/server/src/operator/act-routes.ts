import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { idempotencyKeyOf } from '../http/idempotency-key.ts';
import { readJsonBody } from '../http/json-body.ts';
import { readParameters } from '../http/parameters.ts';
import { Problem } from '../http/problem.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import { isNameable, NOT_NAMEABLE } from '../words/name.ts';
import type { Act, ActDone, Order } from './act.ts';
import { ACTS_A_PAGE } from './act-log.ts';
import type { Acts } from './acts.ts';
import { accountOf, id } from './address-fields.ts';

/** Of an `Idempotency-Key`, in characters. */
const KEY_LENGTH = { least: 8, most: 200 };
const MOST_GRANTED_MICROS = usdToMicros('10000');
const MOST_REFUNDED_MICROS = usdToMicros('1000000');
const CENT_MICROS = 10_000n;

const reason = z
  .string()
  .trim()
  .min(3, 'must say why, in 3 to 500 characters')
  .max(500, 'must say why, in 3 to 500 characters')
  .refine(isNameable, NOT_NAMEABLE);
const amountUpTo = (mostMicros: bigint) =>
  z.union([z.string(), z.number()]).transform((value, context) => {
    try {
      const micros = usdToMicros(String(value));
      if (micros > 0n && micros <= mostMicros) return micros;
    } catch {
      // said below
    }
    context.addIssue({
      code: 'custom',
      message: `must be an amount in USD above 0, at most ${microsToUsd(mostMicros, 2)}, with at most six places`,
    });
    return z.NEVER;
  });
const uuid = z.uuid().transform((value) => value.toLowerCase());
const plainAct = z.strictObject({ reason });
const grantAct = z.strictObject({ reason, amountUsd: amountUpTo(MOST_GRANTED_MICROS) });
const callRefund = z.strictObject({ reason, callId: uuid });
const orderRefund = z.strictObject({
  reason,
  orderId: uuid,
  amountUsd: amountUpTo(MOST_REFUNDED_MICROS)
    .refine((micros) => micros % CENT_MICROS === 0n, 'must be a whole number of cents')
    .nullable(),
});
const keyMail = z.strictObject({ reason, orderId: uuid });
const actsQuery = z.object({ account: id.optional(), after: id.optional() });

/** `/admin/api/acts`, and the acts on an account below `/admin/api/accounts/:account`. */
export function actRoutes(
  admin: FastifyInstance,
  parts: {
    acts: Acts;
    logger: Pick<FastifyBaseLogger, 'info'>;
    /** Who sent a request that was let in. */
    actorOf(request: FastifyRequest): string;
  },
): void {
  const { acts, logger, actorOf } = parts;

  admin.get('/acts', async (request) => {
    const { account, after } = readParameters(actsQuery, request.query);
    const listed = await acts.list({ accountId: account ?? null, after: after ?? null });
    const last = listed.length === ACTS_A_PAGE ? listed.at(-1) : undefined;
    return { acts: listed.map(actAsJson), after: last === undefined ? null : String(last.number) };
  });

  admin.post('/accounts/:account/freeze', async (request) => {
    return did(await acts.freeze({ ...orderOf(request), ...readJsonBody(request, plainAct) }));
  });
  admin.post('/accounts/:account/unfreeze', async (request) => {
    return did(await acts.unfreeze({ ...orderOf(request), ...readJsonBody(request, plainAct) }));
  });
  admin.post('/accounts/:account/grant', async (request) => {
    const { amountUsd: amountMicros, ...body } = readJsonBody(request, grantAct);
    return did(await acts.grant({ ...orderOf(request), ...body, amountMicros }));
  });
  admin.post('/accounts/:account/refund-call', async (request) => {
    return did(await acts.refundCall({ ...orderOf(request), ...readJsonBody(request, callRefund) }));
  });
  admin.post('/accounts/:account/refund-order', async (request) => {
    const { amountUsd: amountMicros, ...body } = readJsonBody(request, orderRefund);
    return did(await acts.refundOrder({ ...orderOf(request), ...body, amountMicros }));
  });
  admin.post('/accounts/:account/mail-key', async (request) => {
    return did(await acts.mailKey({ ...orderOf(request), ...readJsonBody(request, keyMail) }));
  });
  admin.post<{ Params: { act: string } }>('/acts/:act/go-on', async (request) => {
    const actor = actorOf(request);
    const done = await acts.goOn(readParameters(uuid, request.params.act));
    logger.info({ actor, actId: done.act.id }, 'an act was gone on with');
    return { success: true, repeated: done.repeated, act: actAsJson(done.act) };
  });

  function orderOf(request: FastifyRequest): Omit<Order, 'reason'> {
    const sent = idempotencyKeyOf(request.headers, KEY_LENGTH);
    if (sent === null || sent === 'unfit') {
      throw new Problem(
        400,
        'IDEMPOTENCY_KEY_REQUIRED',
        'Send an Idempotency-Key of 8 to 200 printable characters: the same key again is the same action.',
      );
    }
    return { actor: actorOf(request), accountId: accountOf(request), idempotencyKey: sent.key };
  }

  function did(done: ActDone): Record<string, unknown> {
    const { id: actId, actor, act, accountId } = done.act;
    if (!done.repeated) logger.info({ actId, actor, act, accountId: String(accountId) }, 'operator acted');
    return { success: true, repeated: done.repeated, act: actAsJson(done.act) };
  }
}

/** An act as the page gets it. */
export function actAsJson(act: Act): Record<string, unknown> {
  return {
    actId: act.id,
    at: act.at.toISOString(),
    actor: act.actor,
    act: act.act,
    state: act.state,
    accountId: String(act.accountId),
    keyId: act.keyId === null ? null : String(act.keyId),
    orderId: act.orderId,
    callId: act.callId,
    amountUsd: act.amountMicros === null ? null : microsToUsd(act.amountMicros),
    reason: act.reason,
    transferId: act.transferId,
    outcome: act.outcome === null ? null : { ...act.outcome, at: act.outcome.at.toISOString() },
  };
}
