import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { readParameters } from '../http/parameters.ts';
import { invalidRequest } from '../http/problem.ts';
import type { AccountEvent, EventLog, LogPart } from './event-log.ts';
import type { Owners } from './owners.ts';
import { CURSOR } from './page.ts';

const MOST_LISTED = 100;
const cursor = z.string().regex(CURSOR, 'must be the `next` of a page before');
const query = z.object({
  before: cursor.optional(),
  after: cursor.optional(),
  since: z.iso.datetime({ offset: true }).optional(),
  limit: z.coerce.number().int().min(1).max(MOST_LISTED).default(50),
});

/** `GET /api/events`: what happened to the account of a key, in the last thirty days. */
export function eventRoutes(
  app: FastifyInstance,
  { log }: { log: Pick<EventLog, 'list'> },
  { ownKey }: Pick<Owners, 'ownKey'>,
): void {
  app.get('/api/events', async (request, reply) => {
    const { accountId } = await ownKey(request, reply);
    const { limit, ...asked } = readParameters(query, request.query);
    const { rows, next } = await log.list(accountId, partOf(asked), limit);
    return { success: true, events: rows.map(shownEvent), next };
  });
}

/** @throws Problem 400 when more than one place is named */
function partOf({ before, after, since }: Omit<z.infer<typeof query>, 'limit'>): LogPart {
  const named = Object.entries({ before, after, since }).filter(([, value]) => value !== undefined);
  if (named.length > 1) {
    const message = 'name one of before, after and since';
    throw invalidRequest(
      `${named[1]?.[0]}: ${message}`,
      named.slice(1).map(([field]) => ({ field, message })),
    );
  }
  if (after !== undefined) return { order: 'oldest', after };
  if (since !== undefined) return { order: 'oldest', sinceMs: Date.parse(since) };
  return { order: 'newest', before: before ?? null };
}

function shownEvent({ id, type, data, createdAt, webhookId }: AccountEvent) {
  return { eventId: id, type, createdAt: createdAt.toISOString(), data, webhookId };
}
