/**
 * Transactions that may write on a worker and on the coordinator of a spread database make their commit one. On one PostgreSQL that is seen by
 * the table that is written to for it: a statement that finds no row holds it until the commit all the same.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import type { Transaction } from '../db/connection.ts';
import { createKeys } from '../keys/keys.ts';
import { createBucketTurns } from './bucket-turns.ts';
import { hearTransfers } from './heard-transfers.ts';
import { createLedger, type Transfer } from './ledger.ts';
import { newTransferId } from './transfer-id.ts';

const IS_ONE = `exists (select 1 from pg_locks where pid = pg_backend_pid() and relation = 'ledger_outbox'::regclass
  and mode = 'RowExclusiveLock')`;

let database: TestDatabase;
let account: bigint;
before(async () => {
  database = await openTestDatabase();
  account = await database.sql.begin((transaction) =>
    createLedger(database, Date.now).openAccount(transaction, 2),
  );
});
after(() => database?.close());

async function isOne(transaction: Transaction): Promise<boolean> {
  const [row] = await transaction.unsafe<{ one: boolean }[]>(`select ${IS_ONE} as one`);
  return row?.one === true;
}

const granted = (): Transfer => ({
  id: newTransferId(Date.now()),
  accountId: account,
  phase: 'posted',
  side: 'credit',
  house: 'operator_grants',
  amountMicros: 10n,
  code: 'operator_grant',
});

const WRITES: Readonly<
  Record<string, (transaction: Transaction, isDistributed: boolean) => Promise<unknown>>
> = {
  'a transfer beside what its caller writes': (transaction, isDistributed) =>
    createLedger({ ...database, distribution: { isDistributed } }, Date.now).transferWithin(
      transaction,
      granted(),
    ),
  'a new account': (transaction, isDistributed) =>
    createLedger({ ...database, distribution: { isDistributed } }, Date.now).openAccount(transaction, 2),
  'a lock of accounts, of whoever changes them': (transaction, isDistributed) =>
    createLedger({ ...database, distribution: { isDistributed } }, Date.now).lock(transaction, [account]),
  'a new key in the place of all others': async (transaction, isDistributed) => {
    const keys = createKeys(database.sql, Date.now, { isDistributed });
    const stored = { lookup: 7n, digest: Buffer.alloc(32, 7), prefix: 'test' };
    assert.equal(await keys.replaceAll(transaction, account, stored), null, 'it has none');
  },
};
for (const [what, write] of Object.entries(WRITES))
  test(`${what} is one commit where the database is spread, and asks for nothing elsewhere`, async () => {
    for (const isDistributed of [true, false])
      await database.sql.begin(async (transaction) => {
        await write(transaction, isDistributed);
        assert.equal(await isOne(transaction), isDistributed);
      });
  });

test('a transfer that the coordinator hears of is written down in one commit with the hold of its note', async () => {
  const { sql, patient } = database;
  await patient.unsafe(`
    create function must_be_one() returns trigger language plpgsql as $$
    begin
      if not ${IS_ONE} then raise exception 'its commit is not one'; end if;
      return new;
    end $$;
    create trigger must_be_one before insert on ledger_transfers_heard for each row execute function must_be_one()`);
  const transfer = granted();
  await createLedger(database, Date.now).transfer(transfer);
  await sql`insert into ledger_outbox (bucket, account_id, id, phase) values (2, ${String(account)}, ${transfer.id}, 1)`;
  const distribution = { isDistributed: true };
  const turns = createBucketTurns({ sql, distribution });
  assert.equal(await hearTransfers({ sql, distribution }, { turns, atOnce: 2 }), 1);
});
