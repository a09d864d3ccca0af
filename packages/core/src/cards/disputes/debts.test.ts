import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { createKeys, type Keys } from '../../keys/keys.ts';
import { createBucketTurns } from '../../ledger/bucket-turns.ts';
import { createLedger } from '../../ledger/ledger.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import { createDebts } from './debts.ts';

const OWED_MICROS = 400_000n;

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

test('a sweep that is told to stop ends after the account at hand, and the next one goes on', async () => {
  const { sql } = database;
  const keys = createKeys(sql, Date.now);
  const ledger = createLedger(database, Date.now);
  const stop = new AbortController();
  const stopping: Pick<Keys, 'freeze' | 'thaw'> = {
    freeze: (...of) => keys.freeze(...of),
    thaw(...of) {
      stop.abort();
      return keys.thaw(...of);
    },
  };
  const debts = createDebts(sql, {
    ledger,
    keys: stopping as Keys,
    turns: createBucketTurns(database),
    nowMs: Date.now,
  });
  for (const note of ['one', 'two', 'three'])
    await sql.begin(async (transaction) => {
      const accountId = await ledger.openAccount(transaction);
      await ledger.transferWithin(transaction, {
        id: transferIdFor(note),
        accountId,
        phase: 'posted',
        side: 'credit',
        house: 'operator_grants',
        amountMicros: 1_000_000n,
        code: 'operator_grant',
        note,
      });
      await keys.issue(transaction, { accountId, kind: 'grant', label: note, expiresAtMs: null });
      await debts.hold(transaction, accountId);
      await debts.owe(transaction, accountId, OWED_MICROS, note);
    });
  assert.equal(await debts.total(), 3n * OWED_MICROS);
  assert.equal(await debts.sweep(100, stop.signal), 1);
  assert.equal(await debts.total(), 2n * OWED_MICROS);
  assert.equal(await debts.sweep(100, stop.signal), 0, 'nothing is begun after that');
  assert.equal(await debts.sweep(100), 2);
  assert.equal(await debts.total(), 0n);
});
