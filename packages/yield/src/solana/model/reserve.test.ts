import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getAddressEncoder } from '@solana/kit';
import {
  COLLATERAL_MINT,
  LENDING_MARKET,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  TOKEN_PROGRAM,
  USDC_MINT,
} from '../addresses.ts';
import { decodeMarket, decodeReserve, LayoutError } from './reserve.ts';

/** An account with these bytes written to it, each as [offset, hex, little-endian as it lies there]. */
function account(bytes: number, fields: readonly [at: number, hex: string][]) {
  const data = Buffer.alloc(bytes);
  for (const [at, hex] of fields) data.write(hex, at, 'hex');
  return { owner: LENDING_PROGRAM as string, data: new Uint8Array(data) };
}

function key(of: Parameters<ReturnType<typeof getAddressEncoder>['encode']>[0]): string {
  return Buffer.from(getAddressEncoder().encode(of)).toString('hex');
}

const CURVE = [[0, 0], [9_500, 475], ...Array.from({ length: 9 }, () => [10_000, 3_000])].flatMap(
  ([use = 0, rate = 0], index): [number, string][] => {
    const point = Buffer.alloc(8);
    point.writeUInt32LE(use, 0);
    point.writeUInt32LE(rate, 4);
    return [[4_920 + 8 * index, point.toString('hex')]];
  },
);

const FIELDS: [number, string][] = [
  [0, '2bf2ccca1af73b7f'],
  [8, '01'],
  [16, '93a9831600000000'],
  [24, '01'],
  [32, key(LENDING_MARKET)],
  [128, key(USDC_MINT)],
  [160, key(LIQUIDITY_VAULT)],
  [224, '0100000000000080'],
  [232, '02000000000000000300000000000000'],
  [272, '06'],
  [296, '04000000000000000500000000000000'],
  [344, '06'],
  [360, '07'],
  [376, '08'],
  [408, key(TOKEN_PROGRAM)],
  [2_560, key(COLLATERAL_MINT)],
  [2_592, '09'],
  [4_856, '02'],
  [4_858, '6400'],
  [4_862, '01'],
  [4_864, '01'],
  [4_870, '0a'],
  [5_016, '0b'],
  [5_024, '0c'],
  [5_032, Buffer.from('USDC').toString('hex')],
  [5_416, 'ffffffffffffffff'],
  [5_424, 'feffffffffffffff'],
  [5_432, '0d'],
  [5_440, '0e'],
  [5_792, '0f'],
  [6_968, '10'],
  ...CURVE,
];

test('reads a reserve field by field from where the program has it', () => {
  const reserve = decodeReserve(account(8_624, FIELDS));
  assert.equal(reserve.lastUpdateSlot, 377_727_379n);
  assert.equal(reserve.isStale, true);
  assert.equal(reserve.market, LENDING_MARKET);
  assert.equal(reserve.liquidityMint, USDC_MINT);
  assert.equal(reserve.liquidityVault, LIQUIDITY_VAULT);
  assert.equal(reserve.availableRaw, (1n << 63n) + 1n);
  assert.equal(reserve.borrowedSf, (3n << 64n) + 2n);
  assert.equal(reserve.mintDecimals, 6);
  assert.equal(reserve.cumulativeBorrowRateSf, (5n << 64n) + 4n);
  assert.deepEqual(
    [reserve.protocolFeesSf, reserve.referrerFeesSf, reserve.pendingReferrerFeesSf],
    [6n, 7n, 8n],
  );
  assert.equal(reserve.liquidityTokenProgram, TOKEN_PROGRAM);
  assert.equal(reserve.collateralMint, COLLATERAL_MINT);
  assert.equal(reserve.collateralSupplyRaw, 9n);
  assert.equal(reserve.status, 'hidden');
  assert.equal(reserve.hostFixedRateBps, 100);
  assert.equal(reserve.isCollateralTokenBlocked, true);
  assert.equal(reserve.isEmergency, true);
  assert.equal(reserve.protocolTakePercent, 10);
  assert.deepEqual(reserve.curve[1], { utilizationBps: 9_500, rateBps: 475 });
  assert.equal(reserve.curve.length, 11);
  assert.deepEqual([reserve.depositLimitRaw, reserve.borrowLimitRaw], [11n, 12n]);
  assert.equal(reserve.tokenName, 'USDC');
  assert.deepEqual(reserve.withdrawalCap, {
    capacityRaw: -1n,
    totalRaw: -2n,
    intervalStartS: 13n,
    intervalSeconds: 14n,
  });
  assert.deepEqual([reserve.rewardsPerSlot, reserve.queuedCollateralRaw], [15n, 16n]);
});

test('reads a market', () => {
  const fields: [number, string][] = [
    [0, 'f6723262489d1c78'],
    [8, '01'],
    [16, 'f8'],
    [24, key(USDC_MINT)],
    [120, 'd007'],
    [122, '01'],
    [3_248, Buffer.from('Main Market').toString('hex')],
  ];
  assert.deepEqual(decodeMarket(account(4_664, fields)), {
    bump: 248,
    owner: USDC_MINT,
    referralFeeBps: 2_000,
    isEmergency: true,
    name: 'Main Market',
  });
  assert.throws(() => decodeMarket(account(8_624, FIELDS)), LayoutError);
});

test('reads nothing that is laid out in another way', () => {
  const good = account(8_624, FIELDS);
  const changed = (...fields: [number, string][]) => account(8_624, [...FIELDS, ...fields]);
  for (const [bad, why] of [
    [{ ...good, owner: TOKEN_PROGRAM }, /belongs to/],
    [{ ...good, data: good.data.subarray(0, 8_623) }, /8623 bytes/],
    [account(8_625, FIELDS), /8625 bytes/],
    [{ ...good, data: new Uint8Array() }, /0 bytes/],
    [changed([0, 'f6723262489d1c78']), /no reserve/],
    [changed([8, '02']), /version 2/],
    [changed([4_856, '03']), /status/],
    [changed([4_920, '01']), /curve/],
    [changed([4_928, '00000000']), /curve/],
    [changed([5_000, '0f27']), /curve/],
  ] as const)
    assert.throws(
      () => decodeReserve(bad),
      (error) => error instanceof LayoutError && why.test(error.message),
    );
});
