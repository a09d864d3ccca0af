/**
 * The same payments for MCP tool calls, with challenges, credential and receipt in `_meta`. Each function translates
 * what a door says over HTTP. https://paymentauth.org (MCP transport)
 */
import { PAYMENT_PROBLEMS, paymentProblemOf } from '../../http/problem-details.ts';
import { mppLibrary } from './library.ts';

const PAYMENT_REQUIRED_META = 'org.paymentauth/payment-required';
const CREDENTIAL_META = 'org.paymentauth/credential';
const RECEIPT_META = 'org.paymentauth/receipt';
/** The standard's name for a credential that a rail refuses as malformed. */
const MALFORMED = 'Payment malformed';

/**
 * The MPP fields for the `_meta` of an unpaid tool call's result.
 *
 * @param headers those of the 402
 * @param refused why the presented credential does not pay, as `last_error_reason` states it
 * @returns null when the 402 carries no challenge
 */
export async function mcpPaymentRequired(
  headers: Readonly<Record<string, string>>,
  refused: { code: string; message: string; problem?: unknown } | null,
): Promise<Record<string, unknown> | null> {
  const header = headers['www-authenticate'];
  if (header === undefined) return null;
  const { Challenge } = await mppLibrary();
  const challenges = Challenge.deserializeList(header);
  const problem = {
    type: PAYMENT_PROBLEMS + (refused === null ? 'payment-required' : paymentProblemOf(refused)),
    title: refused === null ? 'Payment Required' : 'Payment Not Accepted',
    status: 402,
    detail: refused?.message ?? 'Payment is required.',
    challengeId: challenges[0]?.id,
  };
  return { [PAYMENT_REQUIRED_META]: { httpStatus: 402, challenges, problem } };
}

/** The `Authorization` header for the credential of a tool call; null when it carries none. */
export async function authorizationOfMcp(
  meta: Readonly<Record<string, unknown>> | undefined,
): Promise<string | null> {
  const credential = meta?.[CREDENTIAL_META];
  if (credential === undefined) return null;
  const { Credential } = await mppLibrary();
  try {
    return Credential.serialize(credential as Parameters<typeof Credential.serialize>[0]);
  } catch {
    return MALFORMED;
  }
}

/** The receipt for the `_meta` of a tool call's result; null when nothing was paid by MPP. */
export async function mcpReceipt(
  headers: Readonly<Record<string, string>>,
  meta: Readonly<Record<string, unknown>> | undefined,
): Promise<Record<string, unknown> | null> {
  const receipt = headers['payment-receipt'];
  if (receipt === undefined) return null;
  const { Receipt } = await mppLibrary();
  const credential = meta?.[CREDENTIAL_META] as { challenge?: { id?: string } } | undefined;
  return { [RECEIPT_META]: { ...Receipt.deserialize(receipt), challengeId: credential?.challenge?.id } };
}
