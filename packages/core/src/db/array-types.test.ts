import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

test('arrays come out of the database as what they hold', async () => {
  const texts = [
    '',
    'plain',
    'a "quote"',
    'back\\slash',
    'with, comma',
    '{braces}',
    'NULL',
    'line\nbreak',
    'ä€😀',
  ];
  const [row] = await database.sql`
    select ${JSON.stringify(texts)}::text as given,
      (select array_agg(t.value order by t.at) from jsonb_array_elements_text(${JSON.stringify(texts)}::text::jsonb)
        with ordinality as t (value, at)) as texts,
      array[1, -2]::smallint[] as small, array[3, null]::integer[] as whole, array[9007199254740993]::bigint[] as big,
      array[true, false] as bools, array['00000000-0000-0000-0000-000000000001']::uuid[] as ids,
      array[1.50]::numeric[] as numbers, '{}'::text[] as none, array[null, 'x']::text[] as gaps`;
  assert.deepEqual(
    [row?.texts, row?.small, row?.whole, row?.big, row?.bools, row?.ids, row?.numbers, row?.none, row?.gaps],
    [
      texts,
      [1, -2],
      [3, null],
      [9_007_199_254_740_993n],
      [true, false],
      ['00000000-0000-0000-0000-000000000001'],
      ['1.50'],
      [],
      [null, 'x'],
    ],
  );
});

test('an array of texts that is given as it is goes in as what it holds', async () => {
  const texts = ['a "b"', '{c}', null];
  const [row] = await database.sql<{ texts: string[] }[]>`select ${texts}::text[] as texts`;
  assert.deepEqual(row?.texts, texts);
});
