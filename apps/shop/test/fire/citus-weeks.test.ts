/**
 * Weeks of calls leave a database that Citus spreads for files, as they leave one PostgreSQL: the same rows, the same sums, once, whoever is
 * killed at it.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import type { Pools } from '../../../../packages/core/src/db/connection.ts';
import { makeWeeks, type Week, weekOf } from '../../../../packages/core/src/db/weeks.ts';
import { booksOf } from '../../../../packages/core/src/declared.ts';
import { type ArchiveStep, archiveWeeks } from '../../../../packages/core/src/history/archive-weeks.ts';
import { dropReleased } from '../../../../packages/core/src/history/drop-released.ts';
import { proveArchives } from '../../../../packages/core/src/history/prove-archives.ts';
import { openGrants } from '../../../../packages/core/src/keys/grant.ts';
import { proveBooks } from '../../../../packages/core/src/ledger/books.ts';
import { closeDays } from '../../../../packages/core/src/ledger/closed-days.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { newCallId } from '../../../../packages/core/src/ledger/transfer-id.ts';
import { refuseArchived } from '../../../../packages/core/src/operator/archived-call.ts';
import { callStory } from '../../../../packages/core/src/operator/call-story.ts';
import { createCallStore } from '../../../../packages/core/src/paid-call/inside/calls.ts';
import { DECLARED } from '../../src/app.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import {
  keysOnBothWorkers,
  openSpreadDatabase,
  runBooks,
  type SpreadDatabase,
  withoutCitus,
} from './citus.fixture.ts';
import { giveBackPrice, PRICE } from './citus-money.fixture.ts';
import { accountOf } from './money.fixture.ts';

const BUCKETS = 16;
const GRANT = usdToMicros('100');
const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const HISTORY_DAYS = 400;
/** Noon of a Wednesday: the weeks after it are archived one after the other. */
const FIRST_MS = Math.floor((Date.now() - 600 * DAY_MS) / WEEK_MS) * WEEK_MS + 6.5 * DAY_MS;
const PROGRAM = join(import.meta.dirname, '../../../../packages/core/src/history/archive-once.fixture.ts');
const FINGERPRINT = createHash('sha256').update('question').digest();

interface Account {
  id: bigint;
  bucket: number;
}
/** A database with two customers, and the folder of its archives. */
interface Shop {
  pools: Pools;
  customers: readonly Account[];
  folder: string;
  weeks: number;
  dueMs: number;
}

let database: SpreadDatabase;
let single: TestDatabase;
let spread: Shop;
let plain: Shop;
before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  const pools = await database.spread(4);
  const keys = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  spread = await shopOf(pools, keys);
  single = await openTestDatabase();
  const make = openGrants(single, Date.now, { accountBuckets: 1 });
  const give = () => make({ amountMicros: GRANT, label: 'test', note: 'test' });
  plain = await shopOf(single, [(await give()).apiKey, (await give()).apiKey]);
});
after(async () => {
  for (const shop of [spread, plain])
    if (shop !== undefined) rmSync(shop.folder, { recursive: true, force: true });
  await single?.close();
  await database?.close();
});

async function shopOf(pools: Pools, keys: readonly string[]): Promise<Shop> {
  const customers = await Promise.all(
    keys.map(async (key) => {
      const id = await accountOf(pools.sql, key);
      const [row] = await pools.sql<
        Account[]
      >`select id, bucket from ledger_accounts where id = ${String(id)}`;
      assert(row !== undefined);
      return row;
    }),
  );
  return { pools, customers, folder: mkdtempSync(join(tmpdir(), 'farebox-weeks-')), weeks: 0, dueMs: 0 };
}

interface Sold {
  account: Account;
  id: string;
  identity: string | null;
}

/** Sells a call that takes a second, or longer. */
async function sell(
  { pools }: Shop,
  account: Account,
  atMs: number,
  { capture = true, identity = null as string | null, takesMs = 1_000 } = {},
): Promise<Sold> {
  let nowMs = atMs;
  const calls = createCallStore(pools, { nowMs: () => nowMs, answerTtlMs: DAY_MS });
  const call = {
    id: newCallId(nowMs, account.bucket),
    accountId: account.id,
    bucket: account.bucket,
    keyId: null,
    rail: 'credits',
    service: 'ping',
    ttlMs: 40_000,
    priceMicros: PRICE,
    revenue: 'revenue_credits' as const,
    identity,
    onChainIdentity: null,
    fingerprint: identity === null ? null : FINGERPRINT,
  };
  const begun = await calls.begin(call);
  assert.equal(begun.status, 'authorized');
  nowMs += takesMs;
  const outcome = capture ? 'answered' : 'failed';
  assert.equal((await calls.finish({ ...call, capture, outcome, answer: null })).status, 'done');
  return { account, id: call.id, identity };
}

