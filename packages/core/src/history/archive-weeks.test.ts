/** Weeks of calls leave the database for files: once, whole, and the books hold without them, against a real database. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { proveBooks } from '../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { sqlFunction } from '../db/functions.ts';
import { createWeeks, makeWeeks, weekOf } from '../db/weeks.ts';
import { closeDays } from '../ledger/closed-days.ts';
import { createLedger, type Ledger } from '../ledger/ledger.ts';
import { newTransferId, transferIdFor } from '../ledger/transfer-id.ts';
import { accountingLines } from '../operator/accounting.ts';
import { refuseArchived } from '../operator/archived-call.ts';
import { callStory } from '../operator/call-story.ts';
import type { CallToBegin } from '../paid-call/inside/call-steps.ts';
import { type CallStore, createCallStore } from '../paid-call/inside/calls.ts';
import { writeArchiveFile } from './archive-file.ts';
import { type ArchiveStep, archiveWeeks } from './archive-weeks.ts';
import { dropReleased } from './drop-released.ts';
import { proveArchives } from './prove-archives.ts';
import { TRANSFER_COLUMNS } from './week-rows.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const PRICE = 250_000n;
const HISTORY_DAYS = 400;
/** Noon of a Wednesday more than 600 days ago: the weeks after it are archived one after the other. */
const FIRST_MS = Math.floor((Date.now() - 600 * DAY_MS) / WEEK_MS) * WEEK_MS + 6.5 * DAY_MS;
/** Text that an outsider wrote stands in rows as it came. */
const OUTSIDERS = '=HYPERLINK("http://example.com")\n"a",\'; drop table calls; --\t\u{1F4B8}';

let database: TestDatabase;
let nowMs = FIRST_MS;
/** When the last week is archived. */
let dueMs = 0;
let ledger: Ledger;
let calls: CallStore;
let account: bigint;
let folder: string;
let weekNumber = 0;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-archives-'));
  database = await openTestDatabase();
  ledger = createLedger(database, () => nowMs);
  calls = createCallStore(database, { nowMs: () => nowMs, answerTtlMs: DAY_MS });
  account = await database.sql.begin(async (transaction) => {
    const accountId = await ledger.openAccount(transaction);
    await ledger.transferWithin(transaction, {
      id: transferIdFor('grant of a test'),
      accountId,
      phase: 'posted',
      side: 'credit',
      house: 'operator_grants',
      amountMicros: 1_000_000_000n,
      code: 'operator_grant',
    });
    return accountId;
  });
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await database?.close();
});

function callOf(identity: string | null = null): CallToBegin {
  return {
    id: newTransferId(nowMs),
    accountId: account,
    bucket: 0,
    keyId: null,
    rail: 'credits',
    service: 'ping',
    ttlMs: 40_000,
    priceMicros: PRICE,
    revenue: 'revenue_credits',
    identity,
    onChainIdentity: null,
    fingerprint: identity === null ? null : createHash('sha256').update('question').digest(),
  };
}

/** A captured call that a chain paid, as rails leave it. */
async function soldOnChain(): Promise<string> {
  const id = newTransferId(nowMs);
  const at = new Date(nowMs).toISOString();
  await database.sql`
    insert into calls (account_id, id, price_micros, created_at, finished_at, begun_at, expires_at, state, rail, service, outcome, identity)
    values (5, ${id}, 7, ${at}, ${at}, ${at}, ${at}, 1, 'x402', 'ping', 'answered', ${`payment ${id}`})`;
  await database.sql`insert into call_identities (account_id, kind, identity, call_id) values (5, 0, ${`payment ${id}`}, ${id})`;
  await database.sql`
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    select 5, ${id}::uuid, phase, 5, 6, 7, 'call', ${at}::timestamptz from (values (2), (3)) p (phase)`;
  await database.sql`
    insert into settlements (account_id, call_id, rail, network, asset, payer, pay_to, amount_units, evidence, answered, state,
      dead_after, lease_until, next_at, transaction, created_at, settled_at, final_at)
    values (5, ${id}, 'x402', 'eip155:8453', 'a', 'p', 't', 7, '{}', true, 1, ${at}, ${at}, ${at}, ${`0x${id}`}, ${at}, ${at}, ${at})`;
  return id;
}

