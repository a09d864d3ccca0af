/**
 * Cancellations: a client posts `notifications/cancelled` in a request of its own and leaves the stream of the call open.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation
 *
 * A client gets a random name with `initialize`, so that the cancellation of its request 1 does not end that of another.
 * The name says where a cancellation belongs and proves nothing: only the key that pays for a call cancels it.
 */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { presentedApiKey } from '../keys/api-key.ts';
import type { Keys } from '../keys/keys.ts';
import type { FollowedCalls } from '../paid-call/followed-calls.ts';
import type { Headers } from '../paid-call/rail.ts';

export const SESSION_HEADER = 'mcp-session-id';
/** A cancellation may overtake its call: it is tried again after so many milliseconds each. */
const TRIED_AGAIN_AFTER_MS = [50, 150, 300];
/** How many cancellations may wait for their call at once; others are tried once. */
const MAX_WAITING = 100;
/** A longer id of a request is known by its hash. */
const MAX_ID_CHARACTERS = 100;

/** The id of a JSON-RPC request as text that tells the number 1 from the text "1". */
export function requestIdOf(id: string | number): string {
  const text = JSON.stringify(id);
  return text.length <= MAX_ID_CHARACTERS ? text : createHash('sha256').update(text).digest('hex');
}

/** How the client of a request names itself; null when it does not, or not as names are given out here. */
export function clientOf(headers: Headers): string | null {
  const sent = headers[SESSION_HEADER];
  return typeof sent === 'string' && /^[\x21-\x7e]{1,100}$/.test(sent) ? sent : null;
}

/** A name for a client whose message begins a session; null for any other message. */
export function nameFor(messages: readonly unknown[]): string | null {
  return messages.some((message) => isObject(message) && message.method === 'initialize')
    ? randomUUID()
    : null;
}

export class Cancelling {
  readonly #calls: Pick<FollowedCalls, 'cancel'>;
  readonly #keys: Pick<Keys, 'find'>;
  #waiting = 0;

  constructor(calls: Pick<FollowedCalls, 'cancel'>, keys: Pick<Keys, 'find'>) {
    this.#calls = calls;
    this.#keys = keys;
  }

  /** Cancels the calls that the messages of a request name, as far as the key of the request pays for them. */
  async cancel(messages: readonly unknown[], headers: Headers): Promise<void> {
    const ids = messages.flatMap(cancelledId);
    if (ids.length === 0) return;
    const presented = presentedApiKey(headers);
    const key = presented === null ? null : await this.#keys.find(presented);
    if (key === null) return;
    const client = clientOf(headers);
    await Promise.all(ids.map((requestId) => this.#cancelOne(key.id, { client, requestId })));
  }

  async #cancelOne(keyId: bigint, request: { client: string | null; requestId: string }): Promise<void> {
    if (await this.#calls.cancel(keyId, request)) return;
    if (this.#waiting >= MAX_WAITING) return;
    this.#waiting += 1;
    try {
      for (const waitMs of TRIED_AGAIN_AFTER_MS) {
        await sleep(waitMs);
        if (await this.#calls.cancel(keyId, request)) return;
      }
    } finally {
      this.#waiting -= 1;
    }
  }
}

function cancelledId(message: unknown): string[] {
  if (!isObject(message) || message.method !== 'notifications/cancelled' || !isObject(message.params))
    return [];
  const { requestId } = message.params;
  return typeof requestId === 'string' || typeof requestId === 'number' ? [requestIdOf(requestId)] : [];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
