/** Looks at the nodes of the chains that are paid on, who settles there, and whether the keys that pay for it hold enough. */
import { connectRpc, type NodeRpc, RpcRefusal } from '@farebox/core/chain-rpc/json-rpc';
import { readHead } from '@farebox/core/rails/evm/authorization-use';
import { connectFacilitator } from '@farebox/core/rails/on-chain/facilitator';
import { type NamedEvmNetwork, NETWORKS, type NetworkName } from '@farebox/core/rails/x402/networks';
import { feesOf, weiOf } from '@farebox/core/relayer/evm-gas';
import { quantity } from '@farebox/core/relayer/node-reply';
import { addressOf, type EvmKey } from '@farebox/core/relayer/sign';
import { type Finding, findingsOf, type Look } from './finding.ts';

const NODE_TIMEOUT_MS = 4_000;
/** A node whose newest block is older cannot tell what is happening now. */
const MOST_BEHIND_MS = 120_000;
/** Blocks back at which a node is asked for a balance, and the first for logs too, which it must know. */
const DEPTHS = [300n, 10_000n, 1_000_000n];
/** The gas of a settlement, as the server counts it (docs/taking-x402.md): a key with less is not used. */
const SETTLEMENT_GAS = 70_000n;
const LEAST_SETTLEMENTS = 20n;
const WEI = 10n ** 18n;
const TEMPO_CHAIN_ID = 4_217;
const NOBODY = '0x0000000000000000000000000000000000000000';

export interface ChainParts {
  networks: readonly NetworkName[];
  nodes: Readonly<Record<NetworkName, string | null>>;
  /** Null: nothing is paid on Tempo. */
  tempoUrl: string | null;
  facilitatorUrls: readonly string[];
  facilitatorToken: string | null;
  relayerKeys: readonly EvmKey[];
  hasSolanaRelayer: boolean;
  refundKeys: readonly EvmKey[];
  nowMs(): number;
}

type Asking = <Result>(url: string, ask: (rpc: NodeRpc) => Promise<Result>) => Promise<Result>;
const asking: Asking = async (url, ask) => {
  const rpc = connectRpc(url, { timeoutMs: NODE_TIMEOUT_MS });
  try {
    return await ask(rpc);
  } finally {
    await rpc.close();
  }
};

const networksOf = (names: readonly NetworkName[]) => NETWORKS.filter(({ name }) => names.includes(name));
const evmOf = (names: readonly NetworkName[]): NamedEvmNetwork[] =>
  networksOf(names).flatMap((network): NamedEvmNetwork[] => (network.kind === 'evm' ? [network] : []));

const NODE = findingsOf('node');

export function lookAtNodes(parts: ChainParts): Look[] {
  const { networks, nodes, tempoUrl, nowMs } = parts;
  if (networks.length === 0 && tempoUrl === null)
    return [
      { step: 'node', look: async () => NODE.off('nothing is paid on chains (X402_NETWORKS is empty)') },
    ];
  const ofNetworks = networksOf(networks).map(
    (network): Look => ({
      step: 'node',
      async look() {
        const url = nodes[network.name];
        if (url === null) return NODE.mend(`${network.name}: no node is configured`, 'Name one.');
        return asking(url, (rpc) =>
          network.kind === 'evm' ? ofEvm(network, rpc, nowMs) : ofSolana(network.id, rpc),
        );
      },
    }),
  );
  const ofTempo: Look = {
    step: 'node',
    look: async () =>
      asking(tempoUrl ?? '', async (rpc) => {
        const id = Number(quantity(await rpc.call('eth_chainId', [])));
        return id === TEMPO_CHAIN_ID
          ? NODE.fine('tempo: chain 4217')
          : ofAnotherChain('tempo', TEMPO_CHAIN_ID, id);
      }),
  };
  return tempoUrl === null ? ofNetworks : [...ofNetworks, ofTempo];
}

async function ofEvm(
  { name, chainId }: NamedEvmNetwork,
  rpc: NodeRpc,
  nowMs: () => number,
): Promise<Finding> {
  const id = Number(quantity(await rpc.call('eth_chainId', [])));
  if (id !== chainId) return ofAnotherChain(name, chainId, id);
  const head = await readHead(rpc);
  const behindMs = nowMs() - Number(head.timestamp) * 1_000;
  if (behindMs > MOST_BEHIND_MS)
    return NODE.mend(
      `${name}: its newest block is ${Math.round(behindMs / 1_000)} s old`,
      'Wait until it has caught up, or use another node. Meanwhile nothing is sold on this chain.',
    );
  // As settlements are looked for: at a block that is named by its hash, and in the logs of the last few hundred.
  const asks: [string, string, unknown[]][] = [
    ['eth_call at a block by its hash', 'eth_call', [{ to: NOBODY, data: '0x' }, { blockHash: head.hash }]],
    ['eth_getLogs', 'eth_getLogs', [{ fromBlock: hexOf(head.number, DEPTHS[0]), address: NOBODY }]],
  ];
  for (const [what, method, params] of asks)
    if (await isRefused(rpc, method, params))
      return NODE.mend(`${name}: the node does not answer ${what}`, 'Use a node that does.');
  return depthOf(name, rpc, head.number);
}

