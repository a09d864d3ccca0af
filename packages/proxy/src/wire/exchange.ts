/**
 * One request on the wire, and what comes back: its head once, then its body at the pace of whoever reads it. Everything in it is
 * bounded in time and in size, and the end is whole only if the upstream framed it so.
 */
import type { Dispatcher } from 'undici';
import type { ReceivedHeaders } from './headers.ts';
import type { Rider } from './lanes.ts';
import {
  type AnswerHead,
  type FailureReason,
  type Framing,
  failure,
  type UpstreamFailure,
} from './outcome.ts';

/** Bytes that wait for a reader; with more, nothing is taken from the connection until half of them are read. */
const MOST_WAITING_BYTES = 131_072;
/** The body of what is no answer is read so far, so that its connection can be used again. */
const MOST_DROPPED_BYTES = 65_536;
/** Interim heads (1xx) before the real one. */
const MOST_INTERIM_HEADS = 16;

export interface ExchangeTimes {
  /** From the beginning to the head, in milliseconds. */
  readonly headersTimeoutMs: number;
  /** Between two pieces of the body, while somebody reads it. */
  readonly idleTimeoutMs: number;
}

/** How the body of an answer is read. */
export interface BodyReading {
  /** A larger one is a failure, and ends the connection. */
  readonly mostBytes: number;
  /** Looks at each piece as it arrives. */
  look?(piece: Buffer): void;
  /** Judges the end. @returns null when it is a whole answer */
  judge(bytes: number): UpstreamFailure | null;
}

export class Exchange implements Dispatcher.DispatchHandler, Rider {
  readonly #isHead: boolean;
  readonly #times: ExchangeTimes;
  readonly #read: (head: AnswerHead) => BodyReading | UpstreamFailure;
  readonly #begun = Promise.withResolvers<AnswerHead | UpstreamFailure>();
  readonly #over = Promise.withResolvers<UpstreamFailure | null>();
  #timer: NodeJS.Timeout | null;
  #starts: () => void = () => {};
  #controller: Dispatcher.DispatchController | null = null;
  #interimHeads = 0;
  #head: AnswerHead | null = null;
  /** Null before the head, and when the body is dropped. */
  #reading: BodyReading | null = null;
  #bytes = 0;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #reader: ((piece: Buffer | null | UpstreamFailure) => void) | null = null;
  /** How it ended: whole, or by a failure. */
  #end: { readonly failed: UpstreamFailure | null } | null = null;
  /** Whether a byte of an answer came. */
  hasFirstByte = false;
  /** Whether a byte of the request may have left. */
  wasSent = false;

