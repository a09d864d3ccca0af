/**
 * How a paid call can fail. `charged` says whether such an answer means that the payment was taken; null: the body's
 * own `charged` says it, and is null while the outcome is unknown. `codes` are values of the body's `code`, or of
 * `last_error_reason` for a refused payment. No codes are listed where each service has its own.
 */
export const CALL_ERRORS = [
  {
    status: 400,
    charged: false,
    codes: ['INVALID_REQUEST', 'CLAIM_SECRET_REQUIRED', 'DRY_RUN_WITH_CREDENTIAL'],
    meaning: 'The body does not match the input schema. `fields` names each mistake.',
    remedy: 'Correct the body and send it again.',
  },
  {
    status: 402,
    charged: false,
    codes: ['PAYMENT_REQUIRED'],
    meaning:
      'The request has no payment, or its payment cannot be used: the key is unknown, revoked, expired or has too little credit, or the signed payment does not match.',
    remedy: 'Choose a way to pay from the body. `last_error_reason` says what was wrong with a payment.',
  },
  {
    status: 404,
    charged: false,
    codes: ['NOT_FOUND'],
    meaning: 'The source does not know the named thing, such as a token or a market.',
    remedy: 'Check the identifier.',
  },
  {
    status: 409,
    charged: null,
    codes: ['IDEMPOTENCY_KEY_REUSED', 'ANSWER_EXPIRED', 'ANSWER_NOT_KEPT'],
    meaning:
      'The payment or the `Idempotency-Key` has already bought something else, or its answer is no longer stored.',
    remedy: 'Use a new payment or key for a new request.',
  },
  {
    status: 410,
    charged: false,
    codes: ['REFUNDED'],
    meaning: 'The call was charged before it ran and could not be delivered. Its price is refunded.',
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
    codes: ['RATE_LIMIT_EXCEEDED', 'TOO_MANY_CONCURRENT_CALLS', 'MINUTE_QUOTA_REACHED', 'DAY_QUOTA_REACHED'],
    meaning: 'Too many requests in a short time, or too many calls at once.',
    remedy: 'Wait for the seconds in `Retry-After`.',
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
      'The service is not for sale now, because a source is down, too slow or not configured; or the outcome of the payment is not known yet (then `charged` is null).',
    remedy:
      'Wait for the seconds in `Retry-After`, then send the same request with the same payment; or choose a service whose `available` is true.',
  },
] as const;

/** When money is taken: one rule for every document and every way to pay. */
export const CHARGING_RULE =
  'A call is charged only for an answer with a 2xx status. A price that was taken without delivery is refunded.';

/** How to repeat a call safely, for every document. */
export const REPEAT_RULE =
  'Send an `Idempotency-Key` with a call: the same key with the same body brings the same answer again, without a second charge.';

/** How to make a dry run, for every document. */
export const DRY_RUN_RULE =
  '`?dryRun=1` checks the body and whether the call can be bought now, and answers its price and the schema of its answer. Nothing runs, nothing is charged. Send no credential with it: that is a 400.';

/** How to get errors in the standard form, for every document. */
export const PROBLEM_RULE =
  'Errors come as problem details (RFC 9457) for `Accept: application/problem+json`.';
