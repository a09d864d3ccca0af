/** The addresses of contracts on the sandbox's EVM chains: the same as on the real chains. */
import { type Address, parseEther } from 'viem';

/** Addresses on Base. */
export const USDC: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
export const WETH: Address = '0x4200000000000000000000000000000000000006';
export const GAS_PRICE_ORACLE: Address = '0x420000000000000000000000000000000000000F';
export const UNISWAP_POSITIONS: Address = '0x03a520b32C04BF3bEEf7BEb72E919cf822Ed34f1';

/** Addresses that are the same on Base and on Ethereum. */
export const MULTICALL3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11';
export const PERMIT2: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
/** The deterministic deployment proxy, which every anvil node contains. */
export const CREATE2_DEPLOYER: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C';
/** ERC-8004. */
export const IDENTITY_REGISTRY: Address = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432';
/** CCTP's TokenMessengerV2. */
export const TOKEN_MESSENGER: Address = '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d';
/** LI.FI's contract. */
export const BRIDGE_DIAMOND: Address = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE';
/**
 * Uniswap's first router (SwapRouter), at the address that it has on Ethereum. The real Base has only its successor
 * (SwapRouter02), whose code is in none of the packages used here.
 */
export const UNISWAP_ROUTER: Address = '0xE592427A0AEce92De3Edee1F18E0157C05861564';

/** What differs between the two chains. */
export interface Places {
  chainId: number;
  usdc: Address;
  /** Circle's FiatToken 2.2, which USDC's proxy calls. */
  usdcImplementation: Address;
  weth: Address;
  /** Chainalysis' oracle. */
  sanctionsOracle: Address;
  uniswapFactory: Address;
  uniswapQuoter: Address;
  uniswapPositions: Address;
  /** The pools of WETH and USDC. Ethereum's pools hold more than Base's. */
  pools: readonly { feeHundredthsOfBasisPoint: 500 | 3_000; wethWei: bigint }[];
}

export const BASE: Places = {
  chainId: 8453,
  usdc: USDC,
  usdcImplementation: '0x2Ce6311ddAE708829bc0784C967b7d77D19FD779',
  weth: WETH,
  sanctionsOracle: '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B',
  uniswapFactory: '0x33128a8fC17869897dcE68Ed026d694621f6FDfD',
  uniswapQuoter: '0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a',
  uniswapPositions: UNISWAP_POSITIONS,
  pools: [
    { feeHundredthsOfBasisPoint: 500, wethWei: parseEther('6000') },
    { feeHundredthsOfBasisPoint: 3_000, wethWei: parseEther('1500') },
  ],
};

export const ETHEREUM: Places = {
  chainId: 1,
  usdc: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  usdcImplementation: '0x43506849D7C04F9138D1A2050bbF3A0c054402dd',
  weth: '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2',
  sanctionsOracle: '0x40C57923924B5c5c5455c48D93317139ADDaC8fb',
  uniswapFactory: '0x1F98431c8aD98523631AE4a59f267346ea31F984',
  uniswapQuoter: '0x61fFE014bA17989E743c5F6cB21bF9697530B21e',
  uniswapPositions: '0xC36442b4a4522E871399CD717aBDD847Ab11FE88',
  pools: [
    { feeHundredthsOfBasisPoint: 500, wethWei: parseEther('16000') },
    { feeHundredthsOfBasisPoint: 3_000, wethWei: parseEther('4000') },
  ],
};
