import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  accrue,
  borrowRateSf,
  cTokensFor,
  cTokensToBurn,
  depositRoomRaw,
  freeLiquidityRaw,
  ONE_SF,
  SLOTS_PER_YEAR,
  supplyAprAndApy,
  supplySf,
  toNumber,
  usdcFor,
  utilizationSf,
  withdrawalRoomRaw,
} from './interest.ts';
import { NOVEMBER_2024, NOVEMBER_2025 } from './reserve.fixture.ts';
import type { Reserve } from './reserve.ts';

const SLOTS_OF_30_DAYS = 6_480_000n;

function isClose(actual: number, expected: number, part: number): void {
  assert.ok(Math.abs(actual / expected - 1) < part, `${actual} is not ${expected}`);
}

function deposited(reserve: Reserve, amountRaw: bigint): { after: Reserve; cTokensRaw: bigint } {
  const { cTokensRaw, paidRaw } = cTokensFor(reserve, amountRaw);
  const after = {
    ...reserve,
    availableRaw: reserve.availableRaw + paidRaw,
    collateralSupplyRaw: reserve.collateralSupplyRaw + cTokensRaw,
  };
  return { after, cTokensRaw };
}

test('pays what the real program paid for 995 USDC over 30 days, to the unit', () => {
  const { after, cTokensRaw } = deposited(NOVEMBER_2025, 995_000_000n);
  assert.equal(cTokensRaw, 856_110_718n);
  const later = accrue(after, after.lastUpdateSlot + SLOTS_OF_30_DAYS, 0);
  const grossRaw = usdcFor(later, cTokensRaw);
  assert.equal(grossRaw, 997_797_573n);
  const withdrawalFeeRaw = (grossRaw * 50n) / 10_000n;
  const performanceFeeRaw = ((grossRaw - 995_000_000n) * 1_500n) / 10_000n;
  assert.equal(grossRaw - withdrawalFeeRaw - performanceFeeRaw, 992_388_951n);
});

test('a year’s rates are those of November 2025, and slower slots earn less', () => {
  const rates = supplyAprAndApy(NOVEMBER_2025, 400);
  isClose(rates.supplyApr, 0.03420830627, 1e-9);
  isClose(rates.borrowApr, 0.04873988946, 1e-9);
  isClose(rates.supplyApy, 0.0348001, 1e-5);
  isClose(toNumber(utilizationSf(NOVEMBER_2025)), 0.7798382313, 1e-9);
  const slow = supplyAprAndApy(NOVEMBER_2025, 500);
  isClose(rates.supplyApr / slow.supplyApr, 1.25, 1e-12);
  assert.equal(supplyAprAndApy(NOVEMBER_2025, 10).supplyApr, supplyAprAndApy(NOVEMBER_2025, 350).supplyApr);
});

test('what is owed grows as money does that compounds without end, but for the program’s rounding', () => {
  for (const reserve of [NOVEMBER_2024, NOVEMBER_2025]) {
    const slots = 3_000_000;
    const later = accrue(reserve, reserve.lastUpdateSlot + BigInt(slots), 0);
    const yearly = toNumber(borrowRateSf(reserve)) + reserve.hostFixedRateBps / 10_000;
    const grown = Number(later.borrowedSf - reserve.borrowedSf) / Number(reserve.borrowedSf);
    // The square of a slot's rate is a few units of 2⁻⁶⁰, of which rounding takes a good part.
    isClose(grown, Math.expm1((yearly * slots) / SLOTS_PER_YEAR), 1e-3);
    assert.equal(later.isStale, false);
    const fees = later.protocolFeesSf - reserve.protocolFeesSf;
    // Of November 2024's interest the host's fixed part goes to the protocol as a whole.
    const host = (grown * (reserve.hostFixedRateBps / 10_000)) / yearly;
    const share = host + (grown - host) * (reserve.protocolTakePercent / 100);
    isClose(Number(fees) / Number(reserve.borrowedSf), share, 1e-3);
  }
});

test('up to four slots are multiplied out, and no slot changes nothing', () => {
  const { lastUpdateSlot: slot, borrowedSf } = NOVEMBER_2024;
  assert.equal(accrue(NOVEMBER_2024, slot, 0), NOVEMBER_2024);
  const base = (borrowRateSf(NOVEMBER_2024) + ONE_SF / 100n) / BigInt(SLOTS_PER_YEAR);
  const times = (one: bigint, other: bigint) => (one * other) >> 60n;
  const once = ONE_SF + base;
  const twice = times(once, once);
  const growths = [once, twice, times(twice, once), times(twice, twice)];
  for (const [index, growth] of growths.entries()) {
    const later = accrue(NOVEMBER_2024, slot + BigInt(index + 1), 0);
    assert.equal(later.borrowedSf, times(borrowedSf, growth));
  }
  assert.throws(() => accrue(NOVEMBER_2024, slot - 1n, 0), RangeError);
});

