/**
 * How a call is sold. One function takes a request from "who pays?" to "here is the answer and the receipt":
 *
 *   no credential ─► 402 (or 503 when not for sale)
 *   credential ─► read by its rail ─► body checked ─► price reserved and payment claimed, in one commit
 *     ─► the service runs, within its deadline ─► price taken and answer kept, in one commit ─► 2xx with receipt
 *
 * Any failure on the way gives the price back: an answer that is not 2xx costs nothing. Where a chain has to move the
 * money, `on-chain.ts` takes over once the payment is claimed.
 */
import { idempotencyKeyOf } from '../http/idempotency-key.ts';
import { invalidRequest, notSoldHere } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import { newCallId } from '../ledger/transfer-id.ts';
import type { Availability } from '../service/availability.ts';
import type { Service } from '../service/define.ts';
import { type SpanFacts, traced, tracedCall } from '../tracing/traced.ts';
import { ServiceFailure } from '../words/failure.ts';
import type { Challenge } from './challenge.ts';
import { claimOn } from './claim.ts';
import type { FollowedCalls } from './followed-calls.ts';
import { type FreeHangUps, idempotencyKeyRequired } from './free-hang-ups.ts';
import { Answers, type AnswersParts } from './inside/answers.ts';
import { BoughtBefore } from './inside/bought-before.ts';
import type { PricedCall } from './inside/call-steps.ts';
import type { CallStore } from './inside/calls.ts';
import { tryOut } from './inside/dry-run.ts';
import { OnChainSales } from './inside/on-chain.ts';
import { CallerGone, type CallReport, LeftDuringWork } from './inside/outcome.ts';
import { Quotes, readByRoute } from './inside/quotes.ts';
import { notBegun, notForSale, paidByKeyAlone, refusalOf } from './inside/refusal.ts';
import { RECONCILE_GRACE_MS, Reservations, type ReservationsParts } from './inside/reservations.ts';
import { createPlaces, type Places, Runner, type RunnerParts } from './inside/running.ts';
import { Streams } from './inside/streams.ts';
import { leastForKey, type PaidTerms, readForTerms, termsBefore } from './inside/terms-before.ts';
import { type Headers, PaymentRefused, type Quote, type Rail } from './rail.ts';
import { claimedFingerprint, fingerprintOfCall, inputOf } from './request-body.ts';
import {
  type Asked,
  longestMs,
  type MadeAnswer,
  type PaidAnswer,
  type PaidRequest,
  type Sale,
  streamOf,
} from './sale.ts';
import type { Settlement, SettlementStore } from './settlements.ts';

/** The allowed length of an `Idempotency-Key`, in characters. */
const KEY_LENGTH = { least: 1, most: 255 };

export interface PaidCallParts extends AnswersParts, ReservationsParts, RunnerParts {
  /** The same service as it was sold while challenges were made that can still be paid; see `terms-before.ts`. */
  honoured(service: Service): readonly Service[];
  /** The service as another process may sell it since: looked for when a payment is of no price that is known here. */
  newer(service: Service): Promise<Service | null>;
  /** The ways to pay here. The first one whose credential the request carries is used. */
  rails: readonly Rail[];
  calls: CallStore;
  settlements: SettlementStore;
  freeHangUps: FreeHangUps;
  followedCalls: FollowedCalls;
  /** After this time a paid call that could not be delivered is refunded. */
  refundAfterMs: number;
  availability(service: Service): Availability;
  addressLimit: RateLimit;
  payerLimit: RateLimit;
  maxConcurrentPerPayer: number;
  maxConcurrent: number;
  report(report: CallReport): void;
  /** Called for each call that a key pays, once it has ended. */
  keyUsed(use: KeyUse): void;
}

/** A call that was paid with a key. */
export interface KeyUse {
  accountId: bigint;
  keyId: bigint;
  /** The caller's address. */
  address: string;
  /** The call whose answer was charged and kept; null when there is none. */
  answered: { callId: string; service: string; durationMs: number } | null;
}

