/** Jobs over all buckets: none waits for another that has more to do, or whose server is away. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { createDebts } from '../cards/disputes/debts.ts';
import { createKeys } from '../keys/keys.ts';
import { createCallStore } from '../paid-call/inside/calls.ts';
import { createEventLog } from '../webhooks/event-log.ts';
import { tellOfLowBalances } from '../webhooks/low-balances.ts';
import { createBucketTurns } from './bucket-turns.ts';
import { hearTransfers } from './heard-transfers.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { newTransferId } from './transfer-id.ts';

const BATCH = 2;
const SPREAD = { isDistributed: true };
/** The accounts of the buckets 0, 1 and 2. */
const accounts: bigint[] = [];

let database: TestDatabase;
let ledger: Ledger;
before(async () => {
  database = await openTestDatabase();
  ledger = createLedger(database, Date.now);
  for (const bucket of [0, 1, 2])
    accounts.push(await database.sql.begin((transaction) => ledger.openAccount(transaction, bucket)));
});
after(() => database?.close());

const turnsOfSpread = () => createBucketTurns({ sql: database.sql, distribution: SPREAD });

test('one PostgreSQL has one turn for all buckets, and another while a batch is full', async () => {
  const left = [BATCH, 1];
  const turns: (number | null)[] = [];
  const done = await createBucketTurns(database).each(BATCH, async (bucket) => {
    turns.push(bucket);
    return left.shift() ?? 0;
  });
  assert.equal(done, BATCH + 1);
  assert.deepEqual(turns, [null, null]);
});

test('a bucket with much to do comes again after the others, and one that fails keeps none from its turn', async () => {
  const left: Record<number, number[]> = { 0: [BATCH, BATCH, 0], 1: [], 2: [1] };
  const turns: (number | null)[] = [];
  const round = turnsOfSpread().each(BATCH, async (bucket) => {
    turns.push(bucket);
    if (bucket === 1) throw new Error('its server is away');
    return left[bucket ?? 0]?.shift() ?? 0;
  });
  await assert.rejects(round, /its server is away/);
  assert.deepEqual(turns, [0, 1, 2, 0, 0]);
});

test('who is told to stop begins no further turn', async () => {
  const stopping = new AbortController();
  const turns: (number | null)[] = [];
  await turnsOfSpread().each(
    BATCH,
    async (bucket) => {
      turns.push(bucket);
      stopping.abort();
      return BATCH;
    },
    stopping.signal,
  );
  assert.deepEqual(turns, [0]);
});

test('answers, held caps and rotated keys of one bucket are dealt with, and those of others left', async () => {
  const { sql } = database;
  const calls = createCallStore(database, { nowMs: Date.now, answerTtlMs: 1 });
  const keys = createKeys(sql, Date.now);
  const left = async () => {
    const rows = await sql<{ what: string; bucket: number }[]>`
      select 'answer' as what, bucket from call_answers
      union all select 'cap', bucket from api_keys where cap_fixed_until is not null
      union all select 'rotated', bucket from api_keys where rotated_at is not null order by 1, 2`;
    return rows.map(({ what, bucket }) => `${what} ${bucket}`);
  };
  for (const [bucket, account] of accounts.entries()) {
    await sql`
      insert into call_answers (bucket, account_id, id, status, headers, body, expires_at)
      values (${bucket}, ${String(account)}, ${randomUUID()}, 200, '{}', '', now() - interval '1 second')`;
    for (const column of ['cap_fixed_until', 'rotated_at'])
      await sql`
        insert into api_keys (bucket, account_id, lookup, digest, prefix, kind, status, created_at, ${sql(column)})
        values (${bucket}, ${String(account)}, ${bucket * 2 + Number(column === 'rotated_at')},
                sha256(convert_to(${`${bucket} ${column}`}, 'UTF8')), 'key', 'paid',
                'revoked', now(), now() - interval '91 days')`;
  }
  assert.equal(await calls.dropExpiredAnswers(10, 1), 1);
  assert.equal(await keys.releaseCaps(10, 1), 1);
  assert.deepEqual(await left(), [
    'answer 0',
    'answer 2',
    'cap 0',
    'cap 2',
    'rotated 0',
    'rotated 1',
    'rotated 2',
  ]);
  const [named] = await sql<
    { id: bigint }[]
  >`select id from api_keys where bucket = 2 and rotated_at is not null`;
  await sql`insert into key_addresses (key_id, digest, seen_at) values (${String(named?.id)}, '\\x00', now())`;
  await keys.forgetRotated(turnsOfSpread());
  assert.deepEqual(await left(), ['answer 0', 'answer 2', 'cap 0', 'cap 2', 'rotated 2'], 'one is named');
});

