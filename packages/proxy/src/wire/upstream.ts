/**
 * One upstream as a configuration opens it: its connections, how many calls it gets at once, how long they may take, and whether it is
 * left alone for a while. A call ends in exactly one outcome, whatever the upstream does.
 */
import { randomUUID } from 'node:crypto';
import { FairPlaces, NoPlace, type Visitor } from '@farebox/core/service/fair-places';
import type { Pool } from 'undici';
import { Breaker, type BreakerSettings, type Leave } from './breaker.ts';
import { LastEventWatch } from './event-watch.ts';
import { type BodyReading, Exchange } from './exchange.ts';
import {
  checkOwnHeaders,
  type FlatHeaders,
  type ReceivedHeaders,
  singleValue,
  withOwnHeaders,
} from './headers.ts';
import { openLanes } from './lanes.ts';
import {
  type AnswerHead,
  type AnswerRule,
  type FailureReason,
  failure,
  isOutage,
  judgeBody,
  judgeEnd,
  judgeHead,
  type UpstreamFailure,
  type UpstreamOutcome,
  type UpstreamRefusal,
} from './outcome.ts';
import { withCredentials } from './path.ts';

/** The largest body of a refusal that is passed on. */
const MOST_REFUSAL_BYTES = 65_536;
const BUSY_RETRY_MS = 1_000;
const CLOSING_RETRY_MS = 1_000;
/** Longer than any call lasts, which ends its wait itself. */
const LONGEST_WAIT_MS = 2_147_483_647;
/** The longest wait for a connection, whatever the time for a head. */
const MOST_CONNECT_MS = 10_000;

export interface UpstreamSettings {
  /** Address with http or https, without credentials; of its path, `upstreamTarget` takes care. */
  readonly url: string;
  /** Credentials and fixed headers that each call gets, by names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Credentials that each call gets as parameters of the address, not encoded. */
  readonly query: Readonly<Record<string, string>>;
  /** From the beginning of a call to the head of its answer. */
  readonly headersTimeoutMs: number;
  /** Between two pieces of an answer. */
  readonly idleTimeoutMs: number;
  /** From the beginning of a call to the end of its answer, the wait for a place included. */
  readonly wholeTimeoutMs: number;
  /** Calls at the same time. */
  readonly concurrency: number;
  /** Calls that may wait for others to end. */
  readonly mostWaiting: number;
  /** False: each call has a connection of its own, so that what one upstream sends too much can reach nobody else. */
  readonly keepAlive: boolean;
  /** Null: calls are made however often it fails. */
  readonly breaker: BreakerSettings | null;
  nowMs(): number;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query, as `upstreamTarget` makes them. */
  readonly target: string;
  /** Made by `headersForUpstream`. */
  readonly headers: FlatHeaders;
  readonly body: Buffer | null;
  readonly rule: AnswerRule;
  readonly mostAnswerBytes: number;
  /**
   * When it is sent a second time: a `read` that broke before the first byte of an answer, and a `keyed` write, whose upstream does
   * nothing twice for one key, that broke or had no answer in time. What was never sent is always tried again.
   */
  readonly repeat: 'read' | 'keyed' | 'never';
  /** Names the call to the upstream; null: nothing does. */
  readonly idempotencyKey: string | null;
  /** In place of the upstream's. */
  readonly wholeTimeoutMs?: number | undefined;
  /** The caller left. */
  readonly signal?: AbortSignal | undefined;
  /** On whose behalf it is asked; absent: this call is nobody else's. */
  readonly visitor?: Visitor | undefined;
}

/** An answer that has begun. Its place is held until `ended`. */
export interface UpstreamStream {
  readonly kind: 'stream';
  readonly status: number;
  readonly headers: ReceivedHeaders;
  /**
   * The body, each piece as it comes, and no faster than it is read; to be read once. Leaving the loop stops the call.
   *
   * @throws UpstreamBroke at the end of a body that is not whole
   */
  readonly pieces: AsyncIterable<Buffer>;
  /** Settles when the upstream's part is over, though not all may be read yet. Null: it ended whole, and counts as an answer. */
  readonly ended: Promise<UpstreamFailure | null>;
  /** Ends it, and its connection, at once. */
  stop(): void;
}

/** A body ended that is not whole. */
export class UpstreamBroke extends Error {
  readonly failure: UpstreamFailure;
  constructor(failed: UpstreamFailure) {
    super(failed.detail);
    this.failure = failed;
  }
}

