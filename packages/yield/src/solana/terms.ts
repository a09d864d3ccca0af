/** The portal's charges, and the bounds of what it takes. Amounts are USDC units. */

/** The fee on what a wallet deposits, in hundredths of a percent. */
export const DEPOSIT_FEE_BPS = 50n;
/** The fee on what a withdrawal takes out of the reserve. */
export const WITHDRAWAL_FEE_BPS = 50n;
/** The fee on the yield of a withdrawal. */
export const PERFORMANCE_FEE_BPS = 1_500n;
const BPS = 10_000n;
/** With its fee. */
export const MIN_DEPOSIT = 5_000_000n;
/** So that every figure fits what programs count in, with room: a billion USDC. */
export const MAX_AMOUNT = 1_000_000_000_000_000n;

/** The part of an amount, rounded down. */
export function partOf(amount: bigint, bps: bigint): bigint {
  return (amount * bps) / BPS;
}
