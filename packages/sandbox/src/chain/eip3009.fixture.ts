/**
 * The typed data of EIP-3009, in the form that a library's general encoders take. The owner of USDC signs it to let anybody
 * move an amount once, or to cancel that permission. The code under test has encoders of its own.
 */
import type { Address, Hex } from 'viem';

interface Domain {
  name: string;
  version: string;
  chainId: number;
  verifyingContract: Address;
}

/** The signing domain of USDC: the same on the sandbox's chain and on Base. */
export const USDC_DOMAIN = {
  name: 'USD Coin',
  version: '2',
  chainId: 8453,
  verifyingContract: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
} as const satisfies Domain;

interface Transfer {
  from: Address;
  to: Address;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
}

/** Typed data by which `from` lets anybody move the money. */
export function transferData<Message extends Transfer>(message: Message, domain: Domain = USDC_DOMAIN) {
  return {
    domain,
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message,
  } as const;
}

/** Typed data by which `authorizer` cancels an authorization that was not used. */
export function cancelData(message: { authorizer: Address; nonce: Hex }, domain: Domain = USDC_DOMAIN) {
  return {
    domain,
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message,
  } as const;
}