async function sell({ identity = null as string | null, capture = true, endsAfterMs = 1_000 } = {}) {
  const call = callOf(identity);
  assert.equal((await calls.begin(call)).status, 'authorized');
  nowMs += endsAfterMs;
  const answer = { status: 200, headers: {}, body: '{}' };
  const outcome = capture ? 'answered' : 'failed';
  await calls.finish({ ...call, capture, outcome, answer: capture && identity !== null ? answer : null });
  return call;
}

/** A week of calls after the last one: what each kind of call leaves behind. */
async function nextWeek() {
  nowMs = FIRST_MS + weekNumber * WEEK_MS;
  weekNumber += 1;
  dueMs = nowMs + WEEK_MS + HISTORY_DAYS * DAY_MS;
  const week = weekOf(nowMs);
  await database.sql.begin((transaction) => makeWeeks(transaction, [week]));
  const plain = [await sell({ identity: `${OUTSIDERS} ${weekNumber}` }), await sell(), await sell()];
  const released = await sell({ capture: false, identity: `released ${weekNumber}` });
  const given = await sell();
  const refundId = transferIdFor(`refund:${given.id}`);
  await ledger.transfer({
    id: refundId,
    accountId: account,
    phase: 'posted',
    side: 'credit',
    house: 'revenue_credits',
    amountMicros: PRICE,
    code: 'call_refund',
    note: `undelivered call ${given.id}`,
  });
  nowMs = FIRST_MS + (weekNumber - 1) * WEEK_MS + 11.5 * 3_600_000;
  const overMidnight = await sell({ capture: false, endsAfterMs: 3_600_000 });
  await database.sql`update calls set begun_at = created_at where begun_at > created_at + interval '1 day'`;
  return { week, plain, released, given, overMidnight };
}

/** What jobs have done by the time that a week is archived. */
async function settle(): Promise<void> {
  const lastDay = new Date(nowMs + 2 * DAY_MS).toISOString().slice(0, 10);
  await database.sql`delete from call_answers`;
  await database.sql`update sales_folded set calls_to = now(), transfers_to = now()`;
  await closeDays(database.patient, lastDay, () => true);
  await dropReleased(database.patient, Date.now);
}

const noReport = () => {};
const archive = (
  report: (week: string, step: ArchiveStep, detail?: string) => void = noReport,
  to = folder,
) =>
  archiveWeeks(
    { pools: database, nowMs: () => dueMs, historyDays: HISTORY_DAYS, folder: to, report },
    () => true,
  );
const leaseIsOver = () => database.sql`update call_archives set lease_until = '-infinity'`;

/** The sums of the books, once all of their rules hold, those over the files too. */
async function provenSums() {
  const books = await proveBooks(database.patient);
  const archives = await proveArchives(database.patient, folder);
  assert.deepEqual(
    [...books.checks, ...archives].filter(({ ok }) => !ok),
    [],
  );
  const { house, customersMicros, transfers, calls: counted } = books;
  return { house, customersMicros, transfers, calls: counted };
}

const idsOf = async (table: 'calls' | 'ledger_transfers', { from, to }: { from: string; to: string }) => {
  const rows = await database.sql<{ id: string }[]>`
    select id::text from ${database.sql(table)} where id >= ${from} and id < ${to} order by 1`;
  return rows.map(({ id }) => id);
};
const fileOf = (which: 'calls' | 'transfers', week: string) =>
  join(folder, readdirSync(folder).find((name) => name.startsWith(`${which}_${week}_`)) ?? '');

