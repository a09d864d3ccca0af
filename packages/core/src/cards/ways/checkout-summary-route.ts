import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../../http/problem.ts';
import { admit, type RateLimit } from '../../http/rate-limit.ts';
import { tierOf } from '../../keys/credit-tiers.ts';
import { microsToUsd } from '../../ledger/money.ts';
import type { Checkout } from './checkout.ts';
import { sessionIdOf } from './checkout-status-route.ts';

/** `GET /api/m2m/credits/checkout/summary/:sessionId`: what the page after a payment shows. It leads to no key. */
export function checkoutSummaryRoute(
  app: FastifyInstance,
  parts: { checkout: Checkout; accountLimit: RateLimit; addressOf(request: FastifyRequest): string },
): void {
  app.get<{ Params: { sessionId: string } }>(
    '/api/m2m/credits/checkout/summary/:sessionId',
    { exposeHeadRoute: false },
    async (request, reply) => {
      admit(parts.accountLimit, parts.addressOf(request), reply);
      const sessionId = sessionIdOf(request.params.sessionId);
      const summary = await parts.checkout.summary(sessionId);
      if (summary === null) throw new Problem(404, 'UNKNOWN_SESSION', 'There is no such session.');
      return {
        success: true,
        sessionId,
        paymentStatus: summary.status,
        reference: summary.orderId,
        amountUsd: Number(microsToUsd(summary.amountMicros)),
        creditUsd: Number(microsToUsd(summary.creditMicros)),
        tier: tierOf(Number(microsToUsd(summary.amountMicros)))?.label ?? null,
        paidAt: summary.paidAtMs === null ? null : new Date(summary.paidAtMs).toISOString(),
        card: summary.card,
        receiptSentByEmail: summary.email !== null,
        email: summary.email === null ? null : masked(summary.email),
      };
    },
  );
}

/** An address that its owner knows again, and that nobody else can write to: "a***@example.com". */
function masked(email: string): string {
  const at = email.lastIndexOf('@');
  return `${email.slice(0, Math.min(1, at))}***${email.slice(at)}`;
}
