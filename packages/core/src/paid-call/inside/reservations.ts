/** The price of a call: reserved before the work, then taken or given back. */
import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../http/problem.ts';
import { NotBegun, QueueFull } from '../../ledger/group-commit.ts';
import { mustBeRefundable } from '../rail.ts';
import { inFlightOf, longestMs, type Sale, streamOf } from '../sale.ts';
import type { Settlement, SettlementStore } from '../settlements.ts';
import type { BeginOutcome, FinishOutcome, PaymentInFlight, PricedCall, StoredAnswer } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import { CallerGone, tookTooLong } from './outcome.ts';
import { receiptOf } from './refusal.ts';

/** A call may need this long after its deadline to write its end. Only then does the reconciler take it. */
export const RECONCILE_GRACE_MS = 15_000;
/** How long one process may take to settle a payment before another may try: longer than `settle` ever takes. */
export const SETTLE_LEASE_MS = 45_000;
const FIRST_POLL_MS = 15;
const LAST_POLL_MS = 250;
/** How often a payer's balance is read before its payments in flight count as too many: some may have settled just now. */
const BALANCE_READINGS = 3;
const FIRST_READING_PAUSE_MS = 250;

export interface ReservationsParts {
  calls: CallStore;
  settlements: Pick<SettlementStore, 'lease'>;
  receiptsUrl: string;
  nowMs(): number;
  /** Called for a call that may have been captured without its answer being delivered. */
  undelivered(call: PricedCall & { retrievable: boolean }): void;
}

export class Reservations {
  readonly #parts: ReservationsParts;

  constructor(parts: ReservationsParts) {
    this.#parts = parts;
  }

