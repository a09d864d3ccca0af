/** The names that the standard has for why a payment does not pay. https://paymentauth.org/problems */

export const PROBLEMS = 'https://paymentauth.org/problems/';
/** The standard's word for a refusal that another rail, or a chain, made. */
const PROBLEM_OF: Readonly<Record<string, string>> = {
  PAYMENT_EXPIRED: 'payment-expired',
  PAYMENT_INSUFFICIENT_FUNDS: 'payment-insufficient',
  INSUFFICIENT_CREDITS: 'payment-insufficient',
};

/** The last part of the problem's type. @param refused a refusal's code and details, as every 402 tells them */
export function problemOf({ code, problem }: { code: string; problem?: unknown }): string {
  return String(problem ?? PROBLEM_OF[code] ?? 'verification-failed');
}