test('of one bucket, debts are collected and low balances told, and each is looked at in its turn', async () => {
  const { sql } = database;
  const turns = turnsOfSpread();
  const keys = createKeys(sql, Date.now);
  const debts = createDebts(sql, { ledger, keys, turns, nowMs: Date.now });
  const log = createEventLog(sql, Date.now, 30);
  const customers: bigint[] = [];
  for (const bucket of [0, 1, 2])
    await sql.begin(async (transaction) => {
      const accountId = await ledger.openAccount(transaction, bucket);
      customers.push(accountId);
      await ledger.transferWithin(transaction, {
        id: newTransferId(Date.now()),
        accountId,
        phase: 'posted',
        side: 'credit',
        house: 'operator_grants',
        amountMicros: 3_000_000n,
        code: 'operator_grant',
      });
      await debts.owe(transaction, accountId, 1_000_000n, 'a payment that went back');
      await keys.issue(transaction, { accountId, kind: 'paid', label: null, expiresAtMs: null });
      await transaction`
        insert into webhooks (id, account_id, url, events, low_below_micros, sealed_secret, created_at)
        values (${randomUUID()}, ${String(accountId)}, 'https://hooks.farebox.test/', '{balance.low}', 2500000, '', now())`;
    });
  const tell = () => tellOfLowBalances(sql, { log, turns, nowMs: Date.now });
  assert.equal(await tell(), 0, 'no balance is low');
  // More accounts of other buckets come before it than one look has.
  const alone: typeof turns = {
    isSpread: true,
    async each(batchSize, batch) {
      let all = 0;
      for (let done = batchSize; done >= batchSize; all += done) done = await batch(2);
      return all;
    },
  };
  assert.equal(await createDebts(sql, { ledger, keys, turns: alone, nowMs: Date.now }).sweep(BATCH), 1);
  assert.equal(await debts.total(), 2_000_000n);
  for (const [bucket, id] of customers.entries())
    assert.equal((await ledger.balance(id)).balanceMicros, bucket === 2 ? 2_000_000n : 3_000_000n);
  assert.equal(await debts.sweep(BATCH), 2);
  assert.equal(await debts.total(), 0n);
  for (const id of customers) assert.equal((await ledger.balance(id)).balanceMicros, 2_000_000n);
  assert.equal(await tell(), 3);
  assert.equal(await tell(), 0, 'once');
  const told = await sql<
    { account_id: bigint }[]
  >`select account_id from account_events where type = 'balance.low' order by 1`;
  assert.deepEqual(
    told.map(({ account_id }) => account_id),
    customers,
  );
});

test('a transfer that is noted is heard once, however many hear of it, and forgotten when its note is struck', async () => {
  const { sql } = database;
  const [accountId = 0n] = accounts.slice(2);
  const id = randomUUID();
  await ledger.transfer({
    id,
    accountId,
    phase: 'posted',
    side: 'credit',
    house: 'operator_grants',
    amountMicros: 1_000_000n,
    code: 'operator_grant',
  });
  await sql`insert into ledger_outbox (bucket, account_id, id, phase) values (2, ${String(accountId)}, ${id}, 1)`;
  const hear = () => hearTransfers({ sql, distribution: SPREAD }, { turns: turnsOfSpread(), atOnce: BATCH });
  assert.equal(await hearTransfers(database, { turns: createBucketTurns(database), atOnce: BATCH }), 0);
  const heard = await Promise.all([hear(), hear()]);
  assert(heard[0] + heard[1] >= 1);
  const rows = () => sql<{ id: string }[]>`select id from ledger_transfers_heard`;
  assert.deepEqual(
    (await rows()).map((row) => row.id),
    [id],
  );
  assert.equal((await sql`select 1 from ledger_outbox`).length, 0);
  // Killed before it struck the note: the note is found again, and the transfer is not heard twice.
  await sql`insert into ledger_outbox (bucket, account_id, id, phase) values (2, ${String(accountId)}, ${id}, 1)`;
  assert.equal(await hear(), 1);
  assert.equal((await rows()).length, 1);
  assert.equal((await sql`select 1 from ledger_outbox`).length, 0);
  await sql`update ledger_transfers_heard set heard_at = now() - interval '1 hour'`;
  // Killed before it struck the note: that the transfer was heard is known for as long as the note stands.
  await sql`insert into ledger_outbox (bucket, account_id, id, phase) values (2, ${String(accountId)}, ${id}, 2)`;
  await sql`update ledger_transfers_heard set phase = 2`;
  const holding = await sql.begin(async (transaction) => {
    await transaction`select 1 from ledger_outbox for update`;
    await hear();
    return (await rows()).length;
  });
  assert.equal(holding, 1, 'somebody else is at it');
  assert.equal(await hear(), 1);
  assert.equal((await rows()).length, 0);
});

test('a transfer that cannot be heard keeps none behind it from being heard', async () => {
  const { sql } = database;
  const [accountId = 0n] = accounts.slice(1);
  const ids = [1, 2, 3, 4].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
  for (const id of ids) {
    await ledger.transfer({
      id,
      accountId,
      phase: 'posted',
      side: 'credit',
      house: 'operator_grants',
      amountMicros: 1_000_000n,
      code: 'operator_grant',
    });
    await sql`insert into ledger_outbox (bucket, account_id, id, phase) values (1, ${String(accountId)}, ${id}, 1)`;
  }
  // As many as one batch has.
  const refused = ids.slice(0, BATCH);
  await sql.unsafe(
    `alter table ledger_transfers_heard add constraint refused check (id not in ('${refused.join("','")}'))`,
  );
  const hear = () => hearTransfers({ sql, distribution: SPREAD }, { turns: turnsOfSpread(), atOnce: BATCH });
  await assert.rejects(hear(), /refused/);
  const noted = await sql<{ id: string }[]>`select id from ledger_outbox order by id`;
  assert.deepEqual(
    noted.map(({ id }) => id),
    refused,
  );
  await sql`alter table ledger_transfers_heard drop constraint refused`;
  assert.equal(await hear(), BATCH, 'the next round hears of them');
});
