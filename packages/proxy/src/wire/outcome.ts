/**
 * The end of a call to an upstream: an answer, which is paid; the upstream's refusal, which the caller sees; or a failure, of which
 * the caller learns only the kind. Only an answer costs anything.
 */
import { type ReceivedHeaders, singleValue } from './headers.ts';

/** The rule by which a route counts something as an answer. */
export interface AnswerRule {
  /** Statuses that count; null: every 2xx, with 206 only if `mayBePartial`. */
  readonly statuses: readonly number[] | null;
  /** Media types that count, such as `application/json` or `image/*`; null: any. */
  readonly contentTypes: readonly string[] | null;
  /** Fields that the JSON answer must have, and not as null: the names from the outermost one on. */
  readonly has: readonly (readonly string[])[];
  /** Fields that the JSON answer must not have, unless they are null or an empty list, such as GraphQL's `errors`. */
  readonly hasNot: readonly (readonly string[])[];
  /** Fields of the JSON answer that must have this value. */
  readonly equals: readonly {
    readonly path: readonly string[];
    readonly value: string | number | boolean | null;
  }[];
  readonly leastBytes: number;
  /** The data of the server-sent event that ends a whole stream, such as `[DONE]`; null: none does. */
  readonly lastEvent: string | null;
  /** Whether a part of a representation (206) counts: the route lets `Range` through, and the caller sent it. */
  readonly mayBePartial: boolean;
  /** Whether the caller asked for a compressed answer, and the route lets it. */
  readonly mayBeEncoded: boolean;
  /** Whether an answer counts whose end is only told by the end of its connection, though it may have been cut off. */
  readonly mayEndByClose: boolean;
}

/** Any 2xx that came whole. */
export const ANY_ANSWER: AnswerRule = {
  statuses: null,
  contentTypes: null,
  has: [],
  hasNot: [],
  equals: [],
  leastBytes: 0,
  lastEvent: null,
  mayBePartial: false,
  mayBeEncoded: false,
  mayEndByClose: false,
};

/** Why there is no answer. */
export type FailureReason =
  /** The caller left, or stopped the call. */
  | 'abandoned'
  /** All of our places for the upstream are taken, and those to wait in too. */
  | 'busy'
  /** It has been failing, and is left alone for a while. */
  | 'down'
  /** The configuration that it belongs to is being replaced. */
  | 'closing'
  /** No connection. */
  | 'unreachable'
  /** The connection ended before there was an answer, or what came is no HTTP. */
  | 'broken'
  /** The answer began and did not end as it should. */
  | 'cut'
  /** The answer may be whole or not: only the end of its connection told its end, and its route takes no such risk. */
  | 'unproven'
  | 'timed_out'
  | 'too_large'
  /** It does not accept our credentials, or wants to be paid. */
  | 'refused_us'
  /** It sends elsewhere. */
  | 'redirected'
  /** Status 5xx, or one that HTTP does not have. */
  | 'failed'
  /** Status 429. */
  | 'overloaded'
  /** Its route does not count what came as an answer. */
  | 'no_answer';

interface FailureKind {
  /** The status that the caller gets; null: nobody is there to get one. */
  readonly status: 502 | 503 | 504 | null;
  /** Whether the operator has to look at the upstream or at the configuration. */
  readonly isForOperator: boolean;
  /** Whether it shows that the upstream is not working, whoever asks what. */
  readonly isOutage: boolean;
  /** A sentence for the caller, which says nothing of addresses or credentials. */
  readonly message: string;
}

const kind = (
  status: FailureKind['status'],
  message: string,
  { isForOperator = false, isOutage = false } = {},
): FailureKind => ({ status, message, isForOperator, isOutage });