export interface UpstreamState {
  /** Whether calls are refused because it keeps failing. */
  readonly isOpen: boolean;
  /** When calls may be made again; null: now. */
  readonly retryAfterMs: number | null;
  readonly calls: number;
  readonly waiting: number;
}

export interface Upstream {
  /** Makes a call, and reads its whole answer. It never rejects. */
  ask(request: UpstreamRequest): Promise<UpstreamOutcome>;
  /**
   * Makes a call whose answer leaves as it comes. A rule over the fields of its body cannot be kept.
   *
   * @throws when the request has such a rule
   */
  stream(request: UpstreamRequest): Promise<UpstreamStream | UpstreamRefusal | UpstreamFailure>;
  readonly state: UpstreamState;
  /**
   * Closes the connections whenever no call runs or waits, from now on: it is no longer sold, and a call that began before still gets its
   * answer. Resolves when the first such moment has come.
   */
  retire(): Promise<void>;
  /** Takes no more calls, and closes the connections when those that run and wait have ended. */
  close(): Promise<void>;
  /** Ends all calls at once. */
  destroy(): Promise<void>;
}

/** A call whose answer has begun. */
interface Begun {
  readonly head: AnswerHead;
  readonly exchange: Exchange;
  readonly judged: 'answer' | 'refusal';
}

/** Opens an upstream. No connection is made before the first call. @throws if its address or headers cannot be used */
export function openUpstream(settings: UpstreamSettings): Upstream {
  return new OpenUpstream(settings);
}

class OpenUpstream implements Upstream {
  readonly #settings: UpstreamSettings;
  #pool: Pool | null = null;
  readonly #places: FairPlaces;
  readonly #breaker: Breaker;
  readonly #running = new Set<RunningCall>();
  #closed: Promise<void> | null = null;
  #isRetired = false;
  readonly #whenIdle: (() => void)[] = [];

