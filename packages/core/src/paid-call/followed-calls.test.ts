/** Answers that are followed until they arrive, against a real database: who gets one that was lost, and what a call costs to follow. */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import type { Transaction } from '../db/connection.ts';
import { createKeys } from '../keys/keys.ts';
import { grantKey } from '../keys/trial.ts';
import { createLedger } from '../ledger/ledger.ts';
import { newCallId } from '../ledger/transfer-id.ts';
import { type CallToFollow, type Delivery, FollowedCalls, LOST_ANSWER_MS } from './followed-calls.ts';
import { createCallStore } from './inside/calls.ts';

let database: TestDatabase;
let nowMs = Date.now();
let holders: [bigint, bigint];
/** Two replicas. */
let replicas: [FollowedCalls, FollowedCalls];
let caller: { accountId: bigint; keyId: bigint; bucket: number };
const of = (asked: string) => createHash('sha256').update(asked).digest();

before(async () => {
  database = await openTestDatabase();
  const rows = await database.sql<{ id: bigint }[]>`
    insert into replicas (started_at, seen_at) values (now(), now()), (now(), now()) returning id`;
  const [first, second] = rows.map(({ id }) => id);
  assert(first !== undefined && second !== undefined);
  holders = [first, second];
  replicas = [
    new FollowedCalls(database, { nowMs: () => nowMs, holder: () => first }),
    new FollowedCalls(database, { nowMs: () => nowMs, holder: () => second }),
  ];
  const keys = createKeys(database.sql, () => nowMs);
  const ledger = createLedger(database, () => nowMs);
  const grant = { amountMicros: 1_000_000_000n, label: 'test', note: 'test' };
  const { apiKey } = await grantKey({ sql: database.sql, keys, ledger, nowMs: () => nowMs }, grant);
  const key = await keys.find(apiKey);
  assert(key !== null);
  caller = { accountId: key.accountId, keyId: key.id, bucket: key.bucket };
});
after(() => database.close());

const call = (asked: string, { requestId = null as string | null } = {}): CallToFollow => ({
  id: newCallId(nowMs, caller.bucket),
  accountId: caller.accountId,
  keyId: caller.keyId,
  fingerprint: of(asked),
  request: requestId === null ? null : { client: 'a client', requestId },
  longestMs: 1_000,
  cancelled() {},
});

/** Follows a call that is charged, whose answer is kept. */
async function sold(asked: string, on: FollowedCalls = replicas[0], options = {}) {
  const followed = call(asked, options);
  const delivery = await on.begin(followed);
  assert.equal(delivery.lost, null);
  await capture(followed.id);
  return { id: followed.id, delivery };
}

async function capture(id: string) {
  const calls = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: 86_400_000 });
  const priced = {
    id,
    accountId: caller.accountId,
    bucket: caller.bucket,
    service: 'ping',
    priceMicros: 5_000n,
    revenue: 'revenue_credits',
  } as const;
  const begun = await calls.begin({
    ...priced,
    keyId: caller.keyId,
    rail: 'credits',
    ttlMs: 40_000,
    identity: null,
    onChainIdentity: null,
    fingerprint: null,
  });
  assert.equal(begun.status, 'authorized');
  const answer = { status: 200, headers: {}, body: '{}' };
  const ended = await calls.finish({ ...priced, capture: true, outcome: 'answered', answer });
  assert.equal(ended.status, 'done');
}

const left = async (id: string) => {
  const [row] = await database.sql<{ followed: number; answers: number }[]>`
    select (select count(*) from followed_calls where call_id = ${id})::integer as followed,
           (select count(*) from call_answers where id = ${id})::integer as answers`;
  return row;
};

test('an answer that arrived is forgotten with what was kept of it, and one that can be cancelled a moment later', async () => {
  const plain = await sold('arrives');
  await plain.delivery.end(true);
  assert.deepEqual(await left(plain.id), { followed: 0, answers: 0 });
  assert.equal((await replicas[1].begin(call('arrives'))).lost, null);

  const named = await sold('arrives by MCP', replicas[0], { requestId: '7' });
  await named.delivery.end(true);
  assert.deepEqual(await left(named.id), { followed: 1, answers: 1 });
  const late = { client: 'a client', requestId: '7' };
  assert.equal(await replicas[1].cancel(caller.keyId, late), true, 'its client had not read it');
  const again = await replicas[1].begin(call('arrives by MCP'));
  assert.equal(again.lost?.callId, named.id);
});

test('an answer that was lost goes to one of those who ask again at once, and the others buy their own', async () => {
  const { id, delivery } = await sold('lost');
  await delivery.end(false);
  const asked = Array.from({ length: 20 }, (_, nth) => replicas[nth % 2 === 0 ? 0 : 1].begin(call('lost')));
  const deliveries: Delivery[] = await Promise.all(asked);
  const got = deliveries.filter(({ lost }) => lost !== null);
  assert.deepEqual(
    got.map(({ lost }) => lost?.callId),
    [id],
  );
  const [row] = await database.sql<{ followed: number }[]>`
    select count(*)::integer as followed from followed_calls where fingerprint = ${of('lost')}`;
  assert.equal(row?.followed, 20, 'each of the others is followed itself');
  await got[0]?.end(true);
  assert.deepEqual(await left(id), { followed: 0, answers: 0 });
});

