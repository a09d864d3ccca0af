/**
 * The published facilitator with one key, as the opponents' servers hold it in their own process. The library leaves the
 * sending to its user. What is used here: one queue for the key, its next nonce remembered, and read again after whatever
 * went wrong. With viem's own nonce manager a settlement that is refused leaves a gap behind which all others wait.
 */
import { x402Facilitator } from '@x402/core/facilitator';
import type { FacilitatorClient } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { createWalletClient, encodeFunctionData, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { SANDBOX_ACCOUNTS } from '../packages/sandbox/src/chain/accounts.ts';

/** viem looks every four seconds unless told otherwise; here a transaction is mined when it arrives. */
const RECEIPT_POLL_MS = 10;

type Hex = `0x${string}`;
type Signer = ConstructorParameters<typeof ExactEvmScheme>[0];

export function openPublishedFacilitator(rpcUrl: string): FacilitatorClient {
  const account = privateKeyToAccount(SANDBOX_ACCOUNTS.facilitator.privateKey);
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
  function send(to: Hex, data: Hex): Promise<Hex> {
    const sent = last.then(() => broadcast(to, data));
    last = sent.catch(() => undefined);
    return sent;
  }

  const signer: Signer = {
    getAddresses: () => [account.address],
    readContract: (call) => client.readContract(call),
    // The library does not wait for one of these, and its rejection would end the process when the node is down.
    getCode: (which) => client.getCode(which).catch(() => undefined),
    verifyTypedData: async () => {
      throw new Error('the library checks signatures by getCode and readContract');
    },
    writeContract: ({ address, ...call }) => send(address, encodeFunctionData(call)),
    sendTransaction: ({ to, data }) => send(to, data),
    waitForTransactionReceipt: ({ hash }) => client.waitForTransactionReceipt({ hash }),
  };
  const facilitator = new x402Facilitator().register('eip155:8453', new ExactEvmScheme(signer));
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () =>
      facilitator.getSupported() as Awaited<ReturnType<FacilitatorClient['getSupported']>>,
  };
}
