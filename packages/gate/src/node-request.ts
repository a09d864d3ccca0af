import type { IncomingMessage } from 'node:http';
import type { OpenCall } from './calls.ts';

/** Removes from a request what its handler is not to see: credentials and payments, and what the route does not name. */
export function stripHeaders(request: IncomingMessage, { mayPass }: OpenCall): void {
  // Both are made of the raw headers when they are first asked for, so they come before those.
  const { headers, headersDistinct, rawHeaders } = request;
  for (const made of [headers, headersDistinct])
    for (const name of Object.keys(made)) if (!mayPass(name)) delete made[name];
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2)
    if (!mayPass((rawHeaders[index] ?? '').toLowerCase())) rawHeaders.splice(index, 2);
}
