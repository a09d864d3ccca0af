/** How a request is refused: in the words of its rail and the form of its door, with what became of the money. */
import { Problem, unavailable } from '../../http/problem.ts';
import { withRate } from '../../http/rate-limit.ts';
import type { Availability } from '../../service/availability.ts';
import type { CallBounds } from '../../service/route.ts';
import type { Challenge } from '../challenge.ts';
import type { Door } from '../door.ts';
import { tellFate } from '../fate.ts';
import { PaymentRefused } from '../rail.ts';
import type { Asked, PaidAnswer, Sale } from '../sale.ts';
import type { BeginOutcome } from './call-steps.ts';
import { asProblem, CallerGone } from './outcome.ts';

/** When a settlement whose outcome is unknown is looked at again. */
export const LOOK_AGAIN_MS = 2_000;

/** The receipt's address, for an error's details: there the caller can read what became of the payment. */
export function receiptOf({ rail }: Asked, receiptsUrl: string, callId: string | null): { receipt?: string } {
  return rail?.chains === undefined || callId === null ? {} : { receipt: receiptsUrl + callId };
}

/** The 503 for a service that nobody can buy now. */
export function notForSale({ reason, message, retryAfterMs }: Availability): Problem {
  return unavailable('SERVICE_UNAVAILABLE', message ?? 'Not for sale now.', retryAfterMs, { reason });
}

/** The 503 for a payment of which nobody can say yet whether it settled. */
export function settlementUnknown(asked: Asked, receiptsUrl: string, cause?: unknown): Problem {
  const { report, money } = asked;
  report.outcome = 'unsettled';
  money.fate = 'open';
  return unavailable(
    'SETTLEMENT_UNKNOWN',
    'The chain has not said yet whether the payment settled.',
    LOOK_AGAIN_MS,
    { ...receiptOf(asked, receiptsUrl, report.callId) },
    cause,
  );
}

/** The refusal of a payment by a chain, which moves what was signed and no less, where the price follows from the answer. */
export function paidByKeyAlone(): PaymentRefused {
  return new PaymentRefused(
    'PAYMENT_BY_KEY_ALONE',
    'What this call costs is measured in its answer, so that an API key alone pays for it.',
    'Send an API key in X-API-KEY.',
  );
}

/** Why a call was not begun, as the error to throw. */
export async function notBegun(
  { rail, quote, payment, report, money, terms }: Sale,
  begun: BeginOutcome,
): Promise<Error> {
  switch (begun.status) {
    case 'insufficient':
    case 'above_call_cap':
    case 'above_day_cap':
    case 'key_expired':
    case 'key_revoked':
    case 'key_frozen':
      if (rail.notReserved === undefined) throw new Error(`${rail.name} cannot be ${begun.status}`);
      return rail.notReserved(begun, quote, payment);
    case 'balance_exceeded':
      money.fate = 'free';
      return new PaymentRefused(
        'PAYMENT_INSUFFICIENT_FUNDS',
        'The wallet does not hold the price beside its other payments, which have not settled yet. Nothing was run.',
        'Wait until they have settled, or fund the wallet, and send the same payment again.',
        { inFlightUnits: String(begun.inFlightUnits) },
      );
    case 'minute_quota':
    case 'day_quota':
      money.fate = 'free';
      return quotaReached(begun, terms);
    case 'one_at_a_time':
      money.fate = 'free';
      return new Problem(
        429,
        'TOO_MANY_CONCURRENT_CALLS',
        'A wallet that has not paid here before buys this one call at a time. Wait for the other one to end.',
        { details: { charged: false, retryAfter: 2 }, headers: { 'retry-after': '2' } },
      );
    case 'other_request':
      report.outcome = 'conflict';
      return new Problem(409, 'IDEMPOTENCY_KEY_REUSED', 'This payment bought something else.', {
        details: {
          hint: quote.service.secretAnswer
            ? 'Send the very body, and the very terms or claimSecret, that it was first presented with; or sign a new payment for a new request.'
            : 'Use a new Idempotency-Key, or sign a new payment, for a new request.',
        },
      });
    default:
      report.outcome = 'conflict';
      return unavailable('STILL_RUNNING', 'The same request is still running.', 2_000);
  }
}

/** The refusal of a call beyond what its seller lets a key begin; nothing is charged. */
function quotaReached(
  { status, retryAfterMs }: Extract<BeginOutcome, { retryAfterMs: number }>,
  terms: CallBounds | undefined,
): Problem {
  const isOfMinute = status === 'minute_quota';
  const [per, calls] = isOfMinute ? ['minute', terms?.callsPerMinute] : ['day (UTC)', terms?.callsPerDay];
  const retryAfter = Math.ceil(retryAfterMs / 1_000);
  return new Problem(
    429,
    isOfMinute ? 'MINUTE_QUOTA_REACHED' : 'DAY_QUOTA_REACHED',
    `A key begins at most ${calls} calls of this service a ${per}; keys that were bought with its credit count with it.`,
    { details: { charged: false, quota: calls, retryAfter }, headers: { 'retry-after': String(retryAfter) } },
  );
}

/** Turns any thrown value into an answer that says what became of the money. */
export async function refusalOf(
  error: unknown,
  { request, quote, rail, report, money }: Asked,
  { challenge, door, rate }: { challenge: Challenge; door: Door; rate: Record<string, string> },
): Promise<PaidAnswer> {
  if (error instanceof CallerGone) {
    report.outcome = 'abandoned';
    report.status = 499;
    return { status: 499, headers: {}, body: '', fate: money.fate };
  }
  if (error instanceof PaymentRefused) {
    report.outcome = 'refused';
    report.status = 402;
    report.reason = error.code;
    const { headers, body } = await challenge.answer(request, error);
    const told = { ...headers, ...rail?.refusedHeaders?.(error, quote), ...rate };
    return { status: 402, headers: told, body, fate: money.fate };
  }
  const problem = tellFate(asProblem(error, report), money.fate);
  report.status = problem.status;
  const { headers, body } = door.dress(problem, request.requestId);
  return {
    status: problem.status,
    headers: { 'cache-control': 'no-store', ...headers, ...withRate(problem.headers, rate) },
    body: JSON.stringify(body),
    fate: money.fate,
  };
}
