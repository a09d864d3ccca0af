/**
 * Bought answers: how they are stored, delivered for the first time, and replayed when the same payment comes again.
 */
import { Problem, unavailable } from '../../http/problem.ts';
import type { Service } from '../../service/define.ts';
import type { Door } from '../door.ts';
import type { Payment } from '../rail.ts';
import type { Asked, MadeAnswer, PaidAnswer, Sale } from '../sale.ts';
import type { AnswerSeal } from '../sealed-answer.ts';
import type { PricedCall, StoredAnswer } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import { LOOK_AGAIN_MS, receiptOf } from './refusal.ts';

export interface AnswersParts {
  calls: Pick<CallStore, 'answerOf'>;
  seal: AnswerSeal;
  door: Door;
  /** The URL of receipts for on-chain payments, up to the call's id. */
  receiptsUrl: string;
  /**
   * What a captured call still has to do before its answer may leave, such as granting what it bought. It runs before
   * every
   * delivery, replays included, so running it again must change nothing.
   */
  beforeAnswer?(callId: string, service: Service): Promise<void>;
  /** Called for a call that was captured and whose answer nobody will get. */
  undelivered(call: PricedCall & { retrievable: boolean }): void;
}

/** The answers of one door. */
export class Answers {
  readonly #parts: AnswersParts;

  constructor(parts: AnswersParts) {
    this.#parts = parts;
  }

  /** The form in which an answer is stored. */
  toKeep(service: Service, callId: string, { status = 200, headers, body }: MadeAnswer): StoredAnswer {
    // Sealing turns any bytes into text that the database can hold.
    const sealed = service.secretAnswer || typeof body !== 'string';
    return { status, headers, body: sealed ? this.#parts.seal.seal(callId, body) : body };
  }

  /** True when the answer stored for this call is this very answer, or when none is stored. */
  async isKept(call: { accountId: bigint; id: string }, answer: StoredAnswer): Promise<boolean> {
    const kept = await this.#parts.calls.answerOf(call.accountId, call.id);
    const bytesOf = ({ body }: StoredAnswer) => this.#parts.seal.openBytes(call.id, body);
    return kept === null || bytesOf(kept).equals(bytesOf(answer));
  }

  /**
   * Delivers an answer for the first time, after its price was taken.
   *
   * @param paid.availableMicros what the account can still spend
   * @param paid.transaction the transaction that moved the money; null for a payment inside the ledger
   */
  async deliver(
    sale: Sale,
    callId: string,
    { status = 200, headers, body, costMicros }: MadeAnswer,
    paid: { availableMicros: bigint | null; transaction: string | null },
  ): Promise<PaidAnswer> {
    const { payment, quote, report, money } = sale;
    report.outcome = 'captured';
    report.priceMicros = costMicros ?? report.priceMicros;
    money.fate = costMicros === 0n ? 'free' : 'taken';
    await this.#finishPurchase(sale, callId).catch((error: unknown) => {
      // Nobody can ask for this answer again, so the price is given back.
      if (payment.identity === null) {
        const { priceMicros, service } = quote;
        const { accountId, bucket, revenue } = payment;
        const call = { id: callId, accountId, bucket, service: service.path, priceMicros, revenue };
        this.#parts.undelivered({ ...call, retrievable: false });
        money.fate = 'given back';
      }
      throw error;
    });
    const receipt = payment.receipt({
      callId,
      priceMicros: costMicros ?? quote.priceMicros,
      ...(costMicros === undefined ? {} : { reservedMicros: quote.priceMicros }),
      availableMicros: payment.onChain === null ? paid.availableMicros : null,
      transaction: paid.transaction,
    });
    return {
      status,
      headers: { ...headers, ...this.#parts.door.headers, ...receipt, 'x-call-id': callId },
      body,
      accountId: payment.accountId,
    };
  }

  /**
   * Delivers a stored answer again.
   *
   * @param by the account that bought it, and how its receipt is written
   * @throws Problem 409 when the answer is no longer kept
   */
  async replay(
    asked: Asked,
    by: Pick<Payment, 'accountId' | 'receipt'>,
    callId: string,
  ): Promise<PaidAnswer> {
    const { quote, report, money } = asked;
    money.fate = 'taken';
    const stored = await this.#parts.calls.answerOf(by.accountId, callId);
    if (stored === null) {
      report.outcome = 'conflict';
      money.fate = 'spent';
      throw new Problem(
        409,
        'ANSWER_EXPIRED',
        'This payment was answered, and its answer is no longer kept.',
        {
          details: { hint: 'Use a new Idempotency-Key, or sign a new payment.', callId },
        },
      );
    }
    report.outcome = 'replayed';
    report.callId = callId;
    const told = { 'idempotent-replayed': 'true', 'x-call-id': callId };
    const { seal, door } = this.#parts;
    if (stored.status >= 300) {
      // This entry tells of a refund, or of an answer that was too large to keep. It is no proof of purchase, and is
      // told in the form of this door.
      const { code, message, ...details } = JSON.parse(seal.open(callId, stored.body));
      money.fate = stored.status === 409 ? 'spent' : 'refunded';
      throw new Problem(stored.status, code, message, { details, headers: told });
    }
    await this.#finishPurchase(asked, callId);
    const receipt = by.receipt({
      callId,
      priceMicros: stored.transaction === null ? 0n : quote.priceMicros,
      availableMicros: null,
      transaction: stored.transaction,
    });
    return {
      status: stored.status,
      headers: { ...stored.headers, ...door.headers, ...receipt, ...told },
      body: this.#opened(callId, stored),
      accountId: by.accountId,
    };
  }

  /**
   * The stored answer, for a caller who the door knows has received it before.
   *
   * @returns null when it is no longer kept
   */
  async kept(accountId: bigint, callId: string): Promise<MadeAnswer | null> {
    const stored = await this.#parts.calls.answerOf(accountId, callId);
    if (stored === null || stored.status >= 300) return null;
    return { status: stored.status, headers: stored.headers, body: this.#opened(callId, stored) };
  }

  #opened(callId: string, stored: StoredAnswer): string | Buffer {
    return this.#parts.seal[isJson(stored) ? 'open' : 'openBytes'](callId, stored.body);
  }

  /** Runs `beforeAnswer`. The price is already taken: what fails here is done when the answer is asked for again. */
  async #finishPurchase(asked: Asked, callId: string): Promise<void> {
    await this.#parts.beforeAnswer?.(callId, asked.quote.service).catch((error: unknown) => {
      throw unavailable(
        'OUTCOME_UNKNOWN',
        'The answer that was bought could not be delivered yet.',
        LOOK_AGAIN_MS,
        receiptOf(asked, this.#parts.receiptsUrl, callId),
        error,
      );
    });
  }
}

/** Whether the house wrote the answer as JSON. What a seller's API answered stays the bytes that it sent. */
function isJson({ headers }: StoredAnswer): boolean {
  const isBytes = headers['x-provenance'] !== undefined;
  return !isBytes && headers['content-type']?.startsWith('application/json') === true;
}