interface SoldWeek {
  week: Week;
  left: readonly Sold[];
  given: readonly Sold[];
}

/** Sells of each kind to each customer in the week after the last one, and has jobs do what they have done by the time that it is archived. */
async function nextWeek(shop: Shop, { settled = true } = {}): Promise<SoldWeek> {
  const { pools, customers } = shop;
  const atMs = FIRST_MS + shop.weeks * WEEK_MS;
  shop.weeks += 1;
  shop.dueMs = atMs + WEEK_MS + HISTORY_DAYS * DAY_MS;
  const week = weekOf(atMs);
  await pools.patient.begin((transaction) => makeWeeks(transaction, [week]));
  const [left, given]: [Sold[], Sold[]] = [[], []];
  for (const [nth, account] of customers.entries()) {
    left.push(await sell(shop, account, atMs, { identity: `week ${shop.weeks} of ${nth}` }));
    left.push(await sell(shop, account, atMs + 1_000));
    left.push(await sell(shop, account, atMs + 43_199_000 + nth, { capture: false, takesMs: 3_600_000 }));
    await sell(shop, account, atMs + 2_000, {
      capture: false,
      identity: `released in ${shop.weeks} by ${nth}`,
    });
    const back = await sell(shop, account, atMs + 3_000);
    await giveBackPrice(
      createLedger(pools, () => atMs + 4_000),
      account.id,
      back.id,
    );
    given.push(back);
  }
  await pools.sql`update calls set begun_at = created_at where begun_at > ${new Date(Date.now() - DAY_MS).toISOString()}`;
  if (settled) await settle(shop, atMs);
  return { week, left, given };
}

async function settle({ pools }: Shop, atMs: number): Promise<void> {
  await pools.sql`delete from call_answers`;
  await pools.sql`update sales_folded set calls_to = now(), transfers_to = now()`;
  await closeDays(pools.patient, new Date(atMs + 2 * DAY_MS).toISOString().slice(0, 10), () => true);
  await dropReleased(pools.patient, Date.now);
}

const archive = (
  { pools, dueMs, folder }: Shop,
  report: (week: string, step: ArchiveStep, detail?: string) => void = () => {},
) => archiveWeeks({ pools, nowMs: () => dueMs, historyDays: HISTORY_DAYS, folder, report }, () => true);
const leaseIsOver = () => spread.pools.sql`update call_archives set lease_until = '-infinity'`;

const SESSION = { name: 'a test', wanted: () => true };

/** The sums of the books, once all of their rules hold, those over the files too. */
async function provenSums({ pools, folder }: Shop) {
  const books = await proveBooks(pools.patient, booksOf(DECLARED), SESSION, 'everything');
  const archives = await proveArchives(pools.patient, folder);
  assert.deepEqual(
    [...books.checks, ...archives].filter(({ ok }) => !ok),
    [],
  );
  const { house, customersMicros, transfers, calls } = books;
  return { house, customersMicros, transfers, calls };
}

const fileOf = (folder: string, which: 'calls' | 'transfers', week: string) =>
  join(folder, readdirSync(folder).find((name) => name.startsWith(`${which}_${week}_`)) ?? '');

/** What the files of a week say in other columns than those that two databases number by themselves. */
async function writtenOf({ folder }: Shop, week: string): Promise<string[]> {
  const lines: string[] = [];
  for (const which of ['calls', 'transfers'] as const) {
    const file = await asyncBufferFromFile(fileOf(folder, which, week));
    for (const row of await parquetReadObjects({ file })) {
      const { state, phase, service, price_micros: price, amount_micros: amount, created_at: created } = row;
      lines.push([which, state, phase, service, price, amount, created.toISOString()].join(' '));
    }
  }
  return lines.sort();
}

async function carriedOf({ pools }: Shop): Promise<readonly unknown[]> {
  return pools.sql`
    select 'transfers', day::text, sum(transfers)::text as transfers, sum(debits_posted)::text as debits, sum(credits_posted)::text as credits
    from ledger_carried group by day, account_id >= 1000
    union all
    select 'calls', day::text, sum(calls)::text, sum(charged)::text, sum(spent_micros)::text from calls_carried group by day order by 1, 2, 3, 4, 5`;
}

