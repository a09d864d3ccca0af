/** The errors of the card API: their statuses and bodies, and whether one counts as an answer that is kept. */
import type { CardFailure, PaymentIntent, PaymentMethod, SetupIntent } from './objects.ts';

export interface ErrorBody {
  type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error';
  message: string;
  code?: string;
  param?: string;
  doc_url?: string;
  decline_code?: string;
  advice_code?: string;
  network_decline_code?: string;
  charge?: string;
  payment_intent?: PaymentIntent;
  setup_intent?: SetupIntent;
  payment_method?: PaymentMethod;
}

/** An error that a request is answered with. */
export class ApiError extends Error {
  readonly status: number;
  readonly body: ErrorBody;
  /** True: work had begun, so the same idempotency key gets this error again. False: the request never counted. */
  readonly kept: boolean;

  constructor(status: number, body: ErrorBody, kept: boolean) {
    super(body.message);
    this.status = status;
    this.body = body;
    this.kept = kept;
  }
}

/** A request that is wrong in itself: 400, and nothing is kept of it. */
export function invalid(message: string, param?: string, code?: string): ApiError {
  return new ApiError(400, { type: 'invalid_request_error', message, ...optional({ param, code }) }, false);
}

/** An object that does not exist: 404 in the path, 400 in a parameter, as the real API does. */
export function noSuch(kind: string, id: string, param: string): ApiError {
  const message = `No such ${kind}: '${id.slice(0, 100)}'`;
  const status = param === 'id' ? 404 : 400;
  return new ApiError(
    status,
    { type: 'invalid_request_error', code: 'resource_missing', message, param },
    false,
  );
}

/** A well-formed request that the state of things does not allow: 400, kept. */
export function refused(message: string, code?: string, more: Partial<ErrorBody> = {}): ApiError {
  return new ApiError(400, { type: 'invalid_request_error', message, ...optional({ code }), ...more }, true);
}

/** A card that was declined: 402, kept. */
export function cardError(failure: CardFailure, more: Partial<ErrorBody> = {}): ApiError {
  return new ApiError(402, { ...failure, ...more }, true);
}

function optional<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
