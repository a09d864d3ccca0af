/** Where things are on the sandbox's Tempo: the addresses that they have on the real one. */
import type { Address } from 'viem';

export const TEMPO_CHAIN_ID = 4217;

/** Bridged USDC, a TIP-20 token: what services are paid in. */
export const USDC_E: Address = '0x20C000000000000000000000b9537d11c60E8b50';
/** The first TIP-20 token. The ten accounts that the node is born with hold more of it than can be spent. */
export const PATH_USD: Address = '0x20c0000000000000000000000000000000000000';
/** Keeps the hash of each block for later ones (EIP-2935). */
export const BLOCK_HASHES: Address = '0x0000F90827F1C53a10cb7A02335B175320002935';
