/** Reads a request over either binding: who sent it, what it holds, and what becomes of an error or a stream. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { openEventStream } from '../http/event-stream.ts';
import { readJson } from '../http/json-text.ts';
import { databaseAway, Problem } from '../http/problem.ts';
import { type RateLimit, rateExceeded, rateHeaders } from '../http/rate-limit.ts';
import { presentedApiKey } from '../keys/api-key.ts';
import { tellFate } from '../paid-call/fate.ts';
import { RpcError } from './errors.ts';
import { X402_EXTENSIONS } from './extensions.ts';
import { mentionsPayment } from './messages.ts';
import type { Caller, Reply, Rpc } from './rpc.ts';

/** The longest that the reader of a stream may keep it waiting, in all. */
const READER_PATIENCE_MS = 30_000;

export interface A2aRoutesParts {
  rpc: Rpc;
  /** Host names that `Host` and `Origin` may have beside those of this machine. */
  hosts: readonly string[];
  /** The address of this server. */
  publicUrl: string;
  addressOf(request: FastifyRequest): string;
  addressLimit: RateLimit;
  /** Finds the account of the key that a request presents; null for one without a key that is good here. */
  accountOf(headers: FastifyRequest['headers']): Promise<bigint | null>;
  failed(error: unknown): void;
}

/** @throws Problem for one that comes too often */
export async function callerOf(
  parts: A2aRoutesParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Caller> {
  const address = parts.addressOf(request);
  const verdict = parts.addressLimit.take(address);
  reply.headers(rateHeaders(verdict));
  if (!verdict.allowed) throw rateExceeded(verdict);
  return {
    address,
    requestId: request.id,
    headers: request.headers,
    accountId: await parts.accountOf(request.headers),
    gone: () => request.raw.socket.destroyed,
  };
}

/** @throws RpcError for a body that is no JSON */
export function readBody(request: FastifyRequest): unknown {
  try {
    return readJson(request.body instanceof Buffer ? request.body : undefined);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new RpcError('PARSE_ERROR', error.message, { ...error.details });
  }
}

/** Whether a message, which nobody has checked yet, brings a key or an x402 payment. */
export function carriesPayment(params: unknown, { headers }: FastifyRequest): boolean {
  return presentedApiKey(headers) !== null || mentionsPayment(params);
}

/** Names, in the answer, the extensions that the caller asked for and that there are. */
export function activate({ headers }: FastifyRequest, reply: FastifyReply): void {
  for (const name of ['a2a-extensions', 'x-a2a-extensions']) {
    const asked = (textOf(headers[name]) ?? '').split(',').map((uri) => uri.trim());
    const active = X402_EXTENSIONS.filter((uri) => asked.includes(uri));
    if (active.length > 0) reply.header(name, active.join(', '));
  }
}

/**
 * An error as its caller is told of it. What is wrong with us is logged. A message with a payment that comes at the wrong time may
 * be one that comes again, and nobody has looked yet whether it bought something before.
 */
export function toldOf(
  error: unknown,
  isPaying: boolean,
  failed: (error: unknown) => void,
): RpcError | Problem {
  const known = error instanceof RpcError || error instanceof Problem ? error : ours(error);
  if (known !== error) failed(error);
  return isPaying && known instanceof Problem && isOurs(known) ? tellFate(known, 'not looked') : known;
}

/** Whether the caller is to wait or to come again, as far as a status tells it. */
export const isOurs = ({ status }: Problem) => status === 429 || status >= 500;

function ours(error: unknown): Problem {
  const details = { charged: null };
  return databaseAway(error) ?? new Problem(500, 'INTERNAL_ERROR', 'The server failed.', { details });
}

/** How a binding writes one event of a stream, and the error that ends one. */
export interface StreamWords {
  event(result: Record<string, unknown>): string;
  failure(error: unknown): string;
}

/** Sends results as server-sent events. */
export async function sendStream(
  reply: FastifyReply,
  { stream }: Extract<Reply, { stream: unknown }>,
  { event, failure }: StreamWords,
): Promise<FastifyReply> {
  const out = openEventStream(reply, plainHeaders(reply), READER_PATIENCE_MS);
  try {
    await stream({ closed: out.closed, write: (result) => out.write(Buffer.from(event(result))) });
    await out.end(Buffer.alloc(0));
  } catch (error) {
    await out.end(Buffer.from(failure(error)));
  }
  return reply;
}

function plainHeaders(reply: FastifyReply): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) headers[name] = String(value);
  return headers;
}

/** A header that may have come several times. */
export const textOf = (header: string | string[] | undefined) =>
  Array.isArray(header) ? header.join(',') : header;
