/** The one error of the client: why a call brought no answer, and whether it cost anything. */

/** A field of a body that did not fit. */
export interface FieldProblem {
  /** Its path, such as `quotes.0.amount`. */
  field: string;
  message: string;
}

export interface FareboxErrorParts {
  code: string;
  message: string;
  /** `unknown`: the same call, made again, is answered by the same payment. */
  charged: boolean | 'unknown';
  status?: number | null;
  docUrl?: string | null;
  requestId?: string | null;
  fields?: readonly FieldProblem[];
  retryAfterMs?: number | null;
  body?: unknown;
  cause?: unknown;
}

export class FareboxError extends Error {
  override readonly name = 'FareboxError';
  /** The code of the server's error, or one of the client's own. */
  readonly code: string;
  /** Whether the call cost anything. `unknown`: make the same call again, and it is answered by the same payment. */
  readonly charged: boolean | 'unknown';
  /** The HTTP status; null when no answer came. */
  readonly status: number | null;
  /** A page that tells what the service takes and costs. */
  readonly docUrl: string | null;
  /** The server's name for the request, which its operator finds it by. */
  readonly requestId: string | null;
  /** The fields that did not fit, the first one first. */
  readonly fields: readonly FieldProblem[];
  /** How long the server asks to wait; null when it does not say. */
  readonly retryAfterMs: number | null;
  /** The body of the server's answer; undefined when none came. */
  readonly body: unknown;

  constructor(parts: FareboxErrorParts) {
    super(parts.message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.code = parts.code;
    this.charged = parts.charged;
    this.status = parts.status ?? null;
    this.docUrl = parts.docUrl ?? null;
    this.requestId = parts.requestId ?? null;
    this.fields = parts.fields ?? [];
    this.retryAfterMs = parts.retryAfterMs ?? null;
    this.body = parts.body;
  }

  /** The path of the first field that did not fit; null when it was not a field. */
  get field(): string | null {
    return this.fields[0]?.field ?? null;
  }
}
