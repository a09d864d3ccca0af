/** Where the lending protocols are on the sandbox chain: the addresses that they have on Base. */
import type { Address } from 'viem';

/**
 * Aave v3, from its published addresses. The provider creates the pool and its configurator, whose addresses follow from
 * the provider's nonce.
 */
export const AAVE_PROVIDER: Address = '0xe20fCBdBfFC4Dd138cE8b2E6FBb6CB49777ad64D';
export const AAVE_POOL: Address = '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5';
export const AAVE_CONFIGURATOR: Address = '0x5731a04B1E775f0fdd454Bf70f3335886e9A96be';
export const AAVE_ACCESS: Address = '0x43955b0899Ab7232E3a454cf84AedD22Ad46FD33';
export const AAVE_ORACLE: Address = '0x2Cc0Fc26eD4563A5ce5e8bdcfe1A2878676Ae156';
export const AAVE_DATA: Address = '0x0F43731EB8d45A581f4a36DD74F5f358bc90C73A';
export const AAVE_TREASURY: Address = '0xBA9424d650A4F5c80a0dA641254d1AcCE2A37057';
export const AAVE_USDC: Address = '0x4e65fE4DbA92790696d040ac24Aa414708F5c0AB';

/** Compound v3's market of USDC. The sandbox has a double of it. */
export const COMET: Address = '0xb125E6687d4313864e53df431d5425969c15Eb2F';

export const MORPHO: Address = '0xBBBBBbbBBb9cC5e90e3b3Af64bdAF62C37EEFFCb';
export const MORPHO_RATES: Address = '0x46415998764C29aB2a25CbeA6254146D50D22687';
/** The MetaMorpho vault that is called Steakhouse USDC. */
export const META_MORPHO: Address = '0xbeeF010f9cb27031ad51e3333f9aF9C6B1228183';

/** The liquidation loan-to-value of the Morpho market, with 18 decimals: a debt may reach 86 % of the collateral's worth. */
export const MORPHO_LLTV = 860_000_000_000_000_000n;
