import { Agent, request } from 'undici';

/** The node answered, and said no. Its words never reach a caller of ours. */
export class RpcRefusal extends Error {
  readonly code: number;
  /** The data that the node attached, such as a revert's data. */
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

/** A client that can put several calls into one request. */
export interface BatchingRpc extends Rpc {
  /**
   * Calls one method with each of these parameters, in one request.
   *
   * @param paramsOfEach at most `MAX_BATCH`
   * @returns the results, in the same order
   * @throws RpcRefusal when the node says no to the batch or to one of them; RpcUnreachable when one has no answer
   */
  batch(method: string, paramsOfEach: readonly (readonly unknown[])[]): Promise<unknown[]>;
}

/** A client that can also put calls of different methods into one request. */
export interface NodeRpc extends BatchingRpc {
  /**
   * Makes different calls in one request. Behind an address with several nodes, one of them answers the whole request.
   *
   * @param calls at most `MAX_BATCH`
   * @returns the results, in the same order
   * @throws RpcRefusal when the node says no to the batch or to one of them; RpcUnreachable when one has no answer
   */
  together(calls: readonly { method: string; params: readonly unknown[] }[]): Promise<unknown[]>;
}

const MAX_REPLY_BYTES = 5_000_000;
/** The calls that every provider of nodes takes in one batch. */
export const MAX_BATCH = 25;

/** A JSON-RPC 2.0 client for one node. */
export function connectRpc(url: string, defaults: { timeoutMs: number }): NodeRpc {
  const agent = new Agent({ connections: 64, maxResponseSize: MAX_REPLY_BYTES, connect: { timeout: 2_000 } });
  let id = 0;

  async function post(method: string, body: unknown, timeoutMs: number): Promise<unknown> {
    try {
      const answered = await request(url, {
        dispatcher: agent,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        signal: AbortSignal.timeout(timeoutMs),
      });
      const reply: unknown = JSON.parse(await answered.body.text());
      if (answered.statusCode >= 500 && !isObject(reply)) throw new Error(`HTTP ${answered.statusCode}`);
      return reply;
    } catch (error) {
      throw new RpcUnreachable(method, error);
    }
  }

  async function together(asked: readonly { method: string; params: readonly unknown[] }[]) {
    if (asked.length > MAX_BATCH) throw new Error(`a batch has at most ${MAX_BATCH} calls`);
    const [first] = asked;
    if (first === undefined) return [];
    const calls = asked.map(({ method, params }) => ({ jsonrpc: '2.0', id: ++id, method, params }));
    const replies = await post(first.method, calls, defaults.timeoutMs);
    // Answers come in any order. One answer for all of them is a refusal of the whole.
    if (!Array.isArray(replies)) {
      resultIn(first.method, replies);
      throw new RpcUnreachable(first.method, new Error('one answer to a batch'));
    }
    const byId = new Map(replies.filter(isObject).map((reply) => [reply.id, reply]));
    return calls.map((call) => resultIn(call.method, byId.get(call.id)));
  }

  return {
    async call(method, params, { timeoutMs = defaults.timeoutMs } = {}) {
      id += 1;
      return resultIn(method, await post(method, { jsonrpc: '2.0', id, method, params }, timeoutMs));
    },
    batch: (method, paramsOfEach) => together(paramsOfEach.map((params) => ({ method, params }))),
    together,
    close: () => agent.destroy(),
  };
}

function resultIn(method: string, reply: unknown): unknown {
  if (!isObject(reply)) throw new RpcUnreachable(method, new Error('not an object'));
  if (isObject(reply.error)) {
    const { code, message, data } = reply.error;
    // Some nodes write the number as text. An error without one is no JSON-RPC.
    const number = typeof code === 'string' && code !== '' ? Number(code) : code;
    if (!Number.isInteger(number)) throw new RpcUnreachable(method, new Error('an error without a code'));
    const why = typeof message === 'string' ? message.slice(0, 500) : 'no reason given';
    throw new RpcRefusal(method, number as number, why, data);
  }
  if (!('result' in reply)) throw new RpcUnreachable(method, new Error('neither result nor error'));
  return reply.result;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
