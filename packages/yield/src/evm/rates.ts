/** Works out what a deposit in a lending protocol earns in a year, from what the protocol says of itself. Percent a year, compounded. */

const SECONDS_PER_YEAR = 31_536_000;
const DAYS_PER_YEAR = 365;

/**
 * Aave: simple interest between two touches of the pool, which on this scale happen all the time.
 *
 * @param perYearRay `currentLiquidityRate`, times 1e27; what the treasury takes is taken off already
 */
export function aaveApyPercent(perYearRay: bigint): number {
  return compounded(Number(perYearRay) / 1e27 / SECONDS_PER_YEAR);
}

/** Compound v3. @param perSecond `getSupplyRate`, times 1e18; rewards in COMP are not counted */
export function cometApyPercent(perSecond: bigint): number {
  return compounded(Number(perSecond) / 1e18);
}

/** A market of Morpho Blue, as its rate and its state are read. */
export interface MorphoMarket {
  /** The assets in the market of the vault whose rate it is. */
  vaultAssets: number;
  totalSupplyAssets: number;
  totalBorrowAssets: number;
  /** `borrowRateView`, a second times 1e18; zero for a market without a rate. */
  borrowPerSecond: bigint;
  /** The part of the interest that is a fee, times 1e18. */
  fee: bigint;
}

/**
 * A MetaMorpho vault: its markets by what it has in each, less its own fee. What lies idle earns nothing.
 *
 * @param vaultFee of the yield, times 1e18
 * @param totalAssets of the vault, in the units of the markets' assets
 */
export function metaMorphoApyPercent(
  markets: readonly MorphoMarket[],
  vaultFee: bigint,
  totalAssets: number,
): number {
  const supplied = markets.reduce((sum, { vaultAssets }) => sum + vaultAssets, 0);
  const whole = Math.max(supplied, totalAssets);
  if (whole === 0) return 0;
  const gross = markets.reduce((sum, market) => sum + marketApyPercent(market) * market.vaultAssets, 0);
  return (gross / whole) * (1 - Number(vaultFee) / 1e18);
}

function marketApyPercent({ totalSupplyAssets, totalBorrowAssets, borrowPerSecond, fee }: MorphoMarket) {
  if (totalSupplyAssets === 0) return 0;
  const borrowApy = Math.expm1((Number(borrowPerSecond) / 1e18) * SECONDS_PER_YEAR);
  return 100 * borrowApy * (totalBorrowAssets / totalSupplyAssets) * (1 - Number(fee) / 1e18);
}

/** Takes the performance fee off a rate. */
export function netApyPercent(grossApyPercent: number, performanceBps: number): number {
  return grossApyPercent > 0 ? grossApyPercent * (1 - performanceBps / 10_000) : grossApyPercent;
}

/**
 * After how many days at a rate the yield has made up for the entry fee; null: never.
 *
 * @param netApyPercent after the performance fee
 */
export function daysToEarnBack(entryBps: number, netApyPercent: number): number | null {
  if (entryBps === 0) return 0;
  if (!(netApyPercent > 0)) return null;
  const years = -Math.log1p(-entryBps / 10_000) / Math.log1p(netApyPercent / 100);
  return Math.ceil(years * DAYS_PER_YEAR);
}

/** To four places: a hundredth of a basis point. */
export function rounded(percent: number): number {
  return Math.round(percent * 10_000) / 10_000;
}

function compounded(perSecond: number): number {
  return 100 * Math.expm1(SECONDS_PER_YEAR * Math.log1p(perSecond));
}