/** Each reason, as the caller and the operator learn of it. */
export const FAILURES: Readonly<Record<FailureReason, FailureKind>> = {
  abandoned: kind(null, 'The call was stopped.'),
  busy: kind(503, 'Too many calls wait for the server behind this route. Try again shortly.'),
  down: kind(503, 'The server behind this route has been failing. Try again later.'),
  closing: kind(503, 'The server behind this route is being exchanged. Try again.'),
  unreachable: kind(502, 'The server behind this route cannot be reached.', {
    isForOperator: true,
    isOutage: true,
  }),
  broken: kind(502, 'The server behind this route ended the connection, or did not answer in HTTP.', {
    isForOperator: true,
    isOutage: true,
  }),
  cut: kind(502, 'The server behind this route broke off its answer.', {
    isForOperator: true,
    isOutage: true,
  }),
  unproven: kind(502, 'Nobody can tell whether the answer of the server behind this route is whole.', {
    isForOperator: true,
  }),
  timed_out: kind(504, 'The server behind this route did not answer in time.', { isOutage: true }),
  too_large: kind(502, 'The answer of the server behind this route is too large.', { isForOperator: true }),
  refused_us: kind(502, 'The server behind this route does not accept this server.', { isForOperator: true }),
  redirected: kind(502, 'The server behind this route sent this server elsewhere.', { isForOperator: true }),
  failed: kind(502, 'The server behind this route failed.'),
  overloaded: kind(503, 'The server behind this route is asked too often. Try again later.'),
  no_answer: kind(502, 'What the server behind this route sent does not count as an answer.'),
};

/** Statuses by which a gateway, or a server itself, says that it is not working at all. */
const OUTAGES: readonly number[] = [502, 503, 504];

/** Tells whether a failure shows that its upstream is not working, whoever asks what. No caller should be able to cause one. */
export function isOutage({ reason, upstreamStatus }: UpstreamFailure): boolean {
  if (reason === 'failed') return OUTAGES.includes(upstreamStatus ?? 0);
  const isRefused = upstreamStatus !== null && upstreamStatus >= 400 && upstreamStatus < 500;
  return FAILURES[reason].isOutage && !isRefused;
}

export interface UpstreamFailure {
  readonly kind: 'failure';
  readonly reason: FailureReason;
  /** The operator's words for it. It holds no credential, and is not for callers. */
  readonly detail: string;
  /** The upstream's own status, if it had come that far. */
  readonly upstreamStatus: number | null;
  /** When the caller may try again; null: nothing is known of that. */
  readonly retryAfterMs: number | null;
  /** Whether the upstream may have got the request: a write may have been done. */
  readonly wasSent: boolean;
  /** JSON of what the upstream said in the field that an answer must not have; null where there is none. */
  readonly said: string | null;
}

/** A status of 4xx that is the caller's matter. It costs nothing. */
export interface UpstreamRefusal {
  readonly kind: 'refusal';
  readonly status: number;
  readonly contentType: string | null;
  /** Null when it was longer than what is passed on. */
  readonly body: Buffer | null;
}

export interface UpstreamAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** Unchanged. `headersForCaller` says which of them come back. */
  readonly headers: ReceivedHeaders;
  readonly body: Buffer;
}

export type UpstreamOutcome = UpstreamAnswer | UpstreamRefusal | UpstreamFailure;

/** How the end of a body is told: by a length, by chunks, by the end of the connection, or there is none. */
export type Framing = 'length' | 'chunked' | 'close' | 'none';

export interface AnswerHead {
  readonly status: number;
  readonly headers: ReceivedHeaders;
  readonly framing: Framing;
}

const LONGEST_RETRY_AFTER_MS = 3_600_000;
const RETRY_OVERLOADED_MS = 10_000;
const MOST_SAID_CHARACTERS = 2_048;
/** Requests that the upstream refuses for reasons that lie between it and us. */
const REFUSES_US: readonly number[] = [401, 402, 403, 407];

