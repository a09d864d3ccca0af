/** How the sandbox talks to its own EVM nodes. The nodes sign for the accounts of the public phrase themselves. */
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

/** The node runs on this machine, which may be busy: hundreds of blocks take long then. */
const ANSWERS_WITHIN_MS = 60_000;

export type Node = ReturnType<typeof connect>;

/** @param places the contracts of the node's chain */
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
    transport: http(url, { retryCount: 0, timeout: ANSWERS_WITHIN_MS }),
    pollingInterval: RECEIPT_POLL_MS,
    cacheTime: 0,
  })
    .extend(publicActions)
    .extend(walletActions)
    .extend(() => ({ places }));
}

/**
 * Sends a transaction of one of the node's own accounts and waits for its receipt. The node chooses the nonce. Of two
 * transactions that are sent at once, both may get the same nonce, and the node then refuses one (see `faucet.ts`).
 *
 * @throws when the transaction is refused or reverted; with the reason if the gas estimate already shows it
 */
export async function transact(
  node: Node,
  transaction: { from: Address; to?: Address; data?: Hex; value?: bigint; gas?: bigint },
): Promise<TransactionReceipt> {
  const { from, ...call } = transaction;
  // A transaction may need more gas in the second after the estimate: Uniswap, for example, then stores its price anew.
  const gas = call.gas ?? GAS_MARGIN * (await node.estimateGas({ account: from, ...call }));
  const hash = await node.sendTransaction({ account: from, chain: null, ...call, gas });
  // Nobody replaces this transaction, and a search for a replacement may overlook its block: see `block-pace.ts`.
  const receipt = await node.waitForTransactionReceipt({ hash, checkReplacement: false });
  if (receipt.status !== 'success')
    throw new Error(`transaction ${hash} to ${transaction.to ?? 'a new contract'} was reverted`);
  return receipt;
}

export async function hasCode(node: Node, address: Address): Promise<boolean> {
  return (await node.getCode({ address })) !== undefined;
}
