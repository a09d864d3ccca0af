/** Messages that the provider sends by itself: who signed one, and when. */
import type Stripe from 'stripe';
import { type EventRef, NotSigned } from '../provider.ts';
import { refOf } from './replies.ts';

/** A signed message is refused when its time is further from ours than this, to either side. */
const TOLERANCE_S = 300;

/**
 * Reads a message that the provider signed.
 *
 * @param parts.secrets the newest first; while one is replaced the provider signs with both
 * @throws NotSigned when none of the secrets signed it lately
 */
export function readSigned(
  message: { rawBody: Buffer; signature: string },
  parts: { stripe: Stripe; secrets: readonly string[]; nowMs: number },
): EventRef {
  const { rawBody, signature } = message;
  for (const secret of parts.secrets) {
    try {
      const event = parts.stripe.webhooks.constructEvent(
        rawBody,
        signature,
        secret,
        TOLERANCE_S,
        undefined,
        parts.nowMs,
      );
      if (isFromTheFuture(signature, parts.nowMs)) break;
      return refOf(event);
    } catch {
      // Perhaps it was signed with the next secret.
    }
  }
  throw new NotSigned();
}

/** The library refuses what is too old, and nothing that comes from the future. */
function isFromTheFuture(signature: string, nowMs: number): boolean {
  const times = [...signature.matchAll(/(?:^|,)\s*t=(\d{1,12})/g)].map(([, time]) => Number(time));
  return times.some((atS) => atS - nowMs / 1_000 > TOLERANCE_S);
}