test('a week leaves for files that common tools read, with what is named staying, and the books as they were', async () => {
  const { week, plain, given, overMidnight } = await nextWeek();
  const onChain = await soldOnChain();
  const shared = await sell({ capture: false, endsAfterMs: DAY_MS });
  await database.sql`update calls set shared = true, begun_at = created_at where id = ${shared.id}`;
  await settle();
  const day = new Date(FIRST_MS).toISOString().slice(0, 10);
  const dayMs = Date.parse(`${day}T00:00:00Z`);
  const booked = async () => {
    const lines = [];
    for await (const line of accountingLines(database.sql, {
      fromMs: dayMs,
      toMs: dayMs,
      costs: { declared: [], services: [], measuredOn: async () => [] },
    }))
      lines.push(line);
    return lines;
  };
  const [sums, lines] = [await provenSums(), await booked()];
  assert.deepEqual(await archive(), [week.name]);
  assert.deepEqual(await provenSums(), sums);
  assert.deepEqual(await booked(), lines);
  const staying = [given.id, onChain, shared.id].sort();
  assert.deepEqual(
    await idsOf('calls', week),
    staying,
    'what a refund names stays, and what somebody has a share of',
  );
  assert.deepEqual(
    await idsOf('ledger_transfers', week),
    staying.flatMap((id) => [id, id]),
  );
  const [paid] =
    await database.sql`select 1 from call_identities where account_id = 5 and call_id = ${onChain}`;
  assert.ok(paid, 'a payment on a chain never buys twice');

  const archived = await parquetReadObjects({ file: await asyncBufferFromFile(fileOf('calls', week.name)) });
  assert.deepEqual(
    archived.map(({ id }) => id),
    [...plain, overMidnight].map(({ id }) => id).sort(),
  );
  const first = archived.find(({ id }) => id === plain[0]?.id);
  assert(
    first !== undefined && !('identity' in first) && !('fingerprint' in first),
    'what people sent stays out of files',
  );
  assert.equal(first?.price_micros, PRICE);
  assert.equal(first?.created_at.getTime(), FIRST_MS);
  const transfers = await parquetReadObjects({
    file: await asyncBufferFromFile(fileOf('transfers', week.name)),
  });
  assert.equal(transfers.length, 8);
  assert.deepEqual(await archive(), [], 'it is done once');
});

for (const [tool, program] of [
  [
    'pyarrow',
    'import sys, pyarrow.parquet as p; print(sum(p.read_table(sys.argv[1])["price_micros"].to_pylist()))',
  ],
  [
    'duckdb',
    'import sys, duckdb; print(duckdb.sql(f"select sum(price_micros) from read_parquet(\'{sys.argv[1]}\')").fetchone()[0])',
  ],
] as const) {
  const there = spawnSync('python3', ['-c', `import ${tool}`]).status === 0;
  test(`${tool} reads an archive`, { skip: !there && `no python3 with ${tool} on PATH: not tried` }, () => {
    const { name } = weekOf(FIRST_MS);
    const sum = execFileSync('python3', ['-c', program, fileOf('calls', name)], { encoding: 'utf8' });
    assert.equal(sum.trim(), String(4n * PRICE));
  });
}

test('what paid for an archived call is forgotten with it, and no call of its week is begun, changed or applied again', async () => {
  const { week, plain, given, released } = await nextWeek();
  await settle();
  await archive();
  const sums = await provenSums();
  await assert.rejects(
    calls.begin({ ...callOf(), id: newTransferId(nowMs) }),
    /is of a week that is archived/,
  );
  const [call] = plain;
  assert.ok(call);
  const spent = await calls.finish({ ...call, capture: true, outcome: 'answered', answer: null });
  assert.notEqual(spent.status, 'done', 'a call that left takes nothing more');
  await assert.rejects(
    database.sql`update calls set state = 2 where account_id = ${String(account)} and id = ${given.id}`,
    /is of a week that is archived/,
  );
  assert.deepEqual(await provenSums(), sums);
  await assert.rejects(
    database.sql.begin((transaction) => callStory(transaction, account, call.id)),
    { status: 410, code: 'HISTORY_ARCHIVED' },
  );
  await assert.rejects(refuseArchived(database.sql, given.id), { status: 410, code: 'HISTORY_ARCHIVED' });
  // The same cause again is the same transfer, which stays for ever.
  const again = await ledger.transfer({
    id: transferIdFor(`refund:${given.id}`),
    accountId: account,
    phase: 'posted',
    side: 'credit',
    house: 'revenue_credits',
    amountMicros: PRICE,
    code: 'call_refund',
    note: `undelivered call ${given.id}`,
  });
  assert.equal(again.status, 'done');
  assert.deepEqual(await provenSums(), sums);
  nowMs = Date.now();
  await createWeeks(database).make(nowMs);
  for (const identity of [call.identity, released.identity]) {
    const anew = await calls.begin({ ...callOf(), identity, fingerprint: call.fingerprint });
    assert.equal(anew.status, 'authorized', 'an Idempotency-Key is remembered as long as its call');
  }
  await database.sql`delete from call_identities where account_id = ${String(account)}`;
  await database.sql.begin((transaction) => makeWeeks(transaction, [week]));
  assert.deepEqual(
    await database.sql`select to_regclass(${`call_answers_${week.name}`}) as there`.then(
      ([row]) => row?.there,
    ),
    null,
    'nor is the week made again',
  );
  const open = await database.sql<{ id: string }[]>`select id::text from calls where state = 0`;
  for (const { id } of open)
    await calls.finish({ ...callOf(), id, capture: false, outcome: 'failed', answer: null });
});

