/**
 * How a call is sold. One function takes a request from "who pays?" to "here is the answer and the receipt":
 *
 *   no credential ─► 402 (or 503 when not for sale)
 *   credential ─► read by its rail ─► body checked ─► price reserved and payment claimed, in one commit
 *     ─► the service runs, within its deadline ─► price taken and answer kept, in one commit ─► 2xx with receipt
 *
 * Whatever fails on the way gives the price back: an answer that is not 2xx costs nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseLost, invalidRequest, Problem, unavailable } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import { QueueFull } from '../ledger/group-commit.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import { provenanceOf } from '../services/answer.ts';
import type { CatalogLine, RunContext, Service } from '../services/define.ts';
import { ServiceFailure } from '../services/failure.ts';
import type { Availability } from '../services/registry.ts';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';
import type { BeginOutcome, CallStore, StoredAnswer } from './calls.ts';
import { type Challenge, makeChallenge } from './challenge.ts';
import { type Headers, type Payment, PaymentRefused, type Quote, type Rail } from './rail.ts';
import { fingerprintOf, readInput } from './request-body.ts';

/** After its deadline a call may still be writing its end; only then does the reconciler take it. */
const RECONCILE_GRACE_MS = 15_000;
const FIRST_POLL_MS = 15;
const LAST_POLL_MS = 250;

export interface PaidRequest {
  service: Service;
  method: string;
  headers: Headers;
  rawBody: Buffer | undefined;
  /** The caller's address, as `callerAddress` tells it. */
  address: string;
  requestId: string;
  /** True once nobody is there to read the answer. */
  gone(): boolean;
}

export interface PaidAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** What became of a request, for metrics and the log. */
export type CallOutcome =
  | 'captured'
  | 'replayed'
  | 'unpaid'
  | 'refused'
  | 'invalid'
  | 'no_answer'
  | 'unavailable'
  | 'limited'
  | 'conflict'
  | 'failed'
  | 'abandoned';

export interface CallReport {
  service: string;
  rail: Payment['rail'] | 'none';
  outcome: CallOutcome;
  status: number;
  durationMs: number;
  priceMicros: bigint;
  requestId: string;
  callId: string | null;
  /** What went wrong inside, for the log; never shown to the caller. */
  error?: unknown;
}

export interface PaidCallParts {
  services: readonly Service[];
  rails: readonly Rail[];
  calls: CallStore;
  upstreams: Upstreams;
  availability(service: Service): Availability;
  catalog(): readonly CatalogLine[];
  addressLimit: RateLimit;
  payerLimit: RateLimit;
  maxConcurrentPerPayer: number;
  maxConcurrent: number;
  maxAnswerBytes: number;
  baseUrl: string;
  version: string;
  nowMs(): number;
  report(report: CallReport): void;
  /** Told of a call that may have been captured without its answer being delivered. */
  undelivered(call: OpenedCall & { retrievable: boolean }): void;
}

/** What is needed to end a call. */
interface OpenedCall {
  id: string;
  accountId: bigint;
  service: string;
  priceMicros: bigint;
  revenue: Payment['revenue'];
}

export interface PaidCall {
  handle(request: PaidRequest): Promise<PaidAnswer>;
  /** How many calls are running now. */
  readonly running: number;
}

