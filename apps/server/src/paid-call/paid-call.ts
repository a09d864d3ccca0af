/**
 * How a call is sold. One function takes a request from "who pays?" to "here is the answer and the receipt":
 *
 *   no credential ─► 402 (or 503 when not for sale)
 *   credential ─► read by its rail ─► body checked ─► price reserved and payment claimed, in one commit
 *     ─► the service runs, within its deadline ─► price taken and answer kept, in one commit ─► 2xx with receipt
 *
 * Whatever fails on the way gives the price back: an answer that is not 2xx costs nothing.
 *
 * Where a chain has to move the money, the answer is kept before the chain is asked and withheld until it has moved:
 *
 *   … claimed ─► would it settle? ─► the service runs ─► answer kept ─► settle ─► captured ─► 2xx with receipt
 *
 * and what the chain says of the payment is the truth from there on. As long as nobody knows, nobody is told to pay
 * again; whoever presents the payment again, on whichever replica, goes on where it stands, and so does the reconciler.
 * A service that leaves something behind runs after the money has come; if it fails the same payment may try again,
 * and what cannot be delivered is sent back.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { idempotencyKeyOf } from '../http/idempotency-key.ts';
import { invalidRequest, Problem, unavailable } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import { NotBegun, QueueFull } from '../ledger/group-commit.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import { newTransferId } from '../ledger/transfer-id.ts';
import type { Capabilities, CatalogLine, RunContext, Service } from '../services/define.ts';
import type { Availability } from '../services/registry.ts';
import { inCall, type UpstreamName, type Upstreams } from '../upstreams/index.ts';
import { provenanceOf } from '../words/answer.ts';
import { ServiceFailure } from '../words/failure.ts';
import type { BeginOutcome, StoredAnswer } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import type { Challenge } from './challenge.ts';
import { claimOn } from './claim.ts';
import type { Door } from './door.ts';
import { type Fate, tellFate } from './fate.ts';
import { asProblem, CallerGone, type CallReport, tookTooLong } from './outcome.ts';
import {
  type Chains,
  type ChainVerdict,
  type Headers,
  type OnChainPayment,
  type PayerProof,
  type Payment,
  PaymentRefused,
  type Quote,
  type Rail,
} from './rail.ts';
import { claimedFingerprint, fingerprintOf, readInput } from './request-body.ts';
import { createPlaces, Deadline } from './running.ts';
import type { AnswerSeal } from './sealed-answer.ts';
import { mayBeInFlight, type Settlement, type SettlementStore } from './settlements.ts';

/** After its deadline a call may still be writing its end; only then does the reconciler take it. */
const RECONCILE_GRACE_MS = 15_000;
const FIRST_POLL_MS = 15;
const LAST_POLL_MS = 250;
/** For how long a chain may be asked to settle before somebody else may try: more than `settle` ever takes. */
const SETTLE_LEASE_MS = 45_000;
/** Of an `Idempotency-Key`, in characters. */
const KEY_LENGTH = { least: 1, most: 255 };
/** When a settlement that nobody could tell the end of is looked at again. */
const LOOK_AGAIN_MS = 2_000;