test('a person is erased from calls of a week that is being archived, or was, and nothing else of them is changed', async () => {
  /** A call of the week that stays, since a refund names it. */
  const nextNamed = async () => {
    const { week } = await nextWeek();
    nowMs = FIRST_MS + (weekNumber - 1) * WEEK_MS + 60_000;
    const call = await sell({ identity: `a person of week ${weekNumber}` });
    await database.sql`update calls set begun_at = created_at where begun_at > created_at + interval '1 day'`;
    await ledger.transfer({
      id: transferIdFor(`refund:${call.id}`),
      accountId: account,
      phase: 'posted',
      side: 'credit',
      house: 'revenue_credits',
      amountMicros: PRICE,
      code: 'call_refund',
      note: `undelivered call ${call.id}`,
    });
    await settle();
    return { week, call };
  };
  const erase = () => database.sql`
    update calls set identity = null, fingerprint = null
    where account_id = ${String(account)} and (identity is not null or fingerprint is not null)`;
  const left = async (id: string) => {
    const [row] = await database.sql<{ identity: string | null; fingerprint: Buffer | null }[]>`
      select identity, fingerprint from calls where account_id = ${String(account)} and id = ${id}`;
    return row === undefined ? [] : [row.identity, row.fingerprint];
  };

  const before = await nextNamed();
  const stopped = (_week: string, step: ArchiveStep) => {
    if (step === 'written') throw new Error('stopped');
  };
  await assert.rejects(archive(stopped));
  await erase();
  await leaseIsOver();
  assert.deepEqual(await archive(), [before.week.name]);
  assert.deepEqual(await left(before.call.id), [null, null], 'the drop brings back nothing that was erased');

  const after = await nextNamed();
  assert.deepEqual(await archive(), [after.week.name]);
  assert.equal((await left(after.call.id))[0], after.call.identity);
  await assert.rejects(
    database.sql`update calls set identity = null, fingerprint = null, service = 'other' where id = ${after.call.id}`,
    /is of a week that is archived/,
  );
  await assert.rejects(
    database.sql`update calls set identity = 'other' where id = ${after.call.id}`,
    /is of a week that is archived/,
  );
  await erase();
  assert.deepEqual(await left(after.call.id), [null, null]);
  await provenSums();
});