export function failure(
  reason: FailureReason,
  detail: string,
  more: Partial<Omit<UpstreamFailure, 'kind' | 'reason' | 'detail'>> = {},
): UpstreamFailure {
  return {
    kind: 'failure',
    reason,
    detail,
    upstreamStatus: more.upstreamStatus ?? null,
    retryAfterMs: more.retryAfterMs ?? null,
    wasSent: more.wasSent ?? true,
    said: more.said ?? null,
  };
}

/**
 * Judges the head of what an upstream sends.
 *
 * @returns `answer` or `refusal` when the body is to be read, and judged as that
 */
export function judgeHead(
  head: AnswerHead,
  rule: AnswerRule,
  nowMs: number,
): 'answer' | 'refusal' | UpstreamFailure {
  const { status, headers } = head;
  const fail = (reason: FailureReason, detail: string, retryAfterMs: number | null = null) =>
    failure(reason, detail, { upstreamStatus: status, retryAfterMs });
  if (status < 200 || status > 599) return fail('failed', `status ${status}`);
  if (REFUSES_US.includes(status)) return fail('refused_us', `status ${status}`);
  if (status >= 300 && status < 400) {
    const reason = status === 304 ? 'no_answer' : 'redirected';
    return fail(reason, `status ${status}`);
  }
  if (status >= 500) return fail('failed', `status ${status}`);
  if (!countsAsAnswer(status, rule)) {
    if (status === 408) return fail('timed_out', 'status 408');
    if (status === 429)
      return fail('overloaded', 'status 429', retryAfterOf(headers, nowMs) ?? RETRY_OVERLOADED_MS);
    return status >= 400 ? 'refusal' : fail('no_answer', `status ${status}, which the route does not count`);
  }
  const encoding = headers['content-encoding'];
  const isEncoded = encoding !== undefined && singleValue(encoding)?.toLowerCase() !== 'identity';
  if (isEncoded && !rule.mayBeEncoded) return fail('no_answer', 'compressed, though nobody asked for that');
  const type = mediaTypeOf(headers);
  if (rule.contentTypes !== null && !rule.contentTypes.some((wanted) => fitsType(type, wanted)))
    return fail('no_answer', `content type ${type ?? 'missing'}, which the route does not count`);
  return 'answer';
}

function countsAsAnswer(status: number, { statuses, mayBePartial }: AnswerRule): boolean {
  if (status === 206 && !mayBePartial) return false;
  return statuses === null ? status < 300 : statuses.includes(status);
}

/** Tells whether the body of an answer is read by a rule. */
export const readsBody = ({ has, hasNot, equals, lastEvent }: AnswerRule): boolean =>
  has.length + hasNot.length + equals.length > 0 || lastEvent !== null;

/** All that is known of a body when it has ended without an error. */
export interface BodyEnd {
  readonly bytes: number;
  /** Whether the event came that ends a whole stream. */
  readonly sawLastEvent: boolean;
}

/**
 * Judges the whole body of an answer.
 *
 * @returns null when it counts
 */
export function judgeBody(
  head: AnswerHead,
  body: Buffer,
  end: BodyEnd,
  rule: AnswerRule,
): UpstreamFailure | null {
  const short = judgeEnd(head, end, rule);
  const fields = rule.has.length + rule.hasNot.length + rule.equals.length;
  // JSON that is whole says so itself, if it is no bare number or word.
  const provesItself = short?.reason === 'unproven' && isJsonType(head.headers);
  if (short !== null && !provesItself) return short;
  if (fields === 0 && !provesItself && !isCalledJson(head, body)) return null;
  const read = jsonOf(body);
  if (read === null) {
    const detail = fields > 0 ? 'no JSON, which the route expects' : 'what is called JSON is none';
    return short ?? failure('no_answer', detail, { upstreamStatus: head.status });
  }
  if (provesItself && (typeof read.value !== 'object' || read.value === null)) return short;
  return judgeFields(read.value, head.status, rule);
}