async function depthOf(name: string, rpc: NodeRpc, height: bigint): Promise<Finding> {
  let deepest = 0n;
  for (const depth of DEPTHS) {
    if (await isRefused(rpc, 'eth_getBalance', [NOBODY, hexOf(height, depth)])) break;
    deepest = depth < height ? depth : height;
    if (depth >= height) break;
  }
  const told = `${name}: the right chain, and in step`;
  // A payment needs the state of the newest blocks alone.
  return deepest === 0n && height > 0n
    ? NODE.note(`${told}; it knows no state of ${DEPTHS[0]} blocks ago`)
    : NODE.fine(`${told}; it knows the state of at least the last ${deepest} blocks`);
}

async function ofSolana(id: string, rpc: NodeRpc): Promise<Finding> {
  const genesis = await rpc.call('getGenesisHash', []);
  return typeof genesis === 'string' && `solana:${genesis.slice(0, 32)}` === id
    ? NODE.fine('solana: the chain that it should be')
    : NODE.mend('solana: it is a node of another chain', 'Name a node of the mainnet.');
}

function ofAnotherChain(name: string, wanted: number, id: number): Finding {
  return NODE.mend(
    `${name}: it is a node of chain ${id}, and not of ${wanted}`,
    'Name a node of the right chain.',
  );
}

const hexOf = (height: bigint, depth = 0n) => `0x${(height > depth ? height - depth : 0n).toString(16)}`;

/** @throws RpcUnreachable when the node says nothing */
async function isRefused(rpc: NodeRpc, method: string, params: readonly unknown[]): Promise<boolean> {
  try {
    await rpc.call(method, params);
    return false;
  } catch (error) {
    if (error instanceof RpcRefusal) return true;
    throw error;
  }
}

export function lookAtFacilitators({
  networks,
  facilitatorUrls,
  facilitatorToken,
  ...keys
}: ChainParts): Look[] {
  const says = findingsOf('facilitator');
  const byItself = (name: NetworkName) =>
    name === 'solana' ? keys.hasSolanaRelayer : keys.relayerKeys.length > 0;
  if (facilitatorUrls.length === 0)
    return [{ step: 'facilitator', look: async () => says.off('no facilitator is configured') }];
  return facilitatorUrls.map((url) => ({
    step: 'facilitator',
    async look() {
      const { origin } = new URL(url);
      const client = connectFacilitator(url, () => facilitatorToken);
      try {
        const kinds = await client.supported();
        const missing = networksOf(networks).filter(
          ({ id, name }) =>
            !byItself(name) && !kinds.some((kind) => kind.scheme === 'exact' && kind.network === id),
        );
        return missing.length === 0
          ? says.fine(`${origin} settles what it is needed for`)
          : says.mend(
              `${origin} does not settle ${missing.map(({ name }) => name).join(', ')}`,
              'Name another facilitator, or set keys of your own settler.',
            );
      } finally {
        await client.close();
      }
    },
  }));
}

export function lookAtKeys(parts: ChainParts): Look[] {
  const { networks, nodes, nowMs } = parts;
  const duties = [
    {
      step: 'settler',
      variable: 'X402_RELAYER_KEYS',
      keys: parts.relayerKeys,
      without: 'there are no keys of our own settler: facilitators settle',
    },
    {
      step: 'refund key',
      variable: 'X402_REFUND_KEYS',
      keys: parts.refundKeys,
      without: 'there is none: what is charged before it runs is not sold for USDC',
    },
  ];
  return duties.flatMap(({ step, variable, keys, without }): Look[] => {
    const says = findingsOf(step);
    if (keys.length === 0 || evmOf(networks).length === 0)
      return [{ step, look: async () => says.off(without) }];
    return evmOf(networks).map(({ name, gasToken }) => ({
      step,
      look: async () =>
        asking(nodes[name] ?? '', async (rpc) => {
          const { maxFeePerGas } = await feesOf(rpc, nowMs)();
          const least = SETTLEMENT_GAS * LEAST_SETTLEMENTS * maxFeePerGas;
          const held = await Promise.all(
            keys.map(async (key) => {
              const address = addressOf(key);
              return { address, wei: await weiOf(rpc, address) };
            }),
          );
          return held.map(({ address, wei }) => {
            const told = `${name}: ${address} holds ${amountOf(wei)} ${gasToken.symbol} for gas`;
            return wei < least
              ? says.mend(
                  told,
                  `Send it more than ${amountOf(least)} ${gasToken.symbol} (key of ${variable}).`,
                )
              : says.fine(told);
          });
        }),
    }));
  });
}

/** Writes an amount with six places. */
function amountOf(wei: bigint): string {
  const micros = wei / 10n ** 12n;
  return `${wei / WEI}.${(micros % 1_000_000n).toString().padStart(6, '0')}`;
}
