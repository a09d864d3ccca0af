/** The answers where no card can be charged: never, or not now. */
import type { FastifyInstance } from 'fastify';
import { invalidRequest, Problem, unavailable } from '../http/problem.ts';
import { EmailRefused, ProviderUnavailable } from './provider.ts';

/** The interface's addresses for buying credit by card. */
const PATHS = [
  { method: 'POST', url: '/api/m2m/credits/checkout/session' },
  { method: 'GET', url: '/api/m2m/credits/checkout/status/:sessionId' },
  { method: 'POST', url: '/api/m2m/credits/checkout/hand-over' },
  { method: 'POST', url: '/api/m2m/credits/checkout/mail-key' },
  { method: 'POST', url: '/api/m2m/credits/new-key' },
  { method: 'POST', url: '/api/m2m/credits/purchase' },
] as const;

/** Routes of a shop without a card provider: the addresses exist and say so; nothing is taken or promised. */
export function closedCardRoutes(app: FastifyInstance): void {
  for (const { method, url } of PATHS) {
    app.route({
      method,
      url,
      handler: () => {
        throw cardsNotConfigured();
      },
    });
  }
}

export function cardsNotConfigured(): Problem {
  return new Problem(
    503,
    'CARDS_NOT_CONFIGURED',
    'This server has no card provider, so credit cannot be bought by card.',
    {
      details: { hint: 'GET /api/m2m/credits/trial gives a trial key.', charged: false },
      headers: { 'retry-after': '3600' },
    },
  );
}

/** The answer when the provider is silent. @param details what is known of money all the same */
export function providerAway(cause: unknown, details: Record<string, unknown> = {}): Problem {
  return unavailable(
    'CARD_PROVIDER_UNAVAILABLE',
    'The card provider does not answer. Try again in a moment.',
    5_000,
    details,
    cause,
  );
}

/** The answer when no checkout could be opened. */
export function asCheckoutProblem(error: unknown): unknown {
  if (error instanceof ProviderUnavailable) return providerAway(error);
  if (!(error instanceof EmailRefused)) return error;
  return invalidRequest('email: the card provider does not take this address', [
    { field: 'email', message: 'must be an address that mail can be sent to' },
  ]);
}
