/**
 * Moves USDC between chains by Circle's CCTP, version 2: burned on one chain and minted on the other, without an
 * intermediary.
 */
import {
  type Address,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  parseAbi,
} from 'viem';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';

/** The same on every EVM chain. https://developers.circle.com/cctp/evm-smart-contracts */
export const TOKEN_MESSENGER: Address = '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d';
export const MESSAGE_TRANSMITTER: Address = '0x81D40F21F12A8F0E3252Bccb954D722d4c464B64';

/** Circle's numbers of the chains that it mints on. */
export const DOMAINS: Readonly<Partial<Record<EvmChainName, number>>> = {
  ethereum: 0,
  optimism: 2,
  arbitrum: 3,
  base: 6,
  polygon: 7,
};
/** The most that one burn may take. */
export const MOST_PER_BURN_MICROS = 10_000_000_000_000n;

const ABI = parseAbi([
  'function depositForBurn(uint256 amount, uint32 destinationDomain, bytes32 mintRecipient, address burnToken, bytes32 destinationCaller, uint256 maxFee, uint32 minFinalityThreshold)',
]);
export const BURN_SIGNATURE =
  'depositForBurn(uint256 amount,uint32 destinationDomain,bytes32 mintRecipient,address burnToken,bytes32 destinationCaller,uint256 maxFee,uint32 minFinalityThreshold)';

export const THRESHOLD = { fast: 1_000, standard: 2_000 } as const;
/** A fee may rise until the burn is mined. At most a fifth more is paid. */
const MARGIN_PERCENT = 120n;
/** Fees have fractions of a basis point. */
const FINE = 1_000_000n;

export interface BurnFee {
  feeMicros: bigint;
  /** The maximum fee that the burn states. */
  maxFeeMicros: bigint;
}

/** A fee rounded up, and the most that is offered. */
export function burnFee(amountMicros: bigint, basisPoints: number): BurnFee {
  const fine = BigInt(Math.ceil(basisPoints * Number(FINE)));
  const feeMicros = ceilDiv(amountMicros * fine, 10_000n * FINE);
  return { feeMicros, maxFeeMicros: ceilDiv(feeMicros * MARGIN_PERCENT, 100n) };
}

export interface Burn {
  amountMicros: bigint;
  domain: number;
  recipient: Address;
  usdc: Address;
  maxFeeMicros: bigint;
  speed: keyof typeof THRESHOLD;
}

export function burnCall({ amountMicros, domain, recipient, usdc, maxFeeMicros, speed }: Burn): Hex {
  return encodeFunctionData({
    abi: ABI,
    functionName: 'depositForBurn',
    // The destination's caller is left open, so that anybody may mint it for the recipient.
    args: [amountMicros, domain, pad(recipient), usdc, pad('0x'), maxFeeMicros, THRESHOLD[speed]],
  });
}

/**
 * The storage slot in which Circle's USDC keeps an allowance (FiatTokenV2_2: slot 10), for simulating a burn before
 * there is one.
 */
export function allowanceSlot(owner: Address, spender: Address): Hex {
  const outer = keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [owner, 10n]));
  return keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'bytes32' }], [spender, outer]));
}

export function allowanceOf(amount: bigint): Hex {
  return numberToHex(amount, { size: 32 });
}

function ceilDiv(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}
