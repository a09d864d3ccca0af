/**
 * The claim: what proves that whoever asks for an answer is the payer. The payment itself proves nothing, because its
 * signature is public in the transaction that settles it. So the payment and its request are bound to a secret that
 * came with them and that neither a chain nor a facilitator sees. That secret is one of these: the claim in the terms
 * of the 402, which x402 clients of version 2 send back; the challenge of an MPP credential; or a secret of the payer's
 * own in the body. An answer that holds a secret is never sold on a chain without one.
 */
import { createHash, randomBytes } from 'node:crypto';
import { invalidRequest, Problem } from '../http/problem.ts';
import type { Service } from '../service/define.ts';
import type { Payment } from './rail.ts';
import { bodyObject } from './request-body.ts';

const FIELD = 'claimSecret';
const SHORTEST = 16;
const LONGEST = 128;

/** A secret for the terms of one 402: 32 characters, 192 random bits. */
export function newClaimSecret(): string {
  return randomBytes(24).toString('base64url');
}

export function isClaimSecret(value: unknown): value is string {
  return typeof value === 'string' && value.length >= SHORTEST && value.length <= LONGEST;
}

/**
 * The claim of a request that is paid on a chain: a digest of the secret that came with it. The secret itself is not
 * stored. Null when none came and none is required.
 *
 * @param payment.claim the secret that the credential carries; a secret in the body takes precedence
 * @throws Problem 400 `CLAIM_SECRET_REQUIRED` when the answer holds a secret and no claim came; 400 for a malformed
 *   secret
 */
export function claimOn(
  service: Service,
  input: unknown,
  payment: Pick<Payment, 'claim'>,
  rawBody: Buffer | undefined,
): Buffer | null {
  const isSecret = service.isSecret(input);
  // The terms carry a claim whenever the service may answer with a secret. With this input it does not, so the claim is
  // ignored.
  const carried = service.secretAnswer && !isSecret ? null : payment.claim;
  const secret = claimInBody(rawBody) ?? carried;
  if (secret !== null) return createHash('sha256').update(`claim\n${secret}`).digest();
  if (!isSecret) return null;
  throw new Problem(
    400,
    'CLAIM_SECRET_REQUIRED',
    'The answer holds a secret, so it needs one beside the payment, which itself will stand on a chain for all to see. The payment was not used.',
    {
      details: {
        hint: 'Put a claimSecret of 16 to 128 random characters into the body and keep it, or send back the terms of the 402 as they are (x402 version 2).',
        charged: false,
      },
    },
  );
}

function claimInBody(rawBody: Buffer | undefined): string | null {
  // The body was parsed before. This check spares nearly all requests a second parsing.
  if (rawBody === undefined || !rawBody.includes(FIELD)) return null;
  const { [FIELD]: secret = null } = bodyObject(rawBody);
  if (secret === null || isClaimSecret(secret)) return secret;
  const allowed = `${SHORTEST} to ${LONGEST} characters`;
  throw invalidRequest(`${FIELD} must be a text of ${allowed}.`, [{ field: FIELD, message: allowed }]);
}
