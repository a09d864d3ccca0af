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

/** Length of an `Idempotency-Key`, in characters. */
const KEY_LENGTH = { least: 8, most: 200 };

export const reason = z
  .string()
  .trim()
  .min(3, 'must say why, in 3 to 500 characters')
  .max(500, 'must say why, in 3 to 500 characters')
  .refine(isNameable, NOT_NAMEABLE)
  .refine(
    (text) => !/[^\s@]@[^\s@]+\.[^\s@]/.test(text),
    'must name nobody by an e-mail address: it can never be removed',
  );
export const amountUpTo = (mostMicros: bigint) =>
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
export const uuid = z.uuid().transform((value) => value.toLowerCase());
export const plainAct = z.strictObject({ reason });
const keyMail = z.strictObject({ reason, orderId: uuid });
const actsQuery = z.object({ account: id.optional(), after: id.optional() });

export interface ActRouteParts {
  acts: Acts;
  logger: Pick<FastifyBaseLogger, 'info'>;
  /** The operator who sent a request that was let in. */
  actorOf(request: FastifyRequest): string;
}

/** `/admin/api/acts`, and the acts on an account below `/admin/api/accounts/:account`. */
export function actRoutes(admin: FastifyInstance, parts: ActRouteParts): void {
  const { acts, logger, actorOf } = parts;
  const orderOf = (request: FastifyRequest) => accountOrderOf(parts, request);
  const did = (done: ActDone) => toldOf(parts, done);

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
  admin.post('/accounts/:account/lift-bounds', async (request) => {
    return did(await acts.liftBounds({ ...orderOf(request), ...readJsonBody(request, plainAct) }));
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
}

/** Reads who asks for an act on the account that the address names, and by which key. @throws Problem 400 */
export function accountOrderOf(
  parts: Pick<ActRouteParts, 'actorOf'>,
  request: FastifyRequest,
): Omit<Order, 'reason'> {
  return { ...keyedBy(parts, request), accountId: accountOf(request) };
}

/** Reads who asks for an act, and by which key. @throws Problem 400 without a key */
export function keyedBy(
  { actorOf }: Pick<ActRouteParts, 'actorOf'>,
  request: FastifyRequest,
): Pick<Order, 'actor' | 'idempotencyKey'> {
  const sent = idempotencyKeyOf(request.headers, KEY_LENGTH);
  if (sent === null || sent === 'unfit') {
    throw new Problem(
      400,
      'IDEMPOTENCY_KEY_REQUIRED',
      'Send an Idempotency-Key of 8 to 200 printable characters: the same key again is the same action.',
    );
  }
  return { actor: actorOf(request), idempotencyKey: sent.key };
}

/** Shows the page an act, and logs it once. */
export function toldOf({ logger }: Pick<ActRouteParts, 'logger'>, done: ActDone): Record<string, unknown> {
  const { id: actId, actor, act, accountId, number, digest } = done.act;
  // The log leaves the database: an act that is rewritten there later, with all after it, no longer has this digest.
  if (!done.repeated)
    logger.info(
      { actId, actor, act, accountId: String(accountId), number: String(number), digest },
      'operator acted',
    );
  return { success: true, repeated: done.repeated, act: actAsJson(done.act) };
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
    number: String(act.number),
    sha256: act.digest,
    outcome: act.outcome === null ? null : { ...act.outcome, at: act.outcome.at.toISOString() },
  };
}
