import { Agent, request } from 'undici';

/** The node answered, and said no. Its words never reach a caller of ours. */
export class RpcRefusal extends Error {
  readonly code: number;
  /** What the node attached, such as a revert's data. */
  readonly data: unknown;

  constructor(method: string, code: number, message: string, data: unknown) {
    super(`${method}: ${message} (${code})`);
    this.name = 'RpcRefusal';
    this.code = code;
    this.data = data;
  }
}

/** The node did not answer, or not in JSON-RPC. Whether it did what was asked is not known. */
export class RpcUnreachable extends Error {
  constructor(method: string, cause: unknown) {
    super(`${method}: no answer`, { cause });
    this.name = 'RpcUnreachable';
  }
}

export interface Rpc {
  /**
   * @throws RpcRefusal when the node says no; RpcUnreachable when it does not say
   */
  call(method: string, params: readonly unknown[], options?: { timeoutMs?: number }): Promise<unknown>;
  close(): Promise<void>;
}

const MAX_REPLY_BYTES = 5_000_000;

/** A JSON-RPC 2.0 client for one node. */
export function connectRpc(url: string, defaults: { timeoutMs: number }): Rpc {
  const agent = new Agent({ connections: 64, maxResponseSize: MAX_REPLY_BYTES, connect: { timeout: 2_000 } });
  let id = 0;
  return {
    async call(method, params, { timeoutMs = defaults.timeoutMs } = {}) {
      id += 1;
      let reply: unknown;
      try {
        const { body, statusCode } = await request(url, {
          dispatcher: agent,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
          headersTimeout: timeoutMs,
          bodyTimeout: timeoutMs,
          signal: AbortSignal.timeout(timeoutMs),
        });
        reply = JSON.parse(await body.text());
        if (statusCode >= 500 && !isObject(reply)) throw new Error(`HTTP ${statusCode}`);
      } catch (error) {
        throw new RpcUnreachable(method, error);
      }
      if (!isObject(reply)) throw new RpcUnreachable(method, new Error('not an object'));
      if (isObject(reply.error)) {
        const { code, message, data } = reply.error;
        throw new RpcRefusal(method, Number(code), String(message).slice(0, 500), data);
      }
      if (!('result' in reply)) throw new RpcUnreachable(method, new Error('neither result nor error'));
      return reply.result;
    },
    close: () => agent.destroy(),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