  constructor(settings: UpstreamSettings) {
    const url = new URL(settings.url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw new Error('An upstream has http or https.');
    if (`${url.username}${url.password}${url.search}${url.hash}` !== '')
      throw new Error('The address of an upstream has no credentials, query or fragment.');
    checkOwnHeaders(settings.headers);
    this.#settings = settings;
    this.#places = placesOf(settings);
    this.#breaker = new Breaker(settings.breaker, settings.nowMs);
  }

  get state(): UpstreamState {
    const retryAfterMs = this.#breaker.waitMs;
    const { taken, waiting } = this.#places;
    return { isOpen: retryAfterMs !== null, retryAfterMs, calls: taken, waiting };
  }

  async ask(request: UpstreamRequest): Promise<UpstreamOutcome> {
    const { rule, mostAnswerBytes } = request;
    const begun = await this.#begin(request, () => ({ mostBytes: mostAnswerBytes, judge: () => null }));
    if ('kind' in begun) return begun;
    if (begun.judged === 'refusal') return refusalOf(begun);
    const { head, exchange } = begun;
    const body = await exchange.readAll();
    if ('kind' in body) return body;
    const watch = new LastEventWatch(rule.lastEvent ?? '');
    if (rule.lastEvent !== null) watch.see(body);
    const failed = judgeBody(head, body, { bytes: body.length, sawLastEvent: watch.hasSeen }, rule);
    return failed ?? { kind: 'answer', status: head.status, headers: head.headers, body };
  }

  async stream(request: UpstreamRequest): Promise<UpstreamStream | UpstreamRefusal | UpstreamFailure> {
    const { rule, mostAnswerBytes } = request;
    if (rule.has.length + rule.hasNot.length + rule.equals.length > 0)
      throw new Error('The fields of a streamed answer cannot be looked at.');
    const watch = rule.lastEvent === null ? null : new LastEventWatch(rule.lastEvent);
    const begun = await this.#begin(request, (head) => ({
      mostBytes: mostAnswerBytes,
      look: (piece) => watch?.see(piece),
      judge: (bytes) => judgeEnd(head, { bytes, sawLastEvent: watch?.hasSeen === true }, rule),
    }));
    if ('kind' in begun) return begun;
    if (begun.judged === 'refusal') return refusalOf(begun);
    const { head, exchange } = begun;
    return {
      kind: 'stream',
      status: head.status,
      headers: head.headers,
      pieces: piecesOf(exchange),
      ended: exchange.over,
      stop: () => exchange.stop('abandoned', 'stopped by the caller'),
    };
  }

  async retire(): Promise<void> {
    this.#isRetired = true;
    await this.#idle();
    await this.#closePool();
  }

  close(): Promise<void> {
    this.#closed ??= this.#closeWhenIdle();
    return this.#closed;
  }

  async destroy(): Promise<void> {
    this.#closed ??= Promise.resolve();
    for (const call of this.#running) call.stop('closing', 'the upstream was closed by force');
    await this.#pool?.destroy();
  }

  async #closeWhenIdle(): Promise<void> {
    await this.#idle();
    await this.#closePool();
  }

  #idle(): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  async #closePool(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    if (pool !== null && !pool.destroyed) await pool.close();
  }

  #lanes(): Pool {
    const { url, headersTimeoutMs, concurrency } = this.#settings;
    this.#pool ??= openLanes(new URL(url).origin, concurrency, Math.min(headersTimeoutMs, MOST_CONNECT_MS));
    return this.#pool;
  }

  /** Gets a place, sends the request, and has the head of the answer judged. What fails is told to the breaker. */
  async #begin(
    request: UpstreamRequest,
    reading: (head: AnswerHead) => BodyReading,
  ): Promise<Begun | UpstreamFailure> {
    const unsent = (reason: FailureReason, detail: string, retryAfterMs: number | null = null) =>
      failure(reason, detail, { wasSent: false, retryAfterMs });
    if (this.#closed !== null) return unsent('closing', 'the upstream is being closed', CLOSING_RETRY_MS);
    const { waitMs } = this.#breaker;
    if (waitMs !== null) return unsent('down', 'it has been failing', waitMs);
    const call = new RunningCall(request.wholeTimeoutMs ?? this.#settings.wholeTimeoutMs, request.signal);
    this.#running.add(call);
    call.onEnd(() => {
      this.#running.delete(call);
      if (this.#running.size > 0) return;
      for (const idle of this.#whenIdle.splice(0)) idle();
      if (this.#isRetired) void this.#closePool();
    });
    const stopped = await call.place(this.#places, request.visitor);
    if (stopped !== null) {
      call.end();
      return stopped === 'full' ? unsent('busy', 'all places are taken', BUSY_RETRY_MS) : stopped;
    }
    const leave = this.#breaker.ask();
    if (typeof leave !== 'number') return this.#send(request, reading, call, leave);
    call.end();
    return unsent('down', 'it has been failing', leave);
  }

  /** Sends the request, a second time if that does no harm, until there is the head of an answer or none. */
  async #send(
    request: UpstreamRequest,
    reading: (head: AnswerHead) => BodyReading,
    call: RunningCall,
    leave: Leave,
  ): Promise<Begun | UpstreamFailure> {
    let wasSent = false;
    for (let attempt = 1; ; attempt++) {
      let judged: 'answer' | 'refusal' = 'answer';
      const exchange = new Exchange(request.method, this.#settings, (head) => {
        const found = judgeHead(head, request.rule, this.#settings.nowMs());
        if (typeof found !== 'string') return found;
        judged = found;
        if (found === 'refusal') return { mostBytes: MOST_REFUSAL_BYTES, judge: () => null };
        return tooLong(head, request.mostAnswerBytes) ?? reading(head);
      });
      call.onStop((reason, detail) => exchange.stop(reason, detail));
      this.#dispatch(request, exchange);
      const ended = await exchange.begun;
      wasSent ||= exchange.wasSent;
      // The first attempt may have done what the second one could not even ask for.
      const begun = 'kind' in ended ? { ...ended, wasSent } : ended;
      if (
        'kind' in begun &&
        attempt === 1 &&
        isRepeatable(request, begun, exchange) &&
        call.stopped === null
      ) {
        // So that connections which ended with this one are known to have ended.
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      const refused = 'kind' in begun ? begun : null;
      if (refused === null) leave.began();
      void exchange.over.then((failed) => {
        tell(leave, refused ?? failed);
        call.end();
      });
      return 'kind' in begun ? begun : { head: begun, exchange, judged };
    }
  }

  #dispatch(request: UpstreamRequest, exchange: Exchange): void {
    const { headers, query, keepAlive } = this.#settings;
    this.#lanes().dispatch(
      {
        method: request.method,
        path: withCredentials(request.target, query),
        headers: withOwnHeaders(request.headers, headers, request.idempotencyKey),
        body: request.body,
        // Null leaves it to HTTP.
        ...(keepAlive ? {} : { reset: true }),
      },
      exchange,
    );
  }
}

/**
 * One payer holds three quarters of the places at most, so that nobody else has to wait for it alone; nobody is sent more calls than the
 * upstream is to get. A call waits as long as its own time lasts.
 */
function placesOf({ concurrency, mostWaiting }: UpstreamSettings): FairPlaces {
  const most = (of: number) => Math.ceil((of * 3) / 4);
  return new FairPlaces(concurrency, {
    share: most(concurrency),
    lent: 0,
    patienceMs: null,
    mostWaiting,
    mostWaitingOfOne: most(mostWaiting),
  });
}

/** Why an answer is not read at all: it says by itself that it is too large. */
function tooLong({ status, headers, framing }: AnswerHead, mostBytes: number): UpstreamFailure | null {
  const bytes = framing === 'length' ? Number(headers['content-length']) : 0;
  if (bytes <= mostBytes) return null;
  return failure('too_large', `${bytes} bytes, above ${mostBytes}`, { upstreamStatus: status });
}

/** Tells a breaker how a call ended. */
function tell(leave: Leave, failed: UpstreamFailure | null): void {
  if (failed !== null && isOutage(failed)) leave.failed();
  else if (failed?.reason === 'abandoned' || failed?.reason === 'closing') leave.saidNothing();
  else leave.worked();
}

/** The time and the caller of one call, and its place. */
class RunningCall {
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #atEnd: (() => void)[] = [];
  #stop: ((reason: FailureReason, detail: string) => void) | null = null;
  /** Why it was stopped from our side. */
  stopped: UpstreamFailure | null = null;

  constructor(wholeTimeoutMs: number, signal: AbortSignal | undefined) {
    this.#timer = setTimeout(
      () => this.stop('timed_out', `not whole within ${wholeTimeoutMs} ms`),
      wholeTimeoutMs,
    );
    this.#signal = signal;
    signal?.addEventListener('abort', this.#left);
    if (signal?.aborted === true) this.#left();
  }

  readonly #left = () => this.stop('abandoned', 'the caller left');

  stop(reason: FailureReason, detail: string): void {
    if (this.stopped !== null) return;
    this.stopped = failure(reason, detail, { wasSent: false });
    this.#stop?.(reason, detail);
  }

  /** Says what ends it now; it is called at once if it was stopped already. */
  onStop(stop: (reason: FailureReason, detail: string) => void): void {
    this.#stop = stop;
    if (this.stopped !== null) stop(this.stopped.reason, this.stopped.detail);
  }

  onEnd(done: () => void): void {
    this.#atEnd.push(done);
  }

  /** Waits for a place. @returns null with a place; else why there is none */
  async place(
    places: FairPlaces,
    visitor: Visitor = { caller: randomUUID(), callId: '' },
  ): Promise<null | 'full' | UpstreamFailure> {
    if (this.stopped !== null) return this.stopped;
    const waiting = new AbortController();
    this.#stop = () => waiting.abort();
    try {
      const { signal } = waiting;
      this.onEnd(await places.enter(visitor, { timeoutMs: LONGEST_WAIT_MS, signal }));
      return this.stopped;
    } catch (error) {
      return error instanceof NoPlace ? 'full' : this.stopped;
    }
  }

  /** Gives back everything, once. */
  end(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#left);
    for (const done of this.#atEnd.splice(0)) done();
  }
}

function isRepeatable(request: UpstreamRequest, failed: UpstreamFailure, exchange: Exchange): boolean {
  if (exchange.hasFirstByte) return false;
  if (failed.reason === 'unreachable') return true;
  if (failed.reason === 'broken') return request.repeat !== 'never';
  return failed.reason === 'timed_out' && failed.wasSent && request.repeat === 'keyed';
}

/** Reads a refusal for the caller. */
async function refusalOf({ head, exchange }: Begun): Promise<UpstreamRefusal | UpstreamFailure> {
  const { status, headers } = head;
  const body = await exchange.readAll();
  const isTooLarge = 'kind' in body && body.reason === 'too_large';
  if ('kind' in body && !isTooLarge) return body;
  const contentType = singleValue(headers['content-type']);
  return { kind: 'refusal', status, contentType, body: 'kind' in body ? null : body };
}

/** The pieces of an answer, as they come. */
async function* piecesOf(exchange: Exchange): AsyncGenerator<Buffer, void, void> {
  try {
    for (;;) {
      const piece = await exchange.read();
      if (piece === null) return;
      if ('kind' in piece) throw new UpstreamBroke(piece);
      yield piece;
    }
  } finally {
    exchange.stop('abandoned', 'its reader left');
  }
}
