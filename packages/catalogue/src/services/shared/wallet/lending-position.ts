/** What Aave v3 knows of a wallet on a chain. https://aave.com/docs/aave-v3/smart-contracts/pool */
import { type Address, BaseError, parseAbi, parseAbiItem } from 'viem';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import { searchBack } from '../chain/chain-logs.ts';
import type { ChainHead } from './wallet-chains.ts';

const abi = parseAbi([
  'function getUserAccountData(address user) view returns (uint256 totalCollateralBase, uint256 totalDebtBase, uint256 availableBorrowsBase, uint256 currentLiquidationThreshold, uint256 ltv, uint256 healthFactor)',
]);
const LIQUIDATION = parseAbiItem(
  'event LiquidationCall(address indexed collateralAsset, address indexed debtAsset, address indexed user, uint256 debtToCover, uint256 liquidatedCollateralAmount, address liquidator, bool receiveAToken)',
);
const ELSEWHERE: Address = '0x794a61358D6845594F94dc1DB02A252b5b4814aD';
/** The pool of each chain's main market. */
const POOLS: Readonly<Partial<Record<EvmChainName, Address>>> = {
  ethereum: '0x87870Bca3F3fD6335C3F4ce8392D69350B4fA4E2',
  base: '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5',
  polygon: ELSEWHERE,
  arbitrum: ELSEWHERE,
  optimism: ELSEWHERE,
};
const LOG_WINDOW = { blocks: 50_000n, blocksPerRequest: 10_000n, requests: 8 };
/** Amounts come in the market's base currency, USD with 8 decimals. */
const BASE = 1e8;
const NO_DEBT = 2n ** 255n;

export interface LendingPosition {
  collateralUsd: number;
  debtUsd: number;
  /** Below 1 it may be liquidated; null without debt. */
  healthFactor: number | null;
  /** The number in the searched blocks; null when the node lets nobody search. */
  liquidations: number | null;
  searchedFromBlock: bigint | null;
}

/**
 * @returns null where there is no such market
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function lendingPosition(
  { chain, blockNumber }: ChainHead,
  wallet: Address,
): Promise<LendingPosition | null> {
  const pool = POOLS[chain.name];
  if (pool === undefined) return null;
  try {
    const [collateral, debt, , , , health] = await chain.client.readContract({
      address: pool,
      abi,
      functionName: 'getUserAccountData',
      args: [wallet],
      blockNumber,
    });
    const searched = await searchBack(
      (range) =>
        chain.client.getLogs({
          address: pool,
          event: LIQUIDATION,
          args: { user: wallet },
          strict: true,
          ...range,
        }),
      blockNumber,
      LOG_WINDOW,
    ).catch((error: unknown) => {
      if (error instanceof BaseError) return null;
      throw error;
    });
    return {
      collateralUsd: Number(collateral) / BASE,
      debtUsd: Number(debt) / BASE,
      healthFactor: health >= NO_DEBT ? null : Math.round(Number(health) / 1e14) / 1e4,
      liquidations: searched?.found.length ?? null,
      searchedFromBlock: searched?.fromBlock ?? null,
    };
  } catch (error) {
    // Without code at the address the call has no result to decode.
    if (error instanceof BaseError) return null;
    throw error;
  }
}