test('a released call leaves with its transfers and what was to pay for it, after thirty days and once', async () => {
  const { released, overMidnight, given } = await nextWeek();
  const more = [];
  nowMs = FIRST_MS + (weekNumber - 1) * WEEK_MS + 60_000;
  for (let n = 0; n < 3; n += 1) more.push(await sell({ capture: false }));
  const named = await sell({ capture: false });
  const shared = await sell({ capture: false });
  await database.sql`update calls set shared = true where id = ${shared.id}`;
  await database.sql`update calls set begun_at = created_at where begun_at > created_at + interval '1 day'`;
  await database.sql`
    insert into followed_calls (account_id, call_id, key_id, fingerprint, delivery, expires_at)
    select account_id, id, 1, ''::bytea, gen_random_uuid(), now() from calls where id = ${named.id}`;
  const lastDay = new Date(nowMs + 2 * DAY_MS).toISOString().slice(0, 10);
  await closeDays(database.patient, lastDay, () => true);
  const sums = await provenSums();
  const drop = (days: number) => dropReleased(database.patient, () => nowMs + days * DAY_MS, undefined, 2);
  await database.sql`update sales_folded set calls_to = now()`;
  assert.equal(await drop(30), 0, 'not before thirty days have passed');
  await database.sql`update sales_folded set calls_to = ${new Date(nowMs - DAY_MS).toISOString()}`;
  assert.equal(await drop(32), 0, 'not before they are counted as sales');
  await database.sql`update sales_folded set calls_to = now()`;
  const day = new Date(FIRST_MS + (weekNumber - 1) * WEEK_MS).toISOString().slice(0, 10);
  const dropOne = async () => {
    const [gone] = await database.sql<{ count: number }[]>`
      select ${database.sql(sqlFunction('released_calls_drop'))}(${day}::date, 1) as count`;
    return gone?.count;
  };
  await database.sql.begin(async (another) => {
    await another`select pg_advisory_xact_lock(8403)`;
    assert.equal(await dropOne(), 0, 'another is at it');
  });
  assert.equal(await dropOne(), 1, 'no more at once than it is told');
  const dropped = await Promise.all([drop(32), drop(32), drop(32)]);
  for (let again = await drop(32); again > 0; again = await drop(32)) dropped.push(again);
  assert.equal(
    dropped.reduce((sum, each) => sum + each, 0),
    3,
  );
  const gone = [released, ...more].map(({ id }) => id);
  const left = await database.sql<{ id: string }[]>`
    select id::text from calls where id in ${database.sql(gone)}
    union all select id::text from ledger_transfers where id in ${database.sql(gone)}
    union all select call_id::text from call_identities where call_id in ${database.sql(gone)}`;
  assert.deepEqual([...left], []);
  for (const { id } of [named, shared, overMidnight, given])
    assert.equal((await database.sql`select 1 from calls where id = ${id}`).length, 1);
  const { calls: counted, ...rest } = await provenSums();
  assert.deepEqual(rest, {
    house: sums.house,
    customersMicros: sums.customersMicros,
    transfers: sums.transfers,
  });
  assert.equal(counted.released, sums.calls.released - 4n);
  for (const [call, dayMs] of [
    [given, nowMs],
    [overMidnight, nowMs],
    [given, nowMs + DAY_MS],
  ] as const)
    await assert.rejects(
      database.sql`
        select ${database.sql(sqlFunction('ledger_drop_released'))}(${new Date(dayMs).toISOString().slice(0, 10)}::date,
          array[0]::smallint[], array[${String(account)}]::text[]::bigint[], array[${call.id}]::text[]::uuid[])`,
      /other transfers than one hold and its end/,
    );
  await database.sql`delete from followed_calls`;
  await settle();
  await archive();
});

for (const step of ['sealed', 'kept', 'file', 'named', 'written', 'carried', 'dropped'] as const)
  test(`a process that dies after the step "${step}" leaves books that hold, and another one goes on`, async () => {
    const { week, plain } = await nextWeek();
    await settle();
    const sums = await provenSums();
    const died = archive((_, done) => {
      if (done === step) throw new Error('killed');
    });
    await assert.rejects(died, AggregateError);
    assert.deepEqual(await provenSums(), sums);
    const [row] = await database.sql`select dropped_at from call_archives where week = ${week.name}`;
    assert.equal(row?.dropped_at, null);
    await assert.rejects(
      database.sql`update calls set outcome = 'late' where account_id = ${String(account)} and id = ${plain[0]?.id ?? ''}`,
      /is of a week that is archived/,
    );
    if (step !== 'sealed') assert.deepEqual(await archive(), [], 'a lease is left alone while it lasts');
    await leaseIsOver();
    assert.deepEqual(await archive(), [week.name]);
    assert.deepEqual(await provenSums(), sums);
    const files = readdirSync(folder).filter((name) => name.includes(week.name));
    assert.equal(files.length, 2, 'what was left unfinished is gone');
  });

test('replicas that archive at once do each week once', async () => {
  const { week } = await nextWeek();
  await settle();
  const sums = await provenSums();
  const done = await Promise.allSettled([archive(), archive(), archive()]);
  const left = done.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  assert.deepEqual(left, [week.name]);
  assert.deepEqual(await provenSums(), sums);
});

