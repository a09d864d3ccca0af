import type { FastifyInstance } from 'fastify';
import { Problem } from '../../http/problem.ts';
import { type CardProvider, NotSigned } from '../provider.ts';
import type { Inbox } from './inbox.ts';

/** `POST /api/m2m/credits/webhook`: where the provider sends its messages. */
export function cardWebhookRoute(
  app: FastifyInstance,
  parts: { inbox: Pick<Inbox, 'receive'>; provider: Pick<CardProvider, 'readWebhook'> },
): void {
  app.post('/api/m2m/credits/webhook', async (request, reply) => {
    const { body } = request;
    const signature = request.headers['stripe-signature'];
    reply.header('cache-control', 'no-store');
    try {
      const event = parts.provider.readWebhook(
        body instanceof Buffer ? body : Buffer.alloc(0),
        typeof signature === 'string' ? signature : undefined,
      );
      const isNew = await parts.inbox.receive(event);
      return { received: true, new: isNew };
    } catch (error) {
      if (!(error instanceof NotSigned)) throw error;
      throw new Problem(400, 'NOT_SIGNED', 'This message is not signed by the card provider, or is too old.');
    }
  });
}
