/** JSON-RPC 2.0 as Solana's nodes speak it: one request or a batch, each answered or refused by itself. */

const MAX_BATCH = 100;

/** A refusal with the code and data that a node gives. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export const INVALID_PARAMS = -32602;
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

type Id = string | number | null;

export interface RpcCall {
  /** Absent in a notification, which is not answered. */
  id: Id | undefined;
  method: string;
  params: readonly unknown[];
}

export type RpcReply =
  | { jsonrpc: '2.0'; result: unknown; id: Id }
  | { jsonrpc: '2.0'; error: { code: number; message: string; data?: unknown }; id: Id };

/** Answers a call, or throws an RpcError. */
export type Answer = (call: RpcCall) => unknown;

/**
 * Answers the text of a request body or of a websocket message.
 *
 * @returns the reply as JSON text; null if nothing is to be answered (notifications only)
 */
export async function answerText(text: string, answer: Answer): Promise<string | null> {
  const reply = await repliesTo(text, answer);
  return reply === null ? null : toJson(reply);
}

async function repliesTo(text: string, answer: Answer): Promise<RpcReply | RpcReply[] | null> {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return refusal(null, new RpcError(PARSE_ERROR, 'Parse error'));
  }
  if (!Array.isArray(body)) return replyTo(body, answer);
  if (body.length === 0) return refusal(null, new RpcError(INVALID_REQUEST, 'Invalid request'));
  if (body.length > MAX_BATCH)
    return refusal(null, new RpcError(INVALID_REQUEST, `Batch too large: at most ${MAX_BATCH}`));
  const replies: RpcReply[] = [];
  for (const one of body) {
    const reply = await replyTo(one, answer);
    if (reply !== null) replies.push(reply);
  }
  return replies.length === 0 ? null : replies;
}

async function replyTo(request: unknown, answer: Answer): Promise<RpcReply | null> {
  const call = readCall(request);
  if (call === null) return refusal(null, new RpcError(INVALID_REQUEST, 'Invalid request'));
  let reply: RpcReply;
  try {
    reply = { jsonrpc: '2.0', result: await answer(call), id: call.id ?? null };
  } catch (error) {
    if (error instanceof LostReply) throw error;
    reply = refusal(call.id ?? null, error);
  }
  return call.id === undefined ? null : reply;
}

/** Thrown by an answer to have the whole connection fail instead: no reply is sent. */
export class LostReply extends Error {
  /** The HTTP status to fail with; null to cut the connection. */
  readonly httpStatus: number | null;

  constructor(httpStatus: number | null) {
    super('the reply is lost on purpose');
    this.httpStatus = httpStatus;
  }
}

function readCall(request: unknown): RpcCall | null {
  if (typeof request !== 'object' || request === null) return null;
  const { jsonrpc, id, method, params = [] }: Record<string, unknown> = { ...request };
  if (jsonrpc !== '2.0' || typeof method !== 'string') return null;
  if (id !== undefined && id !== null && typeof id !== 'string' && typeof id !== 'number') return null;
  if (typeof params !== 'object') return null;
  // A call without parameters may say null; none of the methods takes parameters by name.
  return { id, method, params: Array.isArray(params) ? params : [] };
}

function refusal(id: Id, error: unknown): RpcReply {
  if (error instanceof RpcError) {
    const { code, message, data } = error;
    return { jsonrpc: '2.0', error: { code, message, ...(data === undefined ? {} : { data }) }, id };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { jsonrpc: '2.0', error: { code: INTERNAL_ERROR, message: `Internal error: ${message}` }, id };
}

/** The refusal of a call to a method that does not exist. */
export function methodNotFound(): RpcError {
  return new RpcError(METHOD_NOT_FOUND, 'Method not found');
}

declare global {
  interface JSON {
    /** Makes `JSON.stringify` write the text as it is: for a number that the type `number` cannot hold. */
    rawJSON(text: string): unknown;
  }
}

/** JSON in which a bigint is a plain number, as nodes write u64. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === 'bigint' ? JSON.rawJSON(String(one)) : one,
  );
}
