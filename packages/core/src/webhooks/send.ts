/** One message to one receiver: signed, to where it may go, within bounds of size and time. */
import { Webhook } from 'standardwebhooks';
import { Agent, request } from 'undici';
import { guardedLookup, type LookUpAll, PrivateAddress, refusedAddress } from './address-guard.ts';

/** From the first byte to the last, the connection included. */
const TIMEOUT_MS = 10_000;
/** The bytes of a receiver's reply that are read; they are not looked at. */
const MAX_REPLY_BYTES = 16 * 1_024;
const MAX_HEADER_BYTES = 16 * 1_024;

/** A message as it is sent. */
export interface Message {
  /** The same, however often it is sent: receivers tell repeats by it. */
  id: string;
  body: string;
  url: string;
  /** Signs with each of them; the current one first. */
  secrets: readonly string[];
}

/**
 * The outcome of a delivery. `result` is a status of HTTP or a word of ours, and nothing that the receiver said.
 * - taken: the receiver has it.
 * - gone: the receiver wants no more (410).
 * - failed: all else.
 */
export interface Sent {
  outcome: 'taken' | 'gone' | 'failed';
  result: string;
}

export interface Sender {
  send(message: Message, nowMs: number): Promise<Sent>;
  close(): Promise<void>;
}

/**
 * @param parts.lookUp how names are looked up; by the name servers unless given. Where private addresses are allowed the system
 *   does it, by its hosts file too
 */
export function createSender(parts: {
  allowPrivate: boolean;
  userAgent: string;
  timeoutMs?: number;
  lookUp?: LookUpAll;
}): Sender {
  const { allowPrivate, userAgent, lookUp, timeoutMs = TIMEOUT_MS } = parts;
  const agent = new Agent({
    connect: { timeout: timeoutMs, ...(allowPrivate ? {} : { lookup: guardedLookup(lookUp) }) },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    // A connection is good for one message: the next one looks its name up again.
    pipelining: 0,
    allowH2: false,
  });

  return {
    async send({ id, body, url, secrets }, nowMs) {
      // Again, and not only when it was registered: the rule may be a stricter one by now.
      if (refusedAddress(url, allowPrivate) !== null) return { outcome: 'failed', result: 'address refused' };
      const at = new Date(nowMs);
      const signatures = secrets.map((secret) => new Webhook(secret).sign(id, at, body));
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        const reply = await request(url, {
          method: 'POST',
          dispatcher: agent,
          signal,
          body,
          headers: {
            'content-type': 'application/json',
            'user-agent': userAgent,
            'webhook-id': id,
            'webhook-timestamp': String(Math.floor(nowMs / 1_000)),
            'webhook-signature': signatures.join(' '),
          },
        });
        const { statusCode } = reply;
        await reply.body.dump({ limit: MAX_REPLY_BYTES, signal }).catch(() => {});
        // A redirect is not followed: it could lead anywhere.
        const taken = statusCode >= 200 && statusCode < 300;
        return {
          outcome: taken ? 'taken' : statusCode === 410 ? 'gone' : 'failed',
          result: String(statusCode),
        };
      } catch (error) {
        return { outcome: 'failed', result: signal.aborted ? 'timeout' : wordFor(error) };
      }
    },
    close: () => agent.destroy(),
  };
}

/** Codes of Node and undici as words; what the error says beside them may repeat an address. */
function wordFor(error: unknown): string {
  const all = [error, ...(error instanceof AggregateError ? error.errors : [])];
  if (all.some((each) => each instanceof PrivateAddress)) return 'private address';
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') return 'connection failed';
  if (code.includes('TIMEOUT') || code === 'ECANCELLED') return 'timeout';
  if (['ENOTFOUND', 'EAI_AGAIN', 'ENODATA', 'ESERVFAIL', 'EBADNAME'].includes(code)) return 'no such host';
  if (/CERT|TLS|SSL|SELF_SIGNED|VERIFY/.test(code)) return 'certificate refused';
  return 'connection failed';
}
