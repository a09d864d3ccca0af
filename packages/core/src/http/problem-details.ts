/**
 * Errors as problem details (RFC 9457), for those who ask for them in `Accept`: the standard's five fields in front of the
 * house's own. One table names the types, whichever door speaks.
 */
import { wantsType } from './accept.ts';

/** The beginning of the types by which the "Payment" scheme names a payment that does not pay. https://paymentauth.org/problems */
export const PAYMENT_PROBLEMS = 'https://paymentauth.org/problems/';
export const PROBLEM_TYPE = 'application/problem+json';
export const PROBLEM_CONTENT_TYPE = `${PROBLEM_TYPE}; charset=utf-8`;

/** The standard's word for a refusal that another rail, or a chain, made. */
const PAYMENT_PROBLEM_OF: Readonly<Record<string, string>> = {
  PAYMENT_EXPIRED: 'payment-expired',
  PAYMENT_INSUFFICIENT_FUNDS: 'payment-insufficient',
  INSUFFICIENT_CREDITS: 'payment-insufficient',
};
const MAX_PATH_CHARACTERS = 500;

/** The last part of a payment problem's type. @param refused a refusal's code and details, as every 402 tells them */
export function paymentProblemOf({ code, problem }: { code: string; problem?: unknown }): string {
  return typeof problem === 'string' ? problem : (PAYMENT_PROBLEM_OF[code] ?? 'verification-failed');
}

/** A problem's name in words: `payment-expired` is "Payment Expired". */
export function problemTitle(name: string): string {
  return name.replace(
    /(^|-)([a-z])/g,
    (_, dash: string, letter: string) => (dash ? ' ' : '') + letter.toUpperCase(),
  );
}

/**
 * The body of an error with the standard's fields in front.
 *
 * @param body of an error of ours, with `code` and `message`; in a 402 `last_error_reason` names the refusal
 * @param instance where it happened; left out: it is not told
 */
export function problemDetails(
  body: Readonly<Record<string, unknown>>,
  status: number,
  instance?: string,
): Record<string, unknown> {
  const code = typeof body.code === 'string' ? body.code : 'ERROR';
  const refused = body.last_error_reason as { code: string; problem?: unknown } | undefined;
  const payment = refused === undefined ? 'payment-required' : paymentProblemOf(refused);
  const named = {
    ...(status === 402
      ? { type: PAYMENT_PROBLEMS + payment, title: problemTitle(payment) }
      : { type: 'about:blank', title: problemTitle(code.toLowerCase().replaceAll('_', '-')) }),
    // A door that speaks the standard by itself has named it.
    ...(typeof body.type === 'string' && typeof body.title === 'string'
      ? { type: body.type, title: body.title }
      : {}),
    status,
    detail: body.detail ?? body.message,
    ...(instance === undefined ? {} : { instance }),
  };
  // The order of the first and the values of the last: nothing of ours stands in the place of a field of the standard.
  return { ...named, ...body, ...named };
}

/** Where something happened: the address without its query, and the request's id. @param url of the request */
export function instanceOf(url: string, requestId: string): string {
  const path = (url.split('?')[0] ?? '').slice(0, MAX_PATH_CHARACTERS);
  return `${path}#${requestId}`;
}

/** Whether an error is wanted as problem details. */
export function wantsProblemDetails(accept: string | undefined): boolean {
  return wantsType(accept, PROBLEM_TYPE);
}
