/** A person's address in a text that somebody wrote, as the database finds it: theirs as a whole, and nobody else's. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { boundTo, findPerson } from './person.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

/** Erases a person from a text. @returns the rest of it */
async function erasedFrom(text: string, email: string): Promise<string | undefined> {
  const nobody = { email, accounts: [], bought: [] };
  const query = boundTo(`regexp_replace(%, :mention, '[erased]', 'gi')`, nobody, 0);
  const [row] = await database.sql.unsafe<{ left: string }[]>(
    `select ${query.text.replace('%', '$2::text')} as left`,
    [...query.values, text],
  );
  return row?.left;
}

const EMAIL = 'ann@example.com';

test('an address is found wherever it stands as a whole', async () => {
  for (const [text, left] of [
    ['ann@example.com', '[erased]'],
    ['Ann@Example.COM asked for it', '[erased] asked for it'],
    ['for <ann@example.com>, twice: ann@example.com.', 'for <[erased]>, twice: [erased].'],
    ['"ann@example.com"\nmailto:ann@example.com', '"[erased]"\nmailto:[erased]'],
  ] as const)
    assert.equal(await erasedFrom(text, EMAIL), left);
});

test('no part of a longer address is taken for it, on either side', async () => {
  for (const text of [
    'joann@example.com',
    'jo.ann@example.com',
    'jo+ann@example.com',
    'jo_ann@example.com',
    '9ann@example.com',
    'ann@example.com.au',
    'ann@example.community',
    'ann@example.com-shop.test',
    'ann@exampleXcom',
  ])
    assert.equal(await erasedFrom(text, EMAIL), text);
});

test('what means something in a pattern is a letter of an address like any other', async () => {
  assert.equal(await erasedFrom('a+b@example.com', 'a+b@example.com'), '[erased]');
  assert.equal(await erasedFrom('aab@example.com', 'a+b@example.com'), 'aab@example.com');
  assert.equal(await erasedFrom("o'neil{1}|x@example.com", "o'neil{1}|x@example.com"), '[erased]');
});

test('an account that is known by another address too is not a person’s own', async () => {
  const rows = `(values (2001, 'Ann@example.com'), (2002, 'ann@example.com'), (2002, 'bob@example.com'), (2003, 'bob@example.com'),
    (2004, 'ann@example.com'), (2004, 'ANN@example.com'), (null, 'ann@example.com'), (2005, null)) v (account_id, email)`;
  const known = [`select account_id::bigint as account_id, email from ${rows}`];
  const bought = ['select account_id + 1000 as account_id from unnest(:accounts) a (account_id)'];
  const ann = await findPerson(database.sql, [{ tables: [], known, bought }], ' Ann@Example.com ', 0);
  assert.deepEqual(ann, {
    email: EMAIL,
    accounts: [2001n, 2004n],
    shared: [2002n],
    bought: [3001n, 3004n],
  });
});