test('a week waits for what is open in it, and does not hold up the one after it', async () => {
  const { week: first } = await nextWeek();
  const open = callOf();
  await calls.begin(open);
  await database.sql`update calls set begun_at = created_at where id = ${open.id}`;
  const { week: second } = await nextWeek();
  await database.sql`delete from call_answers`;
  await database.sql`update sales_folded set calls_to = now(), transfers_to = now()`;
  const waits = new Map<string, string>();
  const why = (week: string, step: ArchiveStep, detail = '') => {
    if (step === 'waits') waits.set(week, detail);
  };
  assert.deepEqual(await archive(why), []);
  assert.deepEqual(
    [...waits],
    [
      [first.name, 'a call of it is open'],
      [second.name, 'its days of the books are not closed'],
    ],
  );
  nowMs += 1_000;
  await calls.finish({
    ...open,
    capture: true,
    outcome: 'answered',
    answer: { status: 200, headers: {}, body: '' },
  });
  waits.clear();
  await archive(why);
  assert.equal(waits.get(first.name), 'an answer of it is kept');
  await settle();
  await database.sql`
    insert into undelivered_calls (account_id, call_id, service, price_micros, revenue_account, retrievable, next_at)
    values (${String(account)}, ${open.id}, 'ping', ${String(PRICE)}, 1, false, now())`;
  assert.deepEqual(await archive(why), [second.name]);
  assert.equal(waits.get(first.name), 'money of one of its calls is on its way back');
  await database.sql`delete from undelivered_calls`;
  assert.deepEqual(await archive(), [first.name]);
  await provenSums();
});

/** The patient connections, on which something happens each time before one thing is done. */
const patientAfter = (name: 'begin' | 'unsafe', happens: () => Promise<void>) =>
  new Proxy(database.patient, {
    get: (pool, asked) =>
      asked !== name
        ? Reflect.get(pool, asked)
        : async (...given: unknown[]) => {
            await happens();
            return Reflect.apply(Reflect.get(pool, name), pool, given);
          },
  });
const archiveOn = (
  patient: TestDatabase['patient'],
  report: (week: string, step: ArchiveStep, detail?: string) => void,
) => {
  const pools = { sql: database.sql, patient };
  return archiveWeeks({ pools, nowMs: () => dueMs, historyDays: HISTORY_DAYS, folder, report }, () => true);
};

test('a transfer that is no call’s, and comes to a week while it is archived, stays in the database and counts once', async () => {
  const { week } = await nextWeek();
  await settle();
  const weekMs = nowMs;
  // Its day is open; its cause gave it an id of that week by chance.
  nowMs += 3 * DAY_MS;
  const ids: string[] = [];
  const grantLate = async () => {
    const id = newTransferId(weekMs);
    const granted = { phase: 'posted', side: 'credit', house: 'operator_grants' } as const;
    await ledger.transfer({ ...granted, id, accountId: account, amountMicros: 5n, code: 'operator_grant' });
    ids.push(id);
  };
  let isKept = false;
  const patient = patientAfter('unsafe', async () => {
    if (isKept && ids.length === 0) await grantLate();
  });
  const written = archiveOn(patient, (_, step) => {
    isKept ||= step === 'kept';
    if (step === 'written') throw new Error('stopped');
  });
  await assert.rejects(written, AggregateError);
  await grantLate();
  assert.equal(ids.length, 2);
  const sums = await provenSums();
  await leaseIsOver();
  assert.deepEqual(await archive(), [week.name]);
  const there = await idsOf('ledger_transfers', week);
  for (const id of ids) assert(there.includes(id), 'no cause is ever applied twice');
  assert.deepEqual(await provenSums(), sums);
  await settle();
});

test('a call that begins between the look at a week and its seal is seen, and the week waits for it', async () => {
  const { week } = await nextWeek();
  await settle();
  const open = callOf();
  let isBegun = false;
  const patient = patientAfter('begin', async () => {
    if (isBegun) return;
    isBegun = true;
    nowMs += 3 * DAY_MS;
    assert.equal((await calls.begin(open)).status, 'authorized');
  });
  const told: (string | undefined)[] = [];
  assert.deepEqual(await archiveOn(patient, (_, ...what) => void told.push(...what)), []);
  assert.deepEqual(told, ['waits', 'a call of it is open']);
  assert.equal((await database.sql`select 1 from call_archives where week = ${week.name}`).length, 0);
  await database.sql`update calls set begun_at = created_at where id = ${open.id}`;
  const ended = await calls.finish({ ...open, capture: true, outcome: 'answered', answer: null });
  assert.equal(ended.status, 'done', 'its week is not sealed');
  await settle();
  assert.deepEqual(await archive(), [week.name]);
  await provenSums();
});

test('while somebody has a call to give its price back, its week is not sealed', async () => {
  const { week, plain } = await nextWeek();
  await settle();
  await database.sql.begin(async (transaction) => {
    await transaction`set local idle_in_transaction_session_timeout = 0`;
    await transaction`select 1 from calls where account_id = ${String(account)} and id = ${plain[0]?.id ?? ''} for key share`;
    await assert.rejects(archive(), AggregateError);
    await refuseArchived(transaction, plain[0]?.id ?? '');
  });
  assert.deepEqual(await archive(), [week.name]);
});

