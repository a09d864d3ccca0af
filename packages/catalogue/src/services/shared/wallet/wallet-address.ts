import { isAddress as isSolanaAddress } from '@solana/kit';
import { type Address, getAddress, isAddress } from 'viem';
import { z } from 'zod';

const EVM_ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const BASE58_ADDRESS = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;
const MISSPELLED = 'is misspelled: its checksum is wrong (an EVM address in lower case carries none)';

/**
 * An EVM address, spelled with its checksum (EIP-55) once parsed. Upper and lower case mixed in any other way is
 * refused: it is a misspelled address, and what is sent there is lost.
 */
export function evmAddress(description: string) {
  return z
    .string()
    .trim()
    .regex(EVM_ADDRESS, 'must be 0x and 40 hex digits')
    .refine((written) => !EVM_ADDRESS.test(written) || isWellSpelled(written), MISSPELLED)
    .transform((address): Address => getAddress(address.toLowerCase()))
    .describe(description);
}

/** A wallet's address: on an EVM chain, spelled with its checksum once parsed, or on Solana. */
export function walletAddress(description: string) {
  return z
    .string()
    .trim()
    .regex(
      new RegExp(`${EVM_ADDRESS.source}|${BASE58_ADDRESS.source}`),
      'must be an EVM address (0x + 40 hex digits) or a Solana address (base58)',
    )
    .refine(
      (written) => (EVM_ADDRESS.test(written) ? isWellSpelled(written) : isSolanaOrUnchecked(written)),
      MISSPELLED,
    )
    .transform((written) => (isEvmAddress(written) ? getAddress(written.toLowerCase()) : written))
    .describe(description);
}

/** Tells the two kinds of wallet apart. */
export function isEvmAddress(address: string): address is Address {
  return EVM_ADDRESS.test(address);
}

function isWellSpelled(address: string): boolean {
  const digits = address.slice(2);
  return digits === digits.toLowerCase() || digits === digits.toUpperCase() || isAddress(address);
}

/** What is no address at all was refused by the pattern, in its own words. */
function isSolanaOrUnchecked(written: string): boolean {
  return !BASE58_ADDRESS.test(written) || isSolanaAddress(written);
}