/** Whether a body must be JSON because it says so: no agent could read what it would pay for. What is compressed is not read. */
function isCalledJson({ headers }: AnswerHead, body: Buffer): boolean {
  const isPlain = (singleValue(headers['content-encoding']) ?? 'identity').toLowerCase() === 'identity';
  return isPlain && body.length > 0 && mediaTypeOf(headers) === 'application/json';
}

/** Judges an end, where the body has left already or is looked at by others. */
export function judgeEnd(
  { status, framing }: AnswerHead,
  { bytes, sawLastEvent }: BodyEnd,
  rule: AnswerRule,
): UpstreamFailure | null {
  if (bytes < rule.leastBytes)
    return failure('no_answer', `${bytes} bytes, below the route's ${rule.leastBytes}`, {
      upstreamStatus: status,
    });
  if (rule.lastEvent !== null)
    return sawLastEvent ? null : failure('cut', 'ended without its last event', { upstreamStatus: status });
  if (framing === 'close' && !rule.mayEndByClose) {
    const detail = 'ended by the end of its connection, so that nobody can tell whether it is whole';
    return failure('unproven', detail, { upstreamStatus: status });
  }
  return null;
}

function judgeFields(
  value: unknown,
  status: number,
  { has, hasNot, equals }: AnswerRule,
): UpstreamFailure | null {
  const fail = (detail: string, said: string | null = null) =>
    failure('no_answer', detail, { upstreamStatus: status, said });
  // First, because it says why another field is missing.
  for (const path of hasNot) {
    const found = fieldAt(value, path);
    if (isNothing(found) || (Array.isArray(found) && found.length === 0)) continue;
    const said = JSON.stringify(found);
    return fail(
      `a field ${path.join('.')}, which the route does not count`,
      said.length <= MOST_SAID_CHARACTERS ? said : null,
    );
  }
  const missing = has.find((path) => isNothing(fieldAt(value, path)));
  if (missing !== undefined) return fail(`no field ${missing.join('.')}, which the route expects`);
  const other = equals.find((each) => fieldAt(value, each.path) !== each.value);
  return other === undefined ? null : fail(`another value of ${other.path.join('.')} than the route expects`);
}

const isNothing = (value: unknown): boolean => value === undefined || value === null;

/** The value of a field, by the names from the outermost one on; undefined if there is none. */
export function fieldAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

/** The value that a body is in JSON; null if it is none. */
function jsonOf(body: Buffer): { value: unknown } | null {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) };
  } catch {
    return null;
  }
}

/** The media type of an answer in lower case, without parameters; null if it has none, or several. */
export function mediaTypeOf(headers: ReceivedHeaders): string | null {
  const [type = ''] = singleValue(headers['content-type'])?.split(';', 1) ?? [];
  return type.trim() === '' ? null : type.trim().toLowerCase();
}

function isJsonType(headers: ReceivedHeaders): boolean {
  return /^application\/(?:[\w.+-]+\+)?json$/.test(mediaTypeOf(headers) ?? '');
}

function fitsType(type: string | null, wanted: string): boolean {
  if (type === null) return false;
  return wanted.endsWith('/*') ? type.startsWith(wanted.slice(0, -1)) : type === wanted;
}

/** When an upstream says that it may be asked again: seconds, or a date (RFC 9110, section 10.2.3). */
function retryAfterOf(headers: ReceivedHeaders, nowMs: number): number | null {
  const value = singleValue(headers['retry-after'])?.trim();
  if (value === undefined) return null;
  const isDate = /^[A-Z][a-z]{2,8},? /.test(value);
  const afterMs = /^\d{1,9}$/.test(value)
    ? Number(value) * 1_000
    : isDate
      ? Date.parse(value) - nowMs
      : Number.NaN;
  if (Number.isNaN(afterMs)) return null;
  return Math.min(Math.max(afterMs, 1_000), LONGEST_RETRY_AFTER_MS);
}
