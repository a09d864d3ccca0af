/**
 * Several nodes as one: the first that answers is asked, and one that fails rests for a while. A node is asked for nothing before it has
 * said that it is of the chain that the portal was made for.
 */
import { connectRpc, type Rpc, RpcRefusal, RpcUnreachable } from '@farebox/core/chain-rpc/json-rpc';
import { GENESIS_HASH } from './addresses.ts';

/** A node that does not answer is asked again after this, if another one does. */
const REST_MS = 30_000;
/** Refusals that say something of the node and nothing of what was asked: it is behind, asked too often, or does not do this. */
const OF_THE_NODE: ReadonlySet<number> = new Set([-32_005, -32_004, -32_016, -32_601, 403, 429]);

interface Node {
  rpc: Rpc;
  restsUntilMs: number;
  isOfThisChain: boolean;
}

/**
 * @param urls of the nodes, in order; others may be in force at any time, and calls that run go on with theirs
 * @param about.timeoutMs for a call, however many nodes are asked
 * @returns what calls the first node that answers, and throws what the last one that was asked did
 */
export function connectNodes(
  urls: () => readonly string[],
  about: { timeoutMs: number; nowMs(): number },
): Pick<Rpc, 'call' | 'close'> {
  let known = connectedTo(urls(), about);
  const current = () => {
    const now = urls();
    if (now.join() !== known.urls.join()) {
      known.closeOnceIdle();
      known = connectedTo(now, about);
    }
    return known;
  };
  return {
    call: (method, params) => current().call(method, params),
    close: () => known.close(),
  };
}

function connectedTo(urls: readonly string[], about: { timeoutMs: number; nowMs(): number }) {
  const timeoutMs = Math.ceil(about.timeoutMs / urls.length);
  const nodes = urls.map(
    (url): Node => ({ rpc: connectRpc(url, { timeoutMs }), restsUntilMs: 0, isOfThisChain: false }),
  );
  const close = async () => {
    await Promise.all(nodes.map(({ rpc }) => rpc.close()));
  };
  let running = 0;
  let isLeft = false;
  return {
    urls,
    async call(method: string, params: readonly unknown[]): Promise<unknown> {
      running += 1;
      try {
        return await firstThatAnswers(nodes, method, params, about.nowMs);
      } finally {
        running -= 1;
        if (isLeft && running === 0) void close();
      }
    },
    closeOnceIdle() {
      isLeft = true;
      if (running === 0) void close();
    },
    close,
  };
}

async function firstThatAnswers(
  nodes: readonly Node[],
  method: string,
  params: readonly unknown[],
  nowMs: () => number,
): Promise<unknown> {
  const now = nowMs();
  // Those that rest are asked last, and not left out: nobody else may answer.
  const order = nodes.toSorted(
    (one, other) => Number(one.restsUntilMs > now) - Number(other.restsUntilMs > now),
  );
  let refusal: unknown = null;
  for (const node of order) {
    try {
      return await callOf(node, { method, params, isAlone: nodes.length === 1 });
    } catch (error) {
      if (error instanceof RpcRefusal && !OF_THE_NODE.has(error.code)) throw error;
      // A method that one node lacks is no reason to ask it for nothing else.
      if (!(error instanceof RpcRefusal) || error.code !== -32_601) node.restsUntilMs = nowMs() + REST_MS;
      // What was refused says more than a silence that came after it.
      refusal = refusal instanceof RpcRefusal && error instanceof RpcUnreachable ? refusal : error;
    }
  }
  throw refusal;
}

async function callOf(
  node: Node,
  { method, params, isAlone }: { method: string; params: readonly unknown[]; isAlone: boolean },
): Promise<unknown> {
  // The only one there is says itself which chain it is of, and the portal tells the operator.
  if (!node.isOfThisChain && !isAlone) {
    const genesis = await node.rpc.call('getGenesisHash', []);
    if (genesis !== GENESIS_HASH) throw new RpcUnreachable(method, new Error('a node of another chain'));
    node.isOfThisChain = true;
  }
  return node.rpc.call(method, params);
}
