/**
 * How a paid call can fail. Every one of these costs nothing. `codes` are those of the body's `code`; none
 * are listed where each service has its own.
 */
export const CALL_ERRORS = [
  {
    status: 400,
    codes: ['INVALID_REQUEST'],
    meaning: 'The body does not fit the input schema. `fields` names what is wrong.',
    remedy: 'Correct the body and send it again.',
  },
  {
    status: 402,
    codes: ['PAYMENT_REQUIRED'],
    meaning:
      'No payment was presented, or the one presented cannot be used: key unknown, revoked or expired, or credits too few.',
    remedy:
      'The body lists the ways to pay. `last_error_reason` says what was wrong with a payment that was sent.',
  },
  {
    status: 404,
    codes: ['NOT_FOUND'],
    meaning: 'The source does not know the thing that was named, such as a token or a market.',
    remedy: 'Check the identifier.',
  },
  {
    status: 409,
    codes: ['IDEMPOTENCY_KEY_REUSED', 'ANSWER_EXPIRED'],
    meaning:
      'The payment or the `Idempotency-Key` already bought something else, or its answer is no longer kept.',
    remedy: 'Use a new one for a new request.',
  },
  {
    status: 422,
    codes: [],
    meaning: 'The request is well-formed, but there is no answer to it, such as a sea temperature on land.',
    remedy: 'Ask for something else.',
  },
  {
    status: 429,
    codes: ['RATE_LIMIT_EXCEEDED', 'TOO_MANY_CONCURRENT_CALLS'],
    meaning: 'Too many requests in a short time, or too many calls at once.',
    remedy: 'Wait as long as `Retry-After` says.',
  },
  {
    status: 503,
    codes: ['SERVICE_UNAVAILABLE', 'UPSTREAM_UNAVAILABLE', 'DEADLINE_EXCEEDED', 'BUSY'],
    meaning: 'Not for sale now: a source is down, too slow or not configured.',
    remedy: 'Wait as long as `Retry-After` says, or choose a service whose `available` is true.',
  },
] as const;

/** When money is taken, in one sentence for every document. */
export const CHARGING_RULE =
  'A call is charged only when its answer has a 2xx status. Every other status costs nothing.';

/** How to repeat a call safely, for every document. */
export const REPEAT_RULE =
  'Send an `Idempotency-Key` with a call: the same key with the same body brings the same answer again, without a second charge.';
