/**
 * The call on whose behalf an upstream is asked. A retry of the call is recognized by it, so that an effect happens
 * once.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';

interface CallScope {
  callId: string;
  /** Whether the service has a lasting effect. */
  isEffect: boolean;
}

const scopes = new AsyncLocalStorage<CallScope>();

/** Runs a service's work as part of a call. */
export function inCall<Result>(scope: CallScope, work: () => Result): Result {
  return scopes.run(scope, work);
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
