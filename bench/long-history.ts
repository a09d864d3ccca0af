/**
 * (u) a shop with a long history against the same shop with a short one: what operators and owners of keys look at, the jobs, the
 * books, an archive, and paid calls. What is open, due or of the last days is the same in both (`long-ago.ts`).
 */
import { DECLARED } from '../apps/shop/src/app.ts';
import { startTestServer, type TestServer } from '../apps/shop/test/server.fixture.ts';
import { connectDatabase, connectPools, endPools, type Pools } from '../packages/core/src/db/connection.ts';
import { sqlFunction } from '../packages/core/src/db/functions.ts';
import { migrate } from '../packages/core/src/db/migrate.ts';
import { booksOf } from '../packages/core/src/declared.ts';
import { archiveWeeks } from '../packages/core/src/history/archive-weeks.ts';
import type { Job } from '../packages/core/src/jobs/schedule.ts';
import { type Books, proveBooks } from '../packages/core/src/ledger/books.ts';
import { closeDays, openDays } from '../packages/core/src/ledger/closed-days.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import {
  BUSIEST_ACCOUNT,
  fillLongAgo,
  keyOfBusiest,
  type LongAgo,
  oldMondays,
  WHILE_FILLED,
} from './long-ago.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const TOKEN = 'a-token-of-the-benchmark-and-of-nothing-else';
const CONNECTIONS = 64;
const KEYS = 200;
/** A reading is repeated for this part of a round. */
const PART_OF_ROUND = 0.1;
const LEAST_READINGS = 3;
/** Calls that the count of sales takes at once. */
const FOLDED = 1_000;
/** Answers whose time is over, of one round. */
const EXPIRED = 20;
/** The newest of the open days, which the proof reads, and which stay open. */
const DAYS_PROVED = 2;
/** At most so much longer. */
const TIME_GOAL = { below: 1.2 };
const CALLS_GOAL = { atLeast: 0.95 };
/** Jobs that ask somebody outside. */
const ASKING = [
  'ask-facilitators',
  'read-card-events',
  'resume-relayers',
  'fetch-data-lists',
  'read-law-pages',
];
/** Jobs whose rounds read calls, transfers or what is kept of them: each has a line of its own. */
const OVER_CALLS = [
  'reconcile-calls',
  'make-weeks-of-calls',
  'drop-released-calls',
  'compact-weeks',
  'measure-services',
  'fold-sales',
  'forget-requests',
  'drop-expired-answers',
  'drop-followed-calls',
  'finish-settlements',
  'watch-settlements',
  'pay-refunds',
  'pay-shares',
];

interface Side {
  past: LongAgo;
  dataDir: string;
  pools: Pools;
  server: TestServer;
  key: string;
}

/** Fills the database of a folder, which nothing runs on afterwards. */
async function fill(dataDir: string, past: LongAgo, nowMs: number): Promise<void> {
  const embedded = await startEmbeddedPostgres(dataDir, undefined, WHILE_FILLED);
  const pools = connectPools(embedded.url, 4);
  const admin = connectDatabase(embedded.url, 1);
  try {
    await migrate(admin);
    const startedAtMs = performance.now();
    await fillLongAgo(admin, pools, nowMs, past);
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    process.stderr.write(`bench: ${past.calls.toLocaleString('en')} calls of long ago after ${seconds} s\n`);
  } finally {
    await Promise.all([endPools(pools, 5), admin.end({ timeout: 5 })]);
    await embedded.stop();
  }
}

/** Opens a folder that was filled. */
async function open(resources: Resources, dataDir: string, past: LongAgo): Promise<Side> {
  const embedded = await startEmbeddedPostgres(dataDir);
  resources.defer(() => embedded.stop());
  const pools = connectPools(embedded.url, 4);
  resources.defer(() => endPools(pools, 5));
  const key = await keyOfBusiest(pools.sql);
  const server = await startTestServer({
    pools,
    environment: { ADMIN_TOKENS: `bench:${TOKEN}`, RATE_LIMIT_PER_ACCOUNT: '1000000' },
  });
  resources.defer(() => server.close());
  return { past, dataDir, pools, server, key };
}

