/** A process that is killed while it writes an archive, and a disk that is full then, take no row out of the database. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { proveBooks } from '../../../../apps/shop/test/books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { makeWeeks, type Week, weekOf } from '../db/weeks.ts';
import { closeDays } from '../ledger/closed-days.ts';
import { dropReleased } from './drop-released.ts';
import { proveArchives } from './prove-archives.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const HISTORY_DAYS = 400;
const ACCOUNT = 5_000;
/** So many transfers that they are written in two groups. */
const CALLS = 5_001;
const FIRST_MS = Math.floor((Date.now() - 600 * DAY_MS) / WEEK_MS) * WEEK_MS + 6.5 * DAY_MS;
const PROGRAM = join(import.meta.dirname, 'archive-once.fixture.ts');

let database: TestDatabase;
let folder: string;
let weekNumber = 0;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-cut-off-'));
  database = await openTestDatabase();
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await database?.close();
});

interface SoldWeek {
  week: Week;
  dueMs: number;
  rows: string;
}

/** A week of captured calls that may leave. */
async function nextWeek(): Promise<SoldWeek> {
  const { sql, patient } = database;
  const atMs = FIRST_MS + weekNumber * WEEK_MS;
  const account = String(ACCOUNT + weekNumber);
  weekNumber += 1;
  const week = weekOf(atMs);
  const at = new Date(atMs).toISOString();
  await sql.begin((transaction) => makeWeeks(transaction, [week]));
  await sql`
    insert into ledger_accounts (id, house, credits_posted, debits_posted) values (${account}, false, ${CALLS}, ${CALLS})`;
  await sql`
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    values (${account}, md5(${account})::uuid, 1, 4, ${account}, ${CALLS}, 'operator_grant', ${at})`;
  await patient.unsafe(`
    insert into calls (account_id, id, price_micros, created_at, begun_at, finished_at, expires_at, state, rail, service, outcome)
    select ${account}, ('${week.from.slice(0, 14)}7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, '${at}', '${at}', '${at}',
      '${at}', 1, 'credits', 'ping', 'answered' from generate_series(1, ${CALLS}) n;
    insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    select account_id, id, phase, account_id, 1, 1, 'call', created_at from calls_${week.name}, (values (2), (3)) p (phase);
    insert into call_spending (account_id, day, service, calls, spent_micros)
    values (${account}, '${at.slice(0, 10)}', 'ping', ${CALLS}, ${CALLS});
    update sales_folded set calls_to = now(), transfers_to = now()`);
  await closeDays(patient, new Date(atMs + 2 * DAY_MS).toISOString().slice(0, 10), () => true);
  await dropReleased(patient, Date.now);
  return { week, dueMs: atMs + WEEK_MS + HISTORY_DAYS * DAY_MS, rows: await rowsOf(week) };
}

/** A digest over what the database holds of a week. */
async function rowsOf({ from, to }: Week): Promise<string> {
  const [row] = await database.patient<{ digest: string }[]>`
    select md5(string_agg(line, E'\n' order by line)) as digest from (
      select c::text as line from calls c where id >= ${from} and id < ${to}
      union all select t::text from ledger_transfers t where id >= ${from} and id < ${to}
    ) x`;
  return row?.digest ?? 'nothing';
}

/** Archives in a process of its own. @param less.room the most kilobytes of a file */
function archive({ dueMs }: SoldWeek, less: { room?: number; killedAt?: number } = {}) {
  const { room = 'unlimited', killedAt = 0 } = less;
  const words = [PROGRAM, database.url, folder, dueMs, HISTORY_DAYS, killedAt].map(String);
  const limited = ['-c', `ulimit -f ${room}; exec "$@"`, 'bash', process.execPath, ...words];
  const { stdout, stderr, signal } = spawnSync('bash', limited, { encoding: 'utf8' });
  assert.equal(stderr, '');
  return { stdout, signal };
}

/** Every file that has the name of a whole one is whole: the name tells its bytes. @returns how many there are */
function wholeFiles({ week }: SoldWeek): number {
  const named = readdirSync(folder).filter((name) => name.includes(week.name) && name.endsWith('.parquet'));
  for (const name of named) {
    const sha256 = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
    assert(name.endsWith(`_${sha256.slice(0, 16)}.parquet`), `${name} is half written`);
  }
  return named.length;
}

const unfinished = () => readdirSync(folder).filter((name) => name.endsWith('.unfinished'));

/** Asserts that what was cut off has taken nothing: the rows are there, no file counts, and the books hold. */
async function holdsAll(sold: SoldWeek): Promise<void> {
  assert.equal(await rowsOf(sold.week), sold.rows);
  const [record] = await database.sql<{ written_at: Date | null; dropped_at: Date | null }[]>`
    select written_at, dropped_at from call_archives where week = ${sold.week.name}`;
  assert.equal(record?.dropped_at, null);
  if (record?.written_at !== null) assert.equal(wholeFiles(sold), 2);
  await database.sql`update call_archives set lease_until = '-infinity'`;
}

async function hasLeftWhole(sold: SoldWeek): Promise<void> {
  assert.equal(await rowsOf(sold.week), 'nothing');
  assert.deepEqual([wholeFiles(sold), unfinished().length], [2, 0]);
  const checks = [
    ...(await proveBooks(database.patient)).checks,
    ...(await proveArchives(database.patient, folder)),
  ];
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
}

const skip = process.platform === 'win32' && 'NOT TESTED: no limit of the size of files here';

test('a process that is killed while it writes takes no row, and its half of a file is no file', {
  skip,
}, async () => {
  const sold = await nextWeek();
  const halves = new Set<number>();
  let killedAt = 1;
  for (; archive(sold, { killedAt }).signal !== null; killedAt += 1) {
    for (const name of unfinished()) halves.add(statSync(join(folder, name)).size);
    wholeFiles(sold);
    await holdsAll(sold);
  }
  assert(killedAt > 5, `it was killed at ${killedAt - 1} places`);
  assert(halves.size > 2, `files were cut off at ${[...halves].join(', ')} bytes`);
  await hasLeftWhole(sold);
});

test('a disk that is full takes no row, and is left as it was', { skip }, async () => {
  const before = readdirSync(folder).find((name) => name.startsWith('calls_'));
  assert(before !== undefined, 'a week of as many calls has left');
  const roomForCalls = Math.ceil(statSync(join(folder, before)).size / 1024) + 2;
  const sold = await nextWeek();
  for (const [room, whole] of [
    [0, 0],
    [8, 0],
    [roomForCalls, 1],
  ] as const) {
    assert.deepEqual(archive(sold, { room }), { stdout: 'EFBIG', signal: null });
    assert.deepEqual([wholeFiles(sold), unfinished().length], [whole, 0], `with room for ${room} kilobytes`);
    await holdsAll(sold);
  }
  assert.deepEqual(archive(sold), { stdout: '', signal: null });
  await hasLeftWhole(sold);
});
