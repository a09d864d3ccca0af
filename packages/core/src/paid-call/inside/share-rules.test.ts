import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import type { Transaction } from '../../db/connection.ts';
import type { Rule } from '../../ledger/rule.ts';
import { newTransferId } from '../../ledger/transfer-id.ts';
import { SHARE_RULES } from './share-rules.ts';

const NOW_MS = Date.now();
const AT = new Date(NOW_MS).toISOString();
const CUSTOMER = '1001';
const PRICE = 1_000;
const SHARE = 10;
const [SET_ASIDE, , TAKEN_BACK] = SHARE_RULES;
/** Of calls whose price went back as a whole, by each of the ways; of the last one a part went back. */
const CALLS = Object.fromEntries(
  ['undelivered', 'byOperator', 'refunded', 'lost', 'inPart'].map((name) => [name, newTransferId(NOW_MS)]),
);
const { undelivered, byOperator, refunded, lost, inPart } = CALLS as Record<string, string>;

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
  const { sql } = database;
  await sql`insert into ledger_accounts (id, house) values (${CUSTOMER}, false)`;
  for (const id of Object.values(CALLS)) {
    const account = id === refunded || id === lost ? '5' : CUSTOMER;
    await sql`
      insert into calls (account_id, id, state, rail, service, price_micros, created_at, begun_at, expires_at, finished_at, shared)
      values (${account}, ${id}, 1, 'credits', 'ping', ${PRICE}, ${AT}, ${AT}, ${AT}, ${AT}, true)`;
    await sql`
      insert into call_shares (account_id, call_id, beneficiary, amount_micros, state, due_micros, set_aside_at)
      values (${account}, ${id}, 1002, ${SHARE}, 1, ${SHARE}, ${AT})`;
    await sql`
      insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
      values (13, ${id}, 1, 1, 13, ${SHARE}, 'share', ${AT}, ${`share of call ${id}`})`;
  }
  await sql`
    insert into operator_acts (id, at, actor, act, account_id, call_id, amount_micros, reason, transfer_id, idempotency_digest, request_digest)
    values (gen_random_uuid(), ${AT}, 'op', 'refund_call', ${CUSTOMER}, ${byOperator ?? ''}, ${PRICE}, 'late', gen_random_uuid(),
      sha256('once'), sha256('asked'))`;
  const [act] = await sql<{ transfer_id: string }[]>`select transfer_id from operator_acts`;
  for (const [account, code, note, micros, id] of [
    [CUSTOMER, 'call_refund', `undelivered call ${undelivered}`, PRICE, null],
    [CUSTOMER, 'operator_refund', null, PRICE, act?.transfer_id ?? ''],
    ['5', 'onchain_refund', `refund of call ${refunded}`, PRICE, null],
    ['5', 'settlement_lost', `lost settlement of call ${lost}`, PRICE + 1, null],
    [CUSTOMER, 'call_refund', `undelivered call ${inPart}`, PRICE - 1, null],
    // The reason of a grant is an operator's words.
    [CUSTOMER, 'operator_grant', `undelivered call ${'-'.repeat(36)}`, PRICE, null],
  ] as const)
    await sql`
      insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at, note)
      values (${account}, coalesce(${id}::uuid, gen_random_uuid()), 1, 1, ${account}, ${micros}, ${code}, ${AT}, ${note})`;
});
after(() => database?.close());

class Undone extends Error {}

/** What a rule finds of open days and of all, after something was done that is undone again. */
async function found(rule: Rule | undefined, since: string, done: (on: Transaction) => Promise<unknown>) {
  assert.ok(rule);
  const at = `timestamptz '${since}'`;
  let ids: unknown[] = [];
  await database.sql
    .begin(async (transaction) => {
      await done(transaction);
      for (const query of [rule.ofOpenDays?.(at) ?? rule.sql, rule.sql])
        ids = [...ids, (await transaction.unsafe<{ id: string }[]>(query))[0]?.id ?? null];
      throw new Undone();
    })
    .catch((error: unknown) => assert(error instanceof Undone, String(error)));
  return ids;
}
const nothing = async () => {};
const LATER = new Date(NOW_MS + 1_000).toISOString();

test('a share of a call whose price went back, by whatever way, was taken back; one of a part that went back was not', async () => {
  const states = await database.sql<
    { call_id: string; state: number }[]
  >`select call_id, state from call_shares`;
  for (const { call_id: id, state } of states) assert.equal(state, id === inPart ? 1 : 2, id);
  assert.deepEqual(await found(TAKEN_BACK, AT, nothing), [null, null]);
  for (const id of [undelivered, byOperator, refunded, lost])
    assert.deepEqual(
      await found(TAKEN_BACK, AT, (on) => on`update call_shares set state = 1 where call_id = ${id ?? ''}`),
      [id, id],
      'the price went back and the share did not',
    );
  for (const [what, id, undo] of [
    [
      'nothing went back',
      inPart,
      (on: Transaction) => on`update call_shares set state = 2 where call_id = ${inPart ?? ''}`,
    ],
    [
      'no act says it',
      byOperator,
      (on: Transaction) =>
        on`update ledger_transfers set code = 'operator_grant' where code = 'operator_refund'`,
    ],
    [
      'another call went back',
      undelivered,
      (on: Transaction) => on`
      update ledger_transfers set note = 'undelivered call ' || gen_random_uuid() where note = ${`undelivered call ${undelivered}`}`,
    ],
    [
      'less went back',
      undelivered,
      (on: Transaction) => on`
      update ledger_transfers set amount_micros = ${SHARE - 1} where code = 'share_back' and note = ${`share of call ${undelivered}`}`,
    ],
    [
      'no transfer says it',
      lost,
      (on: Transaction) => on`
      delete from ledger_transfers where code = 'share_back' and note = ${`share of call ${lost}`}`,
    ],
  ] as const)
    assert.deepEqual(await found(TAKEN_BACK, AT, undo), [id, id], what);
});

test('every share was set aside with its capture: of open days those alone are read that were set aside since', async () => {
  assert.deepEqual(await found(SET_ASIDE, AT, nothing), [null, null]);
  for (const [what, done] of [
    [
      'another amount',
      (on: Transaction) =>
        on`update call_shares set amount_micros = ${SHARE + 1} where call_id = ${lost ?? ''}`,
    ],
    ['no share', (on: Transaction) => on`delete from call_shares where call_id = ${lost ?? ''}`],
    [
      'no transfer',
      (on: Transaction) => on`delete from ledger_transfers where code = 'share' and id = ${lost ?? ''}`,
    ],
    ['no capture', (on: Transaction) => on`update calls set state = 2 where id = ${lost ?? ''}`],
    [
      'another time',
      (on: Transaction) => on`update calls set finished_at = ${LATER} where id = ${lost ?? ''}`,
    ],
  ] as const) {
    assert.deepEqual(await found(SET_ASIDE, AT, done), [lost, lost], what);
    assert.deepEqual(await found(SET_ASIDE, LATER, done), [null, lost], what);
  }
});
