import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProtocolName } from '../contracts/protocols.ts';
import type { Conduct } from './conduct.ts';
import { decide, type Known, type Lenders, type Standing } from './decide.ts';

const USD = 1_000_000n;
const BOUNDLESS = 1n << 120n;
const NO_MORE = { coming: 0n, leaving: 0n };
const terms = { minGainBps: 50, costOf: () => USD / 2n };

/** A protocol that paid for hours what it pays now; its rate falls as more is lent to it, in a straight line: `fall` for each million dollars. */
function lender(
  rate: number,
  {
    fall = 0,
    conduct,
    ...rest
  }: Partial<Omit<Known, 'conduct'>> & { fall?: number; conduct?: Partial<Conduct> } = {},
): Known {
  return {
    room: BOUNDLESS,
    liquid: BOUNDLESS,
    index: 1n,
    utilization: 0.8,
    moreGas: NO_MORE,
    yearlyRate: async (change) => rate - (fall * Number(change)) / 1e12,
    conduct: { averageRate: rate, unrest: null, turnedBad: false, ...conduct },
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
  assert(Math.abs(Number(verdict.proposal?.gainMicrosPerYear) / 1e6 - 5_000) < 0.001);

  const steep = await decide(
    standing(4_000_000n * USD),
    { aave: lender(0.03), morpho: lender(0.05, { fall: 0.2 }) },
    terms,
  );
  assert.deepEqual([steep.do, steep.do === 'stay' && steep.why], ['stay', 'BEST']);
});

test('what is in the target already earns less by what comes, and that is counted', async () => {
  const inProtocol = { aave: 200_000n * USD, compound: 0n, morpho: 1_000_000n * USD };
  const { proposal } = await decide(
    { ...standing(0n), inProtocol, total: 1_200_000n * USD },
    { aave: lender(0.038), morpho: lender(0.05, { fall: 0.01 }) },
    { ...terms, minGainBps: 1 },
  );
  // x dollars earn 0.05 - x / 10^8 instead of 0.038, and the million x / 10^8 less: x (0.002 - x / 10^8), which is 0 at 200,000 and 100 at
  // half of it. Without the million's loss all would be moved.
  assert.deepEqual([proposal?.from, proposal?.to, proposal?.partial], ['aave', 'morpho', 'depth']);
  assert.equal(proposal?.amountMicros, 100_000n * USD);
  assert(Math.abs(Number(proposal?.gainMicrosPerYear) / 1e6 - 100) < 0.001);
});

test('a rate of one block decides nothing: neither one that lures nor one that hides what was paid', async () => {
  const of = async (lenders: Lenders) => {
    const { proposal, ...verdict } = await decide(standing(100_000n * USD), lenders, terms);
    return verdict.do === 'stay' ? verdict.why : proposal?.to;
  };
  const aave = lender(0.03);
  // 28 % now, 3.1 % for hours: by the average it is not worth a move.
  assert.equal(
    await of({ aave, compound: lender(0.28, { conduct: { averageRate: 0.031 } }) }),
    'TOO_SMALL_A_GAIN',
  );
  // 5 % for hours and nothing now: whoever goes there gets what it pays now.
  assert.equal(await of({ aave, compound: lender(0.001, { conduct: { averageRate: 0.05 } }) }), 'BEST');
  // Where the funds are paid 3 % for hours. That somebody made it 28 % for a block keeps them nowhere, nor does 0 % drive them out.
  const fair = lender(0.05);
  for (const spot of [0.28, 0])
    assert.equal(
      await of({ aave: lender(spot, { conduct: { averageRate: 0.03 } }), compound: fair }),
      'compound',
    );
  assert.equal(await of({ aave: lender(0, { conduct: { averageRate: 0.05 } }), compound: fair }), 'BEST');
  // Of a target that is lower now than for hours its own curve takes its part: 4 % now, a quarter less after it.
  const { proposal } = await decide(
    standing(1_000_000n * USD),
    { aave: lender(0.01), compound: lender(0.04, { fall: 0.01, conduct: { averageRate: 0.06 } }) },
    terms,
  );
  assert(Math.abs((proposal?.rateAfter ?? 0) - 0.03) < 1e-9);
});

test('what is not calm is not gone to, and without a history nothing moves', async () => {
  const why = async (lenders: Lenders) => {
    const verdict = await decide(standing(100_000n * USD), lenders, terms);
    return verdict.do === 'stay' ? verdict.why : verdict.proposal.to;
  };
  const aave = lender(0.03);
  for (const unrest of ['DRY', 'JUMPED', 'LOST'] as const) {
    assert.equal(await why({ aave, compound: lender(0.09, { conduct: { unrest } }) }), 'UNREST');
    assert.equal(
      await why({ aave, compound: lender(0.09, { conduct: { unrest } }), morpho: lender(0.05) }),
      'morpho',
    );
  }
  const young = { averageRate: null };
  assert.equal(await why({ aave, compound: lender(0.09, { conduct: young }) }), 'NO_HISTORY');
  assert.equal(await why({ aave: lender(0.03, { conduct: young }), compound: lender(0.09) }), 'NO_HISTORY');
  // Unrest drives nobody out by itself: where the funds are may be left for what pays more, and is.
  assert.equal(
    await why({ aave: lender(0.03, { conduct: { unrest: 'JUMPED' } }), compound: lender(0.09) }),
    'compound',
  );
});

test('a protocol that is nearly dry is left in parts; limits and room cut the amount, and are named', async () => {
  const of = async (lenders: Lenders, limits = {}) =>
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

test('a MetaMorpho of many markets costs more gas, most of all to leave', async () => {
  const gasOf = async (from: ProtocolName) => {
    let told = 0n;
    const many = { moreGas: { coming: 29n * 30_000n, leaving: 29n * 140_000n } };
    const of = {
      ...standing(0n),
      inProtocol: { aave: 0n, compound: 0n, morpho: 0n, [from]: 100_000n * USD },
    };
    const rates = { aave: 0.05, compound: 0.05, morpho: 0.05, [from]: 0.03 };
    await decide(
      { ...of, total: 100_000n * USD },
      { aave: lender(rates.aave), compound: lender(rates.compound), morpho: lender(rates.morpho, many) },
      {
        minGainBps: 50,
        costOf(gas) {
          told = gas;
          return 0n;
        },
      },
    );
    return told;
  };
  assert.equal(await gasOf('aave'), 1_470_000n);
  assert.equal(await gasOf('morpho'), 4_660_000n);
});

test('it stays, and says why', async () => {
  const why = async (inAave: bigint, lenders: Partial<Record<ProtocolName, Known>>, costMicros = 0n) => {
    const verdict = await decide(standing(inAave), lenders, { minGainBps: 50, costOf: () => costMicros });
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