/** Puts the paid call together. Challenges are made here, once for each service. */
export function createPaidCall(parts: PaidCallParts): PaidCall {
  const quotes = new Map<string, { quote: Quote; challenge: Challenge }>();
  for (const service of parts.services) {
    const quote: Quote = {
      service,
      priceMicros: usdToMicros(service.priceUsd),
      resourceUrl: `${parts.baseUrl}/x402/${service.path}`,
    };
    const challenge = makeChallenge(quote, parts.rails, {
      baseUrl: parts.baseUrl,
      servicesAvailable: () => parts.services.length,
    });
    quotes.set(service.path, { quote, challenge });
  }
  const runningBy = new Map<string, number>();
  let running = 0;

  function sold(service: Service) {
    const found = quotes.get(service.path);
    if (found === undefined) throw new Error(`${service.path} is not in the registry`);
    return found;
  }

  function notForSale(availability: Availability): Problem {
    return unavailable(
      'SERVICE_UNAVAILABLE',
      availability.message ?? 'Not for sale now.',
      availability.retryAfterMs,
      {
        reason: availability.reason,
      },
    );
  }

  /** Holds a place among the running calls; the answer gives it back. */
  function enter(payment: Payment): () => void {
    const own = runningBy.get(payment.limitBy) ?? 0;
    if (own >= parts.maxConcurrentPerPayer) {
      throw new Problem(
        429,
        'TOO_MANY_CONCURRENT_CALLS',
        `At most ${parts.maxConcurrentPerPayer} calls of one payer run at once. Wait for one to end.`,
        {
          details: { charged: false, retryAfter: 1 },
          headers: { 'retry-after': '1' },
        },
      );
    }
    if (running >= parts.maxConcurrent) throw unavailable('BUSY', 'Too many calls are running.', 1_000);
    running += 1;
    runningBy.set(payment.limitBy, own + 1);
    return () => {
      running -= 1;
      const left = (runningBy.get(payment.limitBy) ?? 1) - 1;
      if (left === 0) runningBy.delete(payment.limitBy);
      else runningBy.set(payment.limitBy, left);
    };
  }

  async function handle(request: PaidRequest): Promise<PaidAnswer> {
    const { service } = request;
    const { quote, challenge } = sold(service);
    const startedAtMs = parts.nowMs();
    const report: CallReport = {
      service: service.path,
      rail: 'none',
      outcome: 'failed',
      status: 500,
      durationMs: 0,
      priceMicros: quote.priceMicros,
      requestId: request.requestId,
      callId: null,
    };
    const addressVerdict = parts.addressLimit.take(request.address);
    let rate = rateHeaders(addressVerdict);
    try {
      if (!addressVerdict.allowed) throw rateExceeded(addressVerdict);
      const rail = parts.rails.find((candidate) => candidate.recognizes(request.headers));
      const availability = parts.availability(service);
      if (rail === undefined) {
        if (!availability.available) throw notForSale(availability);
        report.outcome = 'unpaid';
        report.status = 402;
        return {
          status: 402,
          headers: { ...challenge.headers, ...rate },
          body: challenge.body(request.requestId),
        };
      }
      report.rail = rail.name;
      if (request.method !== 'POST') {
        throw new Problem(405, 'METHOD_NOT_ALLOWED', 'A paid call is a POST.', {
          details: {
            hint: 'Send the same credential with POST and a JSON body.',
            method: 'POST',
            charged: false,
          },
          headers: { allow: 'POST' },
        });
      }
      const idempotencyKey = readIdempotencyKey(request.headers);
      const payment = await rail.read(request.headers, quote, idempotencyKey);
      const payerVerdict = parts.payerLimit.take(payment.limitBy);
      rate = rateHeaders(payerVerdict);
      if (!payerVerdict.allowed) throw rateExceeded(payerVerdict);
      const input = readInput(service, request.rawBody);
      const answer = await sell(request, quote, payment, input, availability, report);
      report.status = answer.status;
      return { ...answer, headers: { ...answer.headers, ...rate } };
    } catch (error) {
      return refusal(error, request, challenge, rate, report);
    } finally {
      report.durationMs = parts.nowMs() - startedAtMs;
      parts.report(report);
    }
  }

  /** From a checked request to its answer. */
  async function sell(
    request: PaidRequest,
    quote: Quote,
    payment: Payment,
    input: unknown,
    availability: Availability,
    report: CallReport,
  ): Promise<PaidAnswer> {
    const { service } = request;
    const fingerprint = payment.identity === null ? null : fingerprintOf(service, input);
    if (!availability.available) {
      // What was bought before is still delivered; nothing new is sold.
      const { accountId, keyId, identity } = payment;
      const earlier =
        identity === null || fingerprint === null
          ? null
          : await parts.calls.look({ accountId, keyId, identity }, fingerprint);
      if (earlier === null) throw notForSale(availability);
      if (earlier.status !== 'answered') throw reservationRefused(earlier, quote, report);
      return replay(payment, earlier.callId, report);
    }

    const leave = enter(payment);
    try {
      const call = {
        id: newTransferId(parts.nowMs()),
        accountId: payment.accountId,
        service: service.path,
        priceMicros: quote.priceMicros,
        revenue: payment.revenue,
      };
      const begun = await begin(call, payment, service, fingerprint);
      if (begun.status === 'answered') return await replay(payment, begun.callId, report);
      if (begun.status !== 'authorized') throw reservationRefused(begun, quote, report);
      report.callId = call.id;

      let body: string;
      try {
        body = await run(request, quote, payment, input, call.id);
      } catch (error) {
        await release(call, error instanceof ServiceFailure ? error.code : 'FAILED');
        throw error;
      }
      if (payment.identity === null && request.gone()) {
        // Nobody reads this answer and nobody could ask for it again.
        await release(call, 'CLIENT_GONE');
        report.outcome = 'abandoned';
        return { status: 499, headers: {}, body: '' };
      }
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'private, no-store',
      };
      const captured = await capture(call, payment.identity === null ? null : { status: 200, headers, body });
      report.outcome = 'captured';
      const receipt = payment.receipt({
        callId: call.id,
        priceMicros: quote.priceMicros,
        availableMicros: captured.availableMicros,
      });
      return { status: 200, headers: { ...headers, ...receipt, 'x-call-id': call.id }, body };
    } finally {
      leave();
    }
  }

  /** Reserves and claims; waits while the same request runs elsewhere with the same payment. */
  async function begin(
    call: OpenedCall,
    payment: Payment,
    service: Service,
    fingerprint: Buffer | null,
  ): Promise<BeginOutcome> {
    const untilMs = parts.nowMs() + service.timeoutMs + RECONCILE_GRACE_MS;
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LAST_POLL_MS)) {
      const begun = await parts.calls
        .begin({
          ...call,
          keyId: payment.keyId,
          rail: payment.rail,
          identity: payment.identity,
          fingerprint,
          ttlMs: service.timeoutMs + RECONCILE_GRACE_MS,
        })
        .catch((error: unknown) => {
          if (error instanceof QueueFull) throw error;
          // It may have been reserved all the same. Give it back now if we can; the reconciler will if we cannot.
          void release(call, 'BEGIN_UNKNOWN');
          throw unavailable('LEDGER_UNAVAILABLE', 'The ledger does not answer.', 2_000, {}, error);
        });
      if (begun.status !== 'running' || parts.nowMs() >= untilMs) return begun;
      await sleep(pollMs);
    }
  }

  /** Runs the service within its deadline and writes its answer as it will be sent. */
  async function run(
    request: PaidRequest,
    quote: Quote,
    payment: Payment,
    input: unknown,
    callId: string,
  ): Promise<string> {
    const { service } = request;
    const deadline = new Deadline();
    const context: RunContext<UpstreamName> = {
      upstreams: parts.upstreams,
      catalog: parts.catalog,
      call: {
        callId,
        rail: payment.rail,
        payer: payment.payer,
        priceMicros: quote.priceMicros,
        network: payment.network,
      },
      baseUrl: parts.baseUrl,
      version: parts.version,
      get signal() {
        return deadline.signal;
      },
      nowMs: parts.nowMs,
    };
    try {
      const made = await deadline.race(service.run(input, context), service.timeoutMs);
      const fields = service.output.safeParse(made.fields);
      if (!fields.success) throw new Error(`the answer does not fit its own schema: ${fields.error.message}`);
      const body = JSON.stringify({
        success: true,
        service: service.path,
        ...fields.data,
        timestamp: new Date(parts.nowMs()).toISOString(),
        provenance: provenanceOf(made),
      });
      if (Buffer.byteLength(body) > parts.maxAnswerBytes)
        throw new Error('the answer is larger than may be kept');
      return body;
    } finally {
      deadline.end();
    }
  }

  /** Takes the price. An answer leaves the house only after this. */
  async function capture(
    call: OpenedCall,
    answer: StoredAnswer | null,
  ): Promise<{ availableMicros: bigint }> {
    let finished: Awaited<ReturnType<CallStore['finish']>>;
    try {
      finished = await parts.calls.finish({ ...call, capture: true, outcome: 'answered', answer });
    } catch (error) {
      // It may have been taken. Whoever can ask again gets the answer then; for the others it is given back. If it was
      // not taken, the payment becomes free to buy again.
      parts.undelivered({ ...call, retrievable: answer !== null });
      throw unavailable(
        'OUTCOME_UNKNOWN',
        answer === null
          ? 'The payment could not be completed. If it was taken it will be given back.'
          : 'The payment could not be completed. Send the same request again with the same Idempotency-Key.',
        2_000,
        { charged: null },
        error,
      );
    }
    if (finished.status === 'not_open') {
      throw unavailable('TOOK_TOO_LONG', 'The call took so long that its reservation was released.', 1_000);
    }
    return finished;
  }

  async function release(call: OpenedCall, outcome: string): Promise<void> {
    // If this fails the reconciler does it: the reservation has an end of its own.
    await parts.calls.finish({ ...call, capture: false, outcome, answer: null }).catch(() => {});
  }

  async function replay(payment: Payment, callId: string, report: CallReport): Promise<PaidAnswer> {
    const stored = await parts.calls.answerOf(payment.accountId, callId);
    if (stored === null) {
      report.outcome = 'conflict';
      throw new Problem(
        409,
        'ANSWER_EXPIRED',
        'This payment was answered, and its answer is not kept any more.',
        {
          details: { hint: 'Use a new Idempotency-Key.', callId, charged: false },
        },
      );
    }
    report.outcome = 'replayed';
    report.callId = callId;
    return {
      status: stored.status,
      headers: {
        ...stored.headers,
        ...payment.receipt({ callId, priceMicros: 0n, availableMicros: null }),
        'idempotent-replayed': 'true',
        'x-call-id': callId,
      },
      body: stored.body,
    };
  }

  function reservationRefused(begun: BeginOutcome, quote: Quote, report: CallReport): Error {
    const requiredUsd = microsToUsd(quote.priceMicros, 4);
    const trial = `take a trial key: GET ${parts.baseUrl}/api/m2m/credits/trial`;
    switch (begun.status) {
      case 'insufficient':
        return new PaymentRefused(
          'INSUFFICIENT_CREDITS',
          `This key has ${microsToUsd(begun.availableMicros, 4)} USD available; the call costs ${requiredUsd} USD.`,
          'Add credits to the key, or wait for running calls to release theirs.',
          { balanceUsd: microsToUsd(begun.availableMicros, 4), requiredUsd },
        );
      case 'key_expired':
        return new PaymentRefused(
          'API_KEY_EXPIRED',
          'This API key has expired.',
          `Buy credits, or ${trial}.`,
        );
      case 'key_revoked':
        return new PaymentRefused(
          'API_KEY_REVOKED',
          'This API key was revoked or rotated.',
          'Use the key that replaced it.',
        );
      case 'key_frozen':
        return new PaymentRefused('API_KEY_FROZEN', 'This API key is frozen.', 'Ask the operator why.');
      case 'above_call_cap':
        return new PaymentRefused(
          'SPEND_CAP_PER_CALL',
          `The call costs ${requiredUsd} USD, more than this key's cap per call.`,
          'Raise perCallUsd with PATCH /api/keys/me.',
          { requiredUsd },
        );
      case 'above_day_cap':
        return new PaymentRefused(
          'SPEND_CAP_PER_DAY',
          "The call would go above this key's cap for today (UTC).",
          'Raise perDayUsd with PATCH /api/keys/me, or wait for tomorrow.',
          { requiredUsd },
        );
      case 'other_request':
        report.outcome = 'conflict';
        return new Problem(409, 'IDEMPOTENCY_KEY_REUSED', 'This payment bought something else.', {
          details: { hint: 'Use a new Idempotency-Key for a new request.', charged: false },
        });
      default:
        report.outcome = 'conflict';
        return unavailable(
          'STILL_RUNNING',
          'The same request is still running. Ask again with the same key.',
          2_000,
        );
    }
  }

  /** Turns whatever was thrown into an answer. Nothing was charged. */
  function refusal(
    error: unknown,
    request: PaidRequest,
    challenge: Challenge,
    rate: Record<string, string>,
    report: CallReport,
  ): PaidAnswer {
    if (error instanceof PaymentRefused) {
      report.outcome = 'refused';
      report.status = 402;
      const remaining = error.details.balanceUsd;
      return {
        status: 402,
        headers: {
          ...challenge.headers,
          ...rate,
          ...(typeof remaining === 'string' ? { 'x-credits-remaining': remaining } : {}),
        },
        body: challenge.body(request.requestId, error),
      };
    }
    const problem = asProblem(error, report);
    report.status = problem.status;
    return {
      status: problem.status,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        ...rate,
        ...problem.headers,
      },
      body: JSON.stringify(problem.body(request.requestId)),
    };
  }

  return {
    handle,
    get running() {
      return running;
    },
  };
}

