/** How a tool call says who pays: its `_meta` and the headers of its connection, in the headers that rails read. */
import type { Headers } from '../paid-call/rail.ts';
import { authorizationOfMcp } from '../rails/mpp/mcp.ts';

/** https://github.com/coinbase/x402/blob/main/specs/transports-v2/mcp.md */
const X402_PAYMENT = 'x402/payment';
/** Names a purchase that is made with an API key, so that it can be repeated: what `Idempotency-Key` is over HTTP. */
const IDEMPOTENCY_KEY = 'farebox/idempotencyKey';
export const IDEMPOTENCY_HEADER = 'idempotency-key';
/** The headers of a connection that are credentials; no other is. */
const OF_THE_CONNECTION = ['x-api-key', 'authorization'] as const;

export type Meta = Readonly<Record<string, unknown>> | undefined;

/**
 * The credential of a tool call.
 *
 * @param connection the headers of the HTTP request that brought it
 * @param meta `params._meta` of the call. A payment in it comes before the connection's key, as it does over HTTP, and so
 *   does the name of the purchase
 */
export async function credentialHeadersOf(connection: Headers, meta: Meta): Promise<Headers> {
  const headers: Record<string, string | string[] | undefined> = {};
  for (const name of OF_THE_CONNECTION) if (connection[name] !== undefined) headers[name] = connection[name];
  const payment = meta?.[X402_PAYMENT];
  if (payment !== undefined) headers['payment-signature'] = payment === null ? '' : inBase64(payment);
  const authorization = await authorizationOfMcp(meta);
  if (authorization !== null) headers.authorization = authorization;
  const key = meta?.[IDEMPOTENCY_KEY];
  const named = connection[IDEMPOTENCY_HEADER];
  // The paid call tells what is wrong with one that is no text.
  if (key !== undefined) headers[IDEMPOTENCY_HEADER] = typeof key === 'string' ? key : '';
  else if (named !== undefined) headers[IDEMPOTENCY_HEADER] = named;
  return headers;
}

/** A payload as HTTP carries it. Text is passed on: a wallet may have encoded it already. */
function inBase64(payment: unknown): string {
  return typeof payment === 'string' ? payment : Buffer.from(JSON.stringify(payment)).toString('base64');
}
