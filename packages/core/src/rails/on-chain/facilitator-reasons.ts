import type { PaymentRefused } from '../../paid-call/rail.ts';
import { type RefusalCode, refuse } from './refusals.ts';

/** Facilitators prefix a reason with its scheme and chain (`invalid_exact_evm_…`). The meaning is in the end of it. */
const MEANINGS: readonly [RegExp, RefusalCode][] = [
  [/nonce_already_used|duplicate_settlement|authorization_used/, 'PAYMENT_AUTHORIZATION_USED'],
  [/insufficient_(balance|funds)/, 'PAYMENT_INSUFFICIENT_FUNDS'],
  [/valid_before|expired/, 'PAYMENT_EXPIRED'],
  [/valid_after|not_yet_valid/, 'PAYMENT_NOT_YET_VALID'],
  [/signature/, 'PAYMENT_SIGNATURE_INVALID'],
  [/recipient|pay_to/, 'PAYMENT_RECIPIENT_MISMATCH'],
  [/value|amount/, 'PAYMENT_AMOUNT_MISMATCH'],
];

/**
 * A facilitator's refusal as one of ours. Its own reason is passed on only when it is one of the protocol's short
 * names, never as free text.
 */
export function refusalFromFacilitator(reason: string): PaymentRefused {
  const name = /^[a-z0-9_]{1,100}$/.test(reason) ? reason : null;
  const meaning = name === null ? undefined : MEANINGS.find(([pattern]) => pattern.test(name));
  return refuse(
    meaning?.[1] ?? 'PAYMENT_VERIFICATION_FAILED',
    name === null ? {} : { facilitatorReason: name },
  );
}