export interface PaidRequest {
  service: Service;
  method: string;
  headers: Headers;
  rawBody: Buffer | undefined;
  /** The caller's address, as `deriveAddress` tells it. */
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

export interface PaidCallParts {
  services: readonly Service[];
  /** The ways to pay here, in order: the first whose credential a request carries is asked. */
  rails: readonly Rail[];
  door: Door;
  calls: CallStore;
  settlements: SettlementStore;
  seal: AnswerSeal;
  /** After this a paid call that could not be delivered is refunded. */
  refundAfterMs: number;
  upstreams: Upstreams;
  availability(service: Service): Availability;
  catalog(): readonly CatalogLine[];
  /** What the house can do for this payer beside looking things up. */
  capabilitiesFor(proof: PayerProof): { [Name in keyof Capabilities]: Capabilities[Name] | undefined };
  addressLimit: RateLimit;
  payerLimit: RateLimit;
  maxConcurrentPerPayer: number;
  maxConcurrent: number;
  maxAnswerBytes: number;
  baseUrl: string;
  version: string;
  nowMs(): number;
  report(report: CallReport): void;
  /**
   * What a captured call still has to do before its answer may leave, such as granting what it bought. Asked before
   * every answer, so doing it again must change nothing.
   */
  beforeAnswer?(callId: string): Promise<void>;
  /** Where credit can be bought for a key now, best first; empty: nowhere. */
  addCreditAt(): readonly string[];
  /** Why an account's keys are frozen, as its owner may know it. */
  frozenBecause(accountId: bigint): Promise<{ owedMicros: bigint }>;
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

/** One request on its way to an answer. */
interface Work {
  request: PaidRequest;
  quote: Quote;
  payment: Payment;
  input: unknown;
  /** What the answer is bound to beside the payment; see `claim.ts`. */
  claim: Buffer | null;
  report: CallReport;
  money: MoneyOfCall;
}

/** What became of the caller's money so far; see `fate.ts`. */
interface MoneyOfCall {
  fate: Fate;
}

const ANSWER_HEADERS: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'private, no-store',
};

export interface PaidCall {
  handle(request: PaidRequest): Promise<PaidAnswer>;
  /** How many calls are running now. */
  readonly running: number;
}

/** Runs a service so that what it asks its upstreams to do is known again when the same call is tried again. */
function runInCall(
  service: Service,
  input: Parameters<Service['run']>[0],
  context: RunContext<UpstreamName>,
) {
  const scope = { callId: context.call.callId, isEffect: service.effect === 'write' };
  return inCall(scope, () => service.run(input, context));
}

/** Puts the paid call together. Challenges are made here, once for each service. */
export function createPaidCall(parts: PaidCallParts): PaidCall {
  const quotes = new Map<string, { quote: Quote; challenge: Challenge; revision: number }>();
  const revision = () => parts.rails.reduce((sum, rail) => sum + (rail.revision ?? 0), 0);
  for (const service of parts.services) {
    const quote: Quote = {
      service,
      priceMicros: usdToMicros(service.priceUsd),
      resourceUrl: `${parts.baseUrl}${parts.door.prefix}/${service.path}`,
    };
    quotes.set(service.path, { quote, challenge: parts.door.challenge(quote), revision: revision() });
  }
  const places = createPlaces(parts);

  function sold(service: Service) {
    const found = quotes.get(service.path);
    if (found === undefined) throw new Error(`${service.path} is not in the registry`);
    const current = revision();
    if (found.revision !== current) {
      found.challenge = parts.door.challenge(found.quote);
      found.revision = current;
    }
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
    const rail = parts.rails.find((candidate) => candidate.recognizes(request.headers));
    const money: MoneyOfCall = { fate: canRepeat(rail, request.headers) ? 'not looked' : 'free' };
    try {
      if (!addressVerdict.allowed) throw rateExceeded(addressVerdict);
      const availability = parts.availability(service);
      if (rail === undefined) {
        const earlier = await bought(request, quote, report, money);
        if (earlier !== null) {
          report.status = earlier.status;
          return { ...earlier, headers: { ...earlier.headers, ...rate } };
        }
        if (!availability.available) throw notForSale(availability);
        report.outcome = 'unpaid';
        report.status = 402;
        const { headers, body } = await challenge.answer(request);
        return { status: 402, headers: Object.assign(headers, rate), body };
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
      let payment: Payment;
      try {
        payment = await rail.read(request.headers, quote, { idempotencyKey, rawBody: request.rawBody });
      } catch (error) {
        const earlier = await boughtBefore(rail, request, quote, report, money);
        if (earlier === null) throw error;
        report.status = earlier.status;
        return { ...earlier, headers: { ...earlier.headers, ...rate } };
      }
      const payerVerdict = parts.payerLimit.take(payment.limitBy);
      rate = rateHeaders(payerVerdict);
      if (!payerVerdict.allowed) throw rateExceeded(payerVerdict);
      const input = readInput(service, request.rawBody);
      const claim = payment.onChain === null ? null : claimOn(service, input, payment, request.rawBody);
      const work: Work = { request, quote, payment, input, claim, report, money };
      const answer = await sell(work, rail.chains, availability);
      report.status = answer.status;
      return { ...answer, headers: { ...answer.headers, ...rate } };
    } catch (error) {
      return await refusal(error, request, quote, challenge, rail, rate, report, money);
    } finally {
      report.durationMs = parts.nowMs() - startedAtMs;
      parts.report(report);
    }
  }

  /** What a payer who signed in bought with this very request; null when the request carries no sign-in. */
  async function bought(
    request: PaidRequest,
    quote: Quote,
    report: CallReport,
    money: MoneyOfCall,
  ): Promise<PaidAnswer | null> {
    for (const rail of parts.rails) {
      const signedIn = await rail.signIn?.(request.headers, quote);
      if (signedIn === undefined || signedIn === null) continue;
      report.rail = rail.name;
      const { service } = request;
      const fingerprint = fingerprintOf(service, readInput(service, request.rawBody));
      const { accountId, payer } = signedIn;
      const callId = await parts.settlements.boughtBy(accountId, payer, service.path, fingerprint);
      if (callId !== null) return replay(quote, signedIn, callId, report, money);
      throw new PaymentRefused(
        'NOTHING_BOUGHT',
        'This wallet has no stored answer to this request.',
        'Pay for it, or send the very body that was paid for.',
      );
    }
    return null;
  }

  /** What a payment bought that would not be taken now: terms change, and chains are away at times. */
  async function boughtBefore(
    rail: Rail,
    request: PaidRequest,
    quote: Quote,
    report: CallReport,
    money: MoneyOfCall,
  ): Promise<PaidAnswer | null> {
    const recalled = await rail.recall?.(request.headers);
    if (recalled === undefined || recalled === null) return null;
    const { service, rawBody } = request;
    const input = readInput(service, rawBody);
    let claim: Buffer | null;
    try {
      claim = claimOn(service, input, recalled, rawBody);
    } catch {
      // Who shows no claim gets nothing here, and hears what is wrong with the payment.
      return null;
    }
    const fingerprint = claimedFingerprint(fingerprintOf(service, input), claim);
    for (const key of recalled.keys) {
      const { accountId } = recalled;
      const earlier = await parts.calls.look(
        { accountId, keyId: null, identity: key, paymentKey: key },
        fingerprint,
      );
      if (earlier?.status === 'answered') return replay(quote, recalled, earlier.callId, report, money);
      if (earlier?.status === 'settling') {
        report.callId = earlier.callId;
        throw settlementUnknown(report, money, undefined);
      }
    }
    return null;
  }

  /** From a checked request to its answer. */
  async function sell(
    work: Work,
    chains: Chains | undefined,
    availability: Availability,
  ): Promise<PaidAnswer> {
    const { request, quote, payment, input, claim, report, money } = work;
    const { service } = request;
    const fingerprint =
      payment.identity === null ? null : claimedFingerprint(fingerprintOf(service, input), claim);
    if (!availability.available) {
      // What was bought before is still delivered; nothing new is sold.
      const { accountId, keyId, identity } = payment;
      const earlier =
        identity === null || fingerprint === null
          ? null
          : await parts.calls.look(
              { accountId, keyId, identity, paymentKey: payment.onChain?.key ?? null },
              fingerprint,
            );
      if (earlier === null) {
        money.fate = 'free';
        throw notForSale(availability);
      }
      if (earlier.status === 'key_frozen') throw await frozen(payment);
      if (earlier.status !== 'answered') throw reservationRefused(earlier, quote, report);
      return replay(quote, payment, earlier.callId, report, money);
    }

    const leave = places.enter(payment.limitBy);
    try {
      const call: OpenedCall = {
        id: newTransferId(parts.nowMs()),
        accountId: payment.accountId,
        service: service.path,
        // A transfer that its payer made by itself may be of more than the price: what came is what is booked.
        priceMicros: payment.onChain?.amountUnits ?? quote.priceMicros,
        revenue: payment.revenue,
      };
      if (request.gone()) throw new CallerGone();
      const begun = await begin(call, work, fingerprint);
      if (begun.status === 'answered') return await replay(quote, payment, begun.callId, report, money);
      if (begun.status === 'leased') {
        money.fate = begun.settlement.state === 'settled' ? 'taken' : 'open';
        if (chains === undefined) throw new Error(`${payment.rail} has no chains`);
        report.callId = begun.settlement.callId;
        if (request.gone()) {
          await parts.settlements.later(begun.settlement, 0).catch(() => {});
          throw new CallerGone();
        }
        return await proceed(work, chains, begun.settlement);
      }
      if (begun.status === 'key_frozen') throw await frozen(payment);
      if (begun.status !== 'authorized') throw reservationRefused(begun, quote, report);
      report.callId = call.id;
      money.fate = 'free';
      if (request.gone()) {
        await release(call, 'CLIENT_GONE');
        throw new CallerGone();
      }
      if (payment.onChain !== null) {
        if (chains === undefined) throw new Error(`${payment.rail} has no chains`);
        return await sellOnChain(work, chains, call, payment.onChain);
      }

      const body = await runOrRelease(work, call);
      if (payment.identity === null && request.gone()) {
        // Nobody reads this answer and nobody could ask for it again.
        await release(call, 'CLIENT_GONE');
        throw new CallerGone();
      }
      const answer = payment.identity === null ? null : stored(service, call.id, body);
      return await deliver(work, call.id, body, await capture(call, answer, money), null);
    } finally {
      leave();
    }
  }

  /** A call that was claimed, and whose money a chain must move. */
  async function sellOnChain(
    work: Work,
    chains: Chains,
    call: OpenedCall,
    onChain: OnChainPayment,
  ): Promise<PaidAnswer> {
    const { service } = work.quote;
    try {
      await chains.verify(onChain);
      if (service.secretAnswer) await refuseIfPublic(chains, onChain);
    } catch (error) {
      await release(call, error instanceof PaymentRefused ? error.code : 'NOT_VERIFIED');
      throw error;
    }
    const body = service.effect === 'read' ? await runOrRelease(work, call) : null;
    work.money.fate = 'open';
    const kept = await parts.calls
      .keep({
        id: call.id,
        accountId: call.accountId,
        rail: work.payment.rail,
        payment: claimed(onChain, work.claim),
        answer: body === null ? null : stored(service, call.id, body),
        leaseMs: SETTLE_LEASE_MS,
      })
      .catch((error: unknown) => {
        // If it was kept the reconciler goes on with it; if not, the reservation has an end of its own.
        throw settlementUnknown(work.report, work.money, error);
      });
    if (kept.status === 'not_open') {
      work.money.fate = 'free';
      throw tookTooLong();
    }
    const settlement: Settlement = {
      ...call,
      callId: call.id,
      rail: work.payment.rail,
      payment: onChain,
      captured: false,
      answered: body !== null,
      state: 'with_chain',
      transaction: null,
      blockNumber: null,
      attempts: 0,
      missed: 0,
      createdAtMs: parts.nowMs(),
    };
    return proceed(work, chains, settlement, body);
  }

  /**
   * Who presents a payment for the first time before it has settled has it from its payer. One that stands on the chain
   * already may come from whoever read it there: that is good enough for an answer, and not for a secret in the payer's
   * name.
   */
  async function refuseIfPublic(chains: Chains, onChain: OnChainPayment): Promise<void> {
    const looked = await chains.look(onChain);
    if (looked.status === 'open') return;
    if (looked.status === 'refused' || looked.status === 'dead') throw looked.refusal;
    if (looked.status === 'unknown')
      throw unavailable('CHAIN_UNAVAILABLE', 'The chain does not answer.', 5_000, {}, looked.cause);
    throw new PaymentRefused(
      'PAYMENT_PUBLIC_BEFORE',
      'This payment stood on the chain before it was presented here: whoever read it there could take the secret that it buys. It was not used.',
      'Sign a new payment, and let nobody settle it before it is presented here. The one that settled still buys a call whose answer holds no secret.',
    );
  }

  /** From wherever a kept call stands to its answer. Whoever calls this holds its lease. */
  async function proceed(
    work: Work,
    chains: Chains,
    settlement: Settlement,
    body: string | null = null,
  ): Promise<PaidAnswer> {
    const { quote, report, money } = work;
    const call: OpenedCall = { ...settlement, id: settlement.callId };
    const at =
      settlement.state === 'settled' && settlement.transaction !== null
        ? { transaction: settlement.transaction, blockNumber: settlement.blockNumber }
        : await settledOrThrow(await chains.settle(settlement.payment), settlement, call, report, money);
    money.fate = 'taken';
    if (settlement.answered) {
      const captured = await capture(call, null, money, at);
      if (body === null) return replay(quote, work.payment, call.id, report, money);
      return deliver(work, call.id, body, captured, at.transaction);
    }
    // It is paid, and the service has still to run.
    await parts.settlements.markSettled(settlement, at, quote.service.timeoutMs + RECONCILE_GRACE_MS);
    let made: string;
    try {
      made = await run(work, call.id);
    } catch (error) {
      await parts.settlements.later(settlement, 0).catch(() => {});
      throw paidButFailed(error, settlement, report);
    }
    const captured = await capture(call, stored(quote.service, call.id, made), money, at);
    // Somebody who believed this process dead may have been faster: a payment has one answer, the one that is stored.
    const kept = await parts.calls.answerOf(call.accountId, call.id);
    if (kept !== null && parts.seal.open(call.id, kept.body) !== made)
      return replay(quote, work.payment, call.id, report, money);
    return deliver(work, call.id, made, captured, at.transaction);
  }

  async function settledOrThrow(
    verdict: ChainVerdict,
    settlement: Settlement,
    call: OpenedCall,
    report: CallReport,
    money: MoneyOfCall,
  ): Promise<{ transaction: string; blockNumber: bigint | null }> {
    switch (verdict.status) {
      case 'settled':
        return { transaction: verdict.transaction, blockNumber: verdict.blockNumber };
      case 'dead':
        await parts.calls
          .finish({ ...call, capture: false, outcome: verdict.refusal.code, answer: null, settled: null })
          .catch(() => {});
        money.fate = 'free';
        throw verdict.refusal;
      case 'refused':
        if (mayBeInFlight(settlement)) break;
        // The answer stays withheld: once the payer has put right what was wrong, this payment may still settle.
        await parts.settlements.markRefused(settlement, verdict.refusal.code).catch(() => {});
        money.fate = 'free';
        throw verdict.refusal;
      default:
        break;
    }
    await parts.settlements.later(settlement, LOOK_AGAIN_MS).catch(() => {});
    throw settlementUnknown(report, money, verdict.status === 'unknown' ? verdict.cause : undefined);
  }

  function settlementUnknown(report: CallReport, money: MoneyOfCall, cause: unknown): Problem {
    report.outcome = 'unsettled';
    money.fate = 'open';
    return unavailable(
      'SETTLEMENT_UNKNOWN',
      'The chain has not said yet whether the payment settled.',
      LOOK_AGAIN_MS,
      report.callId === null ? {} : { receipt: receiptUrl(report.callId) },
      cause,
    );
  }

  function receiptUrl(callId: string): string {
    return `${parts.baseUrl}/x402/receipts/${callId}`;
  }

  /** The money has come and the service failed: the same payment may try again, and is refunded after a while. */
  function paidButFailed(error: unknown, settlement: Settlement, report: CallReport): Problem {
    const problem = asProblem(error, report);
    return new Problem(problem.status, problem.code, problem.message, {
      cause: error,
      headers: { ...problem.headers },
      details: {
        ...problem.details,
        refund: {
          dueAt: new Date(settlement.createdAtMs + parts.refundAfterMs).toISOString(),
          receipt: receiptUrl(settlement.callId),
        },
      },
    });
  }

  function stored(service: Service, callId: string, body: string): StoredAnswer {
    return {
      status: 200,
      headers: ANSWER_HEADERS,
      body: service.secretAnswer ? parts.seal.seal(callId, body) : body,
    };
  }

  async function deliver(
    { payment, quote, report, money }: Work,
    callId: string,
    body: string,
    captured: { availableMicros: bigint },
    transaction: string | null,
  ): Promise<PaidAnswer> {
    report.outcome = 'captured';
    money.fate = 'taken';
    await finishPurchase(callId);
    const { priceMicros } = quote;
    const receipt = payment.receipt({
      callId,
      priceMicros,
      availableMicros: payment.onChain === null ? captured.availableMicros : null,
      transaction,
    });
    return {
      status: 200,
      headers: { ...ANSWER_HEADERS, ...parts.door.headers, ...receipt, 'x-call-id': callId },
      body,
    };
  }

  /** The price is taken: what is left to do may fail now, and be done when the answer is asked for again. */
  async function finishPurchase(callId: string): Promise<void> {
    await parts.beforeAnswer?.(callId).catch((error: unknown) => {
      throw unavailable(
        'OUTCOME_UNKNOWN',
        'What the payment bought could not be handed over yet.',
        LOOK_AGAIN_MS,
        { receipt: receiptUrl(callId) },
        error,
      );
    });
  }

  async function runOrRelease(work: Work, call: OpenedCall): Promise<string> {
    try {
      return await run(work, call.id);
    } catch (error) {
      await release(call, error instanceof ServiceFailure ? error.code : 'FAILED');
      throw error;
    }
  }

  /** Reserves and claims; waits while the same request runs elsewhere with the same payment. */
  async function begin(
    call: OpenedCall,
    { request, payment }: Work,
    fingerprint: Buffer | null,
  ): Promise<BeginOutcome | { status: 'leased'; settlement: Settlement }> {
    const { service } = request;
    const untilMs = parts.nowMs() + service.timeoutMs + RECONCILE_GRACE_MS;
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LAST_POLL_MS)) {
      const begun = await parts.calls
        .begin({
          ...call,
          keyId: payment.keyId,
          rail: payment.rail,
          identity: payment.identity,
          paymentKey: payment.onChain?.key ?? null,
          fingerprint,
          ttlMs: service.timeoutMs + RECONCILE_GRACE_MS,
        })
        .catch((error: unknown) => {
          if (error instanceof QueueFull || error instanceof NotBegun) throw error;
          // It may have been reserved all the same. Give it back now if we can; the reconciler will if we cannot.
          void release(call, 'BEGIN_UNKNOWN');
          throw unavailable('LEDGER_UNAVAILABLE', 'The ledger does not answer.', 2_000, {}, error);
        });
      if (begun.status === 'settling') {
        const settlement = await parts.settlements.lease(call.accountId, begun.callId, SETTLE_LEASE_MS);
        if (settlement !== null && !settlement.captured) return { status: 'leased', settlement };
      } else if (begun.status !== 'running') return begun;
      if (parts.nowMs() >= untilMs) return begun;
      await sleep(pollMs);
      if (request.gone()) throw new CallerGone();
    }
  }