/** @returns the middle time of a reading, in milliseconds */
async function timeOf(work: () => Promise<unknown>, forMs: number): Promise<number> {
  const took: number[] = [];
  const until = performance.now() + forMs;
  while (took.length < LEAST_READINGS || performance.now() < until) {
    const startedAtMs = performance.now();
    await work();
    took.push(performance.now() - startedAtMs);
  }
  return took.sort((a, b) => a - b)[Math.floor(took.length / 2)] ?? Number.NaN;
}

/** What is read over HTTP, by its path. */
async function pagesOf({ pools }: Side): Promise<[string, string][]> {
  const [call] = await pools.sql<{ id: string; transaction: string; payer: string; day: string }[]>`
    select c.id, s.transaction, s.payer, to_char(now() - interval '1 day', 'YYYY-MM-DD') as day
    from settlements s, lateral (
      select id from calls where account_id = ${BUSIEST_ACCOUNT} order by id limit 1 offset 100) c limit 1`;
  if (call === undefined) throw new Error('(u) there is no call');
  const find = (query: string) => `/admin/api/find?q=${encodeURIComponent(query)}`;
  return [
    ['overview of 90 days', '/admin/api/overview?days=90'],
    ['overview of 30 days', '/admin/api/overview?days=30'],
    ['services', '/admin/api/services'],
    ['keys', '/admin/api/keys'],
    ['the busiest account, with its calls, transfers and days', `/admin/api/accounts/${BUSIEST_ACCOUNT}`],
    ['an account among many', `/admin/api/accounts/${BUSIEST_ACCOUNT + 5_000}`],
    ['a call is found', find(call.id)],
    ['the story of a call', `/admin/api/calls/${call.id}?account=${BUSIEST_ACCOUNT}`],
    ['a transaction is found', find(call.transaction)],
    ['a wallet is found', find(call.payer)],
    ['a request is found', find('req_of-nobody')],
    ['the books, as proved last', '/admin/api/books'],
    ['payments to be sent back by hand', '/admin/api/owed'],
    ['acts of operators', '/admin/api/acts'],
    ['proposals', '/admin/api/proposals'],
    ['the accountant’s export of a day', `/admin/api/accounting.csv?from=${call.day}&to=${call.day}`],
    ['a key, as its owner sees it', '/api/keys/me'],
    ['the catalog', '/x402/catalog'],
  ];
}

async function read({ server, key }: Side, path: string): Promise<void> {
  const headers = path.startsWith('/admin') ? { authorization: `Bearer ${TOKEN}` } : { 'x-api-key': key };
  const response = await fetch(server.url + path, { headers });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`(u) ${path} was answered ${response.status}: ${body}`);
  // A section that took too long is left out, and said so.
  if (body.includes('could not be read')) throw new Error(`(u) ${path} left something out: ${body}`);
}

const jobOf = ({ server }: Side, name: string): Job => {
  const job = server.app.jobs.find((each) => each.name === name);
  if (job === undefined) throw new Error(`(u) there is no job ${name}`);
  return job;
};

/** Measures the newest day's calls anew, which the job does every ten minutes. */
async function measureAgain(side: Side): Promise<void> {
  await side.pools.sql`update service_figures set measured_at = now() - interval '1 hour'`;
  await jobOf(side, 'measure-services').run();
}

/** Counts the newest calls once more, and takes that back. */
async function foldAgain({ pools }: Side): Promise<void> {
  await pools.patient
    .begin(async (on) => {
      await on`update sales_folded set calls_to = (
        select begun_at from calls where begun_at > now() - interval '2 days' and begun_at < calls_to
        order by begun_at desc offset ${FOLDED} limit 1)`;
      const [row] = await on<{ looked: number | null }[]>`
        select ${on(sqlFunction('sales_fold_calls'))}(${FOLDED}) as looked`;
      if ((row?.looked ?? 0) < FOLDED) throw new Error(`(u) ${row?.looked} calls were counted`);
      throw new TakenBack();
    })
    .catch((error: unknown) => {
      if (!(error instanceof TakenBack)) throw error;
    });
}
class TakenBack extends Error {}

/** Deletes answers whose time is over. @returns milliseconds */
async function dropAnswers(side: Side): Promise<number> {
  const { count } = await side.pools.sql`
    update call_answers set expires_at = now() - interval '1 second' where (account_id, id) in (
      select account_id, id from call_answers where expires_at > now() order by expires_at limit ${EXPIRED})`;
  if (count !== EXPIRED) throw new Error(`(u) only ${count} answers were left`);
  const startedAtMs = performance.now();
  await jobOf(side, 'drop-expired-answers').run();
  return performance.now() - startedAtMs;
}

