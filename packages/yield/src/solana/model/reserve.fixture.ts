/** Reserves as mainnet had them, in the figures that were noted of them, to reckon with. */
import type { Address } from '@solana/kit';
import {
  COLLATERAL_MINT,
  COLLATERAL_VAULT,
  FEE_VAULT,
  LENDING_MARKET,
  LIQUIDITY_VAULT,
  SYSTEM_PROGRAM,
  TOKEN_PROGRAM,
  USDC_MINT,
} from '../addresses.ts';
import { ONE_SF } from './interest.ts';
import type { CurvePoint, Reserve } from './reserve.ts';

/** Points of a curve, of which an account always has eleven: the last is repeated. */
function curveOf(...points: readonly [utilizationBps: number, rateBps: number][]): CurvePoint[] {
  return Array.from({ length: 11 }, (_, index) => {
    const [utilizationBps, rateBps] = points[Math.min(index, points.length - 1)] ?? [0, 0];
    return { utilizationBps, rateBps };
  });
}

const SAME = {
  isStale: true,
  market: LENDING_MARKET,
  collateralFarm: SYSTEM_PROGRAM as Address,
  liquidityMint: USDC_MINT,
  liquidityVault: LIQUIDITY_VAULT,
  feeVault: FEE_VAULT,
  mintDecimals: 6,
  cumulativeBorrowRateSf: ONE_SF,
  referrerFeesSf: 0n,
  pendingReferrerFeesSf: 0n,
  liquidityTokenProgram: TOKEN_PROGRAM,
  collateralMint: COLLATERAL_MINT,
  collateralVault: COLLATERAL_VAULT,
  status: 'active',
  isCollateralTokenBlocked: false,
  isEmergency: false,
  depositLimitRaw: 1_500_000_000_000_000n,
  borrowLimitRaw: 1_200_000_000_000_000n,
  tokenName: 'USDC',
  withdrawalCap: { capacityRaw: 0n, totalRaw: 0n, intervalStartS: 0n, intervalSeconds: 0n },
  rewardsPerSlot: 0n,
  queuedCollateralRaw: 0n,
} as const;

export const NOVEMBER_2024: Reserve = {
  ...SAME,
  lastUpdateSlot: 298_271_854n,
  availableRaw: 10_143_494_880_000n,
  borrowedSf: 62_009_300_890_000n * ONE_SF,
  protocolFeesSf: 185_416_100_000n * ONE_SF,
  collateralSupplyRaw: 65_988_021_918_314n,
  hostFixedRateBps: 100,
  protocolTakePercent: 20,
  curve: curveOf([0, 1], [8_000, 300], [8_500, 670], [9_000, 1_500], [9_500, 3_354], [10_000, 7_500]),
};

export const NOVEMBER_2025: Reserve = {
  ...SAME,
  lastUpdateSlot: 377_723_091n,
  availableRaw: 129_639_221_256_987n,
  borrowedSf: 458_163_294_490_000n * ONE_SF,
  protocolFeesSf: 291_829_480_000n * ONE_SF,
  collateralSupplyRaw: 505_501_704_354_504n,
  hostFixedRateBps: 0,
  protocolTakePercent: 10,
  curve: curveOf([0, 0], [9_500, 475], [10_000, 3_000]),
};
