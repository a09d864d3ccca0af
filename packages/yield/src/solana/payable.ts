/** The amount that the reserve can pay for a withdrawal now: its answer, its refusal and the position tell the same. */
import { LANDS_WITHIN_SLOTS } from './intents.ts';
import { accrue, cTokensToBurn, freeLiquidityRaw, usdcFor, withdrawalRoomRaw } from './model/interest.ts';
import type { Reserve } from './model/reserve.ts';
import type { ReserveNow } from './portal.ts';

export interface Payable {
  /** The most that can be asked for now, in USDC units, if the reserve is to be able to pay it when it lands. */
  usdcRaw: bigint;
  /** Whether the cap on withdrawals bounds it; otherwise what is lent out does. */
  isCapped: boolean;
  /** Whether so much collateral can be given back. */
  pays(collateralRaw: bigint): boolean;
}

/** @param atMs the time that the cap's interval is looked at */
export function payableNow({ slot, reserve, market }: ReserveNow, atMs: number): Payable {
  const later = accrue(reserve, slot + LANDS_WITHIN_SLOTS, market.referralFeeBps);
  const free = freeLiquidityRaw(later);
  const room = withdrawalRoomRaw(reserve, BigInt(Math.floor(atMs / 1_000)));
  const isCapped = room !== null && room < free;
  const most = isCapped ? room : free;
  return {
    usdcRaw: usdcFor(reserve, cTokensWithin(later, most)),
    isCapped,
    pays: (collateralRaw) => usdcFor(later, collateralRaw) <= most,
  };
}

/** The most cTokens that pay no more than this. */
function cTokensWithin(reserve: Reserve, usdcRaw: bigint): bigint {
  const enough = cTokensToBurn(reserve, usdcRaw);
  return usdcFor(reserve, enough) > usdcRaw ? enough - 1n : enough;
}
