/** Tests what samples of an index say: of steady interest, of what somebody arranged for a block, and of a market that dies. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conductOf } from './conduct.ts';
import { SAMPLE_SECONDS, type Sample } from './samples.ts';

const YEAR_S = 31_536_000;
const HOUR_S = 3_600;
const NOW_S = 1_800_000_000;
const FIRST_INDEX = 10n ** 27n;

interface Hour {
  rate: number;
  utilization?: number;
}

/** Samples every five minutes, over hours of which each pays at one rate; and what is read now, at the end of them. */
function after(
  hours: readonly Hour[],
  over: { index?: (index: bigint) => bigint; utilization?: number; spotRate?: number; spoilt?: number } = {},
) {
  const samples: Sample[] = [];
  let index = FIRST_INDEX;
  const startS = NOW_S - hours.length * HOUR_S;
  for (const [hour, { rate, utilization = 0.8 }] of hours.entries())
    for (let second = 0; second < HOUR_S; second += SAMPLE_SECONDS) {
      const reading = { index, utilization };
      samples.push({
        atS: startS + hour * HOUR_S + second,
        protocols: { aave: null, compound: reading, morpho: null },
      });
      index += BigInt(Math.round(Number(index) * ((rate * SAMPLE_SECONDS) / YEAR_S)));
    }
  // Samples that were taken in a block in which all was lent out.
  for (const sample of samples.slice(samples.length - (over.spoilt ?? 0)))
    Object.assign(sample.protocols.compound ?? {}, { utilization: 1 });
  const { utilization = hours.at(-1)?.utilization ?? 0.8, spotRate = hours.at(-1)?.rate ?? 0 } = over;
  return conductOf('compound', samples, {
    atS: NOW_S,
    index: over.index?.(index) ?? index,
    utilization,
    spotRate,
  });
}
const hours = (count: number, hour: Hour): Hour[] => Array.from({ length: count }, () => hour);
const CALM: Hour = { rate: 0.04 };

test('a steady index tells its rate; of less than a day, and of a protocol that was never read, nothing is told', () => {
  const { averageRate, unrest, turnedBad } = after(hours(30, CALM));
  assert(Math.abs((averageRate ?? 0) - 0.04) < 1e-5, `${averageRate}`);
  assert.deepEqual([unrest, turnedBad], [null, false]);
  assert.equal(after(hours(23, CALM)).averageRate, null);
  assert.equal(after([]).averageRate, null);
  assert.equal(
    conductOf('aave', [], { atS: NOW_S, index: 1n, utilization: 0, spotRate: 0 }).averageRate,
    null,
  );
});

test('one block changes nothing: not the average, not what a protocol is left for', () => {
  const calm = after(hours(30, CALM));
  // All is lent out for two seconds at 28 %.
  const spiked = after(hours(30, CALM), {
    index: (index) => index + BigInt(Math.round((Number(index) * 0.28 * 2) / YEAR_S)),
    utilization: 1,
    spotRate: 0.28,
  });
  assert(Math.abs((spiked.averageRate ?? 0) - (calm.averageRate ?? 0)) < 1e-4);
  assert.deepEqual([spiked.unrest, spiked.turnedBad], ['DRY', false], 'it is not gone to, and not left');
  // Nor two samples that were taken in such blocks; three are fifteen minutes of it.
  assert.equal(after(hours(30, CALM), { spoilt: 2 }).unrest, null);
  assert.equal(after(hours(30, CALM), { spoilt: 3 }).unrest, 'DRY');
  assert.equal(after(hours(30, CALM), { spoilt: 2, utilization: 1 }).turnedBad, false);
  assert.equal(after(hours(30, CALM), { spoilt: 3, utilization: 1 }).turnedBad, true);
  assert.equal(after(hours(30, CALM), { spoilt: 3 }).turnedBad, false, 'it is over');
});

test('a market that was borrowed dry is stayed out of while it is, and for a day after it was', () => {
  const dry: Hour = { rate: 0.28, utilization: 1 };
  for (const length of [1, 6, 24, 48]) {
    const during = after([...hours(30, CALM), ...hours(length, dry)]);
    assert.deepEqual([during.unrest, during.turnedBad], ['DRY', true], `after ${length} hours`);
    const calmer = after([...hours(30, CALM), ...hours(length, dry), ...hours(20, CALM)]);
    assert.deepEqual([calmer.unrest, calmer.turnedBad], ['DRY', false], `20 hours after ${length}`);
  }
  assert.equal(after([...hours(30, CALM), ...hours(6, dry), ...hours(25, CALM)]).unrest, null);
});

test('a market is not gone to above 92 % lent, and is left above 97 %', () => {
  const lent = (utilization: number) => {
    const { unrest, turnedBad } = after([...hours(29, CALM), { ...CALM, utilization }]);
    return [unrest, turnedBad];
  };
  assert.deepEqual(lent(0.915), [null, false]);
  assert.deepEqual(lent(0.925), ['DRY', false]);
  assert.deepEqual(lent(0.965), ['DRY', false]);
  assert.deepEqual(lent(0.975), ['DRY', true]);
});

test('a rate that jumps below the ceiling is stayed out of until it is a day old', () => {
  const high: Hour = { rate: 0.13, utilization: 0.91 };
  assert.equal(after([...hours(30, CALM)], { spotRate: 0.13 }).unrest, 'JUMPED');
  assert.equal(after([...hours(30, CALM), ...hours(6, high)]).unrest, 'JUMPED');
  // Also when it is calm again by now: the average still has the jump in it.
  assert.equal(after([...hours(30, CALM), ...hours(5, { rate: 0.2 }), ...hours(1, CALM)]).unrest, 'JUMPED');
  const settled = after([...hours(30, CALM), ...hours(24, high)]);
  assert.equal(settled.unrest, null);
  assert(Math.abs((settled.averageRate ?? 0) - 0.13) < 1e-4);
  // Half a percent more is none.
  assert.equal(after([...hours(30, CALM), ...hours(6, { rate: 0.045 })]).unrest, null);
});

test('a loss keeps the vault out at once, and drives it out when it lasts for three samples', () => {
  const lost = (index: bigint) => index - index / 100n;
  const first = after(hours(30, CALM), { index: lost });
  assert.deepEqual([first.unrest, first.turnedBad], ['LOST', false]);
  // Rounding is none.
  assert.equal(after(hours(30, CALM), { index: (index) => index - index / 10n ** 9n }).unrest, null);
  const lasting = after([...hours(30, CALM), { rate: -87.6 }, ...hours(1, { rate: 0 })]);
  assert.deepEqual([lasting.unrest, lasting.turnedBad], ['LOST', true]);
});

test('samples of long ago say nothing of what a market has become', () => {
  const samples = Array.from(
    { length: 12 },
    (_, each): Sample => ({
      atS: NOW_S - 60 * HOUR_S + each * SAMPLE_SECONDS,
      protocols: { aave: { index: FIRST_INDEX, utilization: 1 }, compound: null, morpho: null },
    }),
  );
  const now = { atS: NOW_S, index: FIRST_INDEX, utilization: 1, spotRate: 0.04 };
  const { averageRate, turnedBad } = conductOf('aave', samples, now);
  assert.deepEqual([averageRate, turnedBad], [null, false]);
});
