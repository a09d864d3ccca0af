/** Errors of JSON-RPC, by the numbers that both versions of A2A have for them. */
import type { Problem } from '../http/problem.ts';

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

/** A request that is answered by an error of JSON-RPC. Nothing was charged by it. */
export class RpcError extends Error {
  readonly rpcCode: number;
  readonly code: string;
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
