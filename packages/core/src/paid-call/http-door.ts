/** The paid call over HTTP: which requests may buy, how long they may take, and how they are answered. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { inFormAsked } from '../http/asked-form.ts';
import { CallerPresence, connectionOf, whenSent } from '../http/caller-presence.ts';
import { openStream } from '../http/event-stream.ts';
import { Problem } from '../http/problem.ts';

import { sendFinished } from '../http/server.ts';
import type { Service } from '../service/define.ts';
import type { SentRequest } from '../service/route.ts';
import { dryRunOf } from './inside/dry-run.ts';
import type { PaidAnswer, PaidRequest } from './sale.ts';

/** The longest that a caller waits for an answer here. Proxies commonly give up after 30 s. */
const LONGEST_WAIT_MS = 25_000;

/** Names a service that may take longer than a caller over HTTP waits; null: there is none. */
export function unfitForHttp(services: readonly Service[]): string | null {
  const slow = services.find(({ timeoutMs }) => timeoutMs > LONGEST_WAIT_MS);
  return slow === undefined
    ? null
    : `${slow.path}: timeoutMs must be at most ${LONGEST_WAIT_MS} to be sold over HTTP`;
}

/** @throws Error when a service may take longer than a caller over HTTP waits */
export function assertFitsHttp(services: readonly Service[]): void {
  const unfit = unfitForHttp(services);
  if (unfit !== null) throw new Error(unfit);
}

/**
 * Answers a request with the paid call, or with a free call of the same shape.
 *
 * @param asked.method the method that the request stands for; its own method unless given
 * @param asked.rawBody the body that the request stands for; its own body unless given
 * @param asked.sent set at the own address of a service that has one
 * @param asked.isGone set for a service that is sold no more
 */
export async function answerOverHttp(
  call: { handle(request: PaidRequest): Promise<PaidAnswer> },
  request: FastifyRequest,
  reply: FastifyReply,
  asked: {
    service: Service;
    address: string;
    method?: string;
    rawBody?: Buffer | undefined;
    sent?: SentRequest;
    isGone?: boolean;
  },
): Promise<void> {
  const { method = request.method, sent: atRoute } = asked;
  const sent = request.body instanceof Buffer ? request.body : undefined;
  const caller = new CallerPresence(connectionOf(request.raw.socket));
  const answer = await call
    .handle({
      service: asked.service,
      headers: request.headers,
      rawBody: 'rawBody' in asked ? asked.rawBody : sent,
      address: asked.address,
      requestId: request.id,
      // At a route's own address the query is the seller's.
      dryRun: atRoute === undefined ? dryRunOf(request.query) : 'no',
      ...(atRoute === undefined ? {} : { sent: atRoute }),
      ...(asked.isGone === true ? { isGone: true } : {}),
      gone: caller.gone,
      onGone: caller.onGone,
      ...(isHandedOutAgain(asked, method) ? { delivery: { request: null, cancelled() {} } } : {}),
      openStream: (head, bounds) => openStream(reply, head, bounds),
      assertMayBuy() {
        if (atRoute === undefined && method !== 'POST') throw notPost();
      },
    })
    .finally(() => caller.end());
  if (!answer.left) sendFinished(reply, inFormAsked(answer, request, asked.service.path));
  if (answer.arrived !== undefined) whenSent(reply.raw, answer.arrived);
}

/**
 * Whether the answer to a call that nothing names is not lost with its connection. What a service has done stays done, and
 * clients and proxies repeat a GET by themselves. A stream at a route's own address is kept by nobody.
 */
function isHandedOutAgain(
  { service, sent }: { service: Service; sent?: SentRequest },
  method: string,
): boolean {
  if (sent === undefined) return service.effect === 'write';
  return service.stream?.form !== 'bytes' && (service.effect === 'write' || method === 'GET');
}

function notPost(): Problem {
  return new Problem(405, 'METHOD_NOT_ALLOWED', 'A paid call is a POST.', {
    details: {
      hint: 'Send the same request with POST and a JSON body.',
      method: 'POST',
      charged: false,
    },
    headers: { allow: 'POST' },
  });
}
