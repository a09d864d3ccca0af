/** Calls over HTTP: a question there, an answer back, and everything bounded. */

import type { Buyable } from './buying/buyer.ts';
import { AnswerLost, type Door, type Outcome, type Reading } from './buying/door.ts';
import { challengesIn } from './challenges.ts';
import { fromBase64, isRecord, parsed, recordOf, toBase64 } from './json.ts';
import { microsOf } from './money.ts';
import type { Signed, Terms } from './payer.ts';

const PRICE_TIMEOUT_MS = 20_000;
/** An answer has 50 MB at most. */
const MAX_ANSWER_BYTES = 64_000_000;
const MAX_TERMS_CHARACTERS = 100_000;

/** The way to a paid call: a service by its name, or a route by its method and path. */
export interface HttpCall extends Buyable {
  /** Null: the service is called by its name. */
  route: { method: string; path: string } | null;
}

export interface HttpAnswer {
  status: number;
  headers: Headers;
  /** JSON as a value, anything else as bytes. */
  body: unknown;
  /** The terms of a 402. */
  terms: Terms | null;
  /** With what it was paid; null for an answer without a payment. */
  signed: Signed | null;
}

export interface HttpDoorParts {
  /** Without a slash at its end. */
  url: string;
  apiKey: string | null;
  /** The ways of the wallets, which decide where the price is asked. */
  ways: readonly ('x402' | 'mpp')[];
  fetch: typeof fetch;
}

export interface Question {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | null;
  timeoutMs: number;
  signal: AbortSignal;
}

/**
 * Asks a server something.
 *
 * @returns its whole answer, whatever its status
 * @throws AnswerLost TypeError when the path leads to somewhere else than below the server's address
 */
