import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reply } from '../../run-context.fixture.ts';
import { type AssetSeries, alignReturns } from './asset-series.ts';

const { source } = reply('binance', null);
/** Closes that rise by 1 % from bar to bar; by `bars` it says which bars there are. */
function rising(bars: readonly number[], fetched: boolean): AssetSeries {
  return {
    item: { asset: 'X' },
    data: { kind: 'dated', closes: new Map(bars.map((bar) => [bar, 100 * 1.01 ** bar])) },
    lastPrice: 1,
    source: fetched ? source : null,
    notes: [],
  };
}
const days = Array.from({ length: 40 }, (_, day) => day);

describe('aligned returns', () => {
  it('leave out a change across missing closes, in every series, and tell it', () => {
    const holey = days.filter((day) => day !== 10 && day !== 20 && day !== 21);
    const { columns, periods, spans, notes } = alignReturns(
      [rising(days, true), rising(holey, true)],
      'assets',
    );
    assert.deepEqual([columns[0]?.length, columns[1]?.length, spans?.length], [34, 34, 34]);
    for (const column of columns) for (const change of column) assert(Math.abs(change - 0.01) < 1e-12);
    assert.equal(periods?.length, 37);
    assert(!spans?.some(({ from, to }) => to - from !== 1));
    assert.match(notes.join(' '), /2 changes were left out/);
  });

  it('say nothing of holes where there are none', () => {
    assert.deepEqual(alignReturns([rising(days, true)], 'assets').notes, []);
  });

  it('take the weekends of own prices as they are, but no hole of a fortnight', () => {
    const workdays = Array.from({ length: 60 }, (_, day) => day).filter((day) => day % 7 < 5);
    const plain = alignReturns([rising(workdays, false)], 'assets');
    assert.deepEqual([plain.columns[0]?.length, plain.notes], [workdays.length - 1, []]);
    const interrupted = workdays.filter((day) => day < 21 || day > 35);
    const cut = alignReturns([rising(interrupted, false)], 'assets');
    assert.equal(cut.columns[0]?.length, interrupted.length - 2);
    assert.match(cut.notes.join(' '), /1 change was left out/);
    const weekly = Array.from({ length: 30 }, (_, week) => 7 * week);
    assert.equal(alignReturns([rising(weekly, false)], 'assets').columns[0]?.length, 29);
  });
});
