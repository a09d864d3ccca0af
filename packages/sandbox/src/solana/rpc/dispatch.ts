/** Passes each call to its method, and applies the faults that are set. */
import type { Struck } from '../faults.ts';
import { type Answer, methodNotFound } from '../json-rpc.ts';
import { ACCOUNT_METHODS } from './accounts.ts';
import { CLUSTER_METHODS } from './cluster.ts';
import type { Method, SandboxNode } from './method.ts';
import { SANDBOX_METHODS } from './sandbox.ts';
import { SENDING_METHODS, sendTransaction } from './sending.ts';
import { TOKEN_METHODS } from './tokens.ts';
import { TRANSACTION_METHODS } from './transactions.ts';

const METHODS = new Map<string, Method>(
  [
    CLUSTER_METHODS,
    ACCOUNT_METHODS,
    TOKEN_METHODS,
    SENDING_METHODS,
    TRANSACTION_METHODS,
    SANDBOX_METHODS,
  ].flatMap((methods) => Object.entries(methods)),
);

/** Answers the calls that come by HTTP. */
export function answerCalls(node: SandboxNode): Answer {
  return async ({ method, params }) => {
    const struck = await node.faults.strikeBefore(method);
    const result = await run(node, method, params, struck);
    struck.strikeAfter();
    return result;
  };
}

function run(node: SandboxNode, name: string, params: readonly unknown[], struck: Struck): unknown {
  // Even a node that is behind passes transactions on to the nodes that are not.
  if (name === 'sendTransaction') return sendTransaction(node, params, struck.sent);
  const method = METHODS.get(name);
  if (method === undefined) throw methodNotFound();
  return method(struck.behind === null ? node : { ...node, bank: struck.behind }, params);
}
