/** Makes the error of a call out of whatever came instead of its answer. */
import type { Bought } from './buying/buyer.ts';
import { FareboxError, type FieldProblem } from './errors.ts';
import { type HttpAnswer, retryAfterMsOf } from './http.ts';
import { isRecord, recordOf } from './json.ts';
import { shownText } from './shown-text.ts';

const MAX_FIELDS = 50;

export function thrownFor(bought: Bought<HttpAnswer>, docUrl: string | null): FareboxError {
  if (bought.kind === 'pending') throw new Error('nobody is asked later here');
  if (bought.kind === 'refusal') {
    const { code, message, charged, unpaid } = bought;
    const requestId = unpaid?.headers.get('x-request-id') ?? null;
    return new FareboxError({
      code,
      message,
      charged: charged ?? 'unknown',
      docUrl,
      requestId,
      body: unpaid?.body,
    });
  }
  const { status, headers, body, signed } = bought.answer;
  const { code, message, charged, fields } = recordOf(body);
  const reason = recordOf(recordOf(body).last_error_reason);
  return new FareboxError({
    code: codeOf(signed === null ? code : (reason.code ?? code), status),
    message:
      textOf(signed === null ? message : (reason.message ?? message)) ?? `The server answered ${status}.`,
    charged: typeof charged === 'boolean' ? charged : chargedBy(status, charged, signed !== null),
    status,
    docUrl,
    requestId: headers.get('x-request-id'),
    fields: Array.isArray(fields) ? fields.slice(0, MAX_FIELDS).flatMap(fieldIn) : [],
    retryAfterMs: retryAfterMsOf(headers),
    body,
  });
}

/** A 402 means that nothing was taken. So does a 4xx of somebody who says nothing of money. */
function chargedBy(status: number, charged: unknown, wasPaid: boolean): false | 'unknown' {
  const isRefused =
    status === 402 || (charged === undefined && status >= 400 && status < 500 && status !== 408);
  return !wasPaid || isRefused ? false : 'unknown';
}

const textOf = (value: unknown) =>
  typeof value === 'string' && value !== '' ? shownText(value.slice(0, 2_000)) : null;
const codeOf = (code: unknown, status: number) =>
  typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? code : `HTTP_${status}`;

function fieldIn(value: unknown): FieldProblem[] {
  if (!isRecord(value) || typeof value.field !== 'string') return [];
  return [{ field: shownText(value.field).slice(0, 200), message: textOf(value.message) ?? '' }];
}