export async function ask(
  { url, fetch: fetches }: Pick<HttpDoorParts, 'url' | 'fetch'>,
  { method, path, headers = {}, body = null, timeoutMs, signal }: Question,
): Promise<HttpAnswer> {
  const address = addressBelow(url, path);
  try {
    const response = await fetches(address, {
      method,
      headers: { accept: 'application/json, */*;q=0.5', ...headers },
      body,
      // A key is sent to this address and to no other.
      redirect: 'error',
      cache: 'no-store',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    const bytes = await wholeOf(response);
    const isJson = /^application\/(?:[\w.-]+\+)?json\b/.test(response.headers.get('content-type') ?? '');
    const read = isJson ? parsed(new TextDecoder().decode(bytes)) : undefined;
    if (isJson && read === undefined) throw new AnswerLost('the answer is no JSON, or not all of it');
    return {
      status: response.status,
      headers: response.headers,
      body: isJson ? read : bytes,
      terms: response.status === 402 ? termsOf(response.headers, recordOf(read)) : null,
      signed: null,
    };
  } catch (error) {
    if (error instanceof AnswerLost) throw error;
    throw new AnswerLost(reasonOf(error), { cause: error });
  }
}

/**
 * Joins the address of a server and a path. Both together may be another server's: `https://farebox.example` and `@evil.example/`,
 * or `.evil.example/`.
 *
 * @throws TypeError when it is not below the address
 */
export function addressBelow(url: string, path: string): string {
  const whole = /^\/[^\s\\]*$/.test(path) && URL.canParse(url + path) ? new URL(url + path).href : '';
  if (!whole.startsWith(`${url}/`))
    throw new TypeError(
      'a path begins with / and leads to an address of the server that the client was made for',
    );
  return whole;
}

/** The wait that an answer asks for: seconds, or a moment by the server's own clock (RFC 9110, 10.2.3); null for anything else. */
export function retryAfterMsOf(headers: Headers): number | null {
  const text = headers.get('retry-after') ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const waitMs = /^[A-Z][a-z]{2}, /.test(text)
    ? Date.parse(text) - Date.parse(headers.get('date') ?? '')
    : Number.NaN;
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : null;
}

/** The door of a Farebox over HTTP. */
export function httpDoor(parts: HttpDoorParts): Door<HttpCall, HttpAnswer> {
  const askOnce = (call: HttpCall, under: 'x402' | 'mpp') =>
    ask(parts, { ...requestOf(call, under), timeoutMs: PRICE_TIMEOUT_MS, signal: call.signal });
  return {
    async askPrice(call) {
      const [first = 'x402', second] = new Set(parts.ways);
      const answer = await askOnce(call, first);
      if (second === undefined || call.route !== null) return answer;
      // A server may not take MPP, or nothing else: then the other address is enough.
      const other = await askOnce(call, second);
      if (answer.terms === null || other.terms === null) return answer.terms === null ? other : answer;
      const [x402, mpp] = first === 'x402' ? [answer.terms, other.terms] : [other.terms, answer.terms];
      const sandbox = x402.sandbox || mpp.sandbox;
      return { ...answer, terms: { ...x402, sandbox, challenges: mpp.challenges } };
    },
    async send(call, signed, timeoutMs) {
      const credential = signed['org.paymentauth/credential'];
      const { headers, ...request } = requestOf(call, credential === undefined ? 'x402' : 'mpp');
      const paid = { ...headers, ...paymentHeaders(signed, parts.apiKey) };
      const answer = await ask(parts, { ...request, headers: paid, timeoutMs, signal: call.signal });
      return { ...answer, signed };
    },
    read: readingOf,
  };
}

function requestOf({ route, service, input }: HttpCall, under: 'x402' | 'mpp') {
  if (route !== null && !/^(POST|PUT|PATCH)$/.test(route.method))
    return { ...route, headers: {}, body: null };
  const { method, path } = route ?? { method: 'POST', path: `/${under}/${encodeURIComponent(service)}` };
  return { method, path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(input) };
}

function paymentHeaders(signed: Signed, apiKey: string | null): Record<string, string> {
  const name = signed['farebox/idempotencyKey'];
  if (name !== undefined && apiKey !== null) return { 'x-api-key': apiKey, 'idempotency-key': name };
  const payment = signed['x402/payment'];
  if (payment !== undefined) return { 'payment-signature': toBase64(JSON.stringify(payment)) };
  const credential = signed['org.paymentauth/credential'];
  if (credential === undefined) throw new Error('what is stored is no payment');
  const challenge = recordOf(credential.challenge);
  const request = urlBase64(JSON.stringify(challenge.request));
  return {
    authorization: `Payment ${urlBase64(JSON.stringify({ ...credential, challenge: { ...challenge, request } }))}`,
  };
}

const urlBase64 = (text: string) =>
  toBase64(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

/** The terms of a 402, of either protocol; null when it names none. */
function termsOf(headers: Headers, body: Record<string, unknown>): Terms {
  const header = headers.get('payment-required') ?? '';
  const said = header.length > MAX_TERMS_CHARACTERS ? undefined : fromBase64(header);
  const x402 = recordOf(said === undefined ? undefined : parsed(said));
  const accepts = Array.isArray(x402.accepts) ? x402.accepts.slice(0, 50) : [];
  const price = typeof body.price_usd === 'number' ? microsOf(String(body.price_usd)) : null;
  const isMarked = (each: unknown) => recordOf(recordOf(each).extra).sandbox === true;
  return {
    priceMicros: price,
    sandbox: body.sandbox === true || x402.sandbox === true || accepts.some(isMarked),
    x402: x402.x402Version === 2 ? { ...x402, x402Version: 2, accepts } : null,
    challenges: challengesIn((headers.get('www-authenticate') ?? '').slice(0, MAX_TERMS_CHARACTERS)),
  };
}

function readingOf({ status, headers, body, terms }: HttpAnswer): Reading {
  const { charged, message } = recordOf(body);
  const isSaid = status >= 200 && status < 300;
  const retryAfterMs = retryAfterMsOf(headers);
  const outcome = outcomeOf(status, charged, terms);
  return {
    terms,
    outcome,
    asksAgain: outcome === 'uncharged' && (status === 503 || status === 429) && retryAfterMs !== null,
    retryAfterMs: retryAfterMs ?? 0,
    replayed: headers.get('idempotent-replayed') === 'true',
    chargedMicros: isSaid ? microsOf(headers.get('x-credits-used') ?? '') : null,
    message: typeof message === 'string' ? message.slice(0, 400) : `it answered ${status}`,
  };
}

function outcomeOf(status: number, charged: unknown, terms: Terms | null): Outcome {
  if (terms !== null) return 'refused';
  if (status >= 200 && status < 300) return 'paid';
  if (charged === false) return 'uncharged';
  // An answer that was bought and is not kept any more, or was paid back.
  if (status === 409 || status === 410) return 'paid';
  // Somebody on the way that knows no payments said no. A proxy may say 5xx for a server that has done what was asked.
  return charged === undefined && status >= 400 && status < 500 && status !== 408 ? 'uncharged' : 'unknown';
}

async function wholeOf({ body }: Response): Promise<Uint8Array> {
  if (body === null) return new Uint8Array();
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  const reader = body.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    bytes += read.value.byteLength;
    if (bytes > MAX_ANSWER_BYTES) {
      await reader.cancel();
      throw new AnswerLost('the answer is too large');
    }
    pieces.push(read.value);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  if (error.name === 'TimeoutError') return 'it took too long';
  const { code } = recordOf(isRecord(error.cause) || error.cause instanceof Error ? error.cause : undefined);
  return typeof code === 'string' ? code : error.message.slice(0, 200);
}
