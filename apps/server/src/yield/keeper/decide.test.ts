import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProtocolName } from '../contracts/protocols.ts';
import { decide, type Standing } from './decide.ts';
import type { Lender } from './lenders.ts';

const USD = 1_000_000n;
const BOUNDLESS = 1n << 120n;
const terms = { minGainBps: 50, costMicros: USD / 2n };

/** A protocol whose rate falls as more is lent to it, in a straight line: `fall` for each million dollars. */
function lender(rate: number, over: Partial<Lender> & { fall?: number } = {}): Lender {
  const { fall = 0, ...rest } = over;
  return {
    ...{ room: BOUNDLESS, liquid: BOUNDLESS },
    yearlyRate: async (change) => rate - (fall * Number(change)) / 1e12,
    ...rest,
  };
}

function standing(inAave: bigint, limits: Partial<Standing['limits']> = {}): Standing {
  return {
    inProtocol: { aave: inAave, compound: 0n, morpho: 0n },
    total: inAave,
    limits: { maxShareBps: 10_000, maxOfLiquidityBps: 10_000, ...limits },
  };
}

test('funds go where the whole vault earns most', async () => {
  const verdict = await decide(
    standing(100_000n * USD),
    { aave: lender(0.03), compound: lender(0.04), morpho: lender(0.05) },
    terms,
  );
  assert.equal(verdict.do, 'move');
  assert.deepEqual(
    [verdict.proposal?.from, verdict.proposal?.to, verdict.proposal?.amountMicros],
    ['aave', 'morpho', 100_000n * USD],
  );
  // 2 % of 100,000 USD.
  assert.equal(verdict.proposal?.gainMicrosPerYear, 2_000n * USD);
  assert.equal(verdict.proposal?.partial, null);
});

test('it is the rate after the move that counts, and a part may earn more than the whole', async () => {
  // By today's rates Morpho pays 2 % more. Each million lowers that by 2 %: all 4 million would earn 3 % less than nothing
  // more there; by hand the best of a whole, a half, a quarter and an eighth is an eighth or a quarter, and a half gains 0.
  const morpho = lender(0.05, { fall: 0.02 });
  const verdict = await decide(standing(4_000_000n * USD), { aave: lender(0.03), morpho }, terms);
  assert.equal(verdict.do, 'move');
  // x at 0.05 - 0.02 x instead of 0.03, in millions: 0.02 x (1 - x), which is 0.005 at a half.
  assert.equal(verdict.proposal?.amountMicros, 500_000n * USD);
  assert.equal(verdict.proposal?.partial, 'depth');
  assert.equal(Number(verdict.proposal?.gainMicrosPerYear) / 1e6, 5_000);

  const steep = await decide(
    standing(4_000_000n * USD),
    { aave: lender(0.03), morpho: lender(0.05, { fall: 0.2 }) },
    terms,
  );
  assert.deepEqual([steep.do, steep.do === 'stay' && steep.why], ['stay', 'BEST']);
});

test('a protocol that is nearly dry is left in parts; limits and room cut the amount, and are named', async () => {
  const of = async (lenders: Partial<Record<ProtocolName, Lender>>, limits = {}) =>
    (await decide(standing(100_000n * USD, limits), lenders, terms)).proposal;
  const better = lender(0.05);
  const dry = { aave: lender(0.03, { liquid: 10_000n * USD }), compound: better };
  const half = await of(dry, { maxOfLiquidityBps: 5_000 });
  assert.deepEqual([half?.amountMicros, half?.partial], [5_000n * USD, 'liquidity']);
  const shared = await of({ aave: lender(0.03), compound: better }, { maxShareBps: 6_000 });
  assert.deepEqual([shared?.amountMicros, shared?.partial], [60_000n * USD, 'share']);
  const full = await of({ aave: lender(0.03), compound: lender(0.05, { room: 7n * USD }) });
  assert.deepEqual([full?.amountMicros, full?.partial], [7n * USD, 'room']);
});

test('it stays, and says why', async () => {
  const why = async (inAave: bigint, lenders: Partial<Record<ProtocolName, Lender>>, costMicros = 0n) => {
    const verdict = await decide(standing(inAave), lenders, { minGainBps: 50, costMicros });
    return verdict.do === 'stay' ? verdict.why : verdict.do;
  };
  const aave = lender(0.03);
  assert.equal(await why(0n, { aave, compound: lender(0.09) }), 'EMPTY');
  assert.equal(await why(1_000n * USD, { aave, compound: lender(0.03), morpho: lender(0.02) }), 'BEST');
  assert.equal(await why(1_000n * USD, { aave, compound: lender(0.0349) }), 'TOO_SMALL_A_GAIN');
  assert.equal(await why(1_000n * USD, { aave, compound: lender(0.0351) }), 'move');
  // 2 % of 1,000 USD are 20 a year, 1.64 in 30 days.
  assert.equal(await why(1_000n * USD, { aave, compound: lender(0.05) }, 1_700_000n), 'COSTS_MORE');
  assert.equal(await why(1_000n * USD, { aave, compound: lender(0.05) }, 1_600_000n), 'move');
  assert.equal(await why(1_000n * USD, { aave, compound: lender(0.05, { room: 0n }) }), 'STUCK');
  assert.equal(
    await why(1_000n * USD, { aave: lender(0.03, { liquid: 0n }), compound: lender(0.05) }),
    'STUCK',
  );
  // What cannot be read is neither left nor gone to.
  assert.equal(await why(1_000n * USD, { compound: lender(0.05) }), 'STUCK');
});
