/**
 * A call whose money a chain has to move. The answer is stored before the chain is asked to settle, and withheld until
 * it has:
 *
 *   claimed ─► would it settle? ─► the service runs ─► answer kept ─► settle ─► captured ─► 2xx with receipt
 *
 * From then on only the chain's word counts. While the outcome is unknown, nobody is told to pay again. Whoever
 * presents the payment again, on any replica, continues where it stands, and so does the reconciler. A service with a
 * lasting effect runs after the money has moved, and so does one that costs us money, for a payer who has not paid before.
 * It may refuse before what it could not answer (`beforeSettling`). If it fails, the same payment may try again, and after a while it is
 * refunded.
 */
import { Problem, unavailable } from '../../http/problem.ts';
import { traced } from '../../tracing/traced.ts';
import { ServiceFailure } from '../../words/failure.ts';
import { type Chains, type ChainVerdict, type OnChainPayment, PaymentRefused } from '../rail.ts';
import { longestMs, type MadeAnswer, type PaidAnswer, type Sale, streamOf } from '../sale.ts';
import { callOf, mayBeInFlight, type Settlement, type SettlementStore } from '../settlements.ts';
import type { Answers } from './answers.ts';
import type { PricedCall } from './call-steps.ts';
import type { CallStore } from './calls.ts';
import { asProblem, CallerGone, tookTooLong } from './outcome.ts';
import { LOOK_AGAIN_MS, receiptOf, settlementUnknown } from './refusal.ts';
import { RECONCILE_GRACE_MS, type Reservations, SETTLE_LEASE_MS } from './reservations.ts';
import type { Runner } from './running.ts';
import type { Streams } from './streams.ts';

export interface OnChainParts {
  calls: CallStore;
  settlements: Pick<SettlementStore, 'later' | 'markRefused' | 'markSettled'>;
  answers: Answers;
  reservations: Reservations;
  runner: Pick<Runner, 'beforeSettling' | 'run'>;
  streams: Pick<Streams, 'sell'>;
  receiptsUrl: string;
  /** After this time a paid call that could not be delivered is refunded. */
  refundAfterMs: number;
  nowMs(): number;
}

/** The transaction and block in which the chain moved the money. */
interface SettledAt {
  transaction: string;
  blockNumber: bigint | null;
}

export class OnChainSales {
  readonly #parts: OnChainParts;

  constructor(parts: OnChainParts) {
    this.#parts = parts;
  }

