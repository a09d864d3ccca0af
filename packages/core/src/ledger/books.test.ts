/** How the rules of the books are asked, against a real database. What they find is tested with those who keep the money. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { ProofUnwanted, proveBooks } from './books.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

const rule = (sql: string) => [
  { rules: [{ name: 'of the test', sql, say: (row: Record<string, unknown>) => JSON.stringify(row) }] },
];
const SETTINGS = ['transaction_isolation', 'transaction_read_only', 'statement_timeout', 'application_name'];

test('a rule has a snapshot of its own, writes nothing, ends within an hour and says whose it is', async () => {
  const settings = SETTINGS.map((name) => `current_setting('${name}') as ${name}`).join();
  const session = { name: "the proof of the shop's test", wanted: () => true };
  const { balanced, checks } = await proveBooks(database.patient, rule(`select ${settings};`), session);
  assert.equal(balanced, false);
  assert.deepEqual(JSON.parse(checks.find(({ name }) => name === 'of the test')?.finding ?? ''), {
    transaction_isolation: 'repeatable read',
    transaction_read_only: 'on',
    statement_timeout: '1h',
    application_name: session.name,
  });
  // What a rule's message sets is over with it.
  const [kept] = await database.patient`
    select ${database.sql.unsafe(settings)}, count(*) from generate_series(1, 1)`;
  assert.notEqual(kept?.application_name, session.name);
  assert.equal(kept?.transaction_read_only, 'off');
});

test('only what is one query can be a rule: a second one would not be looked at', async () => {
  for (const wrong of ["select 'found'; select 1 where false", 'set local work_mem = 4096'])
    await assert.rejects(proveBooks(database.patient, rule(wrong)), /one query/);
  await assert.rejects(proveBooks(database.patient, rule('select 1 / 0')), /division by zero/);
  assert.equal((await proveBooks(database.patient, rule('select 1 where false'))).balanced, true);
});

test('no rule is asked once the proof is not wanted', async () => {
  let asked = 0;
  const session = { name: 'farebox books', wanted: () => ++asked < 3 };
  await assert.rejects(proveBooks(database.patient, [], session), ProofUnwanted);
  assert.equal(asked, 3);
});
