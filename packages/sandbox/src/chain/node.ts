/** How the sandbox speaks to its own EVM nodes, which sign for the accounts they were born with. */
import {
  type Address,
  createTestClient,
  defineChain,
  type Hex,
  http,
  publicActions,
  type TransactionReceipt,
  walletActions,
} from 'viem';
import { BASE, type Places } from './addresses.ts';

/** Transactions are mined when they arrive: the receipt is there at the first or second look. */
const RECEIPT_POLL_MS = 5;
const GAS_MARGIN = 2n;

export type Node = ReturnType<typeof connect>;

/** @param places of the chain that the node makes */
export function connect(url: string, places: Places = BASE) {
  const chain = defineChain({
    id: places.chainId,
    name: 'Farebox sandbox chain',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });
  return createTestClient({
    mode: 'anvil',
    chain,
    transport: http(url, { retryCount: 0 }),
    pollingInterval: RECEIPT_POLL_MS,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions)
    .extend(() => ({ places }));
}

/**
 * Sends a transaction of one of the node's own accounts and waits for its receipt. The node gives the nonce, so that
 * several senders cannot take the same one.
 *
 * @throws when it is reverted, with the reason if that can be known before it is sent
 */
export async function transact(
  node: Node,
  transaction: { from: Address; to?: Address; data?: Hex; value?: bigint; gas?: bigint },
): Promise<TransactionReceipt> {
  const { from, ...call } = transaction;
  // What is estimated at one second may cost more in the next: Uniswap, for one, then notes the price anew.
  const gas = call.gas ?? GAS_MARGIN * (await node.estimateGas({ account: from, ...call }));
  const hash = await node.sendTransaction({ account: from, chain: null, ...call, gas });
  // Nobody replaces it. Who looks for a replacement may overlook its block: see `block-pace.ts`.
  const receipt = await node.waitForTransactionReceipt({ hash, checkReplacement: false });
  if (receipt.status !== 'success')
    throw new Error(`transaction ${hash} to ${transaction.to ?? 'a new contract'} was reverted`);
  return receipt;
}

export async function hasCode(node: Node, address: Address): Promise<boolean> {
  return (await node.getCode({ address })) !== undefined;
}
