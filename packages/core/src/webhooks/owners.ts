/** Finds who asks: the key of a request, and the webhook of its account that the request names. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../http/problem.ts';
import { admit, type RateLimit } from '../http/rate-limit.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import type { KeyRecord, Keys } from '../keys/keys.ts';
import type { KeyUses } from './key-use.ts';
import type { Webhook, Webhooks } from './webhooks.ts';

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface OwnerParts {
  webhooks: Pick<Webhooks, 'find'>;
  uses: Pick<KeyUses, 'note'>;
  keys: Keys;
  limit: RateLimit;
  addressOf(request: FastifyRequest): string;
}

export type WebhookRequest = FastifyRequest<{ Params: { webhookId: string; deliveryId?: string } }>;

/** Finds who asks. Each refuses with 401 without a key that is known here, or 404 for a webhook of somebody else. */
export interface Owners {
  ownKey(request: FastifyRequest, reply: FastifyReply): Promise<KeyRecord>;
  ownWebhook(request: WebhookRequest, reply: FastifyReply): Promise<Webhook>;
}

export function ownersOf(parts: OwnerParts): Owners {
  const { keys, webhooks } = parts;

  async function ownKey(request: FastifyRequest, reply: FastifyReply): Promise<KeyRecord> {
    admit(parts.limit, parts.addressOf(request), reply);
    const presented = presentedApiKey(request.headers);
    if (presented === null)
      throw new Problem(401, 'API_KEY_MISSING', 'Send your key in X-API-KEY, or as Authorization: Bearer.');
    const known = await keys.find(presented);
    const record = known === null ? null : await keys.record(known.id);
    if (record === null) throw new Problem(401, 'API_KEY_INVALID', 'This API key is not known here.');
    // A frozen key reads and changes: its owner is to learn of the dispute that froze it.
    if (record.status === 'revoked')
      throw new Problem(401, 'API_KEY_REVOKED', 'This API key was revoked or rotated.');
    parts.uses.note({
      accountId: record.accountId,
      keyId: record.id,
      address: parts.addressOf(request),
      answered: null,
    });
    return record;
  }

  async function ownWebhook(request: WebhookRequest, reply: FastifyReply): Promise<Webhook> {
    const { accountId } = await ownKey(request, reply);
    const { webhookId } = request.params;
    const found = ID.test(webhookId) ? await webhooks.find(accountId, webhookId) : null;
    if (found === null) throw new Problem(404, 'WEBHOOK_NOT_FOUND', 'Your account has no such webhook.');
    return found;
  }

  return { ownKey, ownWebhook };
}