  /**
   * Reserves the price and claims the payment. Waits while the same request runs elsewhere with the same payment.
   *
   * @throws Problem 503 when the ledger does not answer, or a chain that is asked for a balance
   */
  async begin(
    call: PricedCall,
    sale: Sale,
    fingerprint: Buffer | null,
  ): Promise<BeginOutcome | { status: 'leased'; settlement: Settlement }> {
    const { settlements, nowMs } = this.#parts;
    const { request } = sale;
    const { service } = request;
    const untilMs = nowMs() + service.timeoutMs + RECONCILE_GRACE_MS;
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LAST_POLL_MS)) {
      const begun = await this.#beginWithin(call, sale, fingerprint);
      if (begun.status === 'settling') {
        const settlement = await settlements.lease(call.accountId, begun.callId, SETTLE_LEASE_MS);
        if (settlement !== null && !settlement.captured) return { status: 'leased', settlement };
      } else if (begun.status !== 'running') return begun;
      if (nowMs() >= untilMs) return begun;
      await sleep(pollMs);
      if (request.gone()) throw new CallerGone();
    }
  }

  /**
   * Begins a call, if its payer holds the price beside everything that it has in flight. Its balance is read only where
   * there is something in flight.
   */
  async #beginWithin(call: PricedCall, sale: Sale, fingerprint: Buffer | null): Promise<BeginOutcome> {
    const { request, payment, rail } = sale;
    const inFlight = inFlightOf(sale);
    for (let reading = 0; ; reading++) {
      const begun = await this.#begin(call, sale, fingerprint, inFlight);
      if (begun.status !== 'balance_needed' && begun.status !== 'balance_exceeded') return begun;
      if (rail.chains === undefined || payment.onChain === null || inFlight === null)
        throw new Error(`${rail.name} has nothing in flight`);
      if (reading >= BALANCE_READINGS) return begun;
      if (begun.status === 'balance_exceeded') await sleep(FIRST_READING_PAUSE_MS * 2 ** (reading - 1));
      if (request.gone()) throw new CallerGone();
      const units = await rail.chains.balanceOf(payment.onChain).catch((error: unknown) => {
        throw unavailable('CHAIN_UNAVAILABLE', 'The chain does not answer.', 5_000, {}, error);
      });
      inFlight.balance = { units, since: begun.since };
    }
  }

  #begin(
    call: PricedCall,
    sale: Sale,
    fingerprint: Buffer | null,
    inFlight: PaymentInFlight | null,
  ): Promise<BeginOutcome> {
    const { payment } = sale;
    return this.#parts.calls
      .begin({
        ...call,
        keyId: payment.keyId,
        rail: payment.rail,
        identity: payment.identity,
        onChainIdentity: payment.onChain?.identity ?? null,
        inFlight,
        fingerprint,
        ttlMs: longestMs(sale) + RECONCILE_GRACE_MS,
        mayBeLost: mayBeLost(sale),
        terms: sale.terms,
      })
      .catch((error: unknown) => {
        if (error instanceof QueueFull || error instanceof NotBegun) throw error;
        // The reservation may have been committed all the same. Release it now if possible; otherwise the reconciler
        // will.
        void this.release(call, 'BEGIN_UNKNOWN');
        throw unavailable('LEDGER_UNAVAILABLE', 'The ledger does not answer.', 2_000, {}, error);
      });
  }

  /**
   * Takes the price, or what was measured of it: nothing, if that is what it measured. An answer is delivered only after this.
   *
   * @param call.takenMicros what its answer costs, where that was measured
   * @param settled the transaction that moved the money; absent for a payment inside the ledger
   */
  async capture(
    sale: Sale,
    call: PricedCall & { takenMicros?: bigint },
    answer: StoredAnswer | null,
    settled?: { transaction: string; blockNumber: bigint | null },
  ): Promise<{ availableMicros: bigint | null }> {
    const { money, payment } = sale;
    if (call.takenMicros === 0n) return this.#takeNothing(call);
    let finished: FinishOutcome;
    try {
      finished = await this.#parts.calls.finish({
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
          { transaction: settled.transaction, ...receiptOf(sale, this.#parts.receiptsUrl, call.id) },
          error,
        );
      }
      // The price may have been taken. Payers who can ask again get the answer then; the others get the price back. If
      // it was not taken, the payment can be used again.
      this.#parts.undelivered({ ...call, retrievable: payment.identity !== null });
      money.fate = payment.identity === null ? 'given back' : 'open';
      throw unavailable('OUTCOME_UNKNOWN', 'The payment could not be completed.', 2_000, {}, error);
    }
    if (finished.status === 'not_open') {
      // Another process that took this one for dead has ended the call. It released it, unless a chain had moved its
      // money.
      money.fate = settled === undefined ? 'free' : 'open';
      throw tookTooLong();
    }
    return finished;
  }

  /**
   * Ends a call whose answer measured nothing. Its payment is free again; if the ledger does not answer, a job gives the price back.
   */
  async #takeNothing({ takenMicros: _, ...call }: PricedCall & { takenMicros?: bigint }) {
    const ended = await this.#parts.calls
      .finish({ ...call, capture: false, outcome: 'MEASURED_NOTHING', answer: null })
      .catch(() => null);
    return { availableMicros: ended?.status === 'done' ? ended.availableMicros : null };
  }

  /**
   * Asks the follower of the call whether it still wants it. This is the last moment to withdraw.
   *
   * @throws CallerGone when the call was withdrawn; its price is given back
   */
  async assertWanted({ request, money }: Sale, call: PricedCall): Promise<void> {
    if (request.follow === undefined) return;
    try {
      if (!(await request.follow.stillWanted())) throw new CallerGone();
    } catch (error) {
      money.fate = 'free';
      await this.release(call, error instanceof CallerGone ? 'TAKEN_BACK' : 'FAILED');
      throw error;
    }
  }

  /**
   * Gives the price back. Never throws: a reservation that is not released here expires, and the reconciler releases
   * it.
   */
  async release(call: PricedCall, outcome: string): Promise<void> {
    await this.#parts.calls.finish({ ...call, capture: false, outcome, answer: null }).catch(() => {});
  }
}

/**
 * Whether the database may forget that the call was begun, if it crashes before the call is kept or captured. Not where its money
 * may move before its service runs (whether a payer is known turns out as it begins), where pieces of its answer leave before the
 * capture, or where an answer may turn out to cost nothing and leave without one.
 */
function mayBeLost(sale: Sale): boolean {
  const { quote, payment } = sale;
  const { service } = quote;
  if (mustBeRefundable(quote) || streamOf(sale) !== null || service.metered !== null) return false;
  return payment.onChain === null || !service.costsMoney;
}
