/** How many calls may run at once, how long each may take, and how its service is run. */
import { Problem, unavailable } from '../../http/problem.ts';
import { nameOfWallet } from '../../keys/root-buyer.ts';
import type {
  AnyRunContext,
  ByteStream,
  CatalogLine,
  EventStream,
  Piece,
  Service,
  ServiceStream,
  StreamedContent,
} from '../../service/define.ts';
import type { AskingCall, Sources } from '../../service/sources.ts';
import { type Answer, provenanceOf } from '../../words/answer.ts';
import { ServiceFailure } from '../../words/failure.ts';
import { cleanDeep } from '../../words/outsider-text.ts';
import { contentHeadOf, contentOf } from '../content.ts';
import type { Door } from '../door.ts';
import type { PayerProof } from '../rail.ts';
import type { MadeAnswer, Sale, StreamHead } from '../sale.ts';
import { checkedCost } from './measured-cost.ts';
import { LeftDuringWork } from './outcome.ts';

/** The slots for running calls in this process. */
export interface Places {
  /**
   * Takes a slot.
   *
   * @param payer the name under which the payer's calls are counted
   * @returns a function that gives the slot back
   * @throws Problem 429 when this payer has all the slots it may have, 503 when no slot is free
   */
  enter(payer: string): () => void;
  readonly taken: number;
}

export function createPlaces(bounds: { maxConcurrent: number; maxConcurrentPerPayer: number }): Places {
  const takenBy = new Map<string, number>();
  let taken = 0;
  return {
    enter(payer) {
      const own = takenBy.get(payer) ?? 0;
      if (own >= bounds.maxConcurrentPerPayer) {
        throw new Problem(
          429,
          'TOO_MANY_CONCURRENT_CALLS',
          `At most ${bounds.maxConcurrentPerPayer} calls of one payer run at once. Wait for one to end.`,
          {
            details: { charged: false, retryAfter: 1 },
            headers: { 'retry-after': '1' },
          },
        );
      }
      if (taken >= bounds.maxConcurrent) throw unavailable('BUSY', 'Too many calls are running.', 1_000);
      taken += 1;
      takenBy.set(payer, own + 1);
      return () => {
        taken -= 1;
        const left = (takenBy.get(payer) ?? 1) - 1;
        if (left === 0) takenBy.delete(payer);
        else takenBy.set(payer, left);
      };
    },
    get taken() {
      return taken;
    },
  };
}

/** A prebuilt abort reason. The default reason is an exception, whose stack would be captured for every call. */
const CALL_ENDED = new Error('the call has ended');
/** Its name says that a request was aborted, which no upstream is blamed for. */
const CALLER_LEFT = Object.assign(new Error('the caller has left'), { name: 'AbortError' });

/** The time that a service has. Its signal is created on first use, since most services never ask for it. */
export class Deadline {
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ended: Error | null = null;
  #fail: (error: Error) => void = () => {};

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#ended !== null) this.#controller.abort(this.#ended);
    return this.#controller.signal;
  }

  /** The result of the work, or a failure once the time is over, even when the work ignores its signal. */
  race<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      if (this.#ended === CALLER_LEFT) reject(new LeftDuringWork());
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

  /** Stops the clock until the next `race`. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Aborts whatever the service still does for this call, since nobody reads its result. */
  end(): void {
    this.#endFor(CALL_ENDED);
  }

  /** Ends the work at once, because its caller has left. What waits for it fails with `LeftDuringWork`. */
  abandon(): void {
    this.#fail(new LeftDuringWork());
    this.#endFor(CALLER_LEFT);
  }

  #endFor(reason: Error): void {
    clearTimeout(this.#timer);
    this.#ended ??= reason;
    this.#controller?.abort(this.#ended);
  }
}

/** The longest text in a piece of a streamed answer. */
const MAX_PIECE_CHARACTERS = 100_000;
const JSON_HEADERS: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'private, no-store',
};

export interface RunnerParts {
  sources: Sources;
  catalog(): readonly CatalogLine[];
  /** The capabilities that this service requires or may use, on behalf of this payer. */
  capabilitiesFor(service: Service, proof: PayerProof): Readonly<Record<string, object | undefined>>;
  door: Door;
  maxAnswerBytes: number;
  baseUrl: string;
  version: string;
  nowMs(): number;
}

