/** Looks at the books of a spread database without a cluster: each rule can be asked there, and no foreign key is left out. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DECLARED } from '../../../../apps/shop/src/app.ts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { COPIED, SPREAD } from '../db/distribute.ts';
import { booksOf } from '../declared.ts';
import { accountsAreThere, LEDGER_RULES } from './ledger-rules.ts';
import { type KnownTable, ofPart } from './spread-books.ts';

const PARTS = booksOf(DECLARED);
const RULES = [...LEDGER_RULES, ...PARTS.flatMap(({ rules }) => rules)];

let database: TestDatabase;
let tables: KnownTable[];
before(async () => {
  database = await openTestDatabase();
  const spread: string[] = SPREAD.map(({ table }) => table);
  const rows = await database.sql<{ name: string; of_account: boolean }[]>`
    select c.relname::text as name, exists (
      select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'account_id'
    ) as of_account
    from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`;
  tables = rows.map(({ name, of_account }) => ({
    name,
    lies: spread.includes(name) ? 'spread' : (COPIED as readonly string[]).includes(name) ? 'copied' : 'here',
    ofAccount: of_account,
  }));
});
after(() => database?.close());

test('each rule that is asked of the parts of the buckets can be, and finds nothing where nothing is', async () => {
  const asked = RULES.filter(
    ({ together, sql }) => together === undefined && /ledger_transfers|calls|api_keys/.test(sql),
  );
  assert(asked.length > 15);
  for (const { name, sql, ofOpenDays } of asked)
    for (const query of [sql, ofOpenDays?.('now()') ?? '']) {
      if (query === '') continue;
      for (const buckets of [
        [0, 2],
        [1, 3],
      ]) {
        const rows = await database.sql.unsafe(ofPart(query, buckets, tables));
        assert.deepEqual([...rows], [], name);
      }
    }
});

test('a part has the rows of its buckets and the accounts of the house, and of other tables what is of its accounts', async () => {
  await database.sql`
    insert into ledger_accounts (id, house, bucket) values (1001, false, 1), (1002, false, 2)`;
  await database.sql`
    insert into account_freezes (account_id, cause, created_at) values (1001, 'operator', now()), (1002, 'operator', now())`;
  const idsOf = async (query: string, buckets: readonly number[]) =>
    (await database.sql.unsafe<{ id: bigint }[]>(ofPart(query, buckets, tables))).map(({ id }) => id);
  const customers = 'select id from ledger_accounts where not house';
  assert.deepEqual(await idsOf(customers, [1]), [1001n]);
  assert.deepEqual(await idsOf(customers, [0, 2]), [1002n]);
  const houses = 'select id from ledger_accounts where house';
  assert.deepEqual((await idsOf(houses, [1])).sort(), (await idsOf(houses, [0, 2])).sort());
  const frozen =
    'select f.account_id as id from account_freezes f join ledger_accounts a on a.id = f.account_id';
  assert.deepEqual(await idsOf(frozen, [1]), [1001n]);
  assert.deepEqual(await idsOf(frozen, [0, 2]), [1002n]);
  await database.sql`
    insert into ledger_closed_balances (account_id, debits_pending, debits_posted, credits_pending, credits_posted)
    select id, 0, 0, 0, 0 from ledger_accounts where id in (1, 1001, 1002)`;
  const closed = 'select account_id as id from ledger_closed_balances order by account_id';
  assert.deepEqual(await idsOf(closed, [1]), [1001n]);
  assert.deepEqual(await idsOf(closed, [0, 2]), [1n, 1002n]);
  assert.throws(
    () => ofPart('select * from calls join trial_days on true', [1], tables),
    /trial_days are of no account/,
  );
});

test('a rule stands in for each foreign key to accounts', async () => {
  const keys = await database.sql<{ column: string }[]>`
    select c.conrelid::regclass || '.' || a.attname as column from pg_constraint c
    join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    where c.contype = 'f' and c.confrelid = 'ledger_accounts'::regclass`;
  const named = PARTS.flatMap(({ namesAccounts = [] }) => namesAccounts);
  const columns = [...named.map(({ table, column }) => `${table}.${column}`), 'api_keys.account_id'];
  assert(keys.length > 10);
  assert.deepEqual(
    keys.map(({ column }) => column).filter((column) => !columns.includes(column)),
    [],
  );
  for (const each of named)
    assert.deepEqual([...(await database.sql.unsafe(accountsAreThere(each).sql))], []);
});
