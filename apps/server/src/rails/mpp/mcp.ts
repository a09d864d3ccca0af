/**
 * The same payments for MCP tool calls: challenges in a JSON-RPC error, the credential and the receipt in `_meta`.
 * Pure translations of what `/mpp/…` says over HTTP. https://paymentauth.org (MCP transport)
 */
import { Challenge, Credential, Receipt } from 'mppx';

export const CREDENTIAL_META = 'org.paymentauth/credential';
export const RECEIPT_META = 'org.paymentauth/receipt';
const PAYMENT_REQUIRED = -32042;
const VERIFICATION_FAILED = -32043;

export interface McpPaymentError {
  code: number;
  message: string;
  data: { httpStatus: 402; challenges: unknown[]; problem: Record<string, unknown> };
}

/**
 * A 402 as the error of a tool call.
 *
 * @param answer headers and body of the 402
 * @throws when the answer carries no challenge
 */
export function mcpPaymentError(answer: {
  headers: Readonly<Record<string, string>>;
  body: string;
}): McpPaymentError {
  const challenges = Challenge.deserializeList(answer.headers['www-authenticate'] ?? '');
  const problem: Record<string, unknown> = JSON.parse(answer.body);
  const unpaid = String(problem.type ?? '').endsWith('/payment-required');
  return {
    code: unpaid ? PAYMENT_REQUIRED : VERIFICATION_FAILED,
    message: String(problem.detail ?? 'Payment is required.'),
    data: { httpStatus: 402, challenges, problem },
  };
}

/** The `Authorization` header for the credential of a tool call; null when it carries none. @throws on a malformed one */
export function authorizationOfMcp(meta: Readonly<Record<string, unknown>> | undefined): string | null {
  const credential = meta?.[CREDENTIAL_META];
  if (credential === undefined) return null;
  return Credential.serialize(credential as Parameters<typeof Credential.serialize>[0]);
}

/** The `_meta` of a tool call's result; null when nothing was paid. */
export function mcpReceipt(
  headers: Readonly<Record<string, string>>,
  challengeId: string,
): Record<string, unknown> | null {
  const receipt = headers['payment-receipt'];
  return receipt === undefined ? null : { [RECEIPT_META]: { ...Receipt.deserialize(receipt), challengeId } };
}
