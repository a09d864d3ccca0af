/**
 * Streamed answers. A payment on a chain settles before the first piece leaves. Inside the ledger the price is
 * reserved, and the last event leaves only after the commit that takes it.
 *
 * If the stream breaks on our side, a reservation is released, and a payment on a chain may be presented again or is
 * refunded; the last event says which. If the reader is lost, the stream goes on to its end without one, and the same
 * payment gets all of it. Without an identity nobody could ask for it, so it is broken off and charged, and so is a stream
 * of bytes, which is not kept.
 */

import { unavailable } from '../../http/problem.ts';
import type { Service, ServiceStream } from '../../service/define.ts';
import type { Door } from '../door.ts';
import { tellFate } from '../fate.ts';
import type { Payment, Quote } from '../rail.ts';
import { type PaidAnswer, readerMsOf, type Sale, type StreamReader } from '../sale.ts';
import type { Answers } from './answers.ts';
import type { PricedCall, StoredAnswer } from './call-steps.ts';
import { asProblem, CallerGone, LeftDuringWork } from './outcome.ts';
import type { Reservations } from './reservations.ts';
import type { Runner, RunningStream } from './running.ts';

/** The most that one stream of events may send. */
const MAX_EVENTS_BYTES = 50_000_000;

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

/**
 * What a 402 says about a service that can stream.
 *
 * @param about.isAtRoute whether it is sold at its own address, where each answer is a stream if it is one of bytes
 */
export function streamTerms(
  { stream, contentType }: Service,
  { maxAnswerBytes, isAtRoute }: { maxAnswerBytes: number; isAtRoute: boolean },
): Pick<Quote, 'settlesFirst' | 'streaming'> {
  if (stream === null) return {};
  if (stream.form === 'bytes') {
    if (!isAtRoute) return {};
    return {
      settlesFirst: true,
      streaming: {
        contentType,
        charged:
          'Before its last bytes; on a chain before the first. A stream that we break is not charged, or is sent back. One that its reader leaves is.',
        keptUpToBytes: 0,
        beyond: 'ANSWER_NOT_KEPT',
      },
    };
  }
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
      // What has a lasting effect was done, whether its caller is there or not.
      const isUndone = payment.identity === null && quote.service.effect !== 'write';
      if (isUndone && request.gone()) throw new LeftDuringWork();
      if (request.openStream === undefined) throw new CallerGone();
    } catch (error) {
      running.stop();
      throw await money.failed(error);
    }
    const { priceMicros } = quote;
    const receipt = payment.receipt({ callId: call.id, priceMicros, ...money.receipt });
    const { head } = running;
    const headers = Object.assign({}, head.headers, this.#parts.door.headers, receipt, rate);
    headers['x-call-id'] = call.id;
    const isOfEvents = stream.form === 'events';
    const bounds = { mayBeat: isOfEvents, patienceMs: readerMsOf(stream) };
    const reader = request.openStream({ status: head.status, headers }, bounds);
    const isKept = isOfEvents && payment.identity !== null;
    const kept = new KeptPieces(isKept ? this.#parts.maxAnswerBytes : null);
    const mostBytes = isOfEvents ? MAX_EVENTS_BYTES : stream.mostBytes;
    try {
      const last = await relay(running, first, { reader, kept, mostBytes }).catch(async (error: unknown) => {
        throw await money.failed(error);
      });
      const priced = await pricedBy(running, call).catch(async (error: unknown) => {
        throw await money.failed(error);
      });
      await this.#take(sale, { call: priced, kept, headers: head.headers }, money);
      report.outcome = 'captured';
      report.priceMicros = priced.takenMicros ?? report.priceMicros;
      if (last !== null) await reader.end(last);
      const { accountId } = payment;
      return { status: head.status, headers: {}, body: '', left: true, accountId };
    } catch (error) {
      const problem = tellFate(asProblem(error, report), sale.money.fate);
      // Other bytes have no form of an error. That they end without an end tells it.
      if (isOfEvents) await reader.end(eventOf('error', problem.body(request.requestId)));
      else reader.cut();
      return { status: problem.status, headers: {}, body: '', left: true, fate: sale.money.fate };
    } finally {
      running.stop();
    }
  }

  /**
   * Takes the price and stores what is kept. @throws when the price was not taken, or another answer was stored first
   */
  async #take(sale: Sale, { call, kept, headers }: Sent, { settled }: StreamMoney): Promise<void> {
    const { answers, reservations } = this.#parts;
    const answer = sale.payment.identity === null ? null : this.#storedOf(sale, { call, kept, headers });
    await reservations.capture(sale, call, answer, settled);
    sale.money.fate = call.takenMicros === 0n ? 'free' : 'taken';
    // Another process that took this one for dead may have stored its answer first. A payment has one answer: the
    // stored one.
    if (settled === undefined || answer === null || (await answers.isKept(call, answer))) return;
    throw unavailable('OUTCOME_UNKNOWN', 'This payment was already given a different answer.', 1_000);
  }

  #storedOf({ quote }: Sale, { call, kept, headers }: Sent): StoredAnswer {
    const body = kept.bytes();
    if (body === null) {
      const isOfEvents = quote.service.stream?.form === 'events';
      const size = isOfEvents ? ` of more than ${this.#parts.maxAnswerBytes} bytes` : '';
      return {
        status: 409,
        headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'private, no-store' },
        body: JSON.stringify({
          error: 'ANSWER_NOT_KEPT',
          code: 'ANSWER_NOT_KEPT',
          message: `This payment was answered by a stream${size}, which is not kept.`,
          hint: 'Use a new Idempotency-Key, or sign a new payment.',
        }),
      };
    }
    return this.#parts.answers.toKeep(quote.service, call.id, { headers, body });
  }
}

