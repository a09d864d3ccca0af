/**
 * How the opponents' servers send settlements: one key, one queue, and a remembered nonce that is read again after any
 * failure. The published libraries leave the sending to their user. With viem's own nonce manager a refused settlement
 * leaves a gap that blocks all later ones.
 */
import { createWalletClient, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';

/** viem polls every four seconds by default; here a transaction is mined when it arrives. */
const RECEIPT_POLL_MS = 10;

export type Hex = `0x${string}`;

/** Where an opponent settles, and the key that pays for it: each run has new ones. */
export interface Settling {
  /** The node of its chain. */
  rpcUrl: string;
  settlerKey: Hex;
}

export function openRelayerQueue({ rpcUrl, settlerKey }: Settling) {
  const account = privateKeyToAccount(settlerKey);
  const client = createWalletClient({
    account,
    chain: base,
    transport: http(rpcUrl, { retryCount: 0 }),
    pollingInterval: RECEIPT_POLL_MS,
  }).extend(publicActions);

  let nonce: number | null = null;
  let last: Promise<unknown> = Promise.resolve();

  async function broadcast(to: Hex, data: Hex): Promise<Hex> {
    nonce ??= await client.getTransactionCount({ address: account.address, blockTag: 'pending' });
    try {
      const hash = await client.sendTransaction({ to, data, nonce });
      nonce += 1;
      return hash;
    } catch (error) {
      nonce = null;
      throw error;
    }
  }

  return {
    client,
    address: account.address,
    /** @returns the hash of the transaction, which the node has accepted and may not have mined */
    send(to: Hex, data: Hex): Promise<Hex> {
      const sent = last.then(() => broadcast(to, data));
      last = sent.catch(() => undefined);
      return sent;
    },
  };
}
