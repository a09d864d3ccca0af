/**
 * A call that costs nothing. It is not bounded by anybody's money, so everything else bounds it: requests per address,
 * calls at once, and one request to the sources for the same question in a while, however many ask.
 */
import { LRUCache } from 'lru-cache';
import { databaseAway, Problem, problemOf, unavailable } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders, withRate } from '../http/rate-limit.ts';
import { contentOf } from '../paid-call/content.ts';
import type { PaidCallParts } from '../paid-call/paid-call.ts';
import { fingerprintOf, readInput } from '../paid-call/request-body.ts';
import type { MadeAnswer, PaidAnswer, PaidRequest } from '../paid-call/sale.ts';
import type { RunContext, Service } from '../service/define.ts';
import { type Answer, provenanceOf } from '../words/answer.ts';
import { ServiceFailure } from '../words/failure.ts';

/** How many free calls one address may make in a minute. */
export const FREE_CALLS_PER_MINUTE = 30;
/** How often a minute all free calls together may ask the sources in this process: the sources are there for those who pay. */
export const FREE_RUNS_PER_MINUTE = 120;
/** Free calls that run at once. */
const MAX_RUNNING = 8;
/** How long an answer is shared among callers. */
const SHARED_MS = 15_000;
const MAX_SHARED = 500;

export interface FreeCallReport {
  service: string;
  status: number;
  durationMs: number;
  requestId: string;
  /** The fault inside, for the log; never shown to the caller. */
  error?: unknown;
}

export interface FreeCallParts
  extends Pick<PaidCallParts, 'sources' | 'availability' | 'catalog' | 'baseUrl' | 'version' | 'nowMs'> {
  addressLimit: RateLimit;
  /** The limit for all callers together. */
  runLimit: RateLimit;
  report(report: FreeCallReport): void;
}

export interface FreeCall {
  handle(request: PaidRequest): Promise<PaidAnswer>;
}

/** The part of a call's facts that says who pays: nobody. */
const UNPAID = { rail: 'credits', payer: 'nobody', caller: '', priceMicros: 0n, network: null } as const;

/** Puts the free call together. */
export function createFreeCall(parts: FreeCallParts): FreeCall {
  const shared = new LRUCache<string, { answer: Promise<MadeAnswer>; atMs: number }>({ max: MAX_SHARED });
  let running = 0;

  async function run(service: Service, input: unknown, requestId: string): Promise<MadeAnswer> {
    if (running >= MAX_RUNNING) throw unavailable('BUSY', 'Too many free calls are running.', 1_000);
    const { allowed, resetSeconds } = parts.runLimit.take('everybody');
    if (!allowed) throw unavailable('BUSY', 'Too much is asked for free now.', resetSeconds * 1_000);
    running += 1;
    const { signal, race } = deadlineOf(service.timeoutMs);
    const context: RunContext = {
      upstreams: parts.sources.apis,
      catalog: parts.catalog,
      call: { callId: requestId, orderId: requestId, ...UNPAID },
      baseUrl: parts.baseUrl,
      version: parts.version,
      signal,
      nowMs: parts.nowMs,
    };
    try {
      return madeOf(service, await race(service.run(input, context)), parts.nowMs());
    } finally {
      running -= 1;
    }
  }

  /** The answer that other callers just got to the same question, or a new one. */
  function answerTo(service: Service, input: unknown, requestId: string): Promise<MadeAnswer> {
    const question = fingerprintOf(service, input).toString('hex');
    const known = shared.get(question);
    if (known !== undefined && parts.nowMs() - known.atMs < SHARED_MS) return known.answer;
    const made = { answer: run(service, input, requestId), atMs: parts.nowMs() };
    shared.set(question, made);
    made.answer.catch(() => {
      if (shared.get(question) === made) shared.delete(question);
    });
    return made.answer;
  }

  return {
    async handle(request) {
      const { service, requestId } = request;
      const startedAtMs = parts.nowMs();
      const verdict = parts.addressLimit.take(request.address);
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
      };
      const rate = rateHeaders(verdict);
      let answer: PaidAnswer;
      let error: unknown;
      try {
        if (!verdict.allowed) throw rateExceeded(verdict);
        const { available, message, reason, retryAfterMs } = parts.availability(service);
        if (!available) {
          throw unavailable('SERVICE_UNAVAILABLE', message ?? 'Not to be had now.', retryAfterMs, { reason });
        }
        const made = await answerTo(service, readInput(service, request.rawBody), requestId);
        answer = { status: 200, headers: { ...headers, ...made.headers, ...rate }, body: made.body };
      } catch (thrown) {
        const problem = asProblem(thrown);
        error = thrown === problem ? problem.cause : thrown;
        answer = {
          status: problem.status,
          headers: { ...headers, ...withRate(problem.headers, rate) },
          body: JSON.stringify({ success: false, ...problem.body(requestId) }),
        };
      }
      parts.report({
        service: service.path,
        status: answer.status,
        durationMs: parts.nowMs() - startedAtMs,
        requestId,
        ...(error === undefined ? {} : { error }),
      });
      return answer;
    },
  };
}

function madeOf(service: Service, made: Answer<Record<string, unknown>>, nowMs: number): MadeAnswer {
  if (service.mediaType !== 'application/json') return contentOf(service, made);
  const body = JSON.stringify({
    success: true,
    service: service.path,
    ...made.fields,
    timestamp: new Date(nowMs).toISOString(),
    provenance: provenanceOf(made),
  });
  return { headers: {}, body };
}

/** The time limit of a call: a signal, and a race that ends with it even if the work ignores the signal. */
function deadlineOf(timeoutMs: number) {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    async race<T>(work: Promise<T>): Promise<T> {
      const { promise: over, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        const message = `No answer within ${timeoutMs / 1_000} s.`;
        reject(new ServiceFailure({ status: 503, code: 'DEADLINE_EXCEEDED', message, retryAfterMs: 5_000 }));
      }, timeoutMs);
      try {
        return await Promise.race([work, over]);
      } finally {
        clearTimeout(timer);
        controller.abort();
      }
    },
  };
}

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof ServiceFailure) return problemOf(error);
  return (
    databaseAway(error) ??
    new Problem(500, 'SERVICE_ERROR', 'The service failed.', { details: { charged: false } })
  );
}