  /** @param read says how the body of a head is read, or why it is no answer; its body is then dropped */
  constructor(
    method: string,
    times: ExchangeTimes,
    read: (head: AnswerHead) => BodyReading | UpstreamFailure,
  ) {
    this.#isHead = method === 'HEAD';
    this.#times = times;
    this.#read = read;
    this.#timer = setTimeout(
      () => this.stop('timed_out', `no head within ${times.headersTimeoutMs} ms`),
      times.headersTimeoutMs,
    );
  }

  /** The head, if it is that of an answer; else why there is none. */
  get begun(): Promise<AnswerHead | UpstreamFailure> {
    return this.#begun.promise;
  }

  /** Settles when the connection has nothing more to do with it. Null: it ended whole. */
  get over(): Promise<UpstreamFailure | null> {
    return this.#over.promise;
  }

  /** The next piece of the body; null at its whole end. One reader at a time. */
  read(): Promise<Buffer | null | UpstreamFailure> {
    const piece = this.#waiting.shift();
    if (piece !== undefined) {
      this.#waitingBytes -= piece.length;
      if (this.#waitingBytes <= MOST_WAITING_BYTES / 2) this.#resume();
      return Promise.resolve(piece);
    }
    if (this.#end !== null) return Promise.resolve(this.#end.failed);
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  /** The whole body, which the reading bounds. */
  async readAll(): Promise<Buffer | UpstreamFailure> {
    const pieces: Buffer[] = [];
    for (;;) {
      const piece = await this.read();
      if (piece === null) return Buffer.concat(pieces);
      if ('kind' in piece) return piece;
      pieces.push(piece);
    }
  }

  /** Ends it from our side, and its connection with it. */
  stop(reason: FailureReason, detail: string): void {
    this.#fail(
      failure(reason, detail, { upstreamStatus: this.#head?.status ?? null, wasSent: this.wasSent }),
    );
  }

  rides(starts: () => void): void {
    this.#starts = starts;
  }

  isWithinChunks(): boolean {
    return this.#end === null && this.#head?.framing === 'chunked';
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#end !== null) {
      controller.abort(new Error('stopped before it began'));
      return;
    }
    this.wasSent = true;
    this.#starts();
  }

  onResponseStarted(): void {
    this.hasFirstByte = true;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: ReceivedHeaders): void {
    if (this.#end !== null) return;
    if (status < 200) {
      this.#interimHeads += 1;
      if (this.#interimHeads > MOST_INTERIM_HEADS)
        this.stop('broken', `more than ${MOST_INTERIM_HEADS} interim heads`);
      return;
    }
    const framing = framingOf(status, headers, this.#isHead);
    if (framing === null) {
      this.stop('broken', `transfer coding ${String(headers['transfer-encoding'])}`);
      return;
    }
    const head = { status, headers, framing };
    this.#head = head;
    const reading = this.#read(head);
    if ('kind' in reading) {
      this.#begun.resolve(reading);
    } else {
      this.#reading = reading;
      this.#begun.resolve(head);
    }
    this.#watchIdle();
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#end !== null) return;
    this.#timer?.refresh();
    this.#bytes += piece.length;
    const reading = this.#reading;
    if (reading === null) {
      if (this.#bytes > MOST_DROPPED_BYTES) this.stop('too_large', 'the rest of what is no answer');
      return;
    }
    if (this.#bytes > reading.mostBytes) {
      this.stop('too_large', `more than ${reading.mostBytes} bytes`);
      return;
    }
    reading.look?.(piece);
    const reader = this.#reader;
    if (reader !== null) {
      this.#reader = null;
      reader(piece);
      return;
    }
    this.#waiting.push(piece);
    this.#waitingBytes += piece.length;
    if (this.#waitingBytes < MOST_WAITING_BYTES) return;
    controller.pause();
    // That nothing comes is then the reader's doing.
    this.#stopTimer();
  }

  onResponseEnd(): void {
    if (this.#end === null) this.#settle(this.#reading?.judge(this.#bytes) ?? null);
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    // Nothing was missing when it ended: it was only waiting for its reader.
    const length = this.#head?.framing === 'length' ? Number(this.#head.headers['content-length']) : null;
    if (length === this.#bytes) {
      this.onResponseEnd();
      return;
    }
    const reason = !this.wasSent ? 'unreachable' : this.#head === null ? 'broken' : 'cut';
    this.stop(reason, describe(error));
  }

  #resume(): void {
    if (this.#end !== null || this.#controller?.paused !== true) return;
    this.#watchIdle();
    this.#controller.resume();
  }

  #watchIdle(): void {
    this.#stopTimer();
    const { idleTimeoutMs } = this.#times;
    this.#timer = setTimeout(
      () => this.stop('timed_out', `nothing for ${idleTimeoutMs} ms after ${this.#bytes} bytes`),
      idleTimeoutMs,
    );
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #fail(failed: UpstreamFailure): void {
    if (this.#end !== null) return;
    this.#settle(failed);
    this.#controller?.abort(new Error(failed.detail));
  }

  #settle(failed: UpstreamFailure | null): void {
    this.#stopTimer();
    this.#end = { failed };
    if (failed !== null) this.#begun.resolve(failed);
    this.#over.resolve(failed);
    const reader = this.#reader;
    this.#reader = null;
    reader?.(failed);
  }
}

/** How the end of a body is told; null if it comes in a coding that we do not read. */
function framingOf(status: number, headers: ReceivedHeaders, isHead: boolean): Framing | null {
  if (isHead || status === 204 || status === 304) return 'none';
  const coding = headers['transfer-encoding'];
  if (coding !== undefined)
    return typeof coding === 'string' && coding.trim().toLowerCase() === 'chunked' ? 'chunked' : null;
  return headers['content-length'] === undefined ? 'close' : 'length';
}

function describe(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return error.message.includes(code) ? error.message : `${code}: ${error.message}`;
}