/** The paid call of one door. */
export class PaidCall {
  readonly #parts: PaidCallParts;
  readonly #quotes: Quotes;
  readonly #places: Places;
  readonly #answers: Answers;
  readonly #reservations: Reservations;
  readonly #runner: Runner;
  readonly #streams: Streams;
  readonly #onChain: OnChainSales;
  readonly #before: BoughtBefore;

  constructor(parts: PaidCallParts) {
    this.#parts = parts;
    this.#quotes = new Quotes(parts);
    this.#places = createPlaces(parts);
    this.#answers = new Answers(parts);
    this.#reservations = new Reservations(parts);
    this.#runner = new Runner(parts);
    const steps = { answers: this.#answers, reservations: this.#reservations, runner: this.#runner };
    this.#streams = new Streams({ ...parts, ...steps });
    this.#onChain = new OnChainSales({ ...parts, ...steps, streams: this.#streams });
    this.#before = new BoughtBefore({ ...parts, answers: this.#answers });
  }

  /** How many calls are running now. */
  get running(): number {
    return this.#places.taken;
  }

  /** Takes a request to its answer. Never throws: a failure is an answer too, and says what became of the money. */
  async handle(request: PaidRequest): Promise<PaidAnswer> {
    let told: CallReport | null = null;
    const run = () =>
      this.#handle(request, (report) => {
        told = report;
      });
    return tracedCall('paid call', run, () => factsOf(told));
  }

  async #handle(request: PaidRequest, tell: (report: CallReport) => void): Promise<PaidAnswer> {
    const { addressLimit, door, nowMs, rails } = this.#parts;
    const { called, unread } = readByRoute(request);
    const { quote, challenge } = this.#quotes.of(request.service, called);
    const startedAtMs = nowMs();
    const report = reportOf(request, quote);
    tell(report);
    const dry = request.dryRun !== undefined && request.dryRun !== 'no';
    const rail = rails.find((candidate) => candidate.recognizes(request.headers));
    const verdict = addressLimit.take(request.address);
    const rate = rateHeaders(verdict);
    const asked: Asked = {
      request,
      quote,
      called,
      rail,
      report,
      rate,
      money: { fate: !dry && canRepeat(rail, request.headers) ? 'not looked' : 'free' },
    };
    try {
      if (!verdict.allowed) throw rateExceeded(verdict);
      // Whoever asks for the price of a JSON call need not send it whole; at a route's own address the call decides its price.
      if (unread !== null && (rail !== undefined || dry || request.sent !== undefined)) throw unread;
      const answer = await this.#answer(asked, challenge, dry);
      report.status = answer.status;
      return { ...answer, headers: Object.assign(answer.headers, rate) };
    } catch (error) {
      return await refusalOf(error, asked, { challenge, door, rate });
    } finally {
      report.durationMs = nowMs() - startedAtMs;
      this.#parts.report(report);
    }
  }

  /** Answers what was asked for: a dry run, the price, or a purchase. */
  async #answer(asked: Asked, challenge: Challenge, dry: boolean): Promise<PaidAnswer> {
    const { rail, request } = asked;
    const { door, nowMs } = this.#parts;
    if (dry && request.isGone === true) throw notSoldHere(request.service.path);
    if (dry) return tryOut(asked, { door, nowMs, availability: this.#parts.availability(request.service) });
    return rail === undefined
      ? await this.#askForPayment(asked, challenge)
      : await this.#takePayment({ ...asked, rail });
  }

  /** Answers a request without a credential: with what its payer bought before, or with the terms. */
  async #askForPayment(asked: Asked, challenge: Challenge): Promise<PaidAnswer> {
    const { request, report } = asked;
    const earlier = await this.#before.bySignIn(asked);
    if (earlier !== null) return earlier;
    if (request.isGone === true) throw notSoldHere(request.service.path);
    const availability = this.#parts.availability(request.service);
    if (!availability.available) throw notForSale(availability);
    report.outcome = 'unpaid';
    return { status: 402, ...(await challenge.answer(request)) };
  }

  /** Answers a request with a credential. Once the payer is known, the rate limit headers are the payer's. */
  async #takePayment(asked: Asked & { rail: Rail }, hasLooked = false): Promise<PaidAnswer> {
    const { request, quote, rail, report, rate, called } = asked;
    const { headers, rawBody, service } = request;
    report.rail = rail.name;
    request.assertMayBuy();
    const idempotencyKey = readIdempotencyKey(headers);
    const honoured = this.#parts.honoured(service);
    let terms: PaidTerms;
    try {
      if (service.metered !== null && rail.chains !== undefined) throw paidByKeyAlone();
      const before = termsBefore(quote, request, honoured);
      terms = await readForTerms(rail, request, { quote, before, beside: { idempotencyKey, rawBody } });
    } catch (error) {
      const earlier = await this.#before.byRecall(asked);
      if (earlier !== null) return earlier;
      const newer = hasLooked ? null : await this.#underNewer(asked, error);
      if (newer === null) throw error;
      return this.#takePayment({ ...asked, ...newer }, true);
    }
    const { payment } = terms;
    const verdict = this.#parts.payerLimit.take(payment.limitBy);
    Object.assign(rate, rateHeaders(verdict));
    if (!verdict.allowed) throw rateExceeded(verdict);
    // Prices by key are for credits alone.
    const keyTerms = payment.keyId === null ? undefined : called?.keyTerms?.(payment.accountId);
    const ofKey = keyTerms?.priceMicros ?? quote.priceMicros;
    const own =
      payment.keyId === null || called === null
        ? terms.quote
        : { ...quote, priceMicros: leastForKey(ofKey, payment.accountId, request, honoured) };
    report.priceMicros = own.priceMicros;
    const input = inputOf(called, request);
    const ownBody = called === null ? rawBody : undefined;
    const claim = payment.onChain === null ? null : claimOn(service, input, payment, ownBody);
    const startedAtMs = this.#parts.nowMs();
    try {
      const paid = { ...asked, quote: own, terms: keyTerms, payment };
      return await this.#sell({ ...paid, input, claim, isKept: payment.identity !== null });
    } finally {
      this.#noteUse(asked, payment, this.#parts.nowMs() - startedAtMs);
    }
  }

  /** The same call under a table that another process has put in force, and this one may not have seen; null: there is none. */
  async #underNewer(
    { request, rail }: Asked,
    error: unknown,
  ): Promise<Pick<Asked, 'request' | 'quote' | 'called'> | null> {
    if (rail?.chains === undefined || !(error instanceof PaymentRefused)) return null;
    const service = await this.#parts.newer(request.service);
    if (service === null) return null;
    const again = { ...request, service, isGone: false };
    const { called, unread } = readByRoute(again);
    if (unread !== null) throw unread;
    return { request: again, quote: this.#quotes.of(service, called).quote, called };
  }

  /** Reports which key was used, and from where. */
  #noteUse(
    { request, report }: Asked,
    { accountId, keyId, identity }: Sale['payment'],
    durationMs: number,
  ): void {
    if (keyId === null) return;
    const { callId, service, outcome, priceMicros } = report;
    // Without an identity the answer is not kept, so nothing can be fetched.
    const isKept = outcome === 'captured' && identity !== null && callId !== null && priceMicros > 0n;
    const answered = isKept ? { callId, service, durationMs } : null;
    this.#parts.keyUsed({ accountId, keyId, address: request.address, answered });
  }

  /** Takes a checked request to its answer. */
  async #sell(sale: Sale): Promise<PaidAnswer> {
    const { request, quote, payment, money, called } = sale;
    const { service } = quote;
    const fingerprint =
      payment.identity === null
        ? null
        : claimedFingerprint(fingerprintOfCall(called, service, sale.input), sale.claim);
    const availability = this.#parts.availability(service);
    if (request.isGone === true || !availability.available) {
      // Nothing new is sold, but answers that were bought before are still delivered.
      const earlier = await this.#before.byPayment(sale, fingerprint);
      if (earlier !== null) return earlier;
      money.fate = 'free';
      throw request.isGone === true ? notSoldHere(service.path) : notForSale(availability);
    }

    const leave = this.#places.enter(payment.limitBy);
    try {
      const call: PricedCall = {
        id: newCallId(this.#parts.nowMs(), payment.bucket),
        accountId: payment.accountId,
        bucket: payment.bucket,
        service: service.path,
        // A transfer that the payer made by itself may exceed the price. What came in is what is booked.
        priceMicros: payment.onChain?.amountUnits ?? quote.priceMicros,
        revenue: payment.revenue,
      };
      if (request.gone()) throw new CallerGone();
      return await this.#follow(sale, call, (followed) =>
        this.#holdingHangUp(followed, call, () => this.#sellCall(followed, call, fingerprint)),
      );
    } finally {
      leave();
    }
  }

  /**
   * Sells a call that nothing names at a door that sees whether its answer arrives. If an earlier caller of the same
   * call lost an answer that was charged, this caller gets that one.
   */
  async #follow(
    sale: Sale,
    call: PricedCall,
    sell: (sale: Sale) => Promise<PaidAnswer>,
  ): Promise<PaidAnswer> {
    const { request, payment, quote, called } = sale;
    const { accountId, keyId } = payment;
    if (request.delivery === undefined || payment.identity !== null || keyId === null) return sell(sale);
    const { id } = call;
    const delivery = await this.#parts.followedCalls.begin({
      ...request.delivery,
      id,
      accountId,
      keyId,
      fingerprint: fingerprintOfCall(called, quote.service, sale.input),
      longestMs: longestMs(sale) + RECONCILE_GRACE_MS,
    });
    const arrived = (hasArrived: boolean) => void delivery.end(hasArrived).catch(() => {});
    const { lost } = delivery;
    try {
      if (lost === null) return { ...(await sell({ ...sale, isKept: true })), arrived };
      const again = await this.#answers.replay(sale, payment, lost.callId);
      again.headers['x-answered-at'] = new Date(lost.answeredAtMs).toISOString();
      return { ...again, arrived };
    } catch (error) {
      // Nothing was charged, or it is paid back; or the answer could not be handed out again, and is still owed.
      await (lost === null ? delivery.drop() : delivery.end(false)).catch(() => {});
      throw error;
    }
  }

  /**
   * Sells a call that its caller could leave unpaid, and counts whether it does. Where such a call costs the operator
   * money, one of the buyer's free hang-ups is held for it.
   *
   * @throws Problem 428 when none is left
   */
  async #holdingHangUp(sale: Sale, call: PricedCall, sell: () => Promise<PaidAnswer>): Promise<PaidAnswer> {
    const { freeHangUps, nowMs } = this.#parts;
    if (sale.payment.identity !== null) return sell();
    const isHeld = sale.quote.service.costsMoney;
    if (isHeld && !(await freeHangUps.hold(call, nowMs() + longestMs(sale) + RECONCILE_GRACE_MS)))
      throw idempotencyKeyRequired();
    try {
      const answer = await sell();
      if (isHeld) void freeHangUps.giveBack(call.id).catch(() => {});
      return answer;
    } catch (error) {
      // What cannot be written now is free again when its time is over.
      if (error instanceof LeftDuringWork) await freeHangUps.use(call).catch(() => {});
      else if (isHeld) void freeHangUps.giveBack(call.id).catch(() => {});
      throw error;
    }
  }

  async #sellCall(sale: Sale, call: PricedCall, fingerprint: Buffer | null): Promise<PaidAnswer> {
    const { request, payment, money, report } = sale;
    const begun = await traced('reserve', () => this.#reservations.begin(call, sale, fingerprint));
    if (begun.status === 'answered') return this.#answers.replay(sale, payment, begun.callId);
    if (begun.status === 'leased') return this.#goOn(sale, begun.settlement);
    if (begun.status !== 'authorized') throw await notBegun(sale, begun);
    report.callId = call.id;
    money.fate = 'free';
    if (request.gone()) await this.#leaveUndone(call, new CallerGone());
    if (payment.onChain !== null) return this.#onChain.sell(sale, call, payment.onChain, begun.isKnownPayer);
    if (begun.isFree === true) {
      report.priceMicros = 0n;
      const free = { ...sale, quote: { ...sale.quote, priceMicros: 0n } };
      return this.#sellForCredit(free, { ...call, priceMicros: 0n }, begun.availableMicros);
    }
    return this.#sellForCredit(sale, call, begun.availableMicros);
  }

  /**
   * Continues from wherever an earlier request with the same payment left it. If this caller is gone or has withdrawn,
   * the payment is left to that earlier request and to the reconciler.
   */
  async #goOn(sale: Sale, settlement: Settlement): Promise<PaidAnswer> {
    const { request, money, report } = sale;
    money.fate = settlement.state === 'settled' ? 'taken' : 'open';
    report.callId = settlement.callId;
    try {
      if (request.gone() || (await request.follow?.stillWanted()) === false) throw new CallerGone();
    } catch (error) {
      await this.#parts.settlements.later(settlement, 0).catch(() => {});
      throw error;
    }
    return this.#onChain.proceed(sale, settlement);
  }

  /** Sells a call whose price the ledger has reserved. */
  async #sellForCredit(sale: Sale, call: PricedCall, leftMicros: bigint): Promise<PaidAnswer> {
    const { request, quote, payment } = sale;
    const stream = streamOf(sale);
    const isWrite = quote.service.effect === 'write';
    if (stream !== null || isWrite) await this.#reservations.assertWanted(sale, call);
    if (stream !== null) {
      return this.#streams.sell(sale, stream, call, {
        receipt: { availableMicros: leftMicros, transaction: null, reserved: true },
        failed: async (error) => {
          await this.#reservations.release(call, whyReleased(error));
          return error;
        },
      });
    }
    let made: MadeAnswer;
    try {
      made = await traced('run', () => this.#runner.run(sale, call.id));
    } catch (error) {
      await this.#reservations.release(call, whyReleased(error));
      throw error;
    }
    if (!isWrite) await this.#reservations.assertWanted(sale, call);
    // Nobody is there to read this answer, and nobody could ask for it again. What had an effect is charged all the same.
    if (payment.identity === null && request.gone() && !(isWrite && sale.isKept))
      await this.#leaveUndone(call, new LeftDuringWork());
    const answer = sale.isKept ? this.#answers.toKeep(quote.service, call.id, made) : null;
    const { costMicros } = made;
    const measured = costMicros === undefined ? call : { ...call, takenMicros: costMicros };
    const capture = () => this.#reservations.capture(sale, measured, answer);
    const { availableMicros } = await traced('capture', capture);
    return this.#answers.deliver(sale, call.id, made, { availableMicros, transaction: null });
  }

  /** The stored answer of a call, while it is kept, for a caller who the door knows has received it before. */
  answerOf(accountId: bigint, callId: string): Promise<MadeAnswer | null> {
    return this.#answers.kept(accountId, callId);
  }

  async #leaveUndone(call: PricedCall, gone: CallerGone): Promise<never> {
    await this.#reservations.release(call, whyReleased(gone));
    throw gone;
  }
}

