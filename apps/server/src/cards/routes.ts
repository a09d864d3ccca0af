import type { FastifyInstance } from 'fastify';
import { Problem } from '../http/problem.ts';

/** The interface's addresses for buying credit by card. */
const PATHS = [
  { method: 'POST', url: '/api/m2m/credits/checkout/session' },
  { method: 'GET', url: '/api/m2m/credits/checkout/status/:sessionId' },
  { method: 'POST', url: '/api/m2m/credits/purchase' },
] as const;

/** Without a card provider these addresses exist and say so; nothing is taken and nothing is promised. */
export function checkoutRoutes(app: FastifyInstance): void {
  for (const { method, url } of PATHS) {
    app.route({
      method,
      url,
      handler: () => {
        throw new Problem(
          503,
          'CARDS_NOT_CONFIGURED',
          'This server has no card provider, so credit cannot be bought by card.',
          {
            details: { hint: 'GET /api/m2m/credits/trial gives a trial key.' },
            headers: { 'retry-after': '3600' },
          },
        );
      },
    });
  }
}
