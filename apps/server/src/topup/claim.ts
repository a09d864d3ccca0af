/**
 * What proves that a request for a new key comes from whoever bought it. A settled payment does not: its signature stands
 * on the chain, where everybody can copy it. So the answer is bound to a secret that goes with the payment and never to
 * a chain. Each 402 has one, in `extra` of its terms; clients of version 2 send the terms that they accept back as they
 * were. Any other client puts one of its own into the body.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Presented } from '../rails/x402/wire.ts';

const SHORTEST = 16;
const LONGEST = 128;

/** A `PAYMENT-REQUIRED` with a fresh secret in its terms, and without what this door does not do. */
export function withClaim(paymentRequired: string): string {
  const document = JSON.parse(Buffer.from(paymentRequired, 'base64').toString('utf8'));
  const claimSecret = randomBytes(24).toString('base64url');
  for (const terms of document.accepts) terms.extra = { ...terms.extra, claimSecret };
  // A key is handed to nobody but whoever holds the payment and its secret.
  delete document.extensions['sign-in-with-x'];
  return Buffer.from(JSON.stringify(document)).toString('base64');
}

/** What came with a payment; null when nothing did that could be a secret. */
export function claimOf({ accepted }: Presented): string | null {
  const extra = accepted?.extra;
  const secret =
    typeof extra === 'object' && extra !== null && 'claimSecret' in extra ? extra.claimSecret : null;
  return typeof secret === 'string' && isClaim(secret) ? secret : null;
}

export function isClaim(secret: string): boolean {
  return secret.length >= SHORTEST && secret.length <= LONGEST;
}

/** What a payment for a new key is bound to. The secret itself is stored nowhere. */
export function digestOfClaim(secret: string): string {
  return createHash('sha256').update(`topup claim\n${secret}`).digest('hex');
}