/** A stream as it was sent, without its last piece. */
interface Sent {
  call: PricedCall & { takenMicros?: bigint };
  kept: KeptPieces;
  headers: Record<string, string>;
}

/**
 * Sends all pieces but the last. When the reader is lost, it goes on as long as all of it can be kept.
 *
 * @returns the last; null when the reader is lost and the rest can be kept for nobody
 * @throws what the service throws
 */
async function relay(
  running: RunningStream,
  first: Awaited<ReturnType<RunningStream['next']>>,
  { reader, kept, mostBytes }: { reader: StreamReader; kept: KeptPieces; mostBytes: number },
): Promise<Buffer | null> {
  let isLost = false;
  let wake = () => {};
  void reader.closed.then(() => {
    isLost = true;
    wake();
  });
  let bytes = 0;
  for (let next = first; ; ) {
    bytes += next.bytes.length;
    if (bytes > mostBytes) throw new Error('the stream is larger than may be sent');
    kept.add(next.bytes);
    if (next.status === 'whole') return next.bytes;
    if (!isLost) isLost = (await reader.write(next.bytes)) === 'lost';
    if (isLost && !kept.isWhole) return null;
    const coming = running.next();
    // One promise for each piece: what raced against that of the whole stream would be held to its end.
    await new Promise<void>((resolve) => {
      wake = resolve;
      coming.then(
        () => resolve(),
        () => resolve(),
      );
    });
    if (isLost && !kept.isWhole) {
      coming.catch(() => {});
      return null;
    }
    next = await coming;
  }
}

/** The call with what was measured of its stream. */
async function pricedBy(running: RunningStream, call: PricedCall): Promise<Sent['call']> {
  const takenMicros = running.cost();
  return takenMicros === undefined ? call : { ...call, takenMicros };
}

/** The pieces of a stream, as long as they fit the bound on kept answers. */
class KeptPieces {
  readonly #most: number;
  #pieces: Buffer[] | null;
  #bytes = 0;

  /** @param most null: nothing is kept */
  constructor(most: number | null) {
    this.#most = most ?? 0;
    this.#pieces = most === null ? null : [];
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#most) this.#pieces = null;
    this.#pieces?.push(piece);
  }

  get isWhole(): boolean {
    return this.#pieces !== null;
  }

  /** Null when they exceeded the bound. */
  bytes(): Buffer | null {
    return this.#pieces === null ? null : Buffer.concat(this.#pieces);
  }
}

function eventOf(event: string, data: unknown): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