function reportOf({ service, requestId }: PaidRequest, { priceMicros }: Quote): CallReport {
  return {
    service: service.path,
    rail: 'none',
    outcome: 'failed',
    status: 500,
    durationMs: 0,
    priceMicros,
    requestId,
    callId: null,
  };
}

/** Whether a request may be a repeat of one that was charged: it carries an on-chain payment, or a valid Idempotency-Key. */
function canRepeat(rail: Rail | undefined, headers: Headers): boolean {
  if (rail === undefined) return false;
  const sent = idempotencyKeyOf(headers, KEY_LENGTH);
  return rail.chains !== undefined || (sent !== null && sent !== 'unfit');
}

/** What the books say about a call whose price was given back. */
function whyReleased(error: unknown): string {
  if (error instanceof CallerGone) return 'CLIENT_GONE';
  return error instanceof ServiceFailure ? error.code : 'FAILED';
}

function readIdempotencyKey(headers: Headers): string | null {
  const sent = idempotencyKeyOf(headers, KEY_LENGTH);
  if (sent !== 'unfit') return sent?.key ?? null;
  throw invalidRequest('Idempotency-Key must be 1 to 255 printable characters without spaces.', [
    { field: 'Idempotency-Key', message: '1 to 255 printable ASCII characters without spaces' },
  ]);
}

/** The facts that a trace tells of a call. */
function factsOf(report: CallReport | null): SpanFacts {
  if (report === null) return {};
  const { service, rail, outcome, status, requestId, callId } = report;
  return { service, rail, outcome, status, requestId, ...(callId === null ? {} : { callId }) };
}
