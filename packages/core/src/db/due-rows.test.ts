import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eachDueRow } from './due-rows.ts';

const PAGE = 3;
const ROWS = [1, 2, 3, 4, 5, 6, 7];

/** Rows in order, of which a page at a time is listed. */
const pagesOf = (rows: readonly number[], asked: (number | undefined)[] = []) => ({
  pageSize: PAGE,
  async pageAfter(last: number | undefined) {
    asked.push(last);
    return rows.filter((row) => last === undefined || row > last).slice(0, PAGE);
  },
});

test('a page of rows that all fail is not the end, and the first failure is told once all others had their turn', async () => {
  const tried: number[] = [];
  const working = eachDueRow({
    ...pagesOf(ROWS),
    async act(row) {
      tried.push(row);
      if (row <= PAGE) throw new Error(`row ${row}`);
      return true;
    },
  });
  await assert.rejects(working, /row 1/);
  assert.deepEqual(tried, ROWS);
});

test('a row that somebody else holds is passed by and not counted', async () => {
  assert.equal(await eachDueRow({ ...pagesOf(ROWS), act: async (row) => row % 2 === 0 }), 3);
});

test('each page begins after the last row of the one before, and a page that is not full is the last', async () => {
  const asked: (number | undefined)[] = [];
  await eachDueRow({ ...pagesOf(ROWS, asked), act: async () => true });
  assert.deepEqual(asked, [undefined, 3, 6]);
  asked.splice(0);
  await eachDueRow({ ...pagesOf([], asked), act: async () => true });
  assert.deepEqual(asked, [undefined]);
});