  /**
   * Sells a call whose payment was claimed just now.
   *
   * @param isKnownPayer false: the service costs money and its payer has not paid before, so the payment settles first
   *   where it can be sent back
   */
  async sell(
    sale: Sale,
    call: PricedCall,
    onChain: OnChainPayment,
    isKnownPayer: boolean,
  ): Promise<PaidAnswer> {
    const { answers, reservations, runner } = this.#parts;
    const { service } = sale.quote;
    const chains = chainsOf(sale);
    try {
      await traced('verify', () => chains.verify(onChain), { network: onChain.network });
      if (service.secretAnswer) await refuseIfPublic(chains, onChain);
    } catch (error) {
      await reservations.release(call, error instanceof PaymentRefused ? error.code : 'NOT_VERIFIED');
      throw error;
    }
    sale.request.follow?.verified();
    let made: MadeAnswer | null = null;
    const settlesFirst =
      service.effect === 'write' ||
      streamOf(sale) !== null ||
      (!isKnownPayer && chains.canRefund(onChain.network));
    try {
      if (settlesFirst) await runner.beforeSettling(sale, call.id);
      else made = await traced('run', () => runner.run(sale, call.id));
    } catch (error) {
      await reservations.release(call, error instanceof ServiceFailure ? error.code : 'FAILED');
      throw error;
    }
    await reservations.assertWanted(sale, call);
    sale.money.fate = 'open';
    const kept = await this.#parts.calls
      .keep({
        id: call.id,
        accountId: call.accountId,
        bucket: call.bucket,
        rail: sale.payment.rail,
        payment: claimed(onChain, sale.claim),
        answer: made === null ? null : answers.toKeep(service, call.id, made),
        leaseMs: SETTLE_LEASE_MS,
        mayBeLost: made !== null && chains.asksIfKept?.(onChain) === true,
      })
      .catch((error: unknown) => {
        // If the payment was stored, the reconciler finishes it. If it was not, its reservation expires.
        throw settlementUnknown(sale, this.#parts.receiptsUrl, error);
      });
    if (kept.status === 'not_open') {
      sale.money.fate = 'free';
      throw tookTooLong();
    }
    const settlement: Settlement = {
      accountId: call.accountId,
      bucket: call.bucket,
      callId: call.id,
      service: call.service,
      priceMicros: call.priceMicros,
      revenue: call.revenue,
      rail: sale.payment.rail,
      payment: onChain,
      captured: false,
      answered: made !== null,
      state: 'with_chain',
      transaction: null,
      blockNumber: null,
      attempts: 0,
      missed: 0,
      createdAtMs: this.#parts.nowMs(),
    };
    return this.proceed(sale, settlement, made);
  }

  /**
   * Takes a kept call from wherever it stands to its answer. The caller must hold its lease.
   *
   * @param made the answer, if this request made it
   */
  async proceed(sale: Sale, settlement: Settlement, made: MadeAnswer | null = null): Promise<PaidAnswer> {
    const { answers, reservations, settlements, runner } = this.#parts;
    const { quote, money, payment } = sale;
    const call = callOf(settlement);
    const settle = () => chainsOf(sale).settle(settlement.payment);
    const { network } = settlement.payment;
    const at =
      settlement.state === 'settled' && settlement.transaction !== null
        ? { transaction: settlement.transaction, blockNumber: settlement.blockNumber }
        : await this.#settledOrThrow(sale, settlement, await traced('settle', settle, { network }));
    const { transaction } = at;
    money.fate = 'taken';
    if (settlement.answered) {
      const captured = await traced('capture', () => reservations.capture(sale, call, null, at));
      if (made === null) return answers.replay(sale, payment, call.id);
      return answers.deliver(sale, call.id, made, { ...captured, transaction });
    }
    // The call is paid, and the service has still to run.
    await settlements.markSettled(settlement, at, longestMs(sale) + RECONCILE_GRACE_MS);
    const stream = streamOf(sale);
    if (stream !== null) {
      return this.#parts.streams.sell(sale, stream, call, {
        receipt: { availableMicros: null, transaction },
        settled: at,
        failed: async (error) => {
          await settlements.later(settlement, 0).catch(() => {});
          return error instanceof CallerGone ? error : this.#paidButFailed(sale, settlement, error);
        },
      });
    }
    let late: MadeAnswer;
    try {
      late = await traced('run', () => runner.run(sale, call.id));
    } catch (error) {
      await settlements.later(settlement, 0).catch(() => {});
      throw this.#paidButFailed(sale, settlement, error);
    }
    const stored = answers.toKeep(quote.service, call.id, late);
    const captured = await traced('capture', () => reservations.capture(sale, call, stored, at));
    // Another process that took this one for dead may have stored its answer first. A payment has one answer: the
    // stored one.
    if (!(await answers.isKept(call, stored))) return answers.replay(sale, payment, call.id);
    return answers.deliver(sale, call.id, late, { ...captured, transaction });
  }

  /** @returns where the money moved @throws what the caller is told when it did not move, or when that is unknown */
  async #settledOrThrow(sale: Sale, settlement: Settlement, verdict: ChainVerdict): Promise<SettledAt> {
    const { calls, settlements } = this.#parts;
    switch (verdict.status) {
      case 'settled':
        return { transaction: verdict.transaction, blockNumber: verdict.blockNumber };
      case 'dead': {
        const ended = { capture: false, outcome: verdict.refusal.code, answer: null, settled: null };
        await calls.finish({ ...callOf(settlement), ...ended }).catch(() => {});
        sale.money.fate = 'free';
        throw verdict.refusal;
      }
      case 'refused':
        if (mayBeInFlight(settlement)) break;
        // The answer stays withheld: this payment may still settle once the payer has corrected what was wrong.
        await settlements.markRefused(settlement, verdict.refusal.code).catch(() => {});
        sale.money.fate = 'free';
        throw verdict.refusal;
      default:
        break;
    }
    await settlements.later(settlement, LOOK_AGAIN_MS).catch(() => {});
    const cause = verdict.status === 'unknown' ? verdict.cause : undefined;
    throw settlementUnknown(sale, this.#parts.receiptsUrl, cause);
  }

  /** The money has moved and the service failed. The same payment may try again, and is refunded after a while. */
  #paidButFailed(sale: Sale, settlement: Settlement, error: unknown): Problem {
    const problem = asProblem(error, sale.report);
    return new Problem(problem.status, problem.code, problem.message, {
      cause: error,
      headers: { ...problem.headers },
      details: {
        ...problem.details,
        refund: {
          dueAt: new Date(settlement.createdAtMs + this.#parts.refundAfterMs).toISOString(),
          ...receiptOf(sale, this.#parts.receiptsUrl, settlement.callId),
        },
      },
    });
  }
}

function chainsOf({ rail }: Sale): Chains {
  if (rail.chains === undefined) throw new Error(`${rail.name} has no chains`);
  return rail.chains;
}

/**
 * Refuses a payment that is public already. Whoever presents a payment before it has settled got it from its payer. A
 * payment that stands on the chain may be presented by anybody who read it there. That is good enough for an ordinary
 * answer, but not for a secret that belongs to the payer.
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

/** Adds the claim to the evidence. A payer who signs in has no claim, and is looked up without one. */
function claimed(onChain: OnChainPayment, claim: Buffer | null): OnChainPayment {
  return claim === null
    ? onChain
    : { ...onChain, evidence: { ...onChain.evidence, claim: claim.toString('hex') } };
}
