/** Routes by which an owner manages the webhooks of its account. None of it costs anything. */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { readJsonBody } from '../http/json-body.ts';
import { readParameters } from '../http/parameters.ts';
import { invalidRequest, Problem } from '../http/problem.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import { isMailAddress } from '../mail/mail-text.ts';
import { refusedAddress } from './address-guard.ts';
import type { EventLog } from './event-log.ts';
import { eventRoutes } from './event-routes.ts';
import { EVENT_TYPES } from './events.ts';
import type { Delivery, Outbox } from './outbox.ts';
import { type OwnerParts, type Owners, ownersOf, type WebhookRequest } from './owners.ts';
import { CURSOR } from './page.ts';
import {
  FORMER_SECRETS,
  OVERLAP_MS,
  WEBHOOKS_PER_ACCOUNT,
  type Webhook,
  type WebhookChange,
  type Webhooks,
} from './webhooks.ts';

export const WEBHOOK_REQUESTS_PER_MINUTE = 120;
const HOUR_MS = 3_600_000;
const MOST_OVERLAP_HOURS = 168;
const MOST_LISTED = 100;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const lowBalance = z
  .union([z.string(), z.number()])
  .transform((value, context) => {
    try {
      const micros = usdToMicros(String(value));
      if (micros > 0n && micros <= usdToMicros('1000000')) return micros;
    } catch {
      // said below
    }
    context.addIssue({ code: 'custom', message: 'must be an amount in USD above 0 with at most six places' });
    return z.NEVER;
  })
  .nullable();
const email = z.string().refine(isMailAddress, 'must be one address');

const LOW_FITS = 'must be an amount if events hold balance.low, and be left out if not';

const registration = z
  .strictObject({
    url: z.string(),
    events: z.array(z.enum(EVENT_TYPES)).min(1).max(EVENT_TYPES.length),
    lowBalanceUsd: lowBalance.default(null),
    email: email.nullable().default(null),
  })
  .superRefine(({ events, lowBalanceUsd }, context) => {
    if (events.includes('balance.low') !== (lowBalanceUsd !== null))
      context.addIssue({
        code: 'custom',
        path: ['lowBalanceUsd'],
        message: LOW_FITS,
      });
  });
const rotation = z.strictObject({ overlapHours: z.int().min(0).max(MOST_OVERLAP_HOURS).optional() });
const change = z
  .strictObject({
    enabled: z.boolean().optional(),
    url: z.string().optional(),
    events: z.array(z.enum(EVENT_TYPES)).min(1).max(EVENT_TYPES.length).optional(),
    lowBalanceUsd: lowBalance.optional(),
    email: email.nullable().optional(),
  })
  .refine(
    (asked) => Object.keys(asked).length > 0,
    'name at least one of enabled, url, events, lowBalanceUsd, email',
  );
const recovery = z.strictObject({ since: z.iso.datetime({ offset: true }) });
const listing = z.object({
  before: z.string().regex(CURSOR, 'must be the `next` of a page before').optional(),
  limit: z.coerce.number().int().min(1).max(MOST_LISTED).default(50),
});

export interface WebhookRouteParts extends OwnerParts {
  webhooks: Webhooks;
  outbox: Pick<Outbox, 'test' | 'list' | 'resend' | 'recover'>;
  log: Pick<EventLog, 'list'>;
  /** Whether webhooks may lead to addresses that are not on the open internet. */
  allowPrivate: boolean;
}

export function webhookRoutes(app: FastifyInstance, parts: WebhookRouteParts): void {
  const owners = ownersOf(parts);
  registrationRoutes(app, parts, owners);
  changeRoutes(app, parts, owners);
  deliveryRoutes(app, parts, owners);
  eventRoutes(app, parts, owners);
}

const SECRET_NOTE =
  'Save the secret now: it is shown once and cannot be retrieved again. Messages are signed with it by Standard Webhooks.';

