import {
  PAYMENT_PROBLEMS,
  paymentProblemOf,
  problemDetails,
  problemTitle,
} from '../../http/problem-details.ts';
import { microsToUsd, priceInUsd } from '../../ledger/money.ts';
import type { Door } from '../../paid-call/door.ts';
import type { Quote, Rail } from '../../paid-call/rail.ts';
import type { MppRail } from './rail.ts';

const PROTOCOL = { 'x-mpp-protocol': 'payment-auth/1' };

/**
 * `/mpp/…`: the same services under the HTTP "Payment" scheme. Errors are problem+json (RFC 9457), with the house's own
 * fields beside the standard's. The same 402 carries the offers of the other rails, so that either kind of wallet can
 * pay.
 */
export function mppDoor(mpp: MppRail, others: readonly Rail[], baseUrl: string): Door {
  return {
    prefix: '/mpp',

    challenge(quote: Quote) {
      const offers = others.map((rail) => rail.offer(quote));
      const accepts = offers.flatMap((offer) => offer.accepts);
      const priceUsd = Number(microsToUsd(quote.priceMicros));
      return {
        async answer(request, refused) {
          const standard = await mpp.challenge(quote, request);
          // A caller that names the methods it can pay by gets offers for those methods alone.
          const asked = request.headers['accept-payment'] !== undefined;
          const shared = asked
            ? []
            : offers.flatMap(({ headers, freshHeaders }) => [headers, freshHeaders?.() ?? {}]);
          const problem =
            refused === undefined ? null : paymentProblemOf({ ...refused.details, code: refused.code });
          const body = {
            ...standard.body,
            streaming: quote.streaming,
            ...(refused === undefined || problem === null
              ? {}
              : {
                  type: PAYMENT_PROBLEMS + problem,
                  title: problemTitle(problem),
                  detail: refused.message,
                  hint: refused.hint,
                  last_error_reason: {
                    code: refused.code,
                    message: refused.message,
                    hint: refused.hint,
                    recoverable: true,
                    telemetryId: request.requestId,
                    ...refused.details,
                  },
                }),
            status: 402,
            error: refused?.code ?? 'PAYMENT_REQUIRED',
            code: refused?.code ?? 'PAYMENT_REQUIRED',
            message:
              refused?.message ?? `${quote.service.name} costs ${priceInUsd(quote.priceMicros)} USD a call.`,
            price_usd: priceUsd,
            requestId: request.requestId,
            catalog: `${baseUrl}/mpp/catalog`,
            ...(asked || accepts.length === 0 ? {} : { x402Version: 1, accepts }),
          };
          return {
            headers: Object.assign({}, ...shared, standard.headers, PROTOCOL, {
              'cache-control': 'no-store',
              'content-type': 'application/problem+json; charset=utf-8',
            }),
            body: JSON.stringify(body),
          };
        },
      };
    },

    headers: PROTOCOL,
    fields: ({ startedAtMs, nowMs }) => ({ protocol: 'mpp', responseTimeMs: nowMs - startedAtMs }),

    dress(problem, requestId) {
      return {
        headers: { ...PROTOCOL, 'content-type': 'application/problem+json; charset=utf-8' },
        body: problemDetails(problem.body(requestId), problem.status),
      };
    },
  };
}
