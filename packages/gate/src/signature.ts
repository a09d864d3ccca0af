/**
 * The form in which a guest and its Farebox sign what they say to each other: HMAC-SHA256 over what is said, to whom and when, with
 * the secret that both have. An answer is signed with the nonce of the message that it answers, so that it answers no other.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** All that a signature covers. */
export interface SignedParts {
  /** A message comes from the guest, an answer from Farebox: neither can be shown as the other. */
  readonly kind: 'message' | 'answer';
  /** The method and path of the message, such as `POST /gate/begin`. */
  readonly to: string;
  /** The guest's name in the configuration of Farebox. */
  readonly guest: string;
  /** Seconds since 1970, as text. */
  readonly timestamp: string;
  readonly nonce: string;
  readonly body: Uint8Array;
}

/** The headers that carry a signature. */
export const HEADERS = {
  guest: 'farebox-gate',
  timestamp: 'farebox-gate-timestamp',
  nonce: 'farebox-gate-nonce',
  signature: 'farebox-gate-signature',
} as const;

/** A secret has at least so many characters. */
export const LEAST_SECRET_CHARACTERS = 32;

/** The signature of a message or an answer: `v1,` and base64, as webhooks have it. */
export function signatureOf(secret: string, parts: SignedParts): string {
  const { kind, to, guest, timestamp, nonce, body } = parts;
  const digest = createHash('sha256').update(body).digest('hex');
  const text = JSON.stringify(['farebox-gate', kind, to, guest, timestamp, nonce, digest]);
  return `v1,${createHmac('sha256', secret).update(text).digest('base64')}`;
}

/** Whether somebody with the secret signed this. It takes the same time wherever two signatures differ. */
export function isSignedBy(secret: string, parts: SignedParts, signature: string): boolean {
  const expected = Buffer.from(signatureOf(secret, parts));
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
