import type { OnChainPayment } from '../../paid-call/rail.ts';
import type { PaymentForFacilitator } from '../on-chain/facilitator.ts';
import { type Authorization, type AuthorizationText, authorizationOf, type Hex } from './eip3009.ts';

/** What is stored of an `exact` payment, so that a process that never saw the request can finish it. */
export interface EvmEvidence extends Record<string, unknown> {
  scheme: 'exact-evm';
  authorization: AuthorizationText;
  signature: Hex;
  /** In the form that a facilitator is sent. */
  forFacilitator: PaymentForFacilitator;
}

/** The evidence of an `exact` payment, as it was stored. */
export function evidenceOf(payment: OnChainPayment): {
  authorization: Authorization;
  signature: Hex;
  forFacilitator: PaymentForFacilitator;
} {
  const { authorization, signature, forFacilitator } = payment.evidence as EvmEvidence;
  return { authorization: authorizationOf(authorization), signature, forFacilitator };
}
