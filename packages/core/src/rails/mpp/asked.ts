/** What MPP asks for beside the terms of another door: the header that HTTP has its challenges in. */
import type { ChallengedRequest } from '../../paid-call/challenge.ts';
import type { Quote } from '../../paid-call/rail.ts';
import type { MppRail } from './rail.ts';

/**
 * The challenges for a quote.
 *
 * @param mpp null where it is off
 * @returns no header where MPP does not buy this, or no method can pay it now
 */
export async function askedByMpp(
  mpp: MppRail | null,
  quote: Quote,
  request: ChallengedRequest,
): Promise<Record<string, string>> {
  if (mpp === null || !quote.service.mpp) return {};
  const { 'www-authenticate': challenges } = (await mpp.challenge(quote, request)).headers;
  return challenges === undefined ? {} : { 'www-authenticate': challenges };
}