test('a folder that is gone, full of other files or changed takes nothing out of the database', async () => {
  const { week } = await nextWeek();
  await settle();
  await assert.rejects(archive(noReport, join(folder, 'nowhere')), AggregateError);
  await leaseIsOver();
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  await assert.rejects(archive(noReport, empty), (error: AggregateError) =>
    /does not have calls_w/.test(String(error.errors[0])),
  );
  assert.deepEqual(readdirSync(empty), [], 'an empty folder may be a disk that is not mounted');
  await leaseIsOver();
  await assert.rejects(
    archive((_, step) => {
      if (step === 'written') writeFileSync(fileOf('transfers', week.name), 'not what was written');
    }),
    (error: AggregateError) => /is not what was written/.test(String(error.errors[0])),
  );
  assert.equal((await idsOf('calls', week)).length, 5);
  await database.sql`update call_archives set lease_until = '-infinity', written_at = null where week = ${week.name}`;
  assert.deepEqual(await archive(), [week.name]);
  await provenSums();
});

test('a file that lacks rows of its week takes nothing out of the database', async () => {
  const { week } = await nextWeek();
  await settle();
  const none = join(folder, 'none');
  await writeArchiveFile(none, TRANSFER_COLUMNS, (async function* () {})());
  const written = archive((_, step, which) => {
    if (step !== 'file' || which !== 'transfers') return;
    for (const name of readdirSync(folder).filter((each) => each.startsWith('.transfers_')))
      copyFileSync(none, join(folder, name));
  });
  await assert.rejects(written, (error: AggregateError) =>
    /transfers_w\d{8}_\w+\.parquet holds .*"rows":"0".* of the week's/.test(String(error.errors[0])),
  );
  assert.equal((await idsOf('calls', week)).length, 5);
  rmSync(none);
  await leaseIsOver();
  assert.deepEqual(await archive(), [week.name]);
  assert.equal(readdirSync(folder).filter((name) => name.includes(week.name)).length, 2);
  await provenSums();
});

test('a byte that is changed in a file, a file that is gone and a sum that is changed are found', async () => {
  const { name } = weekOf(FIRST_MS);
  const findings = async (at: string | null = folder) =>
    (await proveArchives(database.patient, at)).flatMap(({ finding }) => finding ?? []);
  assert.deepEqual(await findings(), []);
  const path = fileOf('transfers', name);
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
  const original = readFileSync(path);
  writeFileSync(path, bytes);
  assert.match((await findings()).join(), /transfers_w\d+_\w+\.parquet was changed/);
  writeFileSync(path, original);
  renameSync(path, `${path}.away`);
  assert.match((await findings()).join(), /it cannot be read: ENOENT/);
  renameSync(`${path}.away`, path);
  assert.match((await findings(null)).join(), /HISTORY_FOLDER is not set/);
  await database.sql`update call_archives set transfers_micros = transfers_micros + 1 where week = ${name}`;
  assert.match((await findings()).join(), /do not add up/);
  await database.sql`update call_archives set transfers_micros = transfers_micros - 1 where week = ${name}`;
  await database.sql`update ledger_carried set debits_posted = debits_posted + 1 where week = ${name} and account_id >= 1000`;
  assert.match((await findings()).join(), /do not say what is carried for account/);
  const rules = (await proveBooks(database.patient)).checks
    .filter(({ ok }) => !ok)
    .map(({ name: rule }) => rule);
  assert.ok(rules.includes('every balance equals its transfers'));
  assert.ok(rules.includes('what accounts moved on a closed day is what its transfers say'));
  await database.sql`update ledger_carried set debits_posted = debits_posted - 1 where week = ${name} and account_id >= 1000`;
  await database.sql`update calls_carried set calls = calls + 1 where week = ${name}`;
  assert.match((await findings()).join(), /do not say what is carried for account \d+ and ping/);
  await database.sql`update calls_carried set calls = calls - 1 where week = ${name}`;
  await database.sql`update ledger_transfers set note = 'for a friend' where code = 'call_refund'
    and created_at < ${new Date(FIRST_MS + 3 * DAY_MS).toISOString()}`;
  assert.match((await findings()).join(), /the closed day .* is not what it was closed with/);
});
