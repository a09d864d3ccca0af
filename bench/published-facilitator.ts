/** The published facilitator with one key. The opponents' servers run it in their own process. */
import { x402Facilitator } from '@x402/core/facilitator';
import type { FacilitatorClient } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { encodeFunctionData } from 'viem';
import { openRelayerQueue, type Settling } from './relayer-queue.ts';

type Signer = ConstructorParameters<typeof ExactEvmScheme>[0];

export function openPublishedFacilitator(settling: Settling): FacilitatorClient {
  const { client, address: relayer, send } = openRelayerQueue(settling);
  const signer: Signer = {
    getAddresses: () => [relayer],
    readContract: (call) => client.readContract(call),
    // The library does not await one of these calls, and its rejection would end the process when the node is down.
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
