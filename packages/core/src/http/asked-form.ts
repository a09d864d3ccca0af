/** Errors that are finished text, in the form that was asked for: JSON, problem details, or a page for a 402. */
import { wantsPage, wantsType } from './accept.ts';
import { instanceOf, PROBLEM_CONTENT_TYPE, problemDetails, wantsProblemDetails } from './problem-details.ts';

/** Where a code of errors is told of; null: nowhere. */
export type DocUrlOf = (code: string) => string | null;

/**
 * The page that says what a call costs and how it is paid, for a person who opened its address.
 *
 * @param about.service its path
 * @param about.body the JSON that a program gets
 */
export type PayPage = (about: { service: string; body: string }) => {
  headers: Readonly<Record<string, string>>;
  body: string;
};

/** What became of a payment on a chain, as `GET /x402/receipts/{id}` tells it to programs. */
export interface ShownReceipt {
  id: string;
  protocol: string;
  service: string;
  priceUsd: string;
  status:
    | 'settling'
    | 'delivered'
    | 'not_charged'
    | 'paid_not_delivered'
    | 'refund_owed'
    | 'refunded'
    | 'lost';
  network: string;
  payer: string;
  payTo: string;
  transaction: string | null;
  createdAt: string;
  settledAt: string | null;
  refund: { state: string; amountUsd: string; transaction: string | null; reason: string } | null;
}

/** The page of a receipt, for a person who opened its address. */
export type ReceiptPage = (receipt: ShownReceipt) => ReturnType<PayPage>;

interface Finished {
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

/**
 * An answer as it was asked for. What is no error stays as it is, and so does a 402 for whoever does not ask for a page.
 */
export function inFormAsked<Answer extends Finished>(
  answer: Answer,
  request: {
    headers: { accept?: string | undefined };
    url: string;
    id: string;
    server: { payPage: PayPage | null };
  },
  service: string,
): Answer {
  const { status, headers, body } = answer;
  if (status < 400 || typeof body !== 'string' || body === '') return answer;
  const { accept } = request.headers;
  if (wantsProblemDetails(accept)) {
    const details = problemDetails(JSON.parse(body), status, instanceOf(request.url, request.id));
    return {
      ...answer,
      headers: { ...headers, 'content-type': PROBLEM_CONTENT_TYPE },
      body: JSON.stringify(details),
    };
  }
  const { payPage } = request.server;
  if (status !== 402 || payPage === null || !isForPerson(accept)) return answer;
  const page = payPage({ service, body });
  return { ...answer, headers: { ...headers, ...page.headers, vary: 'Accept' }, body: page.body };
}

/** Whether a person asks: a program may take a page too, and whoever names JSON gets it. */
export function isForPerson(accept: string | undefined): boolean {
  return wantsPage(accept) && !wantsType(accept, 'application/json');
}
