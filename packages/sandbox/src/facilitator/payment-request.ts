/** Reads what a seller sends to /verify and /settle, and checks it with the reference library's schemas. */
import {
  isPaymentPayloadV1,
  isPaymentPayloadV2,
  isPaymentRequirementsV1,
  isPaymentRequirementsV2,
} from '@x402/core/schemas';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';

export interface PaymentRequest {
  x402Version: 1 | 2;
  /** In the shape of its version, although the library's types know only the second. */
  payload: PaymentPayload;
  requirements: PaymentRequirements;
}

/** Why a body is not a payment that this facilitator handles; `reason` is an error code of the x402 specification. */
export interface Unreadable {
  reason:
    | 'invalid_x402_version'
    | 'invalid_payload'
    | 'invalid_payment_requirements'
    | 'unsupported_scheme'
    | 'invalid_network';
  message: string;
}

/** A kind of payment that is on offer, as /supported lists it. */
interface Kind {
  x402Version: number;
  scheme: string;
  network: string;
}

/** Reads the body of /verify or /settle against the kinds of payment that are on offer. */
export function readPaymentRequest(body: unknown, kinds: readonly Kind[]): PaymentRequest | Unreadable {
  const { x402Version, paymentPayload, paymentRequirements } = fieldsOf(body);
  const version = fieldsOf(paymentPayload).x402Version;
  if (version !== 1 && version !== 2) {
    return { reason: 'invalid_x402_version', message: 'paymentPayload.x402Version must be 1 or 2' };
  }
  if (x402Version !== undefined && x402Version !== version) {
    return {
      reason: 'invalid_x402_version',
      message: `the request says ${x402Version}, its payload ${version}`,
    };
  }
  const isPayload = version === 1 ? isPaymentPayloadV1 : isPaymentPayloadV2;
  const isRequirements = version === 1 ? isPaymentRequirementsV1 : isPaymentRequirementsV2;
  if (!isPayload(paymentPayload)) {
    return { reason: 'invalid_payload', message: `paymentPayload is no payment of version ${version}` };
  }
  if (!isRequirements(paymentRequirements)) {
    return {
      reason: 'invalid_payment_requirements',
      message: `paymentRequirements are none of version ${version}`,
    };
  }
  const { scheme, network } = paymentRequirements;
  const offered = kinds.filter((kind) => kind.x402Version === version && kind.network === network);
  if (offered.length === 0) {
    return { reason: 'invalid_network', message: `no payments of version ${version} on ${network} here` };
  }
  if (!offered.some((kind) => kind.scheme === scheme)) {
    return { reason: 'unsupported_scheme', message: `no ${scheme} payments on ${network} here` };
  }
  return {
    x402Version: version,
    // The schemas accept both `null` and a missing field, which the library's types do not; the library itself handles
    // both.
    payload: paymentPayload as PaymentPayload,
    requirements: paymentRequirements as PaymentRequirements,
  };
}

/** The fields of an object; none of anything else. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
