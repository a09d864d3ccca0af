import type { Failure } from '../provider.ts';

/**
 * The verdict about a kept card that was not charged.
 * - later: it may work another time.
 * - off: not before its owner has done something about it.
 * - forget: networks forbid another attempt, and fine merchants who make one.
 */
export type DeclineVerdict = 'later' | 'off' | 'forget';

/** Declines that pass, by the codes that the provider publishes. */
const PASSING = new Set([
  ...['insufficient_funds', 'card_velocity_exceeded', 'withdrawal_count_limit_exceeded'],
  ...[
    'processing_error',
    'issuer_not_available',
    'reenter_transaction',
    'try_again_later',
    'approve_with_id',
  ],
  'generic_decline',
]);
/** The card, or the permission to charge it, is gone for good. */
const FINAL = new Set([
  ...['lost_card', 'stolen_card', 'pickup_card', 'fraudulent', 'merchant_blacklist', 'resource_missing'],
  ...['stop_payment_order', 'revocation_of_authorization', 'revocation_of_all_authorizations'],
]);
/** The issuer wants to hear from the card's owner first, whatever it advises the merchant. */
const OWNERS_TURN = new Set(['authentication_required', 'do_not_honor', 'expired_card']);

/** Reads a failed charge. What nobody has said is passing is not: an attempt too many costs more than one too few. */
export function readDecline(failure: Failure): DeclineVerdict {
  const { adviceCode } = failure;
  const reason = declineReason(failure);
  if (adviceCode === 'do_not_try_again' || FINAL.has(reason)) return 'forget';
  if (OWNERS_TURN.has(reason)) return 'off';
  if (PASSING.has(reason) || adviceCode === 'try_again_later') return 'later';
  // Without an issuer's word nobody has asked the issuer: then it is not the card that failed.
  return failure.declineCode === null && failure.code !== 'card_declined' ? 'later' : 'off';
}

/** The most telling of its codes, such as `insufficient_funds`. */
export function declineReason(failure: Failure): string {
  return failure.declineCode ?? failure.code;
}
