import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '@solana/kit';
import { LANDS_WITHIN_SLOTS } from './intents.ts';
import { accrue, cTokensToBurn, freeLiquidityRaw, usdcFor } from './model/interest.ts';
import { NOVEMBER_2025 } from './model/reserve.fixture.ts';
import type { Reserve } from './model/reserve.ts';
import { payableNow } from './payable.ts';

const NOW_MS = 1_760_000_000_000;
const USDC = 1_000_000n;
const MARKET = {
  bump: 248,
  owner: 'DYw8jCTfwHNRJhhmFcbXvVDTqWMEVFBX6ZKUmG5CNSKK' as Address,
  referralFeeBps: 0,
  isEmergency: false,
  name: 'Main Market',
};

function payable(changes: Partial<Reserve>) {
  const now = { ...NOVEMBER_2025, ...changes };
  const later = accrue(now, now.lastUpdateSlot + LANDS_WITHIN_SLOTS, 0);
  return { now, later, told: payableNow({ slot: now.lastUpdateSlot, reserve: now, market: MARKET }, NOW_MS) };
}

test('what is told can be asked for, and is paid also when it lands late', () => {
  for (const availableRaw of [0n, 1n, 10n * USDC, NOVEMBER_2025.availableRaw]) {
    const { now, later, told } = payable({ availableRaw });
    const burned = cTokensToBurn(now, told.usdcRaw);
    assert(usdcFor(later, burned) <= freeLiquidityRaw(later), String(availableRaw));
    assert.equal(told.pays(burned), true);
    // A redemption is worth more in a later slot: not all that lies there now.
    assert(told.usdcRaw <= availableRaw && availableRaw - told.usdcRaw <= availableRaw / 10_000n + 2n);
    assert.equal(told.pays(burned + cTokensToBurn(now, availableRaw / 1_000n + 2n)), false);
    assert.equal(told.isCapped, false);
  }
});

test('a cap on withdrawals bounds it too, until its interval is over', () => {
  const withdrawalCap = { capacityRaw: 5n * USDC, totalRaw: USDC, intervalSeconds: 60n };
  const nowS = BigInt(NOW_MS / 1_000);
  const within = payable({ withdrawalCap: { ...withdrawalCap, intervalStartS: nowS - 59n } }).told;
  assert.equal(within.isCapped, true);
  assert(within.usdcRaw <= 4n * USDC && within.usdcRaw > 3_999_000n, String(within.usdcRaw));
  const over = payable({ withdrawalCap: { ...withdrawalCap, intervalStartS: nowS - 60n } }).told;
  assert(over.usdcRaw <= 5n * USDC && over.usdcRaw > 4_999_000n, String(over.usdcRaw));
});
