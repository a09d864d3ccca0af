/** How the provider is asked: whatever is not an answer is `ProviderUnavailable`, and its cause says why. */
import { EmailRefused, ProviderUnavailable } from '../provider.ts';
import { isStripeError } from './library.ts';

const REFUSALS = ['StripeAuthenticationError', 'StripePermissionError', 'StripeInvalidRequestError'] as const;

/**
 * Whether waiting is all there is to do about an error. It is not when the provider did answer, and will say the same
 * until an operator has mended something: our key is wrong, may not do this, or is of another account.
 */
export function passesByItself(error: unknown): boolean {
  return error instanceof ProviderUnavailable && !REFUSALS.some((kind) => isStripeError(error.cause, kind));
}

/** Asks the provider. @throws EmailRefused; ProviderUnavailable for whatever else is not an answer */
export async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (isStripeError(error, 'StripeInvalidRequestError') && error.code === 'email_invalid')
      throw new EmailRefused();
    throw new ProviderUnavailable(error);
  }
}

/** Asks as `asked` does, for things that may not exist. */
export function orNull<T>(ask: () => Promise<T | null>): Promise<T | null> {
  return asked(async () => {
    try {
      return await ask();
    } catch (error) {
      if (isStripeError(error, 'StripeInvalidRequestError') && error.code === 'resource_missing') return null;
      throw error;
    }
  });
}
