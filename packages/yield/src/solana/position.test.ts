import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '@solana/kit';
import { getAddressEncoder } from '@solana/kit';
import { COLLATERAL_MINT, TOKEN_PROGRAM } from './addresses.ts';
import { accrue, cTokensFor, usdcFor } from './model/interest.ts';
import { NOVEMBER_2025 } from './model/reserve.fixture.ts';
import type { Reserve } from './model/reserve.ts';
import type { WalletMove } from './moves.ts';
import type { Account } from './node.ts';
import { positionOf } from './position.ts';

const WALLET = 'DYw8jCTfwHNRJhhmFcbXvVDTqWMEVFBX6ZKUmG5CNSKK' as Address;
const NOW_MS = 1_760_000_000_000;
const USDC = 1_000_000n;
const MONTH_SLOTS = 6_480_000n;
const MARKET = { bump: 248, owner: WALLET, referralFeeBps: 0, isEmergency: false, name: 'Main Market' };
const DEPOSITED = 995n * USDC;
const { cTokensRaw: MINTED, paidRaw: PAID } = cTokensFor(NOVEMBER_2025, DEPOSITED);
const DEPOSIT: WalletMove = {
  kind: 'deposit',
  signature: 'one',
  wallet: WALLET,
  slot: NOVEMBER_2025.lastUpdateSlot,
  atMs: NOW_MS,
  collateral: MINTED,
  usdc: PAID,
  heldBefore: 0n,
  heldAfter: MINTED,
  fee: 5n * USDC,
};

function tokenAccount(amount: bigint): Account {
  const data = Buffer.alloc(165);
  data.set(getAddressEncoder().encode(COLLATERAL_MINT), 0);
  data.set(getAddressEncoder().encode(WALLET), 32);
  data.writeBigUInt64LE(amount, 64);
  data.writeUInt8(1, 108);
  return { owner: TOKEN_PROGRAM, data: new Uint8Array(data), lamports: 1n, executable: false };
}

function clockAt(ms: number): Account {
  const data = Buffer.alloc(40);
  data.writeBigInt64LE(BigInt(ms / 1_000), 32);
  return { owner: 'Sysvar', data: new Uint8Array(data), lamports: 1n, executable: false };
}

/** Shows the position of a wallet that holds so much, a month after the reserve was read. */
function told(
  held: bigint,
  {
    moves = [DEPOSIT],
    reserve = {},
    pending = 0,
  }: { moves?: WalletMove[]; reserve?: Partial<Reserve>; pending?: number } = {},
) {
  const slot = NOVEMBER_2025.lastUpdateSlot + MONTH_SLOTS;
  const now = accrue({ ...NOVEMBER_2025, ...reserve }, slot, 0);
  return positionOf(WALLET, {
    portal: {
      look: async () => ({
        slot,
        reserve: now,
        market: MARKET,
        accounts: [held === 0n ? null : tokenAccount(held), clockAt(NOW_MS)],
      }),
    },
    moves: { of: async () => moves },
    pendingOf: async () => pending,
    nowMs: () => NOW_MS,
    links: { deposit: '/deposit', withdraw: '/withdraw', confirm: '/confirm', refunds: '/refunds' },
  });
}

test('what came through the portal has a cost, a yield and fees, to the unit', async () => {
  const slot = NOVEMBER_2025.lastUpdateSlot + MONTH_SLOTS;
  const gross = usdcFor(accrue(NOVEMBER_2025, slot, 0), MINTED);
  const earned = gross - PAID;
  assert(earned > 2n * USDC && earned < 4n * USDC, `a month earns ${earned}`);
  const { position, next_action, readAt } = await told(MINTED);
  assert.equal(position.status, 'earning');
  assert.equal(position.collateralBalanceRaw, String(MINTED));
  assert.equal(position.currentValueRaw, String(gross));
  assert.equal(position.depositedRaw, String(PAID));
  assert.equal(position.estimatedYieldRaw, String(earned));
  const fees = (gross * 50n) / 10_000n + (earned * 1_500n) / 10_000n;
  assert.equal(position.leavingNow.receivesRaw, String(gross - fees));
  assert.equal(position.leavingNow.possible, true);
  assert.deepEqual(position.notes, []);
  assert.deepEqual(
    next_action.map(({ action }) => action),
    ['withdraw'],
  );
  assert.deepEqual(readAt, { slot: Number(slot), time: new Date(NOW_MS).toISOString() });
});

test('what came from elsewhere has no known cost, and pays no performance fee', async () => {
  const all = await told(MINTED, { moves: [] });
  assert.equal(all.position.status, 'from-elsewhere');
  assert.equal(all.position.depositedUsdc, null);
  assert.equal(all.position.estimatedYieldUsdc, null);
  assert.equal(all.position.leavingNow.performanceFeeUsdc, '0.000000');
  assert.match(all.position.notes.join(), /^All of the receipt tokens did not come through this portal/);
  assert.deepEqual(
    all.next_action.map(({ action }) => action),
    ['confirm', 'withdraw'],
  );

  const mixed = await told(MINTED * 2n);
  assert.equal(mixed.position.status, 'partly-from-elsewhere');
  assert.equal(mixed.position.depositedUsdc, null);
  assert.equal(mixed.position.knownPart.collateralRaw, String(MINTED));
  const alone = await told(MINTED);
  // Doubled by somebody else's tokens, it earned what it earned; the unit is rounded off.
  const difference =
    Number(mixed.position.knownPart.estimatedYieldUsdc) - Number(alone.position.estimatedYieldUsdc);
  assert(Math.abs(difference) <= 0.000002, String(difference));

  // Dust that anybody sent hides nothing.
  const dusty = await told(MINTED + 1n);
  assert.deepEqual(
    [dusty.position.status, dusty.position.depositedRaw, dusty.next_action.map(({ action }) => action)],
    ['earning', String(PAID), ['withdraw']],
  );
  const more = await told(MINTED + MINTED / 900n);
  assert.equal(more.position.depositedRaw, null);

  const half = await told(MINTED / 2n);
  assert.equal(half.position.status, 'earning');
  assert(
    Math.abs(Number(half.position.depositedRaw) - Number(PAID) / 2) <= 1,
    'what left took its cost along',
  );
});

test('an empty position says what comes next', async () => {
  const { position, next_action } = await told(0n, { moves: [] });
  assert.deepEqual(
    [position.status, position.currentValueUsdc, position.depositedUsdc, position.leavingNow.possible],
    ['empty', '0.000000', '0.000000', false],
  );
  assert.deepEqual(
    next_action.map(({ action }) => action),
    ['deposit', 'fee-refunds'],
  );
  const waiting = await told(0n, { moves: [], pending: 1 });
  assert.equal(waiting.next_action[0]?.action, 'wait');
});

test('who cannot leave now is told why, and that a part may go', async () => {
  const rows: readonly [Partial<Reserve>, RegExp][] = [
    [{ availableRaw: 10n * USDC }, /cannot pay all of it out now/],
    [{ availableRaw: 0n }, /All of the reserve is lent out/],
    [{ isEmergency: true }, /emergency/],
    [
      { withdrawalCap: { capacityRaw: 5n * USDC, totalRaw: 0n, intervalStartS: 0n, intervalSeconds: 9n } },
      /withdrawal cap lets a part out/,
    ],
  ];
  for (const [reserve, why] of rows) {
    const { position, next_action } = await told(MINTED, { reserve });
    assert.equal(position.leavingNow.possible, false, String(why));
    assert.match(position.leavingNow.reasons?.join() ?? '', why);
    assert.match(next_action.at(-1)?.description ?? '', /Ask for a part/);
  }
});
