import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOVEMBER_2025 } from './model/reserve.fixture.ts';
import { neverBack } from './never-back.ts';

const MARKET = {
  bump: 248,
  owner: NOVEMBER_2025.market,
  referralFeeBps: 0,
  isEmergency: false,
  name: 'Main Market',
};

test('a node that has fallen more than a minute behind what was seen is not believed; a little is the way of nodes', async () => {
  let slot = 1_000n;
  let nowMs = 0;
  const { look } = neverBack(
    { look: async () => ({ slot, reserve: NOVEMBER_2025, market: MARKET, accounts: [] }) },
    () => nowMs,
  );
  for (const [next, isBelieved] of [
    [2_000n, true],
    [1_900n, true],
    [1_849n, false],
    [1_000n, false],
    [1_850n, true],
    [2_001n, true],
  ] as const) {
    slot = next;
    if (isBelieved) assert.equal((await look()).slot, next);
    else await assert.rejects(look(), /Solana cannot be read/, String(next));
  }
  // One wrong answer stops nothing for good.
  slot = 9_000_000n;
  await look();
  slot = 2_500n;
  nowMs += 599_000;
  await assert.rejects(look(), /Solana cannot be read/);
  nowMs += 1_000;
  assert.equal((await look()).slot, 2_500n);
});
