/** Errors of A2A: by the numbers that both versions have for them in JSON-RPC, and in the forms of HTTP+JSON. */
import type { Problem } from '../http/problem.ts';
import type { Version } from './wire.ts';

const CODES = {
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL_ERROR: -32603,
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  EXTENDED_CARD_NOT_CONFIGURED: -32007,
  VERSION_NOT_SUPPORTED: -32009,
} as const;

export type ErrorName = keyof typeof CODES;

/** A request that is answered by an error of the protocol. Nothing was charged by it. */
export class RpcError extends Error {
  readonly rpcCode: number;
  readonly code: ErrorName;
  readonly details: Readonly<Record<string, unknown>>;

  /** @param details beside the house's `code` and `charged`, such as the fields that are wrong */
  constructor(name: ErrorName, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.name = 'RpcError';
    this.rpcCode = CODES[name];
    this.code = name;
    this.details = details;
  }
}

/** The `error` of a response. */
export function errorObject(error: RpcError | Problem, requestId: string) {
  if (error instanceof RpcError) {
    const { rpcCode: code, message, details } = error;
    return { code, message, data: { code: error.code, message, requestId, charged: false, ...details } };
  }
  const code = error.status >= 500 ? CODES.INTERNAL_ERROR : CODES.INVALID_REQUEST;
  return { code, message: error.message, data: error.body(requestId) };
}

/** The status and the gRPC code of each, as 1.0 has them for HTTP. */
const OVER_HTTP: Readonly<Record<ErrorName, readonly [status: number, code: string]>> = {
  PARSE_ERROR: [400, 'INVALID_ARGUMENT'],
  INVALID_REQUEST: [400, 'INVALID_ARGUMENT'],
  METHOD_NOT_FOUND: [404, 'NOT_FOUND'],
  INVALID_PARAMS: [400, 'INVALID_ARGUMENT'],
  INTERNAL_ERROR: [500, 'INTERNAL'],
  TASK_NOT_FOUND: [404, 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: [409, 'FAILED_PRECONDITION'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [400, 'UNIMPLEMENTED'],
  UNSUPPORTED_OPERATION: [400, 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: [415, 'INVALID_ARGUMENT'],
  EXTENDED_CARD_NOT_CONFIGURED: [400, 'FAILED_PRECONDITION'],
  VERSION_NOT_SUPPORTED: [400, 'FAILED_PRECONDITION'],
};
/** The codes of the house's own errors, by HTTP status. */
const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
};
const OF_GOOGLE = 'type.googleapis.com/google';

/**
 * An error in the form of the HTTP+JSON binding: 0.3 has the object of JSON-RPC, 1.0 a `google.rpc.Status` (AIP-193). The error
 * of the house stands in either.
 */
export function httpError(
  error: RpcError | Problem,
  { requestId, version }: { requestId: string; version: Version },
): { status: number; headers: Readonly<Record<string, string>>; body: Record<string, unknown> } {
  const told = errorObject(error, requestId);
  // There are no `params` in an address or a body.
  const message = told.message.replace(/^params\./, '').replace(/^params /, 'The request ');
  const isOfProtocol = error instanceof RpcError;
  const [status, code] = isOfProtocol
    ? OVER_HTTP[error.code]
    : [error.status, CODE_OF_STATUS[error.status] ?? 'INVALID_ARGUMENT'];
  const headers = isOfProtocol ? {} : error.headers;
  const data: Record<string, unknown> = { ...told.data, message };
  if (version === '0.3') return { status, headers, body: { ...told, message, data } };
  const charged = typeof data.charged === 'boolean' ? data.charged : null;
  const info = {
    '@type': `${OF_GOOGLE}.rpc.ErrorInfo`,
    reason: error.code,
    domain: isOfProtocol ? 'a2a-protocol.org' : 'farebox',
    metadata: { requestId, charged: String(charged) },
  };
  const house = { '@type': `${OF_GOOGLE}.protobuf.Struct`, value: data };
  return {
    status,
    headers,
    body: { error: { code: status, status: code, message, details: [info, house] } },
  };
}
