/** One idempotency key, one piece of work: who repeats a request gets the first answer again. */
import { createHash } from 'node:crypto';
import { ApiError, invalid } from './api-error.ts';
import type { Records } from './records.ts';

const MAX_KEY_CHARACTERS = 255;
const KEPT_MS = 24 * 3_600_000;

/** An answer of the API, and whether its key shall get it again. */
export interface Answer {
  status: number;
  body: string;
  kept: boolean;
  requestId: string;
  /** The request that did the work, when this answer repeats it. */
  replayOf: string | null;
}

export interface Attempt {
  key: string;
  /** Method and path: a key is good for one of them. */
  endpoint: string;
  /** The parameters in canonical form. */
  params: string;
}

/** Returns a runner that does `work` once per key. Its answer is kept before it is given. */
export function openIdempotency(records: Records) {
  const inFlight = new Set<string>();

  /**
   * @throws ApiError 400 for a key that was used for something else, 409 while the first request is still at work
   */
  return async function once(
    { key, endpoint, params }: Attempt,
    work: (keep: (answer: Answer) => void) => Promise<Answer>,
  ): Promise<Answer> {
    if (key.length > MAX_KEY_CHARACTERS) {
      throw invalid(`Idempotency keys have at most ${MAX_KEY_CHARACTERS} characters.`);
    }
    // Keys can be secrets of whoever made them; the file has no use for them.
    const keyDigest = digestOf(key);
    const paramsDigest = digestOf(params);
    const first = records.answers.get(keyDigest);
    if (first !== undefined && records.nowMs() - first.atMs < KEPT_MS) {
      if (first.endpoint !== endpoint) throw misused(key, 'for the same endpoint they were first used for');
      if (first.paramsDigest !== paramsDigest) {
        throw misused(key, 'with the same parameters they were first used with');
      }
      const { status, body, requestId } = first;
      return { status, body, kept: false, requestId: records.newId('req_'), replayOf: requestId };
    }
    if (inFlight.has(keyDigest)) {
      throw new ApiError(
        409,
        {
          type: 'idempotency_error',
          code: 'idempotency_key_in_use',
          message:
            'There is currently another in-progress request using this idempotency key. Please try again later.',
        },
        false,
      );
    }
    inFlight.add(keyDigest);
    try {
      return await work(({ status, body, kept, requestId }) => {
        if (!kept) return;
        records.keepAnswer(keyDigest, {
          endpoint,
          paramsDigest,
          status,
          body,
          requestId,
          atMs: records.nowMs(),
        });
      });
    } finally {
      inFlight.delete(keyDigest);
    }
  };
}

function misused(key: string, rule: string): ApiError {
  return new ApiError(
    400,
    {
      type: 'idempotency_error',
      message:
        `Keys for idempotent requests can only be used ${rule}. Try using a key other than '${key}' if you meant to ` +
        'execute a different request.',
    },
    false,
  );
}

/** What a key is kept and shown under. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