function registrationRoutes(
  app: FastifyInstance,
  parts: WebhookRouteParts,
  { ownKey, ownWebhook }: Owners,
): void {
  const { webhooks, uses, addressOf } = parts;

  app.post('/api/webhooks', async (request, reply) => {
    const key = await ownKey(request, reply);
    const { url, events, lowBalanceUsd, email } = readJsonBody(request, registration);
    const href = allowedAddress(url, parts.allowPrivate);
    if (key.kind === 'trial')
      throw new Problem(
        403,
        'TRIAL_KEY',
        'Webhooks are for keys with bought credit. Buy credit to register one.',
      );
    const made = await webhooks.create(key.accountId, {
      url: href,
      events: [...new Set(events)],
      lowBelowMicros: lowBalanceUsd,
      email,
    });
    if (made === null)
      throw new Problem(
        409,
        'TOO_MANY_WEBHOOKS',
        `An account and the keys that were bought with its credit have at most ${WEBHOOKS_PER_ACCOUNT} webhooks together. Delete one first.`,
      );
    // From here its owner is known to call. Noted again: what was noted before there was a webhook may be forgotten by now.
    uses.note({ accountId: key.accountId, keyId: key.id, address: addressOf(request), answered: null });
    reply.code(201);
    return { success: true, ...shown(made.webhook), secret: made.secret, note: SECRET_NOTE };
  });

  app.get('/api/webhooks', async (request, reply) => {
    const { accountId } = await ownKey(request, reply);
    return { success: true, webhooks: (await webhooks.ofAccount(accountId)).map(shown) };
  });

  app.delete('/api/webhooks/:webhookId', async (request: WebhookRequest, reply) => {
    const { accountId, id } = await ownWebhook(request, reply);
    await webhooks.remove(accountId, id);
    return { success: true, webhookId: id, status: 'deleted' };
  });
}

function changeRoutes(app: FastifyInstance, parts: WebhookRouteParts, { ownWebhook }: Owners): void {
  const { webhooks } = parts;

  app.patch('/api/webhooks/:webhookId', async (request: WebhookRequest, reply) => {
    const webhook = await ownWebhook(request, reply);
    const asked = readJsonBody(request, change);
    const { enabled } = asked;
    if (enabled && webhook.disabledBecause === 'secret_lost')
      throw new Problem(409, 'WEBHOOK_SECRET_LOST', 'Its secret cannot be read any more. Rotate it first.');
    const changed = changeOf(webhook, asked, parts.allowPrivate);
    if (changed !== null) await webhooks.change(webhook.accountId, webhook.id, changed);
    if (enabled !== undefined) await webhooks.switchTo(webhook.accountId, webhook.id, enabled);
    const now = await webhooks.find(webhook.accountId, webhook.id);
    return { success: true, ...shown(now ?? webhook) };
  });

  app.post('/api/webhooks/:webhookId/rotate', async (request: WebhookRequest, reply) => {
    const webhook = await ownWebhook(request, reply);
    const { overlapHours } = readJsonBody(request, rotation);
    const overlapMs = overlapHours === undefined ? OVERLAP_MS : overlapHours * HOUR_MS;
    const secret = await webhooks.rotate(webhook.accountId, webhook.id, overlapMs);
    if (secret !== null && typeof secret !== 'string') throw tooManySecrets(secret.freeAt);
    const now = await webhooks.find(webhook.accountId, webhook.id);
    if (secret === null || now === null)
      throw new Problem(404, 'WEBHOOK_NOT_FOUND', 'Your account has no such webhook.');
    return { success: true, ...shown(now), secret, note: SECRET_NOTE };
  });
}

function tooManySecrets(freeAt: Date): Problem {
  const until = freeAt.toISOString();
  return new Problem(
    409,
    'TOO_MANY_OLD_SECRETS',
    `${FORMER_SECRETS} old secrets sign beside the current one, the first of them until ${until}. Rotate again after that, or with overlapHours: 0, which ends the current one at once.`,
    { details: { field: 'overlapHours', nextRotationAt: until } },
  );
}

/** Reads what is to be changed; null: nothing but whether it is on. @throws Problem 400 with the field that does not fit */
function changeOf(
  webhook: Webhook,
  { url, events, lowBalanceUsd, email }: z.infer<typeof change>,
  allowPrivate: boolean,
): WebhookChange | null {
  const changed: WebhookChange = {};
  if (url !== undefined) changed.url = allowedAddress(url, allowPrivate);
  if (events !== undefined) changed.events = [...new Set(events)];
  if (email !== undefined) changed.email = email;
  const hearsOfLow = (events ?? webhook.events).includes('balance.low');
  if (lowBalanceUsd !== undefined) changed.lowBelowMicros = lowBalanceUsd;
  else if (!hearsOfLow && webhook.lowBelowMicros !== null) changed.lowBelowMicros = null;
  const low = changed.lowBelowMicros === undefined ? webhook.lowBelowMicros : changed.lowBelowMicros;
  if (hearsOfLow !== (low !== null))
    throw invalidRequest(`lowBalanceUsd: ${LOW_FITS}`, [{ field: 'lowBalanceUsd', message: LOW_FITS }]);
  return Object.keys(changed).length === 0 ? null : changed;
}

