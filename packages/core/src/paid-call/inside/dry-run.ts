/**
 * Dry runs (`POST …?dryRun=1`): the call is checked as a paid call would be, but nothing runs and nothing is charged. A
 * dry run must come without a credential. A replica that does not know the parameter would charge the credential, so no
 * caller may learn that a dry run works with one.
 */
import { invalidRequest, Problem } from '../../http/problem.ts';
import { microsToUsd } from '../../ledger/money.ts';
import type { Availability } from '../../service/availability.ts';
import { outputSchemaOf } from '../../service/json-schema.ts';
import type { Door } from '../door.ts';
import { inputOf } from '../request-body.ts';
import type { Asked, DryRun, PaidAnswer } from '../sale.ts';
import { notForSale } from './refusal.ts';

const PARAMETER = 'dryRun';
const MEANING: Readonly<Record<string, DryRun>> = { 1: 'yes', true: 'yes', 0: 'no', false: 'no' };

/** The headers that carry a credential on any rail, under the names that callers know. An empty header counts too. */
const CREDENTIALS = [
  'X-API-KEY',
  'Authorization',
  'X-PAYMENT',
  'PAYMENT-SIGNATURE',
  'SIGN-IN-WITH-X',
  'Proxy-Authorization',
];

/** Finds the parameter behind a wrong separator, such as `x=1;dryRun=1`. */
const IN_A_VALUE = /[;?&,][^a-z]*dry[^a-z]*run/i;

/**
 * @param query as Fastify reads it. A name in another spelling (`dry.run`, `dryRun[]`, `amp;dryRun`) counts as unclear,
 *   so that a typo never buys a call.
 */
export function dryRunOf(query: unknown): DryRun {
  const asked = Object.entries((query ?? {}) as Record<string, unknown>).filter(
    ([name, value]) =>
      meansDryRun(name) || [value].flat().some((each) => typeof each === 'string' && IN_A_VALUE.test(each)),
  );
  const [first, ...others] = asked;
  if (first === undefined) return 'no';
  const [name, value] = first;
  if (others.length > 0 || name !== PARAMETER || typeof value !== 'string') return 'unclear';
  return Object.hasOwn(MEANING, value) ? (MEANING[value] ?? 'unclear') : 'unclear';
}

function meansDryRun(name: string): boolean {
  const letters = name.normalize('NFKC').replace(/[^a-z]/gi, '');
  return letters.toLowerCase().includes(PARAMETER.toLowerCase());
}

/**
 * The answer to a dry run.
 *
 * @throws Problem as the paid call would: 405; 400 with each wrong field; 503 while the service is not for sale. Also
 *   400 when the request carries a credential
 */
export function tryOut(
  { request, quote, report, called }: Pick<Asked, 'request' | 'quote' | 'report' | 'called'>,
  { availability, door, nowMs }: { availability: Availability; door: Door; nowMs(): number },
): PaidAnswer {
  const { service, headers } = request;
  const startedAtMs = nowMs();
  request.assertMayBuy();
  if (request.dryRun === 'unclear')
    throw invalidRequest('dryRun must be 1 to try the call out, or left out to buy it.', [
      { field: PARAMETER, message: 'must be dryRun=1, once and in this spelling' },
    ]);
  const sent = CREDENTIALS.filter((name) => headers[name.toLowerCase()] !== undefined);
  if (sent.length > 0) throw withCredential(sent);
  inputOf(called, request);
  if (!availability.available) throw notForSale(availability);
  report.outcome = 'tried';
  const { priceMicros } = quote;
  return {
    status: 200,
    headers: {
      ...door.headers,
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    },
    body: JSON.stringify({
      success: true,
      dryRun: true,
      charged: false,
      service: service.path,
      available: true,
      price: { amountUsd: microsToUsd(priceMicros), amountMicros: String(priceMicros), currency: 'USD' },
      ...(service.metered === null ? {} : { metered: service.metered }),
      timeoutMs: service.timeoutMs,
      answer: {
        mediaType: service.mediaType,
        schema:
          service.mediaType === 'application/json' && service.route === null ? outputSchemaOf(service) : null,
      },
      next: 'The body fits. Send the same request without dryRun: the 402 says how to pay. Whether the sources know what it names is only found out then; an answer that is not 2xx costs nothing.',
      ...door.fields({ startedAtMs, nowMs: nowMs() }),
    }),
  };
}

function withCredential(names: readonly string[]): Problem {
  return new Problem(
    400,
    'DRY_RUN_WITH_CREDENTIAL',
    `A dry run takes no credential. Leave out ${names.join(', ')}.`,
    {
      details: {
        fields: names.map((field) => ({ field, message: 'must not be sent with dryRun=1' })),
        hint: 'A server that does not know dryRun would charge it.',
        charged: false,
      },
    },
  );
}