/** A reason of its own, made once: the default one is an exception with a stack for every call that ends well. */
const CALL_ENDED = new Error('the call has ended');

/** The time a service has. Its signal is made when somebody asks for it: most services do not. */
class Deadline {
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#ended) this.#controller.abort(CALL_ENDED);
    return this.#controller.signal;
  }

  /** The work's result, or a failure once the time is over, whether the work heeds its signal or not. */
  race<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#timer = setTimeout(() => {
        reject(
          new ServiceFailure({
            status: 503,
            code: 'DEADLINE_EXCEEDED',
            message: `No answer within ${timeoutMs / 1_000} s.`,
            retryAfterMs: 5_000,
          }),
        );
        this.end();
      }, timeoutMs);
      work.then(resolve, reject);
    });
  }

  /** Whatever the service still does for this call has no reader any more. */
  end(): void {
    clearTimeout(this.#timer);
    this.#ended = true;
    this.#controller?.abort(CALL_ENDED);
  }
}

function asProblem(error: unknown, report: CallReport): Problem {
  if (error instanceof Problem) {
    report.error = error.cause;
    if (report.outcome === 'failed') {
      if (error.status === 400 || error.status === 405) report.outcome = 'invalid';
      else if (error.status === 429) report.outcome = 'limited';
      else if (error.status === 503) report.outcome = 'unavailable';
    }
    return error;
  }
  if (error instanceof ServiceFailure) {
    report.error = error.cause;
    const fields = error.field === undefined ? [] : [{ field: error.field, message: error.message }];
    const details = { ...(fields.length > 0 ? { fields } : {}), charged: false };
    if (error.status === 404 || error.status === 422) report.outcome = 'no_answer';
    else if (error.status === 400) report.outcome = 'invalid';
    else if (error.status === 503) report.outcome = 'unavailable';
    if (error.status === 503)
      return unavailable(error.code, error.message, error.retryAfterMs ?? 5_000, details);
    return new Problem(error.status, error.code, error.message, { details, cause: error });
  }
  if (error instanceof QueueFull) return unavailable('BUSY', 'The ledger is busy.', 1_000);
  report.error = error;
  const lost = databaseLost(error);
  if (lost !== null) {
    report.outcome = 'unavailable';
    return lost;
  }
  return new Problem(500, 'SERVICE_ERROR', 'The service failed. Nothing was charged.', {
    details: { charged: false },
  });
}

function readIdempotencyKey(headers: Headers): string | null {
  const value = headers['idempotency-key'];
  if (value === undefined) return null;
  if (typeof value !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(value)) {
    throw invalidRequest('Idempotency-Key must be 1 to 255 printable characters without spaces.', [
      { field: 'Idempotency-Key', message: '1 to 255 printable ASCII characters without spaces' },
    ]);
  }
  return value;
}
