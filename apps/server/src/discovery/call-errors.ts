/**
 * How a paid call can fail. `charged` is whether the payment was taken when such an answer comes; null: the body's own
 * `charged` says it, which is null while nobody knows, and the message says what to do then. `codes` are those of the body's `code`, or for a payment that was refused of
 * its `last_error_reason`; none are listed where each service has its own.
 */
export const CALL_ERRORS = [
  {
    status: 400,
    charged: false,
    codes: ['INVALID_REQUEST', 'CLAIM_SECRET_REQUIRED'],
    meaning: 'The body does not fit the input schema. `fields` names what is wrong.',
    remedy: 'Correct the body and send it again.',
  },
  {
    status: 402,
    charged: false,
    codes: ['PAYMENT_REQUIRED'],
    meaning:
      'No payment was presented, or the one presented cannot be used: key unknown, revoked or expired, or credits too few; or a signed payment that does not fit.',
    remedy:
      'The body lists the ways to pay. `last_error_reason` says what was wrong with a payment that was sent.',
  },
  {
    status: 404,
    charged: false,
    codes: ['NOT_FOUND'],
    meaning: 'The source does not know the thing that was named, such as a token or a market.',
    remedy: 'Check the identifier.',
  },
  {
    status: 409,
    charged: null,
    codes: ['IDEMPOTENCY_KEY_REUSED', 'ANSWER_EXPIRED'],
    meaning:
      'The payment or the `Idempotency-Key` already bought something else, or its answer is no longer kept.',
    remedy: 'Use a new one for a new request.',
  },
  {
    status: 410,
    charged: false,
    codes: ['REFUNDED'],
    meaning: 'The call was paid before it ran and could not be delivered: its price is sent back.',
    remedy: 'Look at the receipt, and sign a new payment for a new call.',
  },
  {
    status: 422,
    charged: false,
    codes: [],
    meaning: 'The request is well-formed, but there is no answer to it, such as a sea temperature on land.',
    remedy: 'Ask for something else.',
  },
  {
    status: 429,
    charged: null,
    codes: ['RATE_LIMIT_EXCEEDED', 'TOO_MANY_CONCURRENT_CALLS'],
    meaning: 'Too many requests in a short time, or too many calls at once.',
    remedy: 'Wait as long as `Retry-After` says.',
  },
  {
    status: 503,
    charged: null,
    codes: [
      'SERVICE_UNAVAILABLE',
      'UPSTREAM_UNAVAILABLE',
      'DEADLINE_EXCEEDED',
      'BUSY',
      'ACCOUNT_BUSY',
      'SETTLEMENT_UNKNOWN',
      'OUTCOME_UNKNOWN',
    ],
    meaning:
      'Not for sale now: a source is down, too slow or not configured; or it is not known yet whether the payment was taken (`charged` is null then).',
    remedy:
      'Wait as long as `Retry-After` says and send the same request with the same payment, or choose a service whose `available` is true.',
  },
] as const;

/** When money is taken, for every document and every way to pay. */
export const CHARGING_RULE =
  'A call is charged only for an answer with a 2xx status. What was taken and could not be delivered is given back.';

/** How to repeat a call safely, for every document. */
export const REPEAT_RULE =
  'Send an `Idempotency-Key` with a call: the same key with the same body brings the same answer again, without a second charge.';
