/** What is no answer, as the caller is told it: nothing is charged, and nothing of the upstream's secrets is said. */
import { ServiceFailure } from '@farebox/core/words/failure';
import type { Route } from '../config/proxy-config.ts';
import {
  FAILURES,
  type FailureReason,
  mediaTypeOf,
  type UpstreamFailure,
  type UpstreamRefusal,
} from '../wire/outcome.ts';

const MOST_PASSED_ON_CHARACTERS = 20_000;
/** Statuses of a refusal that reach the caller as they are. */
const PASSED_ON: readonly number[] = [400, 404, 405, 406, 409, 410, 412, 413, 415, 416, 422, 428];
/** A shorter secret may stand in any answer by chance. */
const LEAST_SECRET_CHARACTERS = 8;

/**
 * Tells whether an upstream repeats what only it may know, as servers do that show a request to its sender. Buyers would read how
 * to ask it unpaid.
 */
export function holdsCredential({ upstream }: Route, ...told: readonly (Buffer | string)[]): boolean {
  const secrets = upstream.credentials.flatMap(({ reveal }) => [
    reveal(),
    reveal().replace(/^[A-Za-z][A-Za-z0-9-]* /, ''),
  ]);
  return secrets
    .filter(({ length }) => length >= LEAST_SECRET_CHARACTERS)
    .some((secret) =>
      [secret, encodeURIComponent(secret)].some((text) => told.some((each) => each.includes(text))),
    );
}

export const repeatedCredential = () =>
  unanswered('no_answer', null, 'it repeated a credential of its own in what it sent');

/** The refusal of an upstream as ours: its status where that is the caller's matter, and what it said. */
export function refused(route: Route, { status, contentType, body }: UpstreamRefusal): ServiceFailure {
  const said = body === null ? null : saidBy(contentType, body);
  if (holdsCredential(route, body ?? '', contentType ?? '')) return repeatedCredential();
  return new ServiceFailure({
    status: (PASSED_ON.find((each) => each === status) ?? 422) as 422,
    code: 'UPSTREAM_REFUSED',
    message: `${route.upstream.name} refused the request with status ${status}.`,
    details: { upstream: { status, contentType, body: said } },
  });
}

/** Reads what a refusal says: JSON as JSON, text as text, anything else not at all. */
function saidBy(contentType: string | null, body: Buffer): unknown {
  if (body.length > MOST_PASSED_ON_CHARACTERS) return null;
  const type = mediaTypeOf({ 'content-type': contentType ?? undefined }) ?? '';
  const isJson = type === 'application/json' || type.endsWith('+json');
  if (!isJson && !type.startsWith('text/')) return null;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    return isJson ? JSON.parse(text) : text;
  } catch {
    return null;
  }
}

/** A failure of an upstream as ours, without what is for the operator alone. */
export function failed(route: Route, failure: UpstreamFailure): ServiceFailure {
  const { reason, retryAfterMs, detail, upstreamStatus, said } = failure;
  const seen = upstreamStatus === null ? detail : `${detail} (status ${upstreamStatus})`;
  return unanswered(reason, retryAfterMs, seen, holdsCredential(route, said ?? '') ? null : said);
}

/**
 * The failure for a reason.
 *
 * @param detail for the operator's log alone
 * @param said JSON in which the upstream told its caller what is wrong
 */
export function unanswered(
  reason: FailureReason,
  retryAfterMs: number | null,
  detail: string,
  said: string | null = null,
): ServiceFailure {
  const { status, message } = FAILURES[reason];
  const upstream = said === null ? {} : { upstream: { said: JSON.parse(said) } };
  return new ServiceFailure({
    status: status ?? 503,
    code: codeOf(reason, status),
    message,
    details: { reason, ...upstream },
    cause: new Error(detail),
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  });
}

function codeOf(reason: FailureReason, status: number | null): string {
  if (reason === 'busy') return 'BUSY';
  if (status === 504) return 'UPSTREAM_TIMEOUT';
  return status === 502 ? 'UPSTREAM_FAILED' : 'UPSTREAM_UNAVAILABLE';
}