const EVENTS_HEAD: StreamHead = {
  status: 200,
  headers: { 'content-type': 'text/event-stream', 'cache-control': 'private, no-store, no-transform' },
};

/** A service whose answer is being streamed. */
export interface RunningStream {
  /** The head of the answer, known once there is a first piece. */
  readonly head: StreamHead;
  /** The next piece, as it will be sent. @throws what the service throws; ServiceFailure when its time is over */
  next(): Promise<{ status: 'piece' | 'whole'; bytes: Buffer }>;
  /**
   * Tells the cost of all that came of it so far; undefined where its price is known before.
   *
   * @throws Error when the service says none, or more than was reserved
   */
  cost(): bigint | undefined;
  /** Stops the service, since nobody reads any more of it. */
  stop(): void;
}

/** Runs the services that are sold at a door. */
export class Runner {
  readonly #parts: RunnerParts;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  /**
   * Runs a service within its deadline, and writes its answer as it will be sent. Work that is for nobody once its
   * caller has left is broken off.
   *
   * @throws what the service throws; ServiceFailure at its deadline; LeftDuringWork; Error for an answer that does not
   *   fit its schema
   */
  async run(sale: Sale, callId: string): Promise<MadeAnswer> {
    const { maxAnswerBytes, nowMs } = this.#parts;
    const { service } = sale.quote;
    const startedAtMs = nowMs();
    const deadline = new Deadline();
    const stopListening = abandonIfLeft(sale, () => deadline.abandon());
    try {
      const context = this.#contextOf(sale, callId, deadline);
      const running = this.#parts.sources.inCall(scopeOf(sale, callId), () =>
        service.run(sale.input, context),
      );
      const made = await deadline.race(running, service.timeoutMs);
      const answer =
        service.mediaType === 'application/json' && service.route === null
          ? { headers: JSON_HEADERS, body: this.#jsonOf(service, made, startedAtMs) }
          : contentOf(service, made);
      const costMicros = checkedCost(sale.quote, made.costMicros);
      if (Buffer.byteLength(answer.body) > maxAnswerBytes) throw tooLargeToKeep(service);
      return costMicros === undefined ? answer : { ...answer, costMicros };
    } finally {
      stopListening();
      deadline.end();
    }
  }

  /**
   * Refuses what the service could not answer, while nothing has been paid.
   *
   * @throws what the service throws; ServiceFailure at its deadline
   */
  async beforeSettling(sale: Sale, callId: string): Promise<void> {
    const { beforeSettling, timeoutMs } = sale.quote.service;
    if (beforeSettling === null) return;
    const deadline = new Deadline();
    try {
      const context = this.#contextOf(sale, callId, deadline);
      const asked = this.#parts.sources.inCall(scopeOf(sale, callId), () =>
        beforeSettling(sale.input, context),
      );
      await deadline.race(asked, timeoutMs);
    } finally {
      deadline.end();
    }
  }

  /**
   * Runs a service that streams. Its deadline counts only the time spent waiting for the next piece. Until there is a
   * first piece it is broken off when its caller leaves, as in `run`; from then on its reader decides.
   */
  stream(sale: Sale, stream: ServiceStream, callId: string): RunningStream {
    const { sources, nowMs } = this.#parts;
    const deadline = new Deadline();
    const scope = scopeOf(sale, callId);
    const context = this.#contextOf(sale, callId, deadline);
    const head: StreamHead = { ...EVENTS_HEAD };
    let costMicros: StreamedContent['costMicros'];
    const pieces =
      stream.form === 'events'
        ? this.#eventsOf(sale, stream, context)
        : bytesOf(stream, sale, context, (begun) => {
            costMicros = begun.costMicros;
            Object.assign(head, contentHeadOf(sale.quote.service, begun));
          });
    const stopListening = abandonIfLeft(sale, () => deadline.abandon());
    let leftMs = stream.timeoutMs;
    return {
      head,
      next: async () => {
        const askedAtMs = nowMs();
        const made = await deadline.race(
          sources.inCall(scope, () => pieces.next()),
          Math.max(leftMs, 1),
        );
        stopListening();
        deadline.pause();
        leftMs -= nowMs() - askedAtMs;
        return { status: made.done === true ? 'whole' : 'piece', bytes: made.value };
      },
      cost: () => checkedCost(sale.quote, costMicros?.()),
      stop() {
        stopListening();
        deadline.end();
        void pieces.return(undefined as never).catch(() => {});
      },
    };
  }

  /** The events of a stream, and the last one with the whole answer. */
  async *#eventsOf(
    { quote, input }: Sale,
    stream: EventStream,
    context: AnyRunContext,
  ): AsyncGenerator<Buffer, Buffer> {
    const { service } = quote;
    const startedAtMs = this.#parts.nowMs();
    const pieces = stream.run(input, context);
    try {
      for (;;) {
        const made = await pieces.next();
        if (made.done === true) {
          const body = this.#jsonOf(service, made.value, startedAtMs);
          return Buffer.from(`event: result\ndata: ${body}\n\n`);
        }
        yield eventOf(service, made.value);
      }
    } finally {
      void pieces.return(undefined as never).catch(() => {});
    }
  }

  #jsonOf(service: Service, made: Answer<unknown>, startedAtMs: number): string {
    const { door, nowMs } = this.#parts;
    const fields = service.output.safeParse(made.fields);
    if (!fields.success) throw new Error(`the answer does not fit its own schema: ${fields.error.message}`);
    return JSON.stringify({
      success: true,
      service: service.path,
      ...fields.data,
      ...door.fields({ startedAtMs, nowMs: nowMs() }),
      timestamp: new Date(nowMs()).toISOString(),
      provenance: provenanceOf(made),
    });
  }

  #contextOf({ quote, payment }: Sale, callId: string, deadline: Deadline): AnyRunContext {
    const { sources, catalog, capabilitiesFor, baseUrl, version, nowMs } = this.#parts;
    return {
      upstreams: sources.apis,
      catalog,
      call: {
        callId,
        caller: callerOf(payment),
        orderId: payment.identity === null ? callId : `${payment.accountId} ${payment.identity}`,
        rail: payment.rail,
        payer: payment.payer,
        priceMicros: quote.priceMicros,
        network: payment.network,
      },
      ...capabilitiesFor(quote.service, payment.proof),
      baseUrl,
      version,
      get signal() {
        return deadline.signal;
      },
      nowMs,
    };
  }
}

