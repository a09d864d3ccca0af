/** What a request finds that was bought before it, without buying anything. */
import type { Answers } from './answers.ts';
import type { CallStore } from './calls.ts';
import { claimOn } from './claim.ts';
import { PaymentRefused, type Rail } from './rail.ts';
import { notBegun, settlementUnknown } from './refusal.ts';
import { claimedFingerprint, fingerprintOf, readInput } from './request-body.ts';
import type { Asked, PaidAnswer, Sale } from './sale.ts';
import type { SettlementStore } from './settlements.ts';

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

  /** By a payment that could pay now. @returns null when it bought nothing @throws when it is still buying */
  async byPayment(sale: Sale, fingerprint: Buffer | null): Promise<PaidAnswer | null> {
    const { accountId, keyId, identity, onChain } = sale.payment;
    if (identity === null || fingerprint === null) return null;
    const payment = { accountId, keyId, identity, onChainIdentity: onChain?.identity ?? null };
    const earlier = await this.#parts.calls.look(payment, fingerprint);
    if (earlier === null) return null;
    if (earlier.status !== 'answered') throw await notBegun(sale, earlier);
    return this.#parts.answers.replay(sale, sale.payment, earlier.callId);
  }

  /** By a payer who signed in, with this very request. @returns null when the request carries no sign-in */
  async bySignIn(asked: Asked): Promise<PaidAnswer | null> {
    const { request, quote, report } = asked;
    for (const rail of this.#parts.rails) {
      const signedIn = await rail.signIn?.(request.headers, quote);
      if (signedIn === undefined || signedIn === null) continue;
      report.rail = rail.name;
      const { service } = request;
      const fingerprint = fingerprintOf(service, readInput(service, request.rawBody));
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

  /** By a payment that would not be taken now: terms change, and chains are away at times. */
  async byRecall(asked: Asked & { rail: Rail }): Promise<PaidAnswer | null> {
    const { request, rail, report } = asked;
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
