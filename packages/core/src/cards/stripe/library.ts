/** The provider's library, loaded when the provider is first asked: it is large, and a shop without cards does without it. */
import { createRequire } from 'node:module';
import type Stripe from 'stripe';

type Library = typeof Stripe;

let loaded: Library | undefined;

/** The library's client, to be constructed. */
export function stripeLibrary(): Library {
  loaded ??= load();
  return loaded;
}

function load(): Library {
  return createRequire(import.meta.url)('stripe');
}

type Kind =
  | 'StripeAuthenticationError'
  | 'StripeCardError'
  | 'StripeInvalidRequestError'
  | 'StripePermissionError';

/** Whether an error is the library's, and of this kind. */
export function isStripeError<K extends Kind>(
  error: unknown,
  kind: K,
): error is InstanceType<Library['errors'][K]> {
  return error instanceof Error && 'type' in error && error.type === kind;
}
