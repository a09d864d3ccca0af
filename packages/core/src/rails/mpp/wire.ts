/** What stands in an MPP credential, and its way into typed values, by the reference library. */
import { Problem } from '../../http/problem.ts';
import { type Headers, PaymentRefused } from '../../paid-call/rail.ts';
import type { AuthorizationText, Hex } from '../evm/eip3009.ts';
import { type MppLibrary, mppLibrary } from './library.ts';
import { readTempoTransaction, type TempoTransaction } from './tempo-payments.ts';

const MAX_CREDENTIAL_CHARS = 16_000;
export const AGAIN = 'Answer a fresh challenge of this 402.';

export interface MppCredential {
  challenge: {
    id: string;
    realm: string;
    method: string;
    intent: string;
    request: { amount: string; currency: string; methodDetails: { chainId: number } };
    meta?: Record<string, string>;
    /** base64url of JSON: what `meta` was made into. */
    opaque?: string;
  };
  payload: Record<string, unknown>;
}

/** Why a credential does not pay. `problem` is the last part of the problem's type. */
export function refuse(problem: string, message: string, hint: string): PaymentRefused {
  return new PaymentRefused(`MPP_${problem.replaceAll('-', '_').toUpperCase()}`, message, hint, { problem });
}

/** Whether the request carries an MPP credential at all. */
export function hasCredential({ authorization }: Headers): boolean {
  return typeof authorization === 'string' && /(^|,\s*)payment\s/i.test(authorization);
}

/**
 * Reads a credential that was answered to a challenge of ours, whatever the terms are by now.
 *
 * @param isOurs whether a challenge was made with a secret of ours
 * @throws PaymentRefused for one of somebody else, or of none; Problem when the request carries two payments
 */
export async function openCredential(
  headers: Headers,
  { realm, isOurs }: { realm: string; isOurs(challenge: MppCredential['challenge']): Promise<boolean> },
): Promise<MppCredential> {
  const { authorization: header } = headers;
  if (typeof header !== 'string') throw refuse('malformed-credential', 'The credential is malformed.', AGAIN);
  if (header.length > MAX_CREDENTIAL_CHARS)
    throw refuse(
      'malformed-credential',
      `The credential has more than ${MAX_CREDENTIAL_CHARS} characters.`,
      AGAIN,
    );
  const isBesideX402 = headers['payment-signature'] !== undefined || headers['x-payment'] !== undefined;
  if (isBesideX402 || header.match(/(^|,\s*)payment\s/gi)?.length !== 1) {
    throw new Problem(400, 'TWO_CREDENTIALS', 'One request carries one payment.', {
      details: { charged: false },
    });
  }
  const { Credential } = await mppLibrary();
  let credential: MppCredential;
  let known: boolean;
  try {
    credential = Credential.deserialize(
      Credential.extractPaymentScheme(header) ?? '',
    ) as unknown as MppCredential;
    known = await isOurs(credential.challenge);
  } catch {
    throw refuse('malformed-credential', 'The credential is malformed: it is not base64url of JSON.', AGAIN);
  }
  const { challenge, payload } = credential;
  if (!known) throw refuse('invalid-challenge', 'The challenge was not issued by this server.', AGAIN);
  if (typeof payload !== 'object' || payload === null)
    throw refuse('invalid-payload', 'The payload is not an object.', AGAIN);
  if (challenge.realm !== realm)
    throw refuse('invalid-challenge', 'The challenge is for another realm.', AGAIN);
  return credential;
}

/** What we put into the challenge beside the library's own fields: what the credential echoes as `opaque`. */
export function metaOf({ challenge }: MppCredential): Record<string, string> {
  if (challenge.meta !== undefined) return challenge.meta;
  try {
    const meta: unknown = JSON.parse(Buffer.from(challenge.opaque ?? '', 'base64url').toString('utf8'));
    return typeof meta === 'object' && meta !== null ? (meta as Record<string, string>) : {};
  } catch {
    return {};
  }
}

/** Whether a challenge was made with this secret. */
export function isMadeWith(
  { Challenge }: MppLibrary,
  secretKey: string,
  challenge: MppCredential['challenge'],
): boolean {
  return Challenge.verify(challenge as never, { secretKey });
}

/** The transaction of a credential for `tempo`. */
export async function transactionIn({ payload }: MppCredential): Promise<TempoTransaction> {
  if (payload.type !== 'transaction' || typeof payload.signature !== 'string') {
    throw refuse(
      'invalid-payload',
      'Only credentials of type "transaction" are taken: the server sends the transaction.',
      'Let the client pay in pull mode.',
    );
  }
  try {
    return await readTempoTransaction(payload.signature as Hex);
  } catch {
    throw refuse('invalid-payload', 'The credential holds no signed Tempo transaction.', AGAIN);
  }
}

/** The authorization of a credential for `evm`, whose nonce follows from the challenge that only its payer was told. */
export async function authorizationIn({ challenge, payload }: MppCredential): Promise<{
  authorization: AuthorizationText;
  signature: Hex;
}> {
  /** Empty for what is no text: it fits no form below. */
  const text = (name: string) => {
    const value = payload[name];
    return typeof value === 'string' ? value.toLowerCase() : '';
  };
  /** A client may write a number as a number. */
  const decimal = (name: string) => {
    const value = payload[name];
    return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : text(name);
  };
  const authorization = {
    from: text('from'),
    to: text('to'),
    value: decimal('value'),
    validAfter: decimal('validAfter'),
    validBefore: decimal('validBefore'),
    nonce: text('nonce'),
  };
  const signature = text('signature');
  const isWellFormed =
    payload.type === 'authorization' &&
    [authorization.from, authorization.to].every((address) => /^0x[0-9a-f]{40}$/.test(address)) &&
    /^0x[0-9a-f]{64}$/.test(authorization.nonce) &&
    [authorization.value, authorization.validAfter, authorization.validBefore].every((value) =>
      /^\d{1,20}$/.test(value),
    ) &&
    // Of a key: the reference library knows no other.
    /^0x[0-9a-f]{130}$/.test(signature);
  if (!isWellFormed) throw refuse('invalid-payload', 'The payload is no EIP-3009 authorization.', AGAIN);
  const { evm } = await mppLibrary();
  if (authorization.nonce !== evm.challengeHash(challenge as never))
    throw refuse('verification-failed', 'The authorization is for another challenge.', AGAIN);
  return { authorization, signature: signature as Hex };
}