/** Why an answer is not kept. The house writes its own answers small; how much the API behind a route sends is not for us to say. */
function tooLargeToKeep({ route }: Service): Error {
  const detail = new Error('the answer is larger than may be kept');
  if (route === null) return detail;
  const message = 'The answer of the server behind this route is larger than is kept here.';
  return new ServiceFailure({ status: 502, code: 'UPSTREAM_FAILED', message, cause: detail });
}

/**
 * Listens for what ends the work before its time: the call is withdrawn, or its caller leaves and nobody could ask for the
 * answer again. Nothing lasting may have begun.
 *
 * @returns how to stop listening
 */
function abandonIfLeft({ request, payment, quote }: Sale, abandon: () => void): () => void {
  if (quote.service.effect === 'write') return () => {};
  const stopFollowing = request.follow?.onWithdrawn?.(abandon);
  const stopListening = payment.identity === null ? request.onGone?.(abandon) : undefined;
  return () => {
    stopFollowing?.();
    stopListening?.();
  };
}

/** The bytes of a stream, and at its end those that wait. */
async function* bytesOf(
  stream: ByteStream,
  { input }: Sale,
  context: AnyRunContext,
  begun: (made: StreamedContent) => void,
): AsyncGenerator<Buffer, Buffer> {
  const made = await stream.run(input, context);
  begun(made);
  return yield* made.pieces;
}

/** @throws Error for a piece whose event has an invalid or reserved name */
function eventOf({ path }: Service, { event, data }: Piece): Buffer {
  if (!/^[a-z][a-z-]{0,31}$/.test(event) || event === 'result' || event === 'error')
    throw new Error(`${path} has an event of the name ${event}`);
  // A piece of an answer is text of outsiders as much as the whole is.
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(cleanDeep(data, MAX_PIECE_CHARACTERS))}\n\n`);
}

/**
 * The scope in which upstreams are asked: they recognize a repeated effect when the same call is tried again, and tell
 * callers apart. A wallet and the keys that it bought are one caller at every door, and so are keys that were bought with
 * a key's credit.
 */
function scopeOf({ quote, payment }: Sale, callId: string): AskingCall {
  return { callId, caller: callerOf(payment), isEffect: quote.service.effect === 'write' };
}

function callerOf({ buyer, payer }: Sale['payment']): string {
  return buyer ?? nameOfWallet(payer);
}
