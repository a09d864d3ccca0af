/** How many calls may run at once, for how long one may, and how its service is run. */
import { Problem, unavailable } from '../http/problem.ts';
import type {
  Capabilities,
  CatalogLine,
  Piece,
  RunContext,
  Service,
  ServiceStream,
} from '../services/define.ts';
import { inCall, type UpstreamName, type Upstreams } from '../upstreams/index.ts';
import { type Answer, provenanceOf } from '../words/answer.ts';
import { ServiceFailure } from '../words/failure.ts';
import { contentOf } from './content.ts';
import type { Door } from './door.ts';
import type { PayerProof } from './rail.ts';
import type { MadeAnswer, Sale } from './sale.ts';

/** The places of calls that run, in this process. */
export interface Places {
  /**
   * Holds a place.
   *
   * @param payer by the name that its calls are counted under
   * @returns gives the place back
   * @throws Problem 429 when this payer has as many as it may, 503 when nobody may have another
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

/** A reason of its own, made once: the default one is an exception with a stack for every call that ends well. */
const CALL_ENDED = new Error('the call has ended');

/** The time a service has. Its signal is made when somebody asks for it: most services do not. */
export class Deadline {
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

  /** Stops the clock until the next race. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Whatever the service still does for this call has no reader any more. */
  end(): void {
    clearTimeout(this.#timer);
    this.#ended = true;
    this.#controller?.abort(CALL_ENDED);
  }
}

const JSON_HEADERS: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'private, no-store',
};

export interface RunnerParts {
  upstreams: Upstreams;
  catalog(): readonly CatalogLine[];
  /** What the house can do for this payer beside looking things up, of that which the service requires. */
  capabilitiesFor(service: Service, proof: PayerProof): Partial<Capabilities>;
  door: Door;
  maxAnswerBytes: number;
  baseUrl: string;
  version: string;
  nowMs(): number;
}

/** A service that is answering in pieces. */
export interface RunningStream {
  /** The next event, as it will be sent. @throws what the service throws, and a ServiceFailure when its time is over */
  next(): Promise<{ status: 'piece' | 'whole'; event: Buffer }>;
  /** Nobody wants more of it. */
  stop(): void;
}

/** Runs the services that are sold at a door. */
export class Runner {
  readonly #parts: RunnerParts;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  /**
   * Runs a service within its deadline and writes its answer as it will be sent.
   *
   * @throws what the service throws, a ServiceFailure at its deadline, and Error for an answer that is none
   */
  async run(sale: Sale, callId: string): Promise<MadeAnswer> {
    const { maxAnswerBytes, nowMs } = this.#parts;
    const { service } = sale.quote;
    const startedAtMs = nowMs();
    const deadline = new Deadline();
    try {
      const running = runInCall(service, sale.input, this.#contextOf(sale, callId, deadline));
      const made = await deadline.race(running, service.timeoutMs);
      const answer =
        service.mediaType === 'application/json'
          ? { headers: JSON_HEADERS, body: this.#jsonOf(service, made, startedAtMs) }
          : contentOf(service, made);
      if (Buffer.byteLength(answer.body) > maxAnswerBytes)
        throw new Error('the answer is larger than may be kept');
      return answer;
    } finally {
      deadline.end();
    }
  }

  /** Runs a service that answers in pieces. Its time is what is spent waiting for the next one. */
  stream(sale: Sale, stream: ServiceStream, callId: string): RunningStream {
    const { nowMs } = this.#parts;
    const { service } = sale.quote;
    const startedAtMs = nowMs();
    const deadline = new Deadline();
    const scope = { callId, isEffect: service.effect === 'write' };
    const pieces = stream.run(sale.input, this.#contextOf(sale, callId, deadline));
    let leftMs = stream.timeoutMs;
    return {
      next: async () => {
        const askedAtMs = nowMs();
        const made = await deadline.race(
          inCall(scope, () => pieces.next()),
          Math.max(leftMs, 1),
        );
        deadline.pause();
        leftMs -= nowMs() - askedAtMs;
        if (!made.done) return { status: 'piece', event: eventOf(service, made.value) };
        const body = this.#jsonOf(service, made.value, startedAtMs);
        return { status: 'whole', event: Buffer.from(`event: result\ndata: ${body}\n\n`) };
      },
      stop() {
        deadline.end();
        void pieces.return(undefined as never).catch(() => {});
      },
    };
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

  #contextOf({ quote, payment }: Sale, callId: string, deadline: Deadline): RunContext<UpstreamName> {
    const { upstreams, catalog, capabilitiesFor, baseUrl, version, nowMs } = this.#parts;
    return {
      upstreams,
      catalog,
      call: {
        callId,
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

/** @throws Error for a piece that is none */
function eventOf({ path }: Service, { event, data }: Piece): Buffer {
  if (!/^[a-z][a-z-]{0,31}$/.test(event) || event === 'result' || event === 'error')
    throw new Error(`${path} has an event of the name ${event}`);
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Runs a service so that what it asks its upstreams to do is known again when the same call is tried again. */
function runInCall(service: Service, input: unknown, context: RunContext<UpstreamName>) {
  const scope = { callId: context.call.callId, isEffect: service.effect === 'write' };
  return inCall(scope, () => service.run(input, context));
}
