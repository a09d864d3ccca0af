/**
 * The call on whose behalf an upstream is asked. A retry of the call is recognized by it, so that an effect happens
 * once. Its caller shares the upstream's connections with all others.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Visitor } from '@farebox/core/service/fair-places';
import type { AskingCall } from '@farebox/core/service/sources';

const scopes = new AsyncLocalStorage<AskingCall>();

/** Runs a service's work as part of a call. */
export function inCall<Result>(scope: AskingCall, work: () => Result): Result {
  return scopes.run(scope, work);
}

/** Work that belongs to no call, such as that of jobs and of free answers: one visitor like any other. */
const NO_CALL: Visitor = { caller: '', callId: '' };

/** On whose behalf an upstream is asked now. */
export function visitorNow(): Visitor {
  return scopes.getStore() ?? NO_CALL;
}

/**
 * The `Idempotency-Key` of a request that belongs to a call with an effect. It is the same whenever the same call sends
 * the same request again, and differs for every other. Null outside of such a call.
 */
export function idempotencyKeyOf(method: string, url: string, body: string | Buffer): string | null {
  const scope = scopes.getStore();
  if (scope === undefined || !scope.isEffect) return null;
  const digest = createHash('sha256')
    .update(`${scope.callId}\n${method} ${url}\n`)
    .update(body)
    .digest('hex');
  return `farebox-${digest.slice(0, 40)}`;
}