/** @throws Problem 400 when webhooks may not lead there */
function allowedAddress(url: string, allowPrivate: boolean): string {
  const refused = refusedAddress(url, allowPrivate);
  if (refused !== null) throw invalidRequest(`url: ${refused}`, [{ field: 'url', message: refused }]);
  return new URL(url).href;
}

function deliveryRoutes(app: FastifyInstance, { outbox }: WebhookRouteParts, { ownWebhook }: Owners): void {
  const off = () =>
    new Problem(409, 'WEBHOOK_OFF', 'This webhook is switched off. Switch it on with enabled: true first.');

  app.post('/api/webhooks/:webhookId/test', async (request: WebhookRequest, reply) => {
    const webhook = await ownWebhook(request, reply);
    if (webhook.disabledAt !== null) throw off();
    const id = await outbox.test(webhook.id);
    if (id === null)
      throw new Problem(
        409,
        'TOO_MANY_WAITING',
        'Too many messages wait to be sent to this webhook, or were written for it in a day. Repair its receiver first.',
      );
    reply.code(202);
    return { success: true, webhookId: webhook.id, deliveryId: id };
  });

  app.get('/api/webhooks/:webhookId/deliveries', async (request: WebhookRequest, reply) => {
    const { id } = await ownWebhook(request, reply);
    const { before, limit } = readParameters(listing, request.query);
    const { rows, next } = await outbox.list(id, before ?? null, limit);
    return { success: true, webhookId: id, deliveries: rows.map(shownDelivery), next };
  });

  app.post('/api/webhooks/:webhookId/recover', async (request: WebhookRequest, reply) => {
    const webhook = await ownWebhook(request, reply);
    const { since } = readJsonBody(request, recovery);
    const recovered = await outbox.recover(webhook.id, Date.parse(since));
    if (recovered === null) throw off();
    reply.code(202);
    return { success: true, webhookId: webhook.id, ...recovered };
  });

  app.post(
    '/api/webhooks/:webhookId/deliveries/:deliveryId/resend',
    async (request: WebhookRequest, reply) => {
      const webhook = await ownWebhook(request, reply);
      const { deliveryId = '' } = request.params;
      if (webhook.disabledAt !== null) throw off();
      if (!ID.test(deliveryId) || !(await outbox.resend(webhook.id, deliveryId)))
        throw new Problem(
          404,
          'DELIVERY_NOT_FOUND',
          'There is no such delivery, it is already waiting to be sent, or too many others wait.',
        );
      reply.code(202);
      return { success: true, webhookId: webhook.id, deliveryId };
    },
  );
}

function shown(webhook: Webhook) {
  const iso = (date: Date | null) => date?.toISOString() ?? null;
  const { lowBelowMicros } = webhook;
  return {
    webhookId: webhook.id,
    url: webhook.url,
    events: webhook.events,
    lowBalanceUsd: lowBelowMicros === null ? null : microsToUsd(lowBelowMicros),
    email: webhook.email,
    enabled: webhook.disabledAt === null,
    disabledReason: webhook.disabledBecause,
    disabledAt: iso(webhook.disabledAt),
    failingSince: iso(webhook.failingSince),
    oldSecretUntil: iso(webhook.beforeUntil),
    oldSecretsUntil: webhook.formerUntil.map((until) => until.toISOString()),
    missedEvents: webhook.missed,
    createdAt: webhook.createdAt.toISOString(),
  };
}

function shownDelivery(delivery: Delivery) {
  const { deliveredAt, givenUpAt, nextAt } = delivery;
  return {
    deliveryId: delivery.id,
    eventId: delivery.eventId,
    type: delivery.type,
    status: deliveredAt !== null ? 'delivered' : givenUpAt !== null ? 'given_up' : 'waiting',
    attempts: delivery.attempts,
    lastResult: delivery.lastResult,
    createdAt: delivery.createdAt.toISOString(),
    deliveredAt: deliveredAt?.toISOString() ?? null,
    nextAttemptAt: nextAt?.toISOString() ?? null,
    message: JSON.parse(delivery.body),
  };
}