/** Closes the next day. @returns milliseconds */
async function closeNextDay({ pools }: Side): Promise<number> {
  const open = await openDays(pools.patient);
  const day = open?.since.slice(1, 11) ?? '';
  const startedAtMs = performance.now();
  const closed = await closeDays(pools.patient, day, () => true);
  if (closed[0] !== day) throw new Error(`(u) ${day} could not be closed`);
  return performance.now() - startedAtMs;
}

async function prove({ pools }: Side): Promise<Books> {
  const books = await proveBooks(pools.patient, booksOf(DECLARED), undefined, 'open days');
  if (books.balanced) return books;
  throw new Error(
    `(u) the books do not balance: ${books.checks.flatMap(({ finding }) => finding ?? []).join('; ')}`,
  );
}

/** Archives the oldest week. @returns the rows that left for files, in a second */
async function archiveOne(side: Side, folder: string, monday: number): Promise<number> {
  const { pools } = side;
  const historyDays = Math.floor((Date.now() - monday - WEEK_MS) / DAY_MS);
  const startedAtMs = performance.now();
  const report = (week: string, step: string, detail?: string) => {
    if (step === 'waits') throw new Error(`(u) the week ${week} waits: ${detail}`);
  };
  const [week] = await archiveWeeks({ pools, nowMs: Date.now, historyDays, folder, report }, () => true);
  const tookMs = performance.now() - startedAtMs;
  const [left] = await pools.sql<{ rows: bigint }[]>`
    select captured + released + transfers as rows from call_archives where week = ${week ?? ''}`;
  if (left === undefined) throw new Error('(u) no week was archived');
  return (Number(left.rows) * 1_000) / tookMs;
}

/** The books and the archive: they change what they measure, so each round has a day and a week of its own. */
async function measureBooks(
  sides: [Side, Side],
  plan: Plan,
  folders: [string, string],
): Promise<ComparedLine[]> {
  const lines: ComparedLine[] = [];
  const [many, few] = sides;
  const both = async (
    measured: string,
    unit: ComparedLine['unit'],
    goal: ComparedLine['goal'],
    work: (side: Side, nth: number) => Promise<number>,
  ) => {
    const nth = new Map<Side, number>();
    const next = async (side: Side) => {
      const number = nth.get(side) ?? 0;
      nth.set(side, number + 1);
      return work(side, number);
    };
    for (const side of sides) await next(side);
    const found = await alternate(
      plan.rounds,
      () => next(many),
      () => next(few),
    );
    lines.push({ part: 'u', measured, unit, ...compare(found.ours, found.opponent), goal });
  };
  const calls = (count: number) => count.toLocaleString('en');
  await both(`a day of ${calls(plan.longAgo.dayCalls)} calls is closed`, 'ms', TIME_GOAL, closeNextDay);
  await both(`proof of ${DAYS_PROVED} open days and today`, 'ms', TIME_GOAL, async (side) => {
    const startedAtMs = performance.now();
    await prove(side);
    return performance.now() - startedAtMs;
  });
  await both(
    `a week of ${calls(plan.longAgo.weekCalls)} calls leaves for files`,
    'rows/s',
    { atLeast: 1 / TIME_GOAL.below },
    (side, nth) => {
      const folder = folders[sides.indexOf(side)];
      const monday = oldMondays(Date.now(), side.past)[nth];
      if (folder === undefined || monday === undefined) throw new Error('(u) no week is left');
      return archiveOne(side, folder, monday);
    },
  );
  return lines;
}

