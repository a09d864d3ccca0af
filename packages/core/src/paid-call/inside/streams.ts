/**
 * Streamed answers. A payment on a chain settles before the first piece leaves. Inside the ledger the price is
 * reserved, and the last event leaves only after the commit that takes it.
 *
 * If the stream breaks on our side, a reservation is released, and a payment on a chain may be presented again or is
 * refunded; the last event says which. If the reader is lost, the stream goes on to its end without one, and the same
 * payment gets all of it. Without an identity nobody could ask for it, so it is broken off and charged.
 */

import { unavailable } from '../../http/problem.ts';
import type { Service, ServiceStream } from '../../service/define.ts';
import type { Door } from '../door.ts';
import { tellFate } from '../fate.ts';
import type { Payment } from '../rail.ts';
import type { EventReader, PaidAnswer, Sale } from '../sale.ts';
import type { Answers } from './answers.ts';
import type { PricedCall, StoredAnswer } from './call-steps.ts';
import { asProblem, CallerGone, LeftDuringWork } from './outcome.ts';
import type { Reservations } from './reservations.ts';
import type { Runner, RunningStream } from './running.ts';

/** The most that one stream may send. */
const MAX_STREAM_BYTES = 50_000_000;
const HEADERS: Record<string, string> = {
  'content-type': 'text/event-stream',
  'cache-control': 'private, no-store, no-transform',
};

export interface StreamsParts {
  answers: Answers;
  reservations: Reservations;
  runner: Runner;
  door: Door;
  maxAnswerBytes: number;
}

/** How a stream is paid. */
export interface StreamMoney {
  receipt: Pick<Parameters<Payment['receipt']>[0], 'availableMicros' | 'transaction' | 'reserved'>;
  /** The transaction that moved the money; absent inside the ledger. */
  settled?: { transaction: string; blockNumber: bigint | null };
  /** Gives the money back when the answer was not fully delivered. @returns the error that the caller is told */
  failed(error: unknown): Promise<unknown>;
}

/** What a 402 says about a service that can stream. */
export function streamTerms({ stream }: Service, maxAnswerBytes: number) {
  if (stream === null) return {};
  return {
    streaming: {
      ask: { [stream.field]: true },
      contentType: 'text/event-stream',
      charged:
        'With its last event, `result`; on a chain before the first. A stream that we break is not charged. One that its reader breaks is; the same payment gets all of it.',
      keptUpToBytes: maxAnswerBytes,
      beyond: 'ANSWER_NOT_KEPT',
    },
  };
}

export class Streams {
  readonly #parts: StreamsParts;

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  /**
   * Runs the service and sends its pieces as they come. @throws what the caller is told, as long as nothing has been
   * sent
   */
  async sell(sale: Sale, stream: ServiceStream, call: PricedCall, money: StreamMoney): Promise<PaidAnswer> {
    const { request, quote, payment, report, rate } = sale;
    const running = this.#parts.runner.stream(sale, stream, call.id);
    let first: Awaited<ReturnType<RunningStream['next']>>;
    try {
      first = await running.next();
      if (payment.identity === null && request.gone()) throw new LeftDuringWork();
      if (request.openStream === undefined) throw new CallerGone();
    } catch (error) {
      running.stop();
      throw await money.failed(error);
    }
    const { priceMicros } = quote;
    const receipt = payment.receipt({ callId: call.id, priceMicros, ...money.receipt });
    const reader = request.openStream({
      ...HEADERS,
      ...this.#parts.door.headers,
      ...receipt,
      ...rate,
      'x-call-id': call.id,
    });
    const kept = new KeptEvents(payment.identity === null ? 0 : this.#parts.maxAnswerBytes);
    try {
      const last = await relay(running, first, reader, kept).catch(async (error: unknown) => {
        throw await money.failed(error);
      });
      await this.#take(sale, call, kept, money);
      report.outcome = 'captured';
      if (last !== null) await reader.end(last);
      const { accountId } = payment;
      return { status: 200, headers: {}, body: '', left: true, accountId };
    } catch (error) {
      const problem = tellFate(asProblem(error, report), sale.money.fate);
      await reader.end(eventOf('error', problem.body(request.requestId)));
      return { status: problem.status, headers: {}, body: '', left: true, fate: sale.money.fate };
    } finally {
      running.stop();
    }
  }

  /**
   * Takes the price and stores what is kept. @throws when the price was not taken, or another answer was stored first
   */
  async #take(sale: Sale, call: PricedCall, kept: KeptEvents, { settled }: StreamMoney): Promise<void> {
    const { answers, reservations } = this.#parts;
    const answer = sale.payment.identity === null ? null : this.#storedOf(sale, call.id, kept);
    await reservations.capture(sale, call, answer, settled);
    sale.money.fate = 'taken';
    // Another process that took this one for dead may have stored its answer first. A payment has one answer: the
    // stored one.
    if (settled === undefined || answer === null || (await answers.isKept(call, answer))) return;
    throw unavailable('OUTCOME_UNKNOWN', 'This payment was already given a different answer.', 1_000);
  }

  #storedOf({ quote }: Sale, callId: string, kept: KeptEvents): StoredAnswer {
    const body = kept.bytes();
    if (body === null) {
      return {
        status: 409,
        headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'private, no-store' },
        body: JSON.stringify({
          error: 'ANSWER_NOT_KEPT',
          code: 'ANSWER_NOT_KEPT',
          message: `This payment was answered by a stream of more than ${this.#parts.maxAnswerBytes} bytes, which is not kept.`,
          hint: 'Use a new Idempotency-Key, or sign a new payment.',
        }),
      };
    }
    return this.#parts.answers.toKeep(quote.service, callId, { headers: HEADERS, body });
  }
}

/**
 * Sends all events but the last. When the reader is lost, it goes on as long as all of it can be kept.
 *
 * @returns the last; null when the reader is lost and the rest can be kept for nobody
 * @throws what the service throws
 */
async function relay(
  running: RunningStream,
  first: Awaited<ReturnType<RunningStream['next']>>,
  reader: EventReader,
  kept: KeptEvents,
): Promise<Buffer | null> {
  const lost = reader.closed.then(() => null);
  let isLost = false;
  let bytes = 0;
  for (let next = first; ; ) {
    bytes += next.event.length;
    if (bytes > MAX_STREAM_BYTES) throw new Error('the stream is larger than may be sent');
    kept.add(next.event);
    if (next.status === 'whole') return next.event;
    if (!isLost) isLost = (await reader.write(next.event)) === 'lost';
    if (isLost && !kept.isWhole) return null;
    const coming = running.next();
    if (!isLost && (await Promise.race([coming, lost])) === null) {
      isLost = true;
      if (!kept.isWhole) {
        coming.catch(() => {});
        return null;
      }
    }
    next = await coming;
  }
}

/** The events of a stream, as long as they fit the bound on kept answers. */
class KeptEvents {
  readonly #most: number;
  #events: Buffer[] | null = [];
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(event: Buffer): void {
    this.#bytes += event.length;
    if (this.#bytes > this.#most) this.#events = null;
    this.#events?.push(event);
  }

  get isWhole(): boolean {
    return this.#events !== null;
  }

  /** Null when they exceeded the bound. */
  bytes(): Buffer | null {
    return this.#events === null ? null : Buffer.concat(this.#events);
  }
}

function eventOf(event: string, data: unknown): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