test('referrers’ part is taken out of the protocol’s', () => {
  const slot = NOVEMBER_2025.lastUpdateSlot + 1_000_000n;
  const without = accrue(NOVEMBER_2025, slot, 0);
  const shared = accrue(NOVEMBER_2025, slot, 2_000);
  assert.ok(shared.pendingReferrerFeesSf > 0n);
  assert.equal(shared.protocolFeesSf + shared.pendingReferrerFeesSf, without.protocolFeesSf);
  const protocol = Number(without.protocolFeesSf - NOVEMBER_2025.protocolFeesSf);
  isClose(Number(shared.pendingReferrerFeesSf) / protocol, 0.2, 1e-9);
  assert.equal(supplySf(shared), supplySf(without));
});

test('the rate is a point’s own within half a bps of it, and between points on the line', () => {
  const used = (bps: number): Reserve => ({
    ...NOVEMBER_2025,
    availableRaw: 0n,
    protocolFeesSf: 0n,
    borrowedSf: BigInt(Math.round(bps * 1_000)) * ONE_SF,
    // What nobody lent is taken off, so that the use is as asked.
    referrerFeesSf: BigInt(Math.round(bps * 1_000) - 10_000_000) * ONE_SF,
  });
  const rateBps = (bps: number) => Math.round(toNumber(borrowRateSf(used(bps))) * 1e8) / 1e4;
  assert.equal(rateBps(0), 0);
  assert.equal(rateBps(9_500.4), 475);
  assert.equal(rateBps(9_499.6), 475);
  isClose(rateBps(9_501), 475 + 2_525 / 500, 1e-4);
  isClose(rateBps(4_750), 237.5, 1e-4);
  assert.equal(rateBps(9_999.7), 3_000);
  assert.equal(rateBps(12_000), 3_000);
});

test('a deposit takes back what buys no cToken, and a redemption never pays more than was put in', () => {
  let tookBack = 0;
  for (let amountRaw = 1n; amountRaw <= 400n; amountRaw += 1n) {
    const { cTokensRaw, paidRaw } = cTokensFor(NOVEMBER_2025, amountRaw);
    const back = amountRaw - paidRaw;
    assert.ok(back === 0n || back === 1n || back === 2n, `${back} of ${amountRaw}`);
    if (back > 0n) tookBack += 1;
    assert.ok(usdcFor(NOVEMBER_2025, cTokensRaw) <= paidRaw);
    // It takes the least that buys as many.
    assert.equal(cTokensFor(NOVEMBER_2025, paidRaw).cTokensRaw, cTokensRaw);
    assert.ok(paidRaw === 0n || cTokensFor(NOVEMBER_2025, paidRaw - 1n).cTokensRaw < cTokensRaw);
  }
  assert.ok(tookBack > 0);
  const fresh = { ...NOVEMBER_2025, collateralSupplyRaw: 0n };
  assert.deepEqual(cTokensFor(fresh, 7n), { cTokensRaw: 7n, paidRaw: 7n });
});

test('the fewest cTokens are burnt that pay an amount', () => {
  for (const usdcRaw of [1n, 2n, 999_999n, 5_000_000n, 123_456_789n]) {
    const burnt = cTokensToBurn(NOVEMBER_2025, usdcRaw);
    assert.ok(usdcFor(NOVEMBER_2025, burnt) >= usdcRaw);
    assert.ok(usdcFor(NOVEMBER_2025, burnt - 1n) < usdcRaw);
  }
});

test('what can be paid out leaves out what others wait for', () => {
  assert.equal(freeLiquidityRaw(NOVEMBER_2025), NOVEMBER_2025.availableRaw);
  const queued = { ...NOVEMBER_2025, queuedCollateralRaw: 1_000_000_000n };
  assert.equal(freeLiquidityRaw(queued), NOVEMBER_2025.availableRaw - usdcFor(NOVEMBER_2025, 1_000_000_000n));
  assert.equal(freeLiquidityRaw({ ...NOVEMBER_2025, queuedCollateralRaw: 10n ** 15n }), 0n);
});

test('deposits end at the limit, and withdrawals at the cap of the interval', () => {
  const supplyRaw = supplySf(NOVEMBER_2025) >> 60n;
  assert.equal(depositRoomRaw({ ...NOVEMBER_2025, depositLimitRaw: supplyRaw + 12n }), 12n);
  assert.equal(depositRoomRaw({ ...NOVEMBER_2025, depositLimitRaw: 1n }), 0n);
  assert.equal(withdrawalRoomRaw(NOVEMBER_2025, 0n), null);
  const withdrawalCap = { capacityRaw: 100n, totalRaw: 70n, intervalStartS: 1_000n, intervalSeconds: 60n };
  const capped = { ...NOVEMBER_2025, withdrawalCap };
  assert.equal(withdrawalRoomRaw(capped, 1_059n), 30n);
  assert.equal(withdrawalRoomRaw(capped, 1_060n), 100n);
  assert.equal(
    withdrawalRoomRaw({ ...capped, withdrawalCap: { ...withdrawalCap, totalRaw: 101n } }, 1_001n),
    0n,
  );
});
