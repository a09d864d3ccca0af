/** Finds what a request has bought before, without buying anything. */

import { claimOn } from '../claim.ts';
import { PaymentRefused, type Rail } from '../rail.ts';
import { claimedFingerprint, fingerprintOfCall, inputOf } from '../request-body.ts';
import type { Asked, PaidAnswer, Sale } from '../sale.ts';
import type { SettlementStore } from '../settlements.ts';
import type { Answers } from './answers.ts';
import type { CallStore } from './calls.ts';
import { notBegun, settlementUnknown } from './refusal.ts';

export interface BoughtBeforeParts {
  rails: readonly Rail[];
  calls: Pick<CallStore, 'look'>;
  settlements: Pick<SettlementStore, 'boughtBy'>;
  answers: Answers;
  receiptsUrl: string;
}

export class BoughtBefore {
  readonly #parts: BoughtBeforeParts;

  constructor(parts: BoughtBeforeParts) {
    this.#parts = parts;
  }

  /**
   * Looks by a payment that could pay now. @returns null when it bought nothing @throws when its call is still running
   */
  async byPayment(sale: Sale, fingerprint: Buffer | null): Promise<PaidAnswer | null> {
    const { accountId, keyId, identity, onChain } = sale.payment;
    if (identity === null || fingerprint === null) return null;
    const payment = { accountId, keyId, identity, onChainIdentity: onChain?.identity ?? null };
    const earlier = await this.#parts.calls.look(payment, fingerprint);
    if (earlier === null) return null;
    if (earlier.status !== 'answered') throw await notBegun(sale, earlier);
    return this.#parts.answers.replay(sale, sale.payment, earlier.callId);
  }

  /** Looks by the payer's sign-in and this exact request. @returns null when the request carries no sign-in */
  async bySignIn(asked: Asked): Promise<PaidAnswer | null> {
    const { request, quote, report, called } = asked;
    for (const rail of this.#parts.rails) {
      const signedIn = await rail.signIn?.(request.headers, quote);
      if (signedIn === undefined || signedIn === null) continue;
      report.rail = rail.name;
      const { service } = request;
      const fingerprint = fingerprintOfCall(called, service, inputOf(called, request));
      const { accountId, payer } = signedIn;
      const callId = await this.#parts.settlements.boughtBy(accountId, payer, service.path, fingerprint);
      if (callId !== null) return this.#parts.answers.replay({ ...asked, rail }, signedIn, callId);
      throw new PaymentRefused(
        'NOTHING_BOUGHT',
        'This wallet has no stored answer to this request.',
        'Pay for it, or send the very body that was paid for.',
      );
    }
    return null;
  }

  /** Looks by a payment that `read` refused: terms may have changed since, or the chain may be unreachable now. */
  async byRecall(asked: Asked & { rail: Rail }): Promise<PaidAnswer | null> {
    const { request, rail, report, called } = asked;
    const recalled = await rail.recall?.(request.headers);
    if (recalled === undefined || recalled === null) return null;
    const { service } = request;
    const input = inputOf(called, request);
    let claim: Buffer | null;
    try {
      claim = claimOn(service, input, recalled, called === null ? request.rawBody : undefined);
    } catch {
      // A caller without the claim gets no answer here. The refusal of the payment is what they are told.
      return null;
    }
    const fingerprint = claimedFingerprint(fingerprintOfCall(called, service, input), claim);
    for (const identity of recalled.identities) {
      const payment = { accountId: recalled.accountId, keyId: null, identity, onChainIdentity: identity };
      const earlier = await this.#parts.calls.look(payment, fingerprint);
      if (earlier?.status === 'answered') return this.#parts.answers.replay(asked, recalled, earlier.callId);
      if (earlier?.status === 'settling') {
        report.callId = earlier.callId;
        throw settlementUnknown(asked, this.#parts.receiptsUrl);
      }
    }
    return null;
  }
}
