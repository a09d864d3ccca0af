/** Where things are on the sandbox chain: the addresses that they have on Base. */
import type { Address } from 'viem';

export const CHAIN_ID = 8453;

export const USDC: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
export const WETH: Address = '0x4200000000000000000000000000000000000006';
export const MULTICALL3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11';
export const PERMIT2: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
/** The deterministic deployer; the node carries it. */
export const CREATE2_DEPLOYER: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C';
export const GAS_PRICE_ORACLE: Address = '0x420000000000000000000000000000000000000F';
/** Chainalysis' oracle, as deployed on Base. */
export const SANCTIONS_ORACLE: Address = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
/** ERC-8004. */
export const IDENTITY_REGISTRY: Address = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432';

/** CCTP's TokenMessengerV2. */
export const TOKEN_MESSENGER: Address = '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d';
/** LI.FI's contract. */
export const BRIDGE_DIAMOND: Address = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE';

export const UNISWAP_FACTORY: Address = '0x33128a8fC17869897dcE68Ed026d694621f6FDfD';
export const UNISWAP_QUOTER: Address = '0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a';
export const UNISWAP_POSITIONS: Address = '0x03a520b32C04BF3bEEf7BEb72E919cf822Ed34f1';
/** The router's first generation, where Ethereum has it; Base has only the second, whose code no package carries. */
export const UNISWAP_ROUTER: Address = '0xE592427A0AEce92De3Edee1F18E0157C05861564';
