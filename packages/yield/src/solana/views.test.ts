import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOVEMBER_2025 } from './model/reserve.fixture.ts';
import { chainTimeMs, daysToEarnBackFees, type OtherRate, readStanding, type Standing } from './standing.ts';
import { manifestView, ratesView, readAtView, statsView } from './views.ts';

const NOW_MS = 1_760_000_000_000;
const ABOUT = { baseUrl: 'https://shop.test', sandbox: false };
const MARKET = {
  bump: 248,
  owner: NOVEMBER_2025.market,
  referralFeeBps: 0,
  isEmergency: false,
  name: 'Main Market',
};
const PORTAL = {
  look: async () => ({
    slot: NOVEMBER_2025.lastUpdateSlot,
    reserve: NOVEMBER_2025,
    market: MARKET,
    accounts: [null],
  }),
};
const AT_THREE = async () => ({ netApyPercent: 3 });

const read = (slotMs: () => Promise<number | null>, baseRate: OtherRate | null = AT_THREE) =>
  readStanding({ portal: PORTAL, node: { slotMs } }, baseRate, () => NOW_MS);

test('rates are of the curve and of how long slots last, and stand beside the vault', async () => {
  const view = ratesView(ABOUT, await read(async () => 400));
  // What the protocol's own library reckons of this reserve: 0.0348001.
  assert.equal(view.usdc.apyPct, 3.48);
  assert.equal(view.usdc.apyBps, 348);
  assert.equal(view.usdc.formatted, '3.48%');
  assert.equal(view.usdc.netApyPct, 2.958);
  assert.equal(view.onChain.utilizationPct, 77.9838);
  assert.deepEqual(view.minDeposit, { raw: 5_000_000, usdc: 5 });
  assert.deepEqual(view.comparison.base, { netApyPct: 3 });
  assert.equal(view.comparison.differencePct, -0.042);
  assert.equal(view.sandbox, undefined);

  const slower = ratesView(ABOUT, await read(async () => 500));
  const [slow, fast] = [slower, view].map(({ usdc }) => ('aprPct' in usdc ? usdc.aprPct : Number.NaN));
  assert(Math.abs(Number(slow) * 1.25 - Number(fast)) < 0.0002, 'slots pay, not seconds');
  assert.equal(ratesView({ ...ABOUT, sandbox: true }, await read(async () => 400)).sandbox, true);
});

test('what cannot be known is null, with the reason', async () => {
  for (const slotMs of [async () => null, () => Promise.reject(new Error('away'))]) {
    const view = ratesView(ABOUT, await read(slotMs));
    assert.equal(view.usdc.apyPct, null);
    assert.match(String(view.usdc.reason), /how long slots last/);
    assert.equal(view.daysToEarnBackFees, null);
    assert.equal(view.comparison.differencePct, null);
    assert(Number(view.onChain.depositTvlUsdc) > 500_000_000, 'what is known is told');
  }
  const alone = ratesView(ABOUT, await read(async () => 400, null));
  assert.deepEqual(alone.comparison.base, {
    netApyPct: null,
    reason: 'This server offers no vault on Base.',
  });
  const broken = ratesView(
    ABOUT,
    await read(
      async () => 400,
      () => Promise.reject(new Error('a secret')),
    ),
  );
  assert.match(String(broken.comparison.base.reason), /cannot be read at the moment/);
});

test('the manifest says how to use it when the chain is silent, too', async () => {
  const view = manifestView(ABOUT, { unread: 'Solana cannot be read at the moment.' });
  assert.equal(view.version, '1.0.0');
  assert.deepEqual(view.currentAPY.apyPct, null);
  assert.match(JSON.stringify(view.currentAPY), /cannot be read/);
  assert.equal(view.limits.min_deposit_usdc, 5);
  const told = manifestView(ABOUT, await read(async () => 400));
  assert.equal(told.currentAPY.apyPct, 3.48);
});

test('stats say whether one can come and go, and why not', async () => {
  const now = await read(async () => 400);
  const view = statsView(ABOUT, now);
  assert.equal(view.stats.availableUsdc, '129639221.256987');
  assert.deepEqual(view.health, { depositsOpen: true, withdrawalsOpen: true, reasons: [] });
  const of = (reserve: Partial<Standing['reserve']>) =>
    statsView(ABOUT, { ...now, reserve: { ...now.reserve, ...reserve } }).health;
  assert.deepEqual(of({ depositLimitRaw: 1n }).depositsOpen, false);
  assert.deepEqual(of({ depositLimitRaw: 1n }).withdrawalsOpen, true);
  assert.equal(of({ status: 'obsolete' }).depositsOpen, false);
  assert.equal(of({ isEmergency: true }).withdrawalsOpen, false);
  assert.equal(of({ availableRaw: 0n }).withdrawalsOpen, false);
});

test('a chain that is behind is said to be', () => {
  const clock = Buffer.alloc(40);
  clock.writeBigInt64LE(1_760_000_000n - 600n, 32);
  const chainAtMs = chainTimeMs(new Uint8Array(clock));
  assert.equal(chainAtMs, NOW_MS - 600_000);
  const at = readAtView({ slot: 7n, chainAtMs, readAtMs: NOW_MS });
  assert.deepEqual([at.slot, 'behindSeconds' in at && at.behindSeconds], [7, 600]);
  assert.deepEqual(readAtView({ slot: 7n, chainAtMs: null, readAtMs: NOW_MS }), { slot: 7, time: null });
  assert.equal(chainTimeMs(new Uint8Array(3)), null);
});

test('both fees are earned back on the day that is told, and not the day before', () => {
  const left = (days: number, apy: number) => {
    const grown = 0.995 * (1 + apy) ** (days / 365);
    return grown * 0.995 - 0.15 * (grown - 0.995);
  };
  for (const apy of [0.01, 0.0435, 0.2]) {
    const days = daysToEarnBackFees(apy) ?? assert.fail('never');
    assert(left(days, apy) >= 1 && left(days - 1, apy) < 1, `${days} days at ${apy}`);
  }
  assert.equal(daysToEarnBackFees(0), null);
});