async function idsOf({ from, to }: Week): Promise<string[]> {
  const rows = await spread.pools.sql<{ id: string }[]>`
    select id::text from calls where id >= ${from} and id < ${to} order by 1`;
  return rows.map(({ id }) => id);
}
const idsIn = (sold: readonly Sold[]) => sold.map(({ id }) => id).sort();

test('a week leaves with the same rows and sums as on one PostgreSQL', { skip: withoutCitus }, async () => {
  const { week, left, given } = await nextWeek(spread);
  await nextWeek(plain);
  const sums = await provenSums(spread);
  assert.deepEqual([await archive(plain), await archive(spread)], [[week.name], [week.name]]);
  assert.deepEqual(await provenSums(spread), sums);
  const written = await writtenOf(spread, week.name);
  assert.equal(written.length, 3 * left.length);
  assert.deepEqual(written, await writtenOf(plain, week.name));
  assert.deepEqual(await carriedOf(spread), await carriedOf(plain));
  assert.deepEqual(await idsOf(week), idsIn(given), 'what a refund names stays');
  assert.deepEqual(await archive(spread), [], 'it is done once');

  const path = fileOf(spread.folder, 'transfers', week.name);
  const original = readFileSync(path);
  writeFileSync(path, 'other');
  assert.match(JSON.stringify(await proveArchives(spread.pools.patient, spread.folder)), /was changed/);
  writeFileSync(path, original);

  const [call] = left;
  assert(call !== undefined);
  await assert.rejects(
    sell(spread, call.account, Date.parse(`${dayOf(week)}T12:00:00Z`)),
    /is of a week that is archived/,
  );
  await assert.rejects(
    spread.pools
      .sql`update calls set state = 2 where bucket = ${call.account.bucket} and id = ${given[0]?.id ?? ''}`,
    /is of a week that is archived/,
  );
  await assert.rejects(
    spread.pools.sql.begin((transaction) => callStory(transaction, call.account.id, call.id)),
    { status: 410, code: 'HISTORY_ARCHIVED' },
  );
  await assert.rejects(refuseArchived(spread.pools.sql, call.id), { status: 410, code: 'HISTORY_ARCHIVED' });
  const forgotten = await spread.pools.sql`
    select 1 from call_identities where identity = ${call.identity} or identity like 'released in 1 %'`;
  assert.deepEqual([...forgotten], [], 'an Idempotency-Key is remembered as long as its call');
});

const dayOf = ({ name }: Week) => `${name.slice(1, 5)}-${name.slice(5, 7)}-${name.slice(7)}`;

/** Archives in a process that kills itself after a step. */
async function killedAt(step: ArchiveStep): Promise<void> {
  const args = [PROGRAM, database.url, spread.folder, String(spread.dueMs), String(HISTORY_DAYS), step];
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], {
    stdio: 'inherit',
  });
  const [, signal] = await once(child, 'exit');
  assert.equal(signal, 'SIGKILL', step);
}

test('a process that is killed after any step takes nothing half-way, and another one goes on', {
  skip: withoutCitus,
}, async () => {
  const { week, left, given } = await nextWeek(spread);
  const sums = await provenSums(spread);
  const all = await idsOf(week);
  for (const step of ['sealed', 'kept', 'file', 'named', 'written', 'carried', 'dropped'] as const) {
    await killedAt(step);
    assert.deepEqual(await idsOf(week), all, step);
    await assert.rejects(
      spread.pools
        .sql`update calls set outcome = 'late' where bucket = ${left[0]?.account.bucket ?? 0} and id = ${left[0]?.id ?? ''}`,
      /is of a week that is archived/,
    );
    assert.deepEqual(await archive(spread), [], 'a lease is left alone while it lasts');
    await leaseIsOver();
  }
  assert.deepEqual(await provenSums(spread), sums);
  assert.deepEqual(await archive(spread), [week.name]);
  assert.deepEqual(await idsOf(week), idsIn(given));
  assert.deepEqual(await provenSums(spread), sums);
  assert.equal(readdirSync(spread.folder).filter((name) => name.includes(week.name)).length, 2);
  // It closes days up to yesterday, so it comes last.
  const said = await runBooks({
    DATABASE_URL: database.url,
    HISTORY_DAYS: String(HISTORY_DAYS),
    HISTORY_FOLDER: spread.folder,
  });
  assert.match(said, new RegExp(`the archive of the week ${week.name} holds what left the database`));
});