/** Whatever is read again and again: pages, and rounds of jobs. */
async function measureReadings(sides: [Side, Side], plan: Plan): Promise<ComparedLine[]> {
  const [many, few] = sides;
  const paths = await Promise.all(sides.map(async (side) => new Map(await pagesOf(side))));
  const [ofMany, ofFew] = paths;
  const readings: [string, (side: Side) => Promise<number>][] = [];
  const forMs = plan.roundMs * PART_OF_ROUND;
  for (const name of ofMany?.keys() ?? [])
    readings.push([
      name,
      (side) => timeOf(() => read(side, (side === many ? ofMany : ofFew)?.get(name) ?? ''), forMs),
    ]);
  for (const name of OVER_CALLS)
    readings.push([
      `job ${name}`,
      (side) =>
        timeOf(() => (name === 'measure-services' ? measureAgain(side) : jobOf(side, name).run()), forMs),
    ]);
  const others = many.server.app.jobs.filter(({ name }) => ![...OVER_CALLS, ...ASKING].includes(name));
  readings.push([
    `the ${others.length} other jobs, one after the other`,
    (side) =>
      timeOf(async () => {
        for (const { name } of others) await jobOf(side, name).run();
      }, forMs),
  ]);
  readings.push(
    [`${FOLDED.toLocaleString('en')} calls are counted`, (side) => timeOf(() => foldAgain(side), forMs)],
    [`${EXPIRED} answers are dropped`, dropAnswers],
  );
  const lines: ComparedLine[] = [];
  for (const [measured, work] of readings) {
    // The first rounds plan, and move on what they look at.
    for (const side of sides) await work(side);
    const found = await alternate(
      plan.rounds,
      () => work(many),
      () => work(few),
    );
    lines.push({
      part: 'u',
      measured,
      unit: 'ms',
      ...compare(found.ours, found.opponent),
      goal: TIME_GOAL,
    });
  }
  return lines;
}

async function measurePaidCalls(
  resources: Resources,
  load: Load,
  plan: Plan,
  many: Side,
): Promise<ComparedLine[]> {
  async function sell(dataDir: string) {
    const apiKeys = await makeKeys(dataDir, KEYS);
    const url = await startFarebox(resources, dataDir);
    return (durationMs: number) =>
      load.send({
        url,
        path: '/x402/ping',
        body: '{}',
        apiKeys,
        connections: CONNECTIONS,
        until: { durationMs },
        expectStatus: 200,
      });
  }
  const emptyDir = resources.folder();
  const embedded = await startEmbeddedPostgres(emptyDir);
  resources.defer(() => embedded.stop());
  const admin = connectDatabase(embedded.url, 1);
  await migrate(admin);
  await admin.end({ timeout: 5 });
  const sendToMany = await sell(many.dataDir);
  const sendToEmpty = await sell(emptyDir);
  for (const send of [sendToMany, sendToEmpty]) await send(plan.warmUpMs);
  const found = await alternate(
    plan.rounds,
    () => sendToMany(plan.roundMs),
    () => sendToEmpty(plan.roundMs),
  );
  const compared = (pick: 'perSecond' | 'p99Ms') =>
    compare(
      found.ours.map((result) => result[pick]),
      found.opponent.map((result) => result[pick]),
    );
  const measured = `paid calls, ${CONNECTIONS} connections, against an empty database`;
  return [
    { part: 'u', measured, unit: 'requests/s', ...compared('perSecond'), goal: CALLS_GOAL },
    { part: 'u', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
  ];
}

/** Measures one against the other, everything but paid calls without an order that matters. */
async function compareHistories(
  resources: Resources,
  load: Load,
  plan: Plan,
  { many, few }: { many: Side; few: Side },
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const sides: [Side, Side] = [many, few];
  const lines = await measureBooks(sides, plan, [resources.folder(), resources.folder()]);
  lines.push(...(await measureReadings(sides, plan)));
  const notes: string[] = [];
  for (const side of sides) {
    const { transfers, calls } = await prove(side);
    notes.push(
      `(u) ${calls.captured.toLocaleString('en')} calls were sold, ${transfers.toLocaleString('en')} transfers made: the books balance`,
    );
  }
  lines.push(...(await measurePaidCalls(resources, load, plan, many)));
  return { lines, notes };
}

export async function measureLongHistory(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const { many, few, weekCalls, dayCalls } = plan.longAgo;
  const nowMs = Date.now();
  const prepare = async (calls: number) => {
    const past: LongAgo = {
      calls,
      oldWeeks: plan.rounds + 1,
      oldWeekCalls: weekCalls,
      openDays: plan.rounds + 1 + DAYS_PROVED,
      dayCalls,
    };
    const dataDir = resources.folder();
    await fill(dataDir, past, nowMs);
    return open(resources, dataDir, past);
  };
  return compareHistories(resources, load, plan, { few: await prepare(few), many: await prepare(many) });
}