  /** Runs the service within its deadline and writes its answer as it will be sent. */
  async function run({ quote, payment, input }: Work, callId: string): Promise<string> {
    const { service } = quote;
    const startedAtMs = parts.nowMs();
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
      ...parts.capabilitiesFor(payment.proof),
      baseUrl: parts.baseUrl,
      version: parts.version,
      get signal() {
        return deadline.signal;
      },
      nowMs: parts.nowMs,
    };
    try {
      const made = await deadline.race(runInCall(service, input, context), service.timeoutMs);
      const fields = service.output.safeParse(made.fields);
      if (!fields.success) throw new Error(`the answer does not fit its own schema: ${fields.error.message}`);
      const body = JSON.stringify({
        success: true,
        service: service.path,
        ...fields.data,
        ...parts.door.fields({ startedAtMs, nowMs: parts.nowMs() }),
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
    money: MoneyOfCall,
    settled?: { transaction: string; blockNumber: bigint | null },
  ): Promise<{ availableMicros: bigint }> {
    let finished: Awaited<ReturnType<CallStore['finish']>>;
    try {
      finished = await parts.calls.finish({
        ...call,
        capture: true,
        outcome: 'answered',
        answer,
        ...(settled === undefined ? {} : { settled }),
      });
    } catch (error) {
      if (settled !== undefined) {
        throw unavailable(
          'OUTCOME_UNKNOWN',
          'The payment settled, and its answer could not be released yet.',
          2_000,
          { transaction: settled.transaction, receipt: receiptUrl(call.id) },
          error,
        );
      }
      // It may have been taken. Whoever can ask again gets the answer then; for the others it is given back. If it was
      // not taken, the payment becomes free to buy again.
      parts.undelivered({ ...call, retrievable: answer !== null });
      money.fate = answer === null ? 'given back' : 'open';
      throw unavailable('OUTCOME_UNKNOWN', 'The payment could not be completed.', 2_000, {}, error);
    }
    if (finished.status === 'not_open') {
      // Somebody who believed this process dead has ended it: released, if no chain has moved its money.
      money.fate = settled === undefined ? 'free' : 'open';
      throw tookTooLong();
    }
    return finished;
  }

  async function release(call: OpenedCall, outcome: string): Promise<void> {
    // If this fails the reconciler does it: the reservation has an end of its own.
    await parts.calls.finish({ ...call, capture: false, outcome, answer: null }).catch(() => {});
  }

  async function replay(
    quote: Quote,
    payment: Pick<Payment, 'accountId' | 'receipt'>,
    callId: string,
    report: CallReport,
    money: MoneyOfCall,
  ): Promise<PaidAnswer> {
    money.fate = 'taken';
    const stored = await parts.calls.answerOf(payment.accountId, callId);
    if (stored === null) {
      report.outcome = 'conflict';
      money.fate = 'spent';
      throw new Problem(
        409,
        'ANSWER_EXPIRED',
        'This payment was answered, and its answer is not kept any more.',
        {
          details: { hint: 'Use a new Idempotency-Key, or sign a new payment.', callId },
        },
      );
    }
    report.outcome = 'replayed';
    report.callId = callId;
    const told = { 'idempotent-replayed': 'true', 'x-call-id': callId };
    const body = parts.seal.open(callId, stored.body);
    if (stored.status >= 300) {
      // It tells of a refund: no proof of purchase, and in the words of this door.
      const { code, message, ...details } = JSON.parse(body);
      money.fate = 'refunded';
      throw new Problem(stored.status, code, message, { details, headers: told });
    }
    await finishPurchase(callId);
    return {
      status: stored.status,
      headers: {
        ...stored.headers,
        ...parts.door.headers,
        ...payment.receipt({
          callId,
          priceMicros: stored.transaction === null ? 0n : quote.priceMicros,
          availableMicros: null,
          transaction: stored.transaction,
        }),
        ...told,
      },
      body,
    };
  }

  function addCredit(): string {
    const urls = parts.addCreditAt();
    if (urls.length === 0) return 'Ask the operator for credit.';
    return `Add credit with this key in X-API-KEY: POST ${urls.join(', or ')}.`;
  }

  async function frozen({ accountId }: Payment): Promise<PaymentRefused> {
    const { owedMicros } = await parts.frozenBecause(accountId);
    if (owedMicros === 0n)
      return new PaymentRefused('API_KEY_FROZEN', 'This API key is frozen.', 'Ask the operator why.');
    const owedUsd = microsToUsd(owedMicros, 4);
    return new PaymentRefused(
      'ACCOUNT_OWES',
      `A payment for this key went back after its credit was spent: it owes ${owedUsd} USD.`,
      `${addCredit()} It pays what is owed first, and the key works again.`,
      { owedUsd, addCreditAt: parts.addCreditAt() },
    );
  }

  function reservationRefused(begun: BeginOutcome, quote: Quote, report: CallReport): Error {
    const requiredUsd = microsToUsd(quote.priceMicros, 4);
    const trial = `take a trial key: GET ${parts.baseUrl}/api/m2m/credits/trial`;
    switch (begun.status) {
      case 'insufficient':
        return new PaymentRefused(
          'INSUFFICIENT_CREDITS',
          `This key has ${microsToUsd(begun.availableMicros, 4)} USD available; the call costs ${requiredUsd} USD.`,
          `${addCredit()} Or wait for running calls to release theirs.`,
          {
            balanceUsd: microsToUsd(begun.availableMicros, 4),
            requiredUsd,
            addCreditAt: parts.addCreditAt(),
          },
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
          details: {
            hint: quote.service.secretAnswer
              ? 'Send the very body, and the very terms or claimSecret, that it was first presented with; or sign a new payment for a new request.'
              : 'Use a new Idempotency-Key, or sign a new payment, for a new request.',
          },
        });
      default:
        report.outcome = 'conflict';
        return unavailable('STILL_RUNNING', 'The same request is still running.', 2_000);
    }
  }

  /** Turns whatever was thrown into an answer that says what became of the money. */
  async function refusal(
    error: unknown,
    request: PaidRequest,
    quote: Quote,
    challenge: Challenge,
    rail: Rail | undefined,
    rate: Record<string, string>,
    report: CallReport,
    { fate }: MoneyOfCall,
  ): Promise<PaidAnswer> {
    if (error instanceof CallerGone) {
      report.outcome = 'abandoned';
      report.status = 499;
      return { status: 499, headers: {}, body: '' };
    }
    if (error instanceof PaymentRefused) {
      report.outcome = 'refused';
      report.status = 402;
      report.reason = error.code;
      const remaining = error.details.balanceUsd;
      const { headers, body } = await challenge.answer(request, error);
      return {
        status: 402,
        headers: {
          ...headers,
          ...rail?.refusedHeaders?.(error, quote),
          ...rate,
          ...(typeof remaining === 'string' ? { 'x-credits-remaining': remaining } : {}),
        },
        body,
      };
    }
    const problem = tellFate(asProblem(error, report), fate);
    report.status = problem.status;
    const { headers, body } = parts.door.dress(problem, request.requestId);
    return {
      status: problem.status,
      headers: { 'cache-control': 'no-store', ...headers, ...rate, ...problem.headers },
      body: JSON.stringify(body),
    };
  }

  return {
    handle,
    get running() {
      return places.taken;
    },
  };
}

/** With what its answer is bound to: a payer who signs in has no claim, and is looked up without. */
function claimed(onChain: OnChainPayment, claim: Buffer | null): OnChainPayment {
  return claim === null
    ? onChain
    : { ...onChain, evidence: { ...onChain.evidence, claim: claim.toString('hex') } };
}

/** Whether a request may be the repeat of one that was charged: a chain's payment, or one with a key of its own. */
function canRepeat(rail: Rail | undefined, headers: Headers): boolean {
  return rail !== undefined && (rail.chains !== undefined || headers['idempotency-key'] !== undefined);
}

function readIdempotencyKey(headers: Headers): string | null {
  const sent = idempotencyKeyOf(headers, KEY_LENGTH);
  if (sent !== 'unfit') return sent?.key ?? null;
  throw invalidRequest('Idempotency-Key must be 1 to 255 printable characters without spaces.', [
    { field: 'Idempotency-Key', message: '1 to 255 printable ASCII characters without spaces' },
  ]);
}