test('while one takes it, nobody waits for it', async () => {
  const { id, delivery } = await sold('being taken');
  await delivery.end(false);
  await database.sql.begin(async (transaction) => {
    await transaction`select 1 from followed_calls where call_id = ${id} for update`;
    assert.equal((await replicas[1].begin(call('being taken'))).lost, null);
  });
  assert.equal((await replicas[1].begin(call('being taken'))).lost?.callId, id);
});

test('it is for the same key alone that asks the same, while it is kept, and not while it is on its way', async () => {
  const { id, delivery } = await sold('mine');
  assert.equal((await replicas[1].begin(call('mine'))).lost, null, 'it may still arrive');
  await delivery.end(false);
  assert.equal((await replicas[1].begin({ ...call('mine'), keyId: caller.keyId + 1n })).lost, null);
  assert.equal((await replicas[1].begin({ ...call('mine'), accountId: caller.accountId + 1n })).lost, null);
  assert.equal((await replicas[1].begin(call('other'))).lost, null);
  nowMs += LOST_ANSWER_MS;
  assert.equal((await replicas[1].begin(call('mine'))).lost, null, 'its time is over');
  nowMs -= 1;
  assert.equal((await replicas[1].begin(call('mine'))).lost?.callId, id);
});

test('what a process had not delivered when it ended is lost', async () => {
  const { id } = await sold('of one that ends');
  assert.equal((await replicas[1].begin(call('of one that ends'))).lost, null);
  await database.sql`update replicas set ended_at = now() where id = ${String(holders[0])}`;
  assert.equal((await replicas[1].begin(call('of one that ends'))).lost?.callId, id);
  await database.sql`update replicas set ended_at = null where id = ${String(holders[0])}`;
});

test('a call that was sent to the database twice is followed once', async () => {
  const [account, key] = [String(caller.accountId), String(caller.keyId)];
  const { id } = call('twice');
  const { name } = await nameOf('followed_calls_begin');
  for (const delivery of [randomUUID(), randomUUID()])
    await database.sql`
      select ${database.sql(name)}(array[${account}]::text[]::bigint[], array[${id}]::text[]::uuid[], array[${key}]::text[]::bigint[],
        array[${of('twice')}]::bytea[], array[${delivery}]::text[]::uuid[], '{null}'::text[], '{null}'::text[],
        array[now() + interval '1 minute'], '{false}'::boolean[], ${String(holders[0])}::text::bigint, now())`;
  assert.equal((await left(id))?.followed, 1);
});

test('thousands of the same call, answered and on their way, cost the next one nothing', async () => {
  await database.patient`
    insert into followed_calls (account_id, call_id, key_id, fingerprint, delivery, holder, client, request_id, state, expires_at)
    select ${String(caller.accountId)}, gen_random_uuid(), ${String(caller.keyId)}, ${of('often')}, gen_random_uuid(),
           ${String(holders[0])}, 'a client', n, 2, now() + interval '1 hour' from generate_series(1, 5000) n`;
  const { name } = await nameOf('followed_calls_begin');
  const { id } = call('often');
  await database.sql.begin(async (sql) => {
    const before = await readIn(sql);
    const [row] = await sql<{ owed: boolean[] }[]>`
      select owed from ${sql(name)}(array[${String(caller.accountId)}]::text[]::bigint[], array[${id}]::text[]::uuid[],
        array[${String(caller.keyId)}]::text[]::bigint[], array[${of('often')}]::bytea[], array[gen_random_uuid()],
        '{null}'::text[], '{null}'::text[], array[now()], '{false}'::boolean[], ${String(holders[0])}::text::bigint, now())`;
    assert.deepEqual(row?.owed, [false]);
    const read = await readIn(sql);
    assert.equal(read.scans - before.scans, 0);
    assert(read.rows - before.rows <= 1, `${read.rows - before.rows} rows were read`);
  });
});

/** The reads of the table by a session, also those that it has not told the others yet. */
async function readIn(sql: Transaction): Promise<{ scans: number; rows: number }> {
  const [read] = await sql<{ scans: number; rows: number }[]>`
    select seq_scan::integer as scans, coalesce(idx_tup_fetch, 0)::integer as rows
    from pg_stat_xact_user_tables where relname = 'followed_calls'`;
  return read ?? { scans: 0, rows: 0 };
}

async function nameOf(prefix: string): Promise<{ name: string }> {
  const [row] = await database.sql<{ name: string }[]>`
    select proname as name from pg_proc where proname ~ ${`^${prefix}_[0-9a-f]{12}$`}`;
  assert(row !== undefined);
  return row;
}
