/** The headers that a configuration may not let through or set, because they belong to the connection, to money or to the server. */

import { mayComeBack, mayGoOn } from '../wire/headers.ts';

/** Headers of a connection, which end at it (RFC 9110, section 7.6.1). */
const OF_THE_CONNECTION: readonly string[] = [
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['proxy-authenticate', 'proxy-authorization', 'content-length', 'expect'],
];
const FORWARDING = /^(forwarded|via|x-forwarded-.*|x-real-ip)$/;
const MONEY = /^(payment|payment-.*|x-payment.*|x-credits-.*)$/;

/** The names of headers by which a caller is known; a fixed header of that name would be a secret in the file. */
const CREDENTIAL = /^(authorization|cookie|.*(api-?key|token|secret|password|signature|credential).*)$/;

/** Headers that are sent on only by a route that names them: they change what a status means. */
export const RANGE_HEADERS: readonly string[] = ['range', 'if-range'];

const isOfTheConnection = (name: string) => OF_THE_CONNECTION.includes(name);

/** @returns why a caller's header of this name never goes on to an upstream; null: it may */
export function wrongRequestHeader(name: string): string | null {
  if (name === 'authorization' || name === 'x-api-key')
    return 'it holds the key of whoever pays: give the upstream a credential of its own under its "headers"';
  if (name === 'idempotency-key') return 'the server sends a key of its own: leave it out';
  return wrongForUpstream(name) ?? (mayGoOn(name) ? null : 'it is never sent on: leave it out');
}

/** @returns why an upstream gets no such header, from a caller or from the file; null: it may */
export function wrongForUpstream(name: string): string | null {
  if (isOfTheConnection(name) || name === 'host') return 'it belongs to the connection: leave it out';
  if (name === 'cookie') return 'cookies are never sent on: leave it out';
  if (FORWARDING.test(name)) return 'it would tell the upstream an address that nobody checked: leave it out';
  return MONEY.test(name) ? 'it belongs to payments: leave it out' : null;
}

/** @returns why an upstream's header of this name never comes back to a caller; null: it may */
export function wrongAnswerHeader(name: string): string | null {
  if (isOfTheConnection(name)) return 'it belongs to the connection: leave it out';
  if (name === 'set-cookie') return 'cookies never come back: leave it out';
  if (name === 'www-authenticate' || MONEY.test(name))
    return 'a caller would take it for a demand of this server: leave it out';
  if (name.startsWith('access-control-')) return 'the server answers CORS by itself: leave it out';
  return mayComeBack(name) ? null : 'it never comes back: leave it out';
}

/** Whether a header of this name would hold a secret. */
export function isCredentialHeader(name: string): boolean {
  return CREDENTIAL.test(name);
}
